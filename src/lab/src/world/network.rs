//! Modelled connections: in order, delayed, without loss or duplication while they last, as TCP.
//!
//! Data in flight is lost when a connection breaks. What is sent again after a break may arrive twice, which is how
//! duplicates arise. The processes at both ends decide how a break is reported.

use base::Time;

/// One direction of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    /// What was sent in an earlier epoch does not arrive.
    epoch: u32,
    /// When the last message arrives.
    last: Time,
    /// Nothing sent before this arrives before it.
    stalled: Time,
    /// Nothing sent before this arrives at all.
    parted: Time,
    /// Data was sent that does not arrive, and the break has not been reported.
    lost: bool,
}

impl Lane {
    /// Sends something at `now` that takes until `at`: when it arrives, after all that was sent before it. None if it
    /// is lost.
    pub fn send(&mut self, now: Time, at: Time) -> Option<Time> {
        if self.parted > now {
            self.lost = true;
            return None;
        }
        self.last = at.max(self.last).max(self.stalled);
        Some(self.last)
    }

    /// When the last thing that was sent arrives.
    pub fn last(&self) -> Time {
        self.last
    }

    /// The present epoch, for what is sent now.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether what was sent in that epoch still arrives.
    pub fn carries(&self, epoch: u32) -> bool {
        self.epoch == epoch
    }

    /// A connection to another process, in the place of this one: their epochs never meet.
    pub fn next(&self) -> Lane {
        Lane { epoch: self.epoch.wrapping_add(1 << 16), ..Lane::default() }
    }

    /// The connection breaks: what is in flight is lost.
    pub fn cut(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.last = Time::EPOCH;
        self.lost = false;
    }

    /// Whether something was lost over a connection that still counts as whole. The transport notices that in the end.
    pub fn has_lost(&self) -> bool {
        self.lost
    }

    /// What is sent until then is lost.
    pub fn part(&mut self, until: Time) {
        self.parted = until;
    }

    /// What is sent from now on arrives after `until`.
    pub fn stall(&mut self, until: Time) {
        self.stalled = until;
    }

    /// All that is sent from now on arrives.
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
