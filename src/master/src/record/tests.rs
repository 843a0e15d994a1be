//! Tests that a recording is read as it was written, and that damage is refused.

use std::net::{Ipv4Addr, SocketAddrV4};

use protos::mesos::internal::StatusUpdateMessage;
use protos::mesos::scheduler::Call;

use super::*;

fn inputs() -> Vec<Input> {
    let pid = Pid::new("slave(1)", SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 5051));
    let update =
        Message::StatusUpdate(Box::new(StatusUpdateMessage { pid: Some("p".to_owned()), ..Default::default() }));
    let call = || Box::new(Call { r#type: Some(8), ..Call::default() });
    vec![
        Input::Message { from: pid.clone(), message: update.clone() },
        Input::Message { from: pid.clone(), message: update },
        Input::Message { from: pid.clone(), message: Message::PongSlave { observer: 300 } },
        Input::Exited { pid: pid.clone() },
        Input::Authenticating { pid: pid.clone(), attempt: 5 },
        Input::Authenticated { pid: pid.clone(), attempt: 5, principal: Some("me".into()) },
        Input::Authenticated { pid, attempt: 6, principal: None },
        Input::Subscribe {
            request: RequestId(1),
            stream: StreamId(2),
            stream_text: "s".into(),
            call: call(),
            principal: Some("me".into()),
        },
        Input::SchedulerCall { request: RequestId(3), stream_id: Some("s".into()), call: call(), principal: None },
        Input::StreamClosed { stream: StreamId(2) },
        Input::OperatorCall { request: RequestId(4), call: Box::default(), principal: None },
        Input::UpdatePolicies { request: RequestId(5), policies: Box::default() },
        Input::KillTask {
            request: RequestId(8),
            kill: Box::new(KillTask {
                framework: FrameworkId::new("f").unwrap(),
                task: TaskId::new("t").unwrap(),
                kill_policy: Some(Default::default()),
            }),
            principal: Some("me".into()),
        },
        Input::OperatorSubscribe { request: RequestId(6), stream: StreamId(7), principal: None },
        Input::Whitelist { hostnames: Some(["h".to_owned()].into()) },
        Input::Whitelist { hostnames: None },
        Input::Wake,
    ]
}

#[test]
fn what_is_written_is_read_again() {
    let head = Head {
        flags: vec![("work_dir".to_owned(), "/w".to_owned())],
        info: MasterInfo { id: "m".to_owned(), ..MasterInfo::default() },
        registry: Registry::default(),
        seed: u64::MAX,
        start: Time::from_secs(1_000_000_000),
    };
    assert_eq!(Head::read(&head.frame()).unwrap(), head);
    let (mut recorder, mut player) = (RecordEncoder::default(), RecordDecoder::default());
    for n in 1..=2 {
        let at = Time::from_secs(1_000_000_000 + n);
        inputs().iter().for_each(|input| recorder.input(input, &|_| "none".to_owned()));
        let frame = recorder.end(at, n);
        let policies = |text: &str| if text == "none" { Ok(Policies::default()) } else { Err(text.into()) };
        let read = player.batch(&frame, &policies).unwrap();
        assert_eq!((read.at, read.result_hash), (at, n));
        assert_eq!(format!("{:?}", read.inputs), format!("{:?}", inputs()));
        for end in 0..frame.len() {
            assert!(RecordDecoder::default().batch(&frame[..end], &|_| Ok(Policies::default())).is_err(), "{end}");
        }
    }
    assert!(Head::read(&head.frame()[..5]).is_err());
}
