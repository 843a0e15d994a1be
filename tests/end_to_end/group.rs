//! Masters of one group, with `--peers` or `--etcd`, and requests of tests to them.

use crate::etcd_server::Etcd;
use crate::support::{Daemon, Directory, call, free_port, request, tepui, until, wait_for};

/// Masters of one group.
pub struct Group {
    /// Value of `--etcd`; without it the group has `--peers`.
    pub etcd: Option<String>,
    pub ports: Vec<u16>,
    /// Running masters, with the same indices as the ports. They are dropped before the directory, so that a failure
    /// shows their logs.
    pub masters: Vec<Option<Daemon>>,
    pub directory: Directory,
}

impl Group {
    /// Creates three masters with `--peers`, without starting them.
    pub fn of_peers(name: &str) -> Group {
        Group::of(Directory::new(name), None, 3)
    }

    /// Creates masters with `--etcd`, without starting them.
    pub fn of_etcd(directory: Directory, etcd: &Etcd, count: usize) -> Group {
        Group::of(directory, Some(etcd.address()), count)
    }

    fn of(directory: Directory, etcd: Option<String>, count: usize) -> Group {
        let ports = (0..count).map(|_| free_port()).collect();
        Group { directory, etcd, ports, masters: (0..count).map(|_| None).collect() }
    }

    pub fn started(mut self) -> Group {
        (0..self.masters.len()).for_each(|index| self.start(index, &[]));
        self
    }

    pub fn address(&self, index: usize) -> String {
        format!("127.0.0.1:{}", self.ports[index])
    }

    pub fn list(&self) -> String {
        (0..self.ports.len()).map(|index| self.address(index)).collect::<Vec<_>>().join(",")
    }

    /// Starts a master of the group; `more` replaces flags of the group.
    pub fn start(&mut self, index: usize, more: &[&str]) {
        let own = match &self.etcd {
            Some(etcd) => vec![format!("--etcd={etcd}"), "--etcd_lease_timeout=2secs".to_owned()],
            None => vec![format!("--peers={}", self.list())],
        };
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        let own = own.iter().map(String::as_str).filter(|own| more.iter().all(|flag| name(flag) != name(own)));
        self.start_with(index, &own.chain(more.iter().copied()).collect::<Vec<_>>());
    }

    /// Starts a master with these flags alone.
    pub fn start_with(&mut self, index: usize, more: &[&str]) {
        let own = [
            format!("--port={}", self.ports[index]),
            format!("--work_dir={}", self.directory.join(&format!("m{index}"))),
        ];
        let words = ["master", "--ip=127.0.0.1", "--hostname=127.0.0.1", "--allocation_interval=50ms"];
        let words: Vec<String> = words.iter().chain(more).map(|word| (*word).to_owned()).chain(own).collect();
        let log = self.directory.path().join(format!("m{index}.log"));
        self.masters[index] = Some(Daemon::start(&log, &words, &[]));
    }

    pub fn log(&self, index: usize) -> String {
        std::fs::read_to_string(self.directory.path().join(format!("m{index}.log"))).unwrap_or_default()
    }

    pub fn leads(&self, index: usize) -> bool {
        let address = self.address(index);
        call(&address, "GET", "/state").is_some_and(|state| state["leader"] == format!("master@{address}"))
    }

    pub fn leader(&self) -> usize {
        let running = || (0..self.masters.len()).filter(|index| self.masters[*index].is_some());
        wait_for("a master leads", || running().find(|index| self.leads(*index)))
    }

    pub fn follows(&self, follower: usize, leader: usize) -> bool {
        let redirect = request(&self.address(follower), "GET", "/redirect", "").unwrap_or_default();
        redirect.contains(&format!("//{}", self.address(leader)))
    }

    /// Ends a master by a signal.
    pub fn end(&mut self, index: usize, signal: &str) {
        let mut master = self.masters[index].take().expect("it runs");
        master.signal(signal);
        until("it has ended", || master.ended());
    }

    pub fn set_weight(&self, leader: usize, weight: &str) {
        let body = format!(r#"[{{"role": "r", "weight": {weight}}}]"#);
        let answer = request(&self.address(leader), "PUT", "/weights", &body).unwrap_or_default();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    pub fn weight(&self, leader: usize) -> Option<f64> {
        call(&self.address(leader), "GET", "/weights")?[0]["weight"].as_f64()
    }

    /// Runs a command. Returns whether it succeeds, and its output.
    pub fn command(&self, words: &[&str]) -> (bool, String) {
        let output = tepui().args(words).env("TEPUI_MASTER", self.list()).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.success(), said)
    }

    pub fn agent(&self) -> Daemon {
        let words = ["agent", "--ip=127.0.0.1", "--launcher=posix", "--resources=cpus:2;mem:256;disk:256"];
        let own = [
            format!("--port={}", free_port()),
            format!("--master={}", self.list()),
            format!("--work_dir={}", self.directory.join("w")),
            format!("--runtime_dir={}", self.directory.join("r")),
            "--registration_backoff_factor=10ms".to_owned(),
        ];
        let words: Vec<String> = words.into_iter().map(str::to_owned).chain(own).collect();
        let mut agent = Daemon::start(&self.directory.path().join("a.log"), &words, &[]);
        agent.address().expect("the agent runs");
        agent
    }
}
