//! Modelled connections: in order, delayed, without loss or duplication while they last, as TCP.
//!
//! Data on its way is lost when a connection breaks. A message that is sent again after a break may arrive twice, which
//! is how duplicates arise. The processes at both ends decide how a break is reported.

use base::Time;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    /// Epoch of the connection. Messages of an earlier epoch do not arrive.
    epoch: u32,
    /// Arrival time of the last message.
    last: Time,
    /// End of a stall: messages do not arrive before it.
    stalled: Time,
    /// End of a partition: messages that are sent before it are lost.
    parted: Time,
    /// Whether a message was lost and the break has not been reported.
    lost: bool,
}

impl Lane {
    /// Sends a message at `now` that could arrive at `at`. Returns when it arrives, after all earlier messages; `None`
    /// if it is lost.
    pub fn send(&mut self, now: Time, at: Time) -> Option<Time> {
        if self.parted > now {
            self.lost = true;
            return None;
        }
        self.last = at.max(self.last).max(self.stalled);
        Some(self.last)
    }

    /// Returns when the last message arrives.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Returns the present epoch, which messages carry that are sent now.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns whether messages of this epoch still arrive.
    pub fn carries(&self, epoch: u32) -> bool {
        self.epoch == epoch
    }

    /// Returns a connection to another process, to replace this one. Their epochs never coincide.
    pub fn next(&self) -> Lane {
        Lane { epoch: self.epoch.wrapping_add(1 << 16), ..Lane::default() }
    }

    /// Breaks the connection and loses the messages on their way.
    pub fn cut(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.last = Time::EPOCH;
        self.lost = false;
    }

    /// Returns whether a message was lost and the connection has not been broken yet, as the transport eventually does.
    pub fn has_lost(&self) -> bool {
        self.lost
    }

    /// Loses the messages that are sent until a time.
    pub fn part(&mut self, until: Time) {
        self.parted = until;
    }

    /// Delays the messages that are sent from now on to `until`.
    pub fn stall(&mut self, until: Time) {
        self.stalled = until;
    }

    /// Ends stalls and partitions.
    pub fn heal(&mut self) {
        (self.stalled, self.parted) = (Time::EPOCH, Time::EPOCH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_breaks_lose_what_is_in_flight() {
        let at = Time::from_secs;
        let mut lane = Lane::default();
        assert_eq!(lane.send(at(1), at(5)), Some(at(5)));
        assert_eq!(lane.send(at(1), at(3)), Some(at(5)));
        let before = lane.epoch();
        lane.cut();
        assert!(!lane.carries(before));
        assert_eq!(lane.send(at(1), at(3)), Some(at(3)));
        lane.part(at(10));
        assert_eq!(lane.send(at(9), at(9)), None);
        assert_eq!(lane.send(at(10), at(11)), Some(at(11)));
        lane.stall(at(20));
        assert_eq!(lane.send(at(12), at(13)), Some(at(20)));
        lane.heal();
        assert_eq!(lane.send(at(21), at(22)), Some(at(22)));
    }
}
