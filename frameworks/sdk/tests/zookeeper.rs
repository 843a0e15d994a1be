//! `zk://` against a ZooKeeper server made for the test, with one group, and against the fake masters in it.
//!
//! The server speaks what a detector needs of ZooKeeper's protocol: sessions, pings, children with watches, and data.
//! Records are big-endian behind a length of four bytes; a string or buffer is its length and its bytes.
#![forbid(unsafe_code)]

#[allow(dead_code, reason = "the driver's own test uses all of it")]
mod fake;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::Time;
use fake::Fake;
use sdk::driver::{Options, addresses, run};
use sdk::v1::FrameworkInfo;
use sdk::{Calls, Ending, Event, Scheduler};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The members of the group, and their data.
#[derive(Default)]
struct Group {
    members: Mutex<BTreeMap<String, String>>,
    changed: Notify,
}

impl Group {
    fn set(&self, name: &str, leader: Option<&str>) {
        let mut members = self.members.lock().unwrap();
        match leader {
            Some(address) => members.insert(name.to_owned(), format!(r#"{{"pid":"master@{address}"}}"#)),
            None => members.remove(name),
        };
        self.changed.notify_waiters();
    }
}

async fn serve(listener: TcpListener, group: Arc<Group>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(session(stream, group.clone()));
    }
}

async fn packet(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = stream.read_u32().await.ok()?;
    let mut packet = vec![0; length as usize];
    stream.read_exact(&mut packet).await.ok()?;
    Some(packet)
}

async fn answer(stream: &mut TcpStream, parts: &[&[u8]]) {
    let body = parts.concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length[..], &body].concat()).await.unwrap();
}

fn text(value: &str) -> Vec<u8> {
    [&u32::try_from(value.len()).unwrap().to_be_bytes()[..], value.as_bytes()].concat()
}

fn int(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Header of a reply: which request, a transaction number, and that it went well.
fn header(xid: i32) -> Vec<u8> {
    [&xid.to_be_bytes()[..], &1_i64.to_be_bytes(), &0_i32.to_be_bytes()].concat()
}

/// One client: requests are answered, and a watch of the children fires once after a change.
async fn session(mut stream: TcpStream, group: Arc<Group>) {
    let Some(connect) = packet(&mut stream).await else { return };
    let timeout = &connect[12..16];
    answer(&mut stream, &[&[0; 4], timeout, &7_i64.to_be_bytes(), &text("passwordpassword"), &[0]]).await;
    let mut watching = false;
    loop {
        let changed = group.changed.notified();
        let request = tokio::select! {
            request = packet(&mut stream) => request,
            () = changed, if watching => {
                watching = false;
                // A notification: children changed (4), connected (3), of this node.
                let event = [&4_i32.to_be_bytes()[..], &3_i32.to_be_bytes(), &text("/mesos")].concat();
                answer(&mut stream, &[&header(-1), &event]).await;
                continue;
            }
        };
        let Some(request) = request else { return };
        let (xid, kind) = (int(&request, 0), int(&request, 4));
        let path = || String::from_utf8(request[12..12 + int(&request, 8) as usize].to_vec()).unwrap();
        let stat = [0; 68];
        match kind {
            8 | 12 => {
                assert_eq!(path(), "/mesos");
                watching = true;
                let names: Vec<String> = group.members.lock().unwrap().keys().cloned().collect();
                let count = u32::try_from(names.len()).unwrap().to_be_bytes();
                let names: Vec<u8> = names.iter().flat_map(|name| text(name)).collect();
                let stat = if kind == 12 { &stat[..] } else { &[] };
                answer(&mut stream, &[&header(xid), &count, &names, stat]).await;
            }
            4 => {
                let data = group.members.lock().unwrap()[path().strip_prefix("/mesos/").unwrap()].clone();
                answer(&mut stream, &[&header(xid), &text(&data), &stat]).await;
            }
            _ => answer(&mut stream, &[&header(xid)]).await,
        }
    }
}

/// Counts subscriptions, and stops at the second.
struct Twice(u32);

impl Scheduler for Twice {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        if let Event::Subscribed { .. } = event {
            self.0 += 1;
            if self.0 == 2 {
                calls.stop();
            }
        }
    }
}

#[tokio::test]
async fn follows_the_leader_that_zookeeper_names() {
    let (group, first, second) = (Arc::new(Group::default()), Fake::start().await, Fake::start().await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("zk://{}/mesos", listener.local_addr().unwrap());
    let serving = tokio::spawn(serve(listener, group.clone()));
    let framework = FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() };
    let mut options = Options::new(&url, framework).unwrap();
    options.settings.first_wait = Duration::from_millis(5);
    group.set("log_replicas", Some("nowhere"));
    let scripted = async {
        let scenario = async {
            group.set("json.info_0000000009", Some(&second.address()));
            group.set("json.info_0000000008", Some(&first.address()));
            first.call().await;
            // The leader goes; its connection stays, as when a master hangs.
            group.set("json.info_0000000008", None);
            second.call().await;
        };
        tokio::join!(run(Twice(0), options), scenario)
    };
    let (finished, ()) = tokio::time::timeout(Duration::from_secs(180), scripted).await.expect("the test hangs");
    assert_eq!(finished.ending, Ending::Stopped);
    serving.abort();
}

#[tokio::test]
async fn a_program_with_a_question_asks_who_leads() {
    let group = Arc::new(Group::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let url = format!("zk://{server}/mesos");
    let serving = tokio::spawn(serve(listener, group.clone()));
    let within = async |masters: &str, time: Duration| {
        let found = addresses(masters, time).await;
        found.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>()).map_err(|why| why.to_string())
    };
    let ask = async |masters: &str| within(masters, Duration::from_secs(180)).await;
    group.set("log_replicas", Some("nowhere"));
    assert!(ask(&url).await.unwrap_err().contains(&format!("ZooKeeper at {server} has none in /mesos")));
    group.set("json.info_0000000009", Some("10.0.0.9:5050"));
    group.set("json.info_0000000008", Some("10.0.0.8:5050"));
    assert_eq!(ask(&url).await.unwrap(), ["10.0.0.8:5050"]);
    assert_eq!(ask("a:1,b:2").await.unwrap(), ["a:1", "b:2"]);
    assert!(ask("a").await.unwrap_err().contains("<host>:<port>"));
    serving.abort();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nobody = within(&format!("zk://{gone}/mesos"), Duration::from_millis(50)).await;
    assert!(nobody.unwrap_err().contains("does not say who leads"));
}

#[test]
fn malformed_urls_are_refused() {
    let framework = FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() };
    let error = Options::new("zk://u:secret@a:1", framework).unwrap_err().to_string();
    assert!(error.contains("zk://[user:password@]host:port") && !error.contains("secret"), "{error}");
}
