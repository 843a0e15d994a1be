//! Tests a detector against a ZooKeeper server that is stopped, restarted, and forgets sessions.
#![forbid(unsafe_code)]

mod zookeeper;

use std::time::Duration;

use detector::{DetectionState, Detector};
use zookeeper::ZooKeeper;

/// Timeout of a session that outlasts a test.
const LONG: Duration = Duration::from_secs(600);
/// Timeout of a session whose end a test can wait for.
const SHORT: Duration = Duration::from_millis(300);

/// Waits for the next state and returns it as text.
async fn next(detector: &mut Detector) -> String {
    tokio::time::timeout(Duration::from_secs(180), detector.changed()).await.expect("something changes");
    match detector.known() {
        DetectionState::Leader(leader) => {
            format!("{}{} {}", if leader.is_own { "own " } else { "" }, leader.member, leader.pid)
        }
        other => format!("{other:?}"),
    }
}

fn start(url: &str, session_timeout: Duration) -> Detector {
    Detector::start(url.parse().unwrap(), session_timeout, 1)
}

#[tokio::test]
async fn the_candidate_with_the_smallest_number_leads() {
    let server = ZooKeeper::start(0).await;
    let mut detector = start(&server.url(), LONG);
    assert_eq!(detector.known(), DetectionState::Unknown);
    assert_eq!(next(&mut detector).await, "NoLeader");
    server.enter("json.info_0000000007", "10.0.0.7:5050");
    assert_eq!(next(&mut detector).await, "json.info_0000000007 master@10.0.0.7:5050");
    // A follower changes nothing, nor does the log.
    server.enter("json.info_0000000008", "10.0.0.8:5050");
    server.write("log_replicas", "");
    server.leave("json.info_0000000007");
    assert_eq!(next(&mut detector).await, "json.info_0000000008 master@10.0.0.8:5050");
    // A master that was restarted is another member.
    server.enter("json.info_0000000003", "10.0.0.8:5050");
    assert_eq!(next(&mut detector).await, "json.info_0000000003 master@10.0.0.8:5050");
    server.leave("json.info_0000000003");
    assert_eq!(next(&mut detector).await, "json.info_0000000008 master@10.0.0.8:5050");
    server.leave("json.info_0000000008");
    assert_eq!(next(&mut detector).await, "NoLeader");
}

#[tokio::test]
async fn a_leader_whose_node_cannot_be_read_is_none_until_it_goes() {
    let server = ZooKeeper::start(0).await;
    server.write("json.info_0000000001", "{");
    server.enter("json.info_0000000002", "10.0.0.2:5050");
    let mut detector = start(&server.url(), LONG);
    server.enter("json.info_0000000000", "10.0.0.1:5050");
    // The order of the two changes is arbitrary.
    while next(&mut detector).await != "json.info_0000000000 master@10.0.0.1:5050" {}
    server.leave("json.info_0000000000");
    assert_eq!(next(&mut detector).await, "Unknown");
    server.leave("json.info_0000000001");
    assert_eq!(next(&mut detector).await, "json.info_0000000002 master@10.0.0.2:5050");
}

#[tokio::test]
async fn the_leader_stands_while_the_session_does() {
    let mut server = ZooKeeper::start(0).await;
    server.enter("json.info_0000000001", "10.0.0.1:5050");
    server.enter("json.info_0000000002", "10.0.0.2:5050");
    let mut detector = start(&server.url(), LONG);
    assert_eq!(next(&mut detector).await, "json.info_0000000001 master@10.0.0.1:5050");
    server.stop().await;
    server.leave("json.info_0000000001");
    server.resume().await;
    assert_eq!(next(&mut detector).await, "json.info_0000000002 master@10.0.0.2:5050");
}

#[tokio::test]
async fn nothing_is_known_when_the_session_is_over() {
    let mut server = ZooKeeper::start(0).await;
    server.enter("json.info_0000000001", "10.0.0.1:5050");
    let leader = "json.info_0000000001 master@10.0.0.1:5050";
    let mut detector = start(&server.url(), LONG);
    assert_eq!(next(&mut detector).await, leader);
    // The server reports the end of the session.
    server.stop().await;
    server.forget_sessions();
    server.resume().await;
    assert_eq!(next(&mut detector).await, "Unknown");
    assert_eq!(next(&mut detector).await, leader);
    // Without servers the detector receives no such event.
    let mut detector = start(&server.url(), SHORT);
    assert_eq!(next(&mut detector).await, leader);
    server.stop().await;
    assert_eq!(next(&mut detector).await, "Unknown");
    server.resume().await;
    assert_eq!(next(&mut detector).await, leader);
}

