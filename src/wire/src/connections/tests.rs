//! Tests of the limit of connections.
//!
//! Invariants, after every step: no more connections are open than the limit, except for those that are being closed;
//! the connection that is closed to admit another is one that waits, of a source with the most waiting connections, and
//! the one of them that waits for longest; a connection is refused only if none waits. A source has at most half of the
//! connections: beyond that one of its own is closed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::table::source;
use super::{Connections, Slot, WaitsFor};
use crate::Limits;
use crate::sync::lock;

const LIMIT: usize = 6;

#[derive(Clone, Debug)]
enum Step {
    Admit(u8),
    AdmitOutgoing,
    Wait(usize),
    Work(usize),
    Keep(usize),
    Close(usize),
    CloseOutgoing,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..4).prop_map(Step::Admit),
        1 => Just(Step::AdmitOutgoing),
        2 => (0usize..8).prop_map(Step::Wait),
        2 => (0usize..8).prop_map(Step::Work),
        1 => (0usize..8).prop_map(Step::Keep),
        1 => (0usize..8).prop_map(Step::Close),
        1 => Just(Step::CloseOutgoing),
    ]
}

/// A connection in the model of the test.
struct Known {
    slot: Slot,
    source: u8,
    /// Step at which the connection began to wait.
    waits: Option<usize>,
    kept: bool,
}

fn ip(source: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, source])
}

/// Returns the connection that must be closed to admit another.
fn expected(known: &[Known]) -> Option<usize> {
    let waiting = |source: u8| known.iter().filter(|one| one.source == source && one.waits.is_some()).count();
    let all = known.iter().enumerate().filter_map(|(index, one)| Some((one.source, one.waits?, index)));
    // It belongs to the source with the most waiting ones, or of several such sources to the one with the oldest; of
    // that source it is the oldest.
    let (_, _, index) = all.min_by_key(|(source, since, _)| (Reverse(waiting(*source)), *since))?;
    Some(index)
}

/// Returns the connection that must be closed to admit another one of a source.
fn expected_of(known: &[Known], source: u8) -> Option<usize> {
    let own = known.iter().enumerate().filter(|(_, one)| one.source == source);
    let (_, index) = own.filter_map(|(index, one)| Some((one.waits?, index))).min()?;
    Some(index)
}

/// Removes the connection that must close, as its task does.
fn close_chosen(known: &mut Vec<Known>, chosen: usize) {
    let mut gone = known.remove(chosen);
    gone.slot.stop_waiting();
    assert!(gone.slot.is_closing, "another connection was closed");
}

proptest! {
    #[test]
    fn the_right_connection_is_closed(steps in prop::collection::vec(step(), 0..200)) {
        let connections = Connections::new(LIMIT, "this is a test");
        let (mut known, mut outgoing) = (Vec::<Known>::new(), Vec::new());
        for (time, step) in steps.into_iter().enumerate() {
            let (full, chosen) = (known.len() + outgoing.len() >= LIMIT, expected(&known));
            let refused = connections.counts().refused;
            match step {
                Step::Admit(source) => {
                    let has_half = known.iter().filter(|one| one.source == source).count() >= LIMIT / 2;
                    let chosen = if has_half { expected_of(&known, source) } else { chosen };
                    let full = full || has_half;
                    let slot = connections.admit(ip(source));
                    prop_assert_eq!(slot.is_some(), !full || chosen.is_some());
                    if let Some(slot) = slot {
                        chosen.filter(|_| full).into_iter().for_each(|chosen| close_chosen(&mut known, chosen));
                        known.push(Known { slot, source, waits: Some(time), kept: false });
                    } else {
                        prop_assert_eq!(connections.counts().refused, refused + 1);
                    }
                }
                Step::AdmitOutgoing => {
                    let slot = connections.admit_outgoing(&"a peer");
                    prop_assert_eq!(slot.is_some(), !full || chosen.is_some());
                    if let Some(slot) = slot {
                        chosen.filter(|_| full).into_iter().for_each(|chosen| close_chosen(&mut known, chosen));
                        outgoing.push(slot);
                    }
                }
                Step::CloseOutgoing => drop(outgoing.pop()),
                Step::Wait(index) | Step::Work(index) | Step::Keep(index) | Step::Close(index)
                    if index >= known.len() => {}
                Step::Wait(index) => {
                    let one = &mut known[index];
                    // The number of bytes read differs each time.
                    one.slot.wait(WaitsFor::NextRequest, time as u64, None);
                    one.waits = Some(time).filter(|_| !one.kept);
                }
                Step::Work(index) => {
                    known[index].slot.stop_waiting();
                    known[index].waits = None;
                }
                Step::Keep(index) => {
                    known[index].slot.never_close_idle();
                    (known[index].waits, known[index].kept) = (None, true);
                }
                Step::Close(index) => drop(known.remove(index)),
            }
            let counts = connections.counts();
            prop_assert_eq!((counts.incoming, counts.outgoing), (known.len(), outgoing.len()));
            prop_assert!(counts.incoming + counts.outgoing <= LIMIT);
            let table = lock(&connections.table);
            prop_assert_eq!(table.closing, 0);
            prop_assert_eq!(table.by_source.values().sum::<usize>(), known.len());
            prop_assert!(table.by_source.values().all(|count| (1..=LIMIT / 2).contains(count)));
            prop_assert_eq!(table.ranking.len(), table.waiting.len());
            let waiting: usize = table.waiting.values().map(BTreeMap::len).sum();
            prop_assert_eq!(waiting, known.iter().filter(|one| one.waits.is_some()).count());
        }
    }
}

