//! Tests containers in networks of their own, connected by Debian's CNI plugins.
//!
//! Requires root, control groups and the plugins; without them no test runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::one_agent::{OneAgent, can_isolate, end};
use crate::support::{Directory, call, get, wait_for};

/// Directories of the plugins on Debian and on other distributions.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// An address of the host that containers can reach; it is removed when this is dropped.
struct Address(String);

impl Address {
    /// Adds an address; `None` if it exists already.
    fn add(address: String) -> Option<Address> {
        let added = Command::new("ip").args(["address", "add", &address, "dev", "lo"]).status().unwrap().success();
        added.then_some(Address(address))
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["address", "del", &self.0, "dev", "lo"]).status();
    }
}

fn on(networks: Value) -> Value {
    json!({"type": "MESOS", "hostname": "box", "network_infos": networks})
}

/// Returns the addresses in a task's last status.
fn addresses(cluster: &OneAgent, task: &str) -> Vec<String> {
    let tasks = call(&cluster.address, "GET", &format!("/tasks?task_id={task}")).unwrap();
    let statuses = tasks["tasks"][0]["statuses"].as_array().cloned().unwrap_or_default();
    let infos = statuses.last().map(|status| status["container_status"]["network_infos"].clone()).unwrap_or_default();
    let infos = infos.as_array().cloned().unwrap_or_default();
    let all = infos.iter().flat_map(|info| info["ip_addresses"].as_array().cloned().unwrap_or_default());
    all.filter_map(|address| address["ip_address"].as_str().map(str::to_owned)).collect()
}

#[test]
fn containers_on_networks_of_their_own() {
    let needed = ["bridge", "ptp", "host-local", "portmap"];
    let there = |directory: &&&str| needed.iter().all(|plugin| Path::new(directory).join(plugin).exists());
    let Some(plugins) = PLUGINS.iter().find(there).filter(|_| can_isolate()) else {
        return println!(
            "NOT RUN: it needs root, cgroups v1 and CNI plugins (apt install containernetworking-plugins)"
        );
    };
    // A subnet that no other run of this test has.
    let mut parts = (0..250).map(|number| (std::process::id() + number) % 250);
    let taken = parts.find_map(|part| Some((part, Address::add(format!("10.213.{part}.1/32"))?)));
    let (part, host) = taken.expect("a part that is free");
    let directory = Directory::new("cni");
    let ipam = |net: u32| {
        json!({"type": "host-local", "subnet": format!("10.{net}.{part}.0/24"), "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": directory.join("addresses")})
    };
    let line = json!({"name": "line", "cniVersion": "0.3.1", "type": "ptp", "ipam": ipam(214), "dns": {"nameservers": ["10.9.9.9"]}});
    let bridge = format!("tpbr{part}");
    let house = json!({"name": "house", "cniVersion": "1.0.0", "plugins": [
        {"type": "bridge", "bridge": bridge, "isGateway": true, "ipam": ipam(215)}]});
    directory.write("a.conf", &line.to_string());
    directory.write("b.conflist", &house.to_string());
    directory.write("c.conf", "nonsense");
    let flags = [
        "--isolation=cgroups/cpu,filesystem/linux,namespaces/pid,network/cni".to_owned(),
        format!("--network_cni_config_dir={}", directory.path().display()),
        format!("--network_cni_plugins_dir={plugins}"),
        r#"--default_container_dns={"mesos": [{"network_mode": "CNI", "dns": {"nameservers": ["10.8.8.8"]}}]}"#
            .to_owned(),
    ];
    let mut cluster = OneAgent::start_at("networks", host.0.trim_end_matches("/32"), &flags);

    let look = "echo up; hostname; grep box /etc/hosts; cat /etc/resolv.conf; ls /sys/class/net > /dev/null; \
        ip -o -4 address show eth0 | grep -o 'inet [0-9.]*'; ip -o link show lo | grep -o 'lo: <[A-Z,_]*'";
    let (told, written) = cluster.run("look", json!({"value": look}), on(json!([{"name": "line"}])));
    let own = format!("10.214.{part}.2");
    let expected = format!("up\nbox\n{own} box\nnameserver 10.9.9.9\ninet {own}\nlo: <LOOPBACK,UP,LOWER_UP\n");
    assert_eq!(written, expected, "{told}");
    let (told, written) =
        cluster.run("servers", json!({"value": "cat /etc/resolv.conf"}), on(json!([{"name": "house"}])));
    assert_eq!(written, "nameserver 10.8.8.8\n", "{told}");
    let (told, _) = cluster.run("none", json!({"value": "true"}), on(json!([{"name": "other"}])));
    assert!(told.contains("TASK_FAILED") && told.contains("There is no network 'other'"), "{told}");
    let mapping = |port: u32| json!([{"name": "house", "port_mappings": [{"host_port": port, "container_port": 80}]}]);
    let (told, _) = cluster.run("others", json!({"value": "true"}), on(mapping(22)));
    assert!(told.contains("The port 22 that is to be mapped is not among the task's resources"), "{told}");

    let serve = "echo the word > word; echo up; exec python3 -m http.server 80";
    let server = cluster.start_task("server", json!({"value": serve}), on(mapping(31005)));
    let own = wait_for("its address is known", || match addresses(&cluster, "server").as_slice() {
        [own] if own.starts_with("10.215.") => Some(own.clone()),
        _ => None,
    });
    wait_for("it serves", || get(&format!("{own}:80"), "/word").filter(|text| text == "the word\n"));
    // A mapped port is reachable at all addresses of the host except the loopback device's own.
    wait_for("its port is mapped", || {
        get(&format!("{}:31005", host.0.trim_end_matches("/32")), "/word").filter(|text| text == "the word\n")
    });
    cluster.kill_agent_and_start_it_again();
    wait_for("it serves as before", || get(&format!("{own}:80"), "/word"));
    end(server);
    let left = || {
        let notes =
            fs::read_dir(cluster.directory.path().join("r/isolators/network/cni")).into_iter().flatten().count();
        let kept = fs::read_dir(directory.path().join("addresses")).into_iter().flatten().flatten();
        let leases = kept.flat_map(|network| fs::read_dir(network.path()).into_iter().flatten().flatten());
        notes + leases.filter(|lease| lease.file_name().to_string_lossy().starts_with("10.")).count()
    };
    wait_for("nothing is left", || (left() == 0).then_some(()));
    let _ = Command::new("ip").args(["link", "del", &bridge]).status();
}