#[tokio::test]
async fn servers_that_are_not_up_yet_are_waited_for_and_receive_the_credential() {
    let mut server = ZooKeeper::start(0).await;
    server.enter("json.info_0000000001", "10.0.0.1:5050");
    server.stop().await;
    let url = server.url().replace("zk://", "zk://user:p@ss@");
    let mut detector = start(&url, SHORT);
    let asked = detector::ask(&url.parse().unwrap(), SHORT).await;
    assert!(asked.is_err_and(|error| !error.to_string().contains("p@ss")));
    server.resume().await;
    assert_eq!(next(&mut detector).await, "json.info_0000000001 master@10.0.0.1:5050");
    assert!(server.was_asked_as("user:p@ss"));
    let asked = detector::ask(&url.parse().unwrap(), LONG).await.unwrap().unwrap();
    assert_eq!(asked.pid.to_string(), "master@10.0.0.1:5050");
}

fn contend(server: &ZooKeeper, host: u8) -> Detector {
    contend_for(server, host, LONG)
}

fn contend_for(server: &ZooKeeper, host: u8, session_timeout: Duration) -> Detector {
    let info = format!(r#"{{"pid":"master@10.0.0.{host}:5050"}}"#);
    Detector::contend(server.url().parse().unwrap(), session_timeout, 1, info)
}

#[tokio::test]
async fn a_session_is_renewed_while_it_lives() {
    let mut server = ZooKeeper::start(0).await;
    let mut detector = contend_for(&server, 1, Duration::from_secs(10));
    let leader = next(&mut detector).await;
    assert!(leader.starts_with("own json.info_"), "{leader}");
    // Waits that double would be longer than the session by then.
    tokio::time::timeout(Duration::from_secs(60), server.turn_away(12)).await.expect("it asks twelve times");
    assert!(!detector.lease().is_over());
    // Changes after that are reported.
    let name = leader.split(' ').nth(1).unwrap();
    server.leave(name);
    server.enter("json.info_0000000000", "10.0.0.9:5050");
    let mut seen = next(&mut detector).await;
    while seen != "json.info_0000000000 master@10.0.0.9:5050" {
        assert_eq!(seen, "Unknown");
        seen = next(&mut detector).await;
    }
}

#[tokio::test]
async fn a_candidate_relies_on_what_it_read_no_longer_than_its_session_lives() {
    let mut server = ZooKeeper::start(0).await;
    let mut detector = contend_for(&server, 1, SHORT);
    let leader = next(&mut detector).await;
    assert!(leader.starts_with("own "), "{leader}");
    server.stop().await;
    assert_eq!(next(&mut detector).await, "Unknown");
    assert!(detector.lease().is_over());
    server.forget_sessions();
    server.resume().await;
    assert!(next(&mut detector).await.starts_with("own "));
    assert!(!detector.lease().is_over());
}

#[tokio::test]
async fn candidates_lead_in_the_order_of_their_coming() {
    let server = ZooKeeper::start(0).await;
    let mut first = contend(&server, 1);
    let leader = next(&mut first).await;
    assert!(leader.starts_with("own json.info_") && leader.ends_with("@10.0.0.1:5050"), "{leader}");
    let mut second = contend(&server, 2);
    assert_eq!(format!("own {}", next(&mut second).await), leader);
    assert_eq!(server.members().len(), 2);
    // The node is removed with the session.
    drop(first);
    let leader = next(&mut second).await;
    assert!(leader.starts_with("own ") && leader.ends_with("@10.0.0.2:5050"), "{leader}");
}

#[tokio::test]
async fn a_candidate_that_has_lost_its_place_enters_anew() {
    let mut server = ZooKeeper::start(0).await;
    server.enter("json.info_0000000000", "10.0.0.9:5050");
    let mut follower = contend(&server, 1);
    let leader = "json.info_0000000000 master@10.0.0.9:5050";
    assert_eq!(next(&mut follower).await, leader);
    let entered = |server: &ZooKeeper| server.members().keys().find(|name| *name != "json.info_0000000000").cloned();
    let before = entered(&server).unwrap();
    // Another client removes the candidate's node.
    server.leave(&before);
    assert_eq!(next(&mut follower).await, "Unknown");
    assert_eq!(next(&mut follower).await, leader);
    let after = entered(&server).unwrap();
    assert!(after > before, "{after} {before}");
    // The session is over.
    server.stop().await;
    server.forget_sessions();
    server.resume().await;
    assert_eq!(next(&mut follower).await, "Unknown");
    assert_eq!(next(&mut follower).await, leader);
    assert!(entered(&server).unwrap() > after);
}

#[tokio::test]
async fn a_candidate_that_is_refused_is_reported() {
    let server = ZooKeeper::start(0).await;
    server.close();
    let told = next(&mut contend(&server, 1)).await;
    assert!(told.starts_with("Refused(") && told.contains("at /mesos"), "{told}");
}
