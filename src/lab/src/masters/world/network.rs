//! The connections between masters: one in each direction of each pair, which keeps the order, stalls and breaks as
//! those of the lab's other processes do ([`Lane`]).
//!
//! In addition, a message may be left out where a queue is full, and come late over a former connection.

use std::time::Duration;

use base::Time;

use crate::dist::Dist;
use crate::faults::rng::FaultRng;
use crate::seeds::{Rng, Seed};
use crate::world::network::Lane;

/// The longest time through a network without faults. Times are drawn from distributions without a limit, and what is
/// sent later over the same connection waits: one draw in millions would be a fault of many seconds.
const LONGEST: Duration = Duration::from_millis(200);
/// Of a hundred messages, this many come over a former connection.
const LATE: u64 = 1;
/// By how much these are late at most.
const LATE_BY: Duration = Duration::from_millis(400);

/// All connections.
#[derive(Debug)]
pub(super) struct Network {
    /// By sender and receiver.
    lanes: Vec<Vec<Lane>>,
    latency: Dist,
    /// Messages take so much longer until then.
    slow: (Duration, Time),
    /// Of a hundred messages, this many are left out until then.
    loss: (u64, Time),
    times: Rng,
    chance: FaultRng,
}

/// A message on its way.
pub(super) struct Sent {
    /// When it arrives.
    pub at: Time,
    /// The epoch of its connection; none if it arrives also after that one has ended.
    pub epoch: Option<u32>,
}

impl Network {
    pub fn new(hosts: usize, latency: Dist, seed: Seed) -> Network {
        Network {
            lanes: vec![vec![Lane::default(); hosts]; hosts],
            latency,
            slow: (Duration::ZERO, Time::EPOCH),
            loss: (0, Time::EPOCH),
            times: seed.child("latency").rng(),
            chance: FaultRng::new(seed.child("loss")),
        }
    }

    /// Sends a message; none if it does not arrive.
    pub fn send(&mut self, from: usize, to: usize, now: Time) -> Option<Sent> {
        let mut at = now + self.latency.draw(&mut self.times).min(LONGEST);
        if now < self.slow.1 {
            at = at + self.slow.0;
        }
        if now < self.loss.1 && self.chance.chance(self.loss.0) {
            return None;
        }
        let lane = &mut self.lanes[from][to];
        // What is lost while nothing passes is lost: the sender does not repeat it over the next connection.
        let in_order = lane.send(now, at)?;
        if self.chance.chance(LATE) {
            return Some(Sent { at: in_order + self.chance.span(LATE_BY), epoch: None });
        }
        Some(Sent { at: in_order, epoch: Some(lane.epoch()) })
    }

    /// Whether a message of that epoch still arrives.
    pub fn carries(&self, from: usize, to: usize, epoch: Option<u32>) -> bool {
        epoch.is_none_or(|epoch| self.lanes[from][to].carries(epoch))
    }

    /// Both connections between two masters break, with what is on its way.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.lanes[one][other].cut();
        self.lanes[other][one].cut();
    }

    /// What is sent until then does not arrive.
    pub fn part(&mut self, from: usize, to: usize, until: Time) {
        self.lanes[from][to].part(until);
    }

    /// What is sent until then arrives then.
    pub fn stall(&mut self, from: usize, to: usize, until: Time) {
        self.lanes[from][to].stall(until);
    }

    /// Leaves this many of a hundred messages out until then.
    pub fn lose(&mut self, percent: u64, until: Time) {
        self.loss = (percent, until);
    }

    /// Takes so much longer until then.
    pub fn slow_down(&mut self, by: Duration, until: Time) {
        self.slow = (by, until);
    }

    /// Works again as it should. Connections on which something is held back are made anew.
    pub fn heal(&mut self, now: Time) {
        for lane in self.lanes.iter_mut().flatten() {
            lane.heal();
            if lane.last() > now {
                lane.cut();
            }
        }
        (self.loss, self.slow) = ((0, Time::EPOCH), (Duration::ZERO, Time::EPOCH));
    }
}
