//! Modelled connections: in order, delayed, without loss or duplication while they last, as TCP.
//!
//! Data on its way is lost when a connection breaks. A message that is sent again after a break may arrive twice, which
//! is how duplicates arise. The processes at both ends decide how a break is reported.

use base::Time;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneWayConnection {
    /// Epoch of the connection. Messages of an earlier epoch do not arrive.
    epoch: u32,
    /// Arrival time of the last message.
    last: Time,
    /// End of a stall: messages do not arrive before it.
    stalled_until: Time,
    /// End of a partition: messages that are sent before it are lost.
    partitioned_until: Time,
    /// Whether a message was lost and the break has not been reported.
    lost: bool,
}

impl OneWayConnection {
    /// Sends a message at `now` that could arrive at `at`. Returns when it arrives, after all earlier messages; `None`
    /// if it is lost.
    pub fn send(&mut self, now: Time, at: Time) -> Option<Time> {
        if self.partitioned_until > now {
            self.lost = true;
            return None;
        }
        self.last = at.max(self.last).max(self.stalled_until);
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
    pub fn next(&self) -> OneWayConnection {
        OneWayConnection { epoch: self.epoch.wrapping_add(1 << 16), ..OneWayConnection::default() }
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
    pub fn partition(&mut self, until: Time) {
        self.partitioned_until = until;
    }

    /// Delays the messages that are sent from now on to `until`.
    pub fn stall(&mut self, until: Time) {
        self.stalled_until = until;
    }

    /// Ends stalls and partitions.
    pub fn heal(&mut self) {
        (self.stalled_until, self.partitioned_until) = (Time::EPOCH, Time::EPOCH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_breaks_lose_what_is_in_flight() {
        let at = Time::from_secs;
        let mut connection = OneWayConnection::default();
        assert_eq!(connection.send(at(1), at(5)), Some(at(5)));
        assert_eq!(connection.send(at(1), at(3)), Some(at(5)));
        let before = connection.epoch();
        connection.cut();
        assert!(!connection.carries(before));
        assert_eq!(connection.send(at(1), at(3)), Some(at(3)));
        connection.partition(at(10));
        assert_eq!(connection.send(at(9), at(9)), None);
        assert_eq!(connection.send(at(10), at(11)), Some(at(11)));
        connection.stall(at(20));
        assert_eq!(connection.send(at(12), at(13)), Some(at(20)));
        connection.heal();
        assert_eq!(connection.send(at(21), at(22)), Some(at(22)));
    }
}
