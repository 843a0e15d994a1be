//! Tests the Debian package: installed into a directory of its own, started, upgraded and removed by dpkg.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::{Process, ToItsEnd};
use crate::support::{Directory, binary, free_port, get, until};

/// Builds the package of the program under test, with little compression. Returns its file.
fn build(directory: &Directory, version: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/debian/build");
    let mut command = Command::new(script);
    command.args([&binary(), version, &directory.join("")]);
    command.envs([("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")]);
    let built = command.run();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    String::from_utf8(built.stdout).unwrap().trim().to_owned()
}

/// An empty root directory, into which dpkg installs.
struct Machine(String);

impl Machine {
    fn new(directory: &Directory) -> Machine {
        let root = directory.join("machine");
        for part in ["info", "updates"] {
            fs::create_dir_all(format!("{root}/var/lib/dpkg/{part}")).unwrap();
        }
        fs::write(format!("{root}/var/lib/dpkg/status"), "").unwrap();
        Machine(root)
    }

    fn dpkg(&self, words: &[&str]) {
        let mut command = Command::new("dpkg");
        command.args([&format!("--root={}", self.0), "--force-not-root,script-chrootless,depends,confold,bad-path"]);
        command.arg(format!("--log={}/dpkg.log", self.0));
        let output = command.args(words).run();
        assert!(output.status.success(), "dpkg {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    fn has(&self, path: &str) -> bool {
        Path::new(&self.path(path)).exists()
    }

    /// Runs the installed master during a check.
    fn with_master(&self, port: u16, check: impl Fn(&str)) {
        let mut command = Command::new(self.path("/usr/bin/tepui"));
        command.args(["master", "--ip=127.0.0.1", &format!("--config={}", self.path("/etc/tepui/master.toml"))]);
        let state = self.path("/var/lib/tepui/master");
        command.args([format!("--port={port}"), format!("--work_dir={state}")]);
        let _master = Process::start(&mut command);
        let address = format!("127.0.0.1:{port}");
        until("the installed master answers", || get(&address, "/health").is_some());
        check(&address);
    }
}

#[test]
fn debian_package_is_installed_upgraded_and_removed() {
    if Command::new("dpkg-deb").arg("--version").run().status.code() != Some(0) {
        return println!("not run: it needs dpkg");
    }
    let directory = Directory::new("package");
    let first = build(&directory, "0.1.0~test1");
    let size = fs::metadata(&first).unwrap().len();
    println!("{first}: {:.1} MB with little compression", size as f64 / 1e6);
    let machine = Machine::new(&directory);
    machine.dpkg(&["--install", &first]);
    for path in [
        "/usr/bin/tepui",
        "/etc/tepui/agent.toml",
        "/lib/systemd/system/tepui-agent.service",
        "/usr/share/man/man1/tepui-agents-drain.1.gz",
        "/usr/share/bash-completion/completions/tepui",
        "/usr/share/doc/tepui/examples/prometheus/alerts.yml",
    ] {
        assert!(machine.has(path), "no {path}");
    }
    for part in ["master", "agent"] {
        let unit = fs::read_to_string(machine.path(&format!("/lib/systemd/system/tepui-{part}.service"))).unwrap();
        for kind in ["State", "Logs"] {
            assert!(unit.contains(&format!("\n{kind}Directory=tepui/{part}\n")), "{unit}");
        }
        let example = fs::read_to_string(machine.path(&format!("/etc/tepui/{part}.toml"))).unwrap();
        let audit_log = format!("# audit_log = \"/var/log/tepui/{part}/audit.log\"\n");
        assert!(example.contains(&audit_log), "the unit's directory has the log: {audit_log}");
    }
    let config = machine.path("/etc/tepui/master.toml");
    let text = fs::read_to_string(&config).unwrap().replace("# cluster = \"production\"", "cluster = \"mine\"");
    fs::write(&config, text).unwrap();
    let port = free_port();
    machine.with_master(port, |address| assert!(get(address, "/state").unwrap().contains("\"cluster\":\"mine\"")));

    // An upgrade keeps the configuration and the state.
    machine.dpkg(&["--install", &build(&directory, "0.1.0~test2")]);
    assert!(machine.has("/var/lib/tepui/master/registry.redb"));
    machine.with_master(port, |address| assert!(get(address, "/state").unwrap().contains("\"cluster\":\"mine\"")));

    machine.dpkg(&["--remove", "tepui"]);
    assert!(!machine.has("/usr/bin/tepui") && machine.has("/etc/tepui/master.toml"));
    assert!(machine.has("/var/lib/tepui/master/registry.redb"), "the state outlives the program");
    fs::create_dir_all(machine.path("/var/log/tepui/master")).unwrap();
    machine.dpkg(&["--purge", "tepui"]);
    assert!(!machine.has("/etc/tepui") && !machine.has("/var/lib/tepui") && !machine.has("/var/log/tepui"));
}
