//! Tests a master's registry: a start after a part of it is lost, and a write after its file is deleted.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Daemon, Directory, binary, free_port, get, request, until};

/// A master that keeps its registry in a file, and is restarted repeatedly.
struct Place {
    directory: Directory,
    port: u16,
    starts: usize,
}

impl Place {
    fn new(name: &str) -> Place {
        Place { directory: Directory::new(name), port: free_port(), starts: 0 }
    }

    fn registry(&self) -> PathBuf {
        self.directory.path().join("work/registry.redb")
    }

    /// Returns the arguments of the master's command.
    fn words(&self, more: &[&str]) -> Vec<String> {
        let own = [format!("--port={}", self.port), format!("--work_dir={}", self.directory.join("work"))];
        let words = ["master", "--ip=127.0.0.1", "--hostname=127.0.0.1"].iter().chain(more);
        words.map(|word| (*word).to_owned()).chain(own).collect()
    }

    fn start(&mut self, more: &[&str]) -> Daemon {
        self.starts += 1;
        Daemon::start(&self.log_path(), &self.words(more), &[])
    }

    /// Starts a master and waits until it listens.
    fn serve(&mut self, more: &[&str]) -> (Daemon, String) {
        let mut master = self.start(more);
        let address = master.address().expect("the master starts");
        until("the master leads", || get(&address, "/quota").is_some_and(|answer| answer.contains('{')));
        (master, address)
    }

    /// Starts a master that must refuse to start, and returns its message.
    fn refuse(&mut self) -> String {
        let mut master = self.start(&[]);
        assert_eq!(master.address(), None, "the master starts");
        self.log()
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join(format!("{}.log", self.starts))
    }

    /// Returns the log of the last start.
    fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap()
    }
}

/// Sets a role's quota and returns the answer's head and body.
fn set_quota(address: &str, role: &str) -> Option<String> {
    let limits = r#"{"cpus": {"value": 1}}"#;
    let call = format!(
        r#"{{"type": "UPDATE_QUOTA", "update_quota": {{"quota_configs": [{{"role": "{role}", "limits": {limits}}}]}}}}"#
    );
    request(address, "POST", "/api/v1", &call)
}

