//! The connections between masters: one in each direction of each pair, which keeps the order, stalls and breaks as
//! those of the lab's other processes do ([`OneWayConnection`]).
//!
//! In addition, a message may be dropped as by a full queue, and arrive late over a former connection.

use std::time::Duration;

use base::Time;

use crate::dist::Dist;
use crate::faults::rng::FaultRng;
use crate::seeds::{Rng, Seed};
use crate::world::network::OneWayConnection;

/// The longest latency of a network without faults. Latencies are drawn from distributions without a limit, and later
/// messages of the same connection wait: one draw in millions would be a fault of many seconds.
const LONGEST: Duration = Duration::from_millis(200);
/// Percentage of messages that arrive over a former connection.
const LATE: u64 = 1;
/// The longest delay of these messages.
const LATE_BY: Duration = Duration::from_millis(400);

/// All connections between masters.
#[derive(Debug)]
pub(super) struct Network {
    /// Connections by sender and receiver.
    connections: Vec<Vec<OneWayConnection>>,
    latency: Dist,
    /// Additional latency of all messages until a time.
    slow: (Duration, Time),
    /// Percentage of messages that are lost until a time.
    loss: (u64, Time),
    times: Rng,
    chance: FaultRng,
}

/// A message that was sent and will arrive.
pub(super) struct Sent {
    /// Time at which the message arrives.
    pub at: Time,
    /// Epoch of the connection; `None` if the message arrives even after its connection has ended.
    pub epoch: Option<u32>,
}

impl Network {
    pub fn new(hosts: usize, latency: Dist, seed: Seed) -> Network {
        Network {
            connections: vec![vec![OneWayConnection::default(); hosts]; hosts],
            latency,
            slow: (Duration::ZERO, Time::EPOCH),
            loss: (0, Time::EPOCH),
            times: seed.child("latency").rng(),
            chance: FaultRng::new(seed.child("loss")),
        }
    }

    /// Sends a message; returns `None` if it is lost.
    pub fn send(&mut self, from: usize, to: usize, now: Time) -> Option<Sent> {
        let mut at = now + self.latency.draw(&mut self.times).min(LONGEST);
        if now < self.slow.1 {
            at = at + self.slow.0;
        }
        if now < self.loss.1 && self.chance.chance(self.loss.0) {
            return None;
        }
        let connection = &mut self.connections[from][to];
        // A message that is lost here is not repeated over the next connection.
        let in_order = connection.send(now, at)?;
        if self.chance.chance(LATE) {
            return Some(Sent { at: in_order + self.chance.span(LATE_BY), epoch: None });
        }
        Some(Sent { at: in_order, epoch: Some(connection.epoch()) })
    }

    /// Returns whether a message of this epoch still arrives.
    pub fn carries(&self, from: usize, to: usize, epoch: Option<u32>) -> bool {
        epoch.is_none_or(|epoch| self.connections[from][to].carries(epoch))
    }

    /// Breaks both connections between two masters and loses the messages on their way.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.connections[one][other].cut();
        self.connections[other][one].cut();
    }

    /// Loses the messages that are sent until a time.
    pub fn partition(&mut self, from: usize, to: usize, until: Time) {
        self.connections[from][to].partition(until);
    }

    /// Delays the messages that are sent until a time to that time.
    pub fn stall(&mut self, from: usize, to: usize, until: Time) {
        self.connections[from][to].stall(until);
    }

    /// Loses `percent` of a hundred messages until a time.
    pub fn lose(&mut self, percent: u64, until: Time) {
        self.loss = (percent, until);
    }

    /// Makes messages take longer until a time.
    pub fn slow_down(&mut self, by: Duration, until: Time) {
        self.slow = (by, until);
    }

    /// Ends all faults of the network. Connections with delayed messages are replaced by new ones.
    pub fn heal(&mut self, now: Time) {
        for connection in self.connections.iter_mut().flatten() {
            connection.heal();
            if connection.last() > now {
                connection.cut();
            }
        }
        (self.loss, self.slow) = ((0, Time::EPOCH), (Duration::ZERO, Time::EPOCH));
    }
}
