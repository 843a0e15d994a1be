//! Tests the leader's entries in a real etcd: entries that are larger than an answer, and writes of a replaced leader.
//!
//! Requires etcd; where it is missing the tests report that.
#![expect(clippy::print_stdout, reason = "libtest shows it")]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use detector::SharedEntries as _;
use detector::etcd::{EtcdEntries, EtcdEntriesError, Resignation, Service};
use detector::{Change, Detector};

const LIMIT: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(60);
const INFO: &str = r#"{"pid":"master@127.0.0.1:5050","hostname":"h","port":5050}"#;

/// A server of etcd, which is killed when this is dropped.
struct Etcd {
    process: Child,
    directory: PathBuf,
    service: Service,
}

impl Etcd {
    fn start(name: &str) -> Option<Etcd> {
        if Command::new("etcd").arg("--version").output().is_err() {
            println!("not run: it needs etcd");
            return None;
        }
        let port = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let directory = std::env::temp_dir().join(format!("detector-etcd-{name}-{}", std::process::id()));
        let (url, peer_url) = (format!("http://127.0.0.1:{}", port()), format!("http://127.0.0.1:{}", port()));
        let process = Command::new("etcd")
            .arg("--data-dir")
            .arg(&directory)
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url, "--name", "e"])
            .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &format!("e={peer_url}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let service = Service { url: url.parse().unwrap(), credential: None, tls: None };
        Some(Etcd { process, directory, service })
    }

    /// Starts a master that leads, and returns its term.
    async fn leader(&self) -> (Detector, Resignation, String) {
        let (mut detector, resignation) = Detector::contend_in_etcd(self.service.clone(), LEASE, 1, INFO.to_owned());
        let led = tokio::time::timeout(LIMIT, async {
            loop {
                if let Some(leader) = detector.known().leader().filter(|leader| leader.is_own) {
                    return leader.member.clone();
                }
                detector.changed().await;
            }
        });
        let member = led.await.expect("it leads");
        (detector, resignation, member)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

async fn open(etcd: &Etcd, member: &str) -> Result<EtcdEntries, EtcdEntriesError> {
    EtcdEntries::open(etcd.service.clone(), member, "owner", LIMIT).await
}

#[tokio::test]
async fn entries_that_are_larger_together_than_an_answer() {
    let Some(etcd) = Etcd::start("large") else { return };
    let (_detector, _resignation, member) = etcd.leader().await;
    let mut entries = open(&etcd, &member).await.unwrap();
    let changes: Vec<Change> =
        (0..10_u8).map(|number| (format!("slave/{number}"), Some(vec![number; 1_000_000]))).collect();
    entries.write(&changes, LIMIT).await.unwrap();
    let removed = [("slave/3".to_owned(), None), ("slave/3".to_owned(), Some(vec![1])), ("slave/4".to_owned(), None)];
    entries.write(&removed, LIMIT).await.unwrap();
    let again = open(&etcd, &member).await.unwrap();
    let sizes: Vec<_> = again.all().iter().map(|(key, value)| (key.as_str(), value.len())).collect();
    let large = |key| (key, 1_000_000);
    let expected = ["slave/0", "slave/1", "slave/2"].map(large).into_iter().chain([("slave/3", 1)]);
    assert_eq!(
        sizes,
        expected.chain(["slave/5", "slave/6", "slave/7", "slave/8", "slave/9"].map(large)).collect::<Vec<_>>()
    );
    let error = entries.write(&[("slave/x".to_owned(), Some(vec![0; 2 << 20]))], LIMIT).await.unwrap_err();
    assert!(matches!(error, EtcdEntriesError::TooLarge(_)), "{error}");
}

#[tokio::test]
async fn only_the_last_one_that_has_opened_them_writes() {
    let Some(etcd) = Etcd::start("fenced") else { return };
    let (first, mut resignation, member) = etcd.leader().await;
    let mut entries = open(&etcd, &member).await.unwrap();
    let change = |value: u8| [("weight/r".to_owned(), Some(vec![value]))];
    entries.write(&change(1), LIMIT).await.unwrap();
    // The same master opens the entries twice.
    let mut again = open(&etcd, &member).await.unwrap();
    let error = entries.write(&change(2), LIMIT).await.unwrap_err();
    assert!(matches!(error, EtcdEntriesError::TakenOver(_)), "{error}");
    again.write(&change(3), LIMIT).await.unwrap();
    // Another one leads.
    let lease = first.lease();
    assert!(!lease.is_over());
    assert!(resignation.resign().await);
    assert!(lease.is_over());
    let (_second, _resignation, next) = etcd.leader().await;
    let error = again.write(&change(4), LIMIT).await.unwrap_err();
    assert!(matches!(error, EtcdEntriesError::NotLeading(_)), "{error}");
    let error = open(&etcd, &member).await.err().unwrap();
    assert!(matches!(error, EtcdEntriesError::NotLeading(_)), "{error}");
    let last = open(&etcd, &next).await.unwrap();
    assert_eq!(last.all().get("weight/r"), Some(&vec![3]));
}