/// Limits of bodies in these tests.
fn body_limits() -> Limits {
    Limits { stalled: Duration::from_secs(10), body_rate: 100, ..Limits::default() }
}

/// Returns the number of seconds after which a body is late that arrives at a rate, in bytes a second; `None` if it may
/// take an hour.
async fn late_after(rate: u64, is_kept: bool) -> Option<u64> {
    let connections = Connections::new(LIMIT, "this is a test");
    let mut slot = connections.admit(ip(1)).unwrap();
    if is_kept {
        slot.never_close_idle();
    }
    for second in 1..=3600 {
        slot.wait_for_body(rate * second, &body_limits());
        tokio::time::advance(Duration::from_secs(1)).await;
        connections.close_timed_out();
        if connections.counts().timed_out > 0 {
            slot.stop_waiting();
            assert!(slot.is_closing);
            drop(slot);
            assert_eq!(lock(&connections.table).closing, 0);
            return Some(second);
        }
    }
    None
}

#[tokio::test(start_paused = true)]
async fn a_body_must_not_stall_and_must_keep_its_rate() {
    for is_kept in [false, true] {
        assert_eq!(late_after(0, is_kept).await, Some(10));
        assert_eq!(late_after(50, is_kept).await, Some(19));
        assert_eq!(late_after(100, is_kept).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fast_beginning_does_not_pay_for_a_slow_rest() {
    let connections = Connections::new(LIMIT, "this is a test");
    let mut slot = connections.admit(ip(1)).unwrap();
    slot.wait_for_body(0, &body_limits());
    slot.wait_for_body(64 << 20, &body_limits());
    tokio::time::advance(Duration::from_secs(9)).await;
    slot.wait_for_body((64 << 20) + 1, &body_limits());
    connections.close_timed_out();
    assert_eq!(connections.counts().timed_out, 0);
    tokio::time::advance(Duration::from_secs(2)).await;
    connections.close_timed_out();
    assert_eq!(connections.counts().timed_out, 1);
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_is_late_only_within_a_body_and_admits_no_other() {
    let connections = Connections::new(1, "this is a test");
    let mut slot = connections.admit(ip(1)).unwrap();
    slot.never_close_idle();
    slot.wait_for_body(0, &body_limits());
    assert!(connections.admit(ip(2)).is_none());
    slot.wait(WaitsFor::NextRequest, 9, Some(Duration::from_secs(1)));
    tokio::time::advance(Duration::from_secs(100)).await;
    connections.close_timed_out();
    slot.stop_waiting();
    assert!(!slot.is_closing);
    drop(slot);
    assert_eq!((connections.counts().incoming, connections.counts().timed_out), (0, 0));
}

#[test]
fn an_ipv6_host_is_one_source_whatever_its_addresses() {
    for (ip, expected) in [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
        ("::1", "::"),
    ] {
        assert_eq!(source(ip.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
    }
}