fn is_ok(answer: Option<String>) -> bool {
    answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

fn kill(mut master: Daemon) {
    master.signal("-KILL");
    until("the master is gone", || master.ended());
}

/// Returns the number that a refusal names for the flag.
fn named_number(log: &str) -> String {
    let (_, rest) = log.split_once("start once with --registry_accept_loss=").expect("the flag is named");
    rest.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn a_registry_that_lost_a_commit_stops_its_master_until_that_is_accepted() {
    let mut place = Place::new("registry-lost");
    let registry = place.registry();
    let (master, address) = place.serve(&[]);
    assert!(place.log().contains("Created a new registry"));
    assert!(is_ok(set_quota(&address, "first")));
    let copy = fs::read(&registry).unwrap();
    assert!(is_ok(set_quota(&address, "second")));
    kill(master);

    let newest = fs::read(&registry).unwrap();
    fs::write(&registry, &copy).unwrap();
    let log = place.refuse();
    let number = named_number(&log);
    let last: u64 = number.parse::<u64>().unwrap() - 1;
    let refusal = format!(
        "tepui: the registry cannot be opened: the registry '{}' ends with commit {last}, but commit {number} of 2",
        registry.display()
    );
    assert!(log.contains(&refusal), "{log}");
    assert!(log.contains("Z is confirmed: the last commit is lost. Restore the file and its '.commits'"), "{log}");

    // The newest file is as valid as before.
    fs::write(&registry, &newest).unwrap();
    let (master, address) = place.serve(&[]);
    assert!(get(&address, "/quota").unwrap().contains("second"));
    kill(master);

    fs::write(&registry, &copy).unwrap();
    let number = named_number(&place.refuse());
    let (master, address) = place.serve(&[&format!("--registry_accept_loss={number}")]);
    assert!(
        place.log().contains(&format!("Accepted by --registry_accept_loss={number}: the registry")),
        "{}",
        place.log()
    );
    let quota = get(&address, "/quota").unwrap();
    assert!(quota.contains("first") && !quota.contains("second"), "{quota}");
    kill(master);
    // The accepted loss is over, and so are the files from before it.
    let (master, address) = place.serve(&[]);
    assert!(!get(&address, "/quota").unwrap().contains("second"));
    kill(master);
    fs::write(&registry, &copy).unwrap();
    place.refuse();
}

#[test]
fn a_registry_that_is_no_registry_is_not_taken_for_a_new_one() {
    let mut place = Place::new("registry-empty");
    let registry = place.registry();
    fs::create_dir(place.directory.path().join("work")).unwrap();
    fs::write(&registry, "").unwrap();
    let log = place.refuse();
    assert!(log.contains("is an empty file: all its entries are lost"), "{log}");
    fs::remove_file(&registry).unwrap();

    let (master, address) = place.serve(&[]);
    assert!(is_ok(set_quota(&address, "first")));
    kill(master);
    let newest = fs::read(&registry).unwrap();
    fs::write(&registry, "").unwrap();
    assert!(place.refuse().contains("is an empty file: all commits up to commit"));
    fs::remove_file(&registry).unwrap();
    assert!(place.refuse().contains("is missing: all commits up to commit"));
    fs::write(&registry, &newest[..newest.len() / 2]).unwrap();
    let log = place.refuse();
    assert!(log.contains("cannot be read: all commits up to commit"), "{log}");
    assert!(log.contains("with an empty registry"), "{log}");

    let accept = format!("--registry_accept_loss={}", named_number(&log));
    let (master, address) = place.serve(&[&accept]);
    assert!(!get(&address, "/quota").unwrap().contains("first"));
    let kept = place.directory.path().join("work/registry.redb.damaged");
    assert_eq!(fs::metadata(&kept).unwrap().len() as usize, newest.len() / 2);
    assert!(place.log().contains(&format!("the old file is renamed to {}", kept.display())), "{}", place.log());
    assert!(is_ok(set_quota(&address, "second")));
    kill(master);
    // The flag may stay set: it accepts no other loss.
    let (master, _) = place.serve(&[&accept]);
    assert!(place.log().contains("is not needed: nothing is lost"), "{}", place.log());
    kill(master);
}

#[test]
fn a_master_whose_work_directory_is_gone_acknowledges_no_write() {
    let mut place = Place::new("registry-gone");
    let (mut master, address) = place.serve(&[]);
    assert!(is_ok(set_quota(&address, "first")));
    fs::remove_dir_all(place.directory.path().join("work")).unwrap();
    assert!(!is_ok(set_quota(&address, "second")));
    until("the master ends", || master.ended());
    let refusal = format!(
        "tepui: the registry cannot be written: the registry's file is not at '{}' any more: no file is there",
        place.registry().display()
    );
    assert!(place.log().contains(&refusal), "{}", place.log());
}

#[test]
fn a_master_whose_disk_is_full_acknowledges_no_write() {
    if !Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        println!("skipped: this user cannot mount");
        return;
    }
    let mut place = Place::new("registry-full");
    let work = place.directory.path().join("work");
    fs::create_dir(&work).unwrap();
    // A small file system in a mount namespace of the master's own.
    let mut command = Command::new("unshare");
    let script = r#"mount -t tmpfs -o size=1600k none "$0" && exec "$@""#;
    command.args(["--mount", "sh", "-c", script]).arg(&work).arg(binary());
    place.starts = 1;
    let mut master = Daemon::start_as(command, &place.log_path(), &place.words(&[]), &[]);
    let address = master.address().expect("the master starts");
    until("the master leads", || get(&address, "/quota").is_some_and(|answer| answer.contains('{')));
    let seen = PathBuf::from(format!("/proc/{}/root{}", master.id(), work.display()));
    let mut filling = fs::File::create(seen.join("filling")).unwrap();
    while filling.write_all(&[1; 4096]).is_ok() {}

    // Existing pages of the file can be written all the same.
    let mut acknowledged = 0;
    until("a write is not acknowledged", || {
        let is_acknowledged = is_ok(set_quota(&address, &format!("r{acknowledged}-{}", "x".repeat(200))));
        acknowledged += usize::from(is_acknowledged);
        !is_acknowledged
    });
    until("the master ends", || master.ended());
    assert!(place.log().contains("the registry cannot be written: "), "{}", place.log());
    assert!(place.log().contains("No space left on device"), "{}", place.log());
}
