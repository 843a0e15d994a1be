//! Tests which directories are deleted, when and in what order.

use base::{ExecutorId, FrameworkId};
use cores::Core;

use super::*;
use crate::config::Config;
use crate::disk::{Directory, Recovered};

const START: Time = Time::from_secs(1_000);

fn agent(gc_delay: Duration) -> Agent {
    let pid = "slave(1)@10.0.0.2:5051".parse().unwrap();
    let config = Config { gc_delay, gc_disk_headroom: 0.0, ..Config::new(pid, "/w") };
    let (info, mut out) = (protos::mesos::SlaveInfo::default(), Outbox::default());
    Agent::new(config, info, Recovered::default(), 2, START, &mut out).unwrap()
}

fn discard(agent: &mut Agent, numbers: std::ops::Range<usize>, now: Time) {
    let framework = FrameworkId::new("f").unwrap();
    for number in numbers {
        agent.discard(Directory::Executor(framework.clone(), ExecutorId::new(&format!("e{number}")).unwrap()), now);
    }
}

/// Returns the numbers of the executors whose sandboxes the outbox deletes.
fn deleted(out: &Outbox) -> Vec<usize> {
    let paths = out.outputs.iter().filter_map(|output| match output {
        Output::Delete { paths } => Some(paths),
        _ => None,
    });
    let sandboxes = paths.flatten().filter(|path| !path.starts_with("/w/meta/"));
    sandboxes.map(|path| path.rsplit("/e").next().unwrap().parse().unwrap()).collect()
}

fn collect(agent: &mut Agent, now: Time) -> Vec<usize> {
    let mut out = Outbox::default();
    agent.collect_garbage(now, &mut out);
    deleted(&out)
}

#[test]
fn how_much_waits_and_for_how_long() {
    let mut agent = agent(Duration::from_secs(7 * 24 * 3600));
    agent.config.gc_disk_headroom = 0.1;
    let framework = FrameworkId::new("f").unwrap();
    agent.discard(Directory::Framework(framework.clone()), START);
    agent.discard(Directory::Framework(framework), START);
    agent.discard(Directory::Agent("old".to_owned()), START);
    let snapshot = agent.snapshot();
    assert_eq!(snapshot.garbage, 2);
    // Response of a recorded Mesos agent before it has measured its disk.
    assert_eq!(snapshot.garbage_kept_for, Duration::from_secs(544_320));
}

#[test]
fn a_backlog_is_deleted_oldest_first_at_a_bounded_rate() {
    const COUNT: usize = 20_000;
    let mut agent = agent(Duration::from_secs(60));
    discard(&mut agent, 0..COUNT, START);
    assert_eq!(collect(&mut agent, START + Duration::from_secs(59)), [0; 0]);
    let (mut next, mut second) = (0, 60);
    while next < COUNT {
        let now = START + Duration::from_secs(second);
        let gone = collect(&mut agent, now);
        assert_eq!(gone.len(), (COUNT - next).div_ceil(BACKLOG_SHARE), "second {second}");
        assert_eq!(gone, (next..next + gone.len()).collect::<Vec<_>>());
        // Reports of the disk's usage may come at any time, and do not raise the share of a second.
        let mut out = Outbox::default();
        agent.disk_usage(0.0, now + Duration::from_millis(900), &mut out);
        assert_eq!(deleted(&out), [0; 0]);
        (next, second) = (next + gone.len(), second + 1);
    }
    assert!((300..600).contains(&second), "{second}");
    assert!(agent.garbage.len() == 0 && agent.garbage.timer.is_none());
}

#[test]
fn a_steady_load_is_deleted_as_fast_as_it_comes_a_minute_after_it_is_due() {
    const RATE: usize = 50;
    let mut agent = agent(Duration::from_secs(10));
    for second in 0..1_200 {
        let now = START + Duration::from_secs(second as u64);
        discard(&mut agent, second * RATE..(second + 1) * RATE, now);
        let gone = collect(&mut agent, now);
        if second > 600 {
            assert!((RATE - 1..=RATE).contains(&gone.len()), "second {second}: {}", gone.len());
            assert!((68..=72).contains(&(second - gone[0] / RATE)), "second {second}: {}", gone[0]);
        }
    }
}

#[test]
fn a_disk_without_room_gets_all_of_it_at_once() {
    let mut agent = agent(Duration::from_secs(3_600));
    discard(&mut agent, 0..5_000, START);
    let mut out = Outbox::default();
    agent.checkpoints_failing("No space left on device", true, START + Duration::from_millis(1), &mut out);
    assert_eq!(deleted(&out).len(), 5_000);
}

#[test]
fn more_than_the_limit_is_deleted_at_the_next_release() {
    let mut agent = agent(Duration::from_secs(3_600));
    discard(&mut agent, 0..MAX_KEPT + 1_000, START);
    // Further directories do not postpone the deletion.
    let timer = agent.garbage.timer;
    discard(&mut agent, MAX_KEPT + 1_000..MAX_KEPT + 1_500, START + Duration::from_millis(900));
    assert!(timer.is_some() && agent.garbage.timer == timer);
    assert_eq!(agent.next_wake(), Some(START + PAUSE));
    assert_eq!(collect(&mut agent, START + PAUSE), (0..1_500).collect::<Vec<_>>());
}
