//! Tests `zk://` with a fake ZooKeeper server that has one group with the fake masters.
#![forbid(unsafe_code)]

#[allow(dead_code, reason = "the driver's own test uses all of it")]
mod fake;
#[path = "../../../src/detector/tests/zookeeper/mod.rs"]
mod zookeeper;

use std::time::Duration;

use base::Time;
use fake::Fake;
use tepui_sdk::driver::{Options, address, run};
use tepui_sdk::v1::FrameworkInfo;
use tepui_sdk::{Calls, Ending, Event, Scheduler};
use tokio::net::TcpListener;
use zookeeper::ZooKeeper;

/// A scheduler that counts subscriptions, and stops at the second.
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
    let (server, first, second) = (ZooKeeper::start(0).await, Fake::start().await, Fake::start().await);
    let framework = FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() };
    let mut options = Options::new(&server.url(), framework).unwrap();
    options.settings.first_wait = Duration::from_millis(5);
    server.write("log_replicas", "");
    let scripted = async {
        let scenario = async {
            server.enter("json.info_0000000009", &second.address());
            server.enter("json.info_0000000008", &first.address());
            first.call().await;
            // The leader leaves the group and its connection stays open, as when a master hangs.
            server.leave("json.info_0000000008");
            second.call().await;
        };
        tokio::join!(run(Twice(0), options), scenario)
    };
    let (finished, ()) = tokio::time::timeout(Duration::from_secs(180), scripted).await.expect("the test hangs");
    assert_eq!(finished.ending, Ending::Stopped);
}

#[tokio::test]
async fn a_single_call_finds_the_leader() {
    let server = ZooKeeper::start(0).await;
    let (url, at) = (server.url(), server.address);
    let within = async |masters: &str, time: Duration| {
        address(masters, time).await.map(|found| found.to_string()).map_err(|why| why.to_string())
    };
    let ask = async |masters: &str| within(masters, Duration::from_secs(180)).await;
    server.write("log_replicas", "");
    assert!(ask(&url).await.unwrap_err().contains(&format!("ZooKeeper at {at} has none in /mesos")));
    server.enter("json.info_0000000009", "10.0.0.9:5050");
    server.enter("json.info_0000000008", "10.0.0.8:5050");
    assert_eq!(ask(&url).await.unwrap(), "10.0.0.8:5050");
    assert_eq!(ask("a").await.unwrap(), "a:5050");
    let (follower, leader) = (Fake::start().await, Fake::start().await);
    follower.answer_with(fake::Answer::Redirect(leader.address()));
    let list = format!("127.0.0.1:1,{},{}", follower.address(), leader.address());
    assert_eq!(ask(&list).await.unwrap(), leader.address());
    leader.answer_with(fake::Answer::Unavailable);
    assert!(ask(&list).await.unwrap_err().contains(&format!("{}: it knows no leader", leader.address())));
    assert!(ask("a:x").await.unwrap_err().contains("<host>:<port>"));
    drop(server);
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = within(&format!("zk://{gone}/mesos"), Duration::from_millis(50)).await;
    assert!(gone.unwrap_err().contains("names no leading master"));
}

#[test]
fn malformed_urls_are_refused() {
    let framework = FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() };
    let error = Options::new("zk://u:secret@a:1", framework).unwrap_err().to_string();
    assert!(error.contains("zk://[user:password@]host:port") && !error.contains("secret"), "{error}");
}
