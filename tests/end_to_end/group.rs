//! Three masters with `--peers`, and what tests ask of them.

use crate::support::{Daemon, Directory, call, free_port, request, tepui, until, wait_for};

pub struct Group {
    /// The same index as the port's. Dropped before the directory, so that a failure shows their logs.
    pub masters: Vec<Option<Daemon>>,
    pub directory: Directory,
    pub ports: Vec<u16>,
}

impl Group {
    /// Three masters that run.
    pub fn new(name: &str) -> Group {
        let mut group = Group::prepared(name);
        (0..3).for_each(|index| group.start(index));
        group
    }

    /// Three masters that do not run yet.
    pub fn prepared(name: &str) -> Group {
        let ports = (0..3).map(|_| free_port()).collect();
        Group { directory: Directory::new(name), ports, masters: vec![None, None, None] }
    }

    pub fn address(&self, index: usize) -> String {
        format!("127.0.0.1:{}", self.ports[index])
    }

    pub fn peers(&self) -> String {
        (0..self.ports.len()).map(|index| self.address(index)).collect::<Vec<_>>().join(",")
    }

    pub fn start(&mut self, index: usize) {
        let peers = self.peers();
        self.start_with(index, &peers, &[]);
    }

    pub fn start_with(&mut self, index: usize, peers: &str, more: &[&str]) {
        let mut words = vec![
            "master".to_owned(),
            "--ip=127.0.0.1".to_owned(),
            "--hostname=127.0.0.1".to_owned(),
            format!("--port={}", self.ports[index]),
            format!("--work_dir={}", self.directory.join(&format!("m{index}"))),
            format!("--peers={peers}"),
        ];
        words.extend(more.iter().map(|word| (*word).to_owned()));
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

    pub fn kill(&mut self, index: usize) {
        let mut master = self.masters[index].take().expect("it runs");
        master.signal("-KILL");
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

    pub fn command(&self, words: &[&str]) -> (bool, String) {
        let output = tepui().args(words).arg(format!("--master={}", self.peers())).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.success(), said)
    }
}
