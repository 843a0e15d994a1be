//! Tests a job and a Marathon app in Docker containers, in a network of their own with a mapped port.
//!
//! Requires root; without a Docker daemon or busybox the test reports that.
use std::fs;
use std::path::Path;

use crate::containers::programs_into;
use crate::docker::Dockerd;
use crate::one_agent::OneAgent;
use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{exchange, get, request, tepui, until, wait_for};

const BUSYBOX: &str = "/bin/busybox";

/// Elements of a list that is the command of a web server in the image.
const SERVER: &str = "\"/bin/busybox\", \"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"";

fn job(cluster: &OneAgent, words: &[&str]) -> String {
    let output = tepui().arg("job").args(words).env("TEPUI_MASTER", &cluster.address).run();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Returns the host port of a job's first task.
fn port(cluster: &OneAgent, name: &str) -> u64 {
    let view: serde_json::Value = serde_json::from_str(&job(cluster, &["show", name, "--json"])).unwrap();
    view["tasks"][0]["place"]["ports"][0].as_u64().unwrap()
}

#[test]
fn jobs_and_apps_in_networks_of_docker() {
    if !nix::unistd::geteuid().is_root() || !Path::new(BUSYBOX).exists() {
        return println!("not run: needs root, and busybox-static");
    }
    let Some(dockerd) = Dockerd::start("binpack-dockerd") else { return };
    let root = dockerd.path("www-root");
    programs_into(&root, &[BUSYBOX]);
    fs::create_dir_all(root.join("www")).unwrap();
    fs::write(root.join("www/index.html"), "from within\n").unwrap();
    dockerd.import_root("www:1", &root, &[]);
    let created = dockerd.docker(&["network", "create", "tepui-test"]);
    if !created.status.success() {
        return println!("not run: Docker has no networks here: {}", String::from_utf8_lossy(&created.stderr));
    }
    let flags = [
        "--launcher=posix".to_owned(),
        "--containerizers=mesos,docker".to_owned(),
        format!("--docker_socket={}", dockerd.socket()),
        "--docker_remove_delay=1ms".to_owned(),
    ];
    let cluster = OneAgent::start("binpack-docker", &flags);
    let mut framework =
        Process::start(tepui().args(["framework", "binpack", "--json"]).env("TEPUI_MASTER", &cluster.address));
    framework.until("the framework is known", || {
        tepui().args(["job", "list"]).env("TEPUI_MASTER", &cluster.address).run().status.success()
    });

    let text = format!(
        "name = \"web\"\nkind = \"service\"\nimage = \"www:1\"\ncontainerizer = \"docker\"\n\
         network = \"tepui-test\"\nports = 1\ncontainer_ports = [8080]\nprogram = [{SERVER}]\n\
         health = {{ tcp = true, interval = \"100ms\" }}\n"
    );
    let file = cluster.directory.write("web.toml", &text);
    assert!(job(&cluster, &["submit", "--wait", &file]).contains("web: running"));
    let address = format!("127.0.0.1:{}", port(&cluster, "web"));
    wait_for("the mapped port answers", || get(&address, "/index.html").filter(|body| body.contains("from within")));
    let inspected = dockerd.docker(&["ps", "--format", "{{.Image}} {{.Networks}} {{.Ports}}"]);
    let inspected = String::from_utf8_lossy(&inspected.stdout).into_owned();
    assert!(inspected.contains("www:1 tepui-test") && inspected.contains("->8080/tcp"), "{inspected}");
    job(&cluster, &["stop", "web"]);
    framework.line(Stream::Stdout, &["\"name\":\"web\"", "ended"]);

    // The same task runs as a Marathon app.
    let list = tepui().args(["frameworks", "--json"]).env("TEPUI_MASTER", &cluster.address).run();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let service = list[0]["webui_url"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let app = format!(
        "{{\"id\": \"/site\", \"args\": [{SERVER}], \"cpus\": 0.1, \"mem\": 32, \
         \"networks\": [{{\"mode\": \"container\", \"name\": \"tepui-test\"}}], \"container\": {{\"type\": \"DOCKER\", \
         \"docker\": {{\"image\": \"www:1\"}}, \"portMappings\": [{{\"containerPort\": 8080}}]}}}}"
    );
    let answer = request(&service, "POST", "/v2/apps", &app).unwrap();
    assert!(answer.contains("201"), "{answer}");
    until("the app runs", || job(&cluster, &["show", "site"]).contains("running"));
    let address = format!("127.0.0.1:{}", port(&cluster, "site"));
    let ask = "GET /index.html HTTP/1.0\r\n\r\n";
    wait_for("the app's port answers", || exchange(&address, ask).filter(|answer| answer.contains("from within")));
    job(&cluster, &["stop", "site"]);
    framework.line(Stream::Stdout, &["\"name\":\"site\"", "ended"]);
}
