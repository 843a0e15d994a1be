//! Operators of a group of masters: they add and remove members, empty disks, and request handovers of the lead,
//! through any master that leads.
//!
//! Operators of a world know the content of all disks. They do nothing that no group survives: see [`World::survives`].

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use base::Time;
use peers::{ChangeError, Configuration};

use super::host::Job;
use super::{Event, LEASE, World};

/// Interval at which an operator checks whether an action is done.
const LOOK: Duration = Duration::from_millis(200);
/// Time after which an operator gives up.
const PATIENCE: Duration = Duration::from_secs(8);

/// An action of an operator. Masters are identified by their numbers in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Starts a master with an empty disk, unless it runs, and adds it to the members.
    Add(usize),
    /// Removes a master from the members.
    Remove(usize),
    /// Makes the leader hand the lead over to a member, or to any.
    HandOver(Option<usize>),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Add(at) => write!(f, "adds master {at}"),
            Act::Remove(at) => write!(f, "removes master {at}"),
            Act::HandOver(Some(at)) => write!(f, "has the lead handed over to master {at}"),
            Act::HandOver(None) => f.write_str("has the lead handed over"),
        }
    }
}

/// The actions that an operator performs one after the other.
#[derive(Debug)]
pub(super) struct Task {
    acts: VecDeque<Act>,
    until: Time,
}

impl World {
    /// Starts an operator that performs these actions one after the other.
    pub fn operate(&mut self, acts: &[Act]) {
        self.tasks.push(Task { acts: acts.iter().copied().collect(), until: self.now + PATIENCE });
        let task = self.tasks.len() - 1;
        self.queue.push(self.now, Event::Operator(task));
    }

    /// Returns whether all operators have finished.
    pub fn operators_rest(&self) -> bool {
        self.tasks.iter().all(|task| task.acts.is_empty())
    }

    /// Checks whether the current action of an operator is done, and requests it from the leader otherwise.
    pub(super) fn operator_looks(&mut self, task: usize) {
        let now = self.now;
        let Some(act) = self.tasks[task].acts.front().copied() else { return };
        if self.is_done(act) {
            self.log.line(now, || format!("operator <  done: {act}"));
            self.tasks[task].acts.pop_front();
            return self.queue.push(now, Event::Operator(task));
        }
        if self.tasks[task].until < now {
            self.log.line(now, || format!("operator <  gives up: {act}"));
            return self.tasks[task].acts.clear();
        }
        if let Act::Add(at) = act {
            // The leader has added a disk that does not exist any more.
            if self.rules.newest.as_ref().is_some_and(|members| self.member_at(at, members).is_some()) {
                self.tasks[task].acts.push_front(Act::Remove(at));
                return self.queue.push(now, Event::Operator(task));
            }
            self.prepare(at);
            // Until the process has run for a lease, the leader may know only the master's former disk.
            if self.hosts[at].process.as_ref().is_none_or(|process| now.since(process.began) <= LEASE) {
                return self.after(LOOK, Event::Operator(task));
            }
        }
        if let Some(leader) = (0..self.hosts.len()).find(|at| self.answers(*at)) {
            if matches!(act, Act::HandOver(_)) {
                self.tasks[task].acts.pop_front();
            }
            self.push(leader, Job::Change(act));
        }
        self.after(LOOK, Event::Operator(task));
    }

    /// Returns the number of a master's disk, if it has one.
    fn disk_of(&self, at: usize) -> Option<u64> {
        self.hosts[at].disk.stored().map(|stored| stored.disk)
    }

    fn member_at<'a>(&self, at: usize, configuration: &'a Configuration) -> Option<&'a peers::Member> {
        configuration.at(&self.hosts[at].address)
    }

    /// Returns whether the members are as an action requires.
    fn is_done(&self, act: Act) -> bool {
        let Some(members) = &self.rules.newest else { return false };
        match act {
            Act::Add(at) => self.member_at(at, members).is_some_and(|member| Some(member.disk) == self.disk_of(at)),
            Act::Remove(at) => self.member_at(at, members).is_none(),
            Act::HandOver(_) => false,
        }
    }

    /// Starts a master that is to be added, after emptying the disk of one that was removed.
    fn prepare(&mut self, at: usize) {
        let was_removed = self.hosts[at].removed;
        if was_removed && !self.empty(at) {
            return;
        }
        self.start(at);
    }

    /// Replaces the disk of a master that does not run by an empty one. Returns `false` and does nothing if the group
    /// would not survive that.
    fn empty(&mut self, at: usize) -> bool {
        if !self.survives_without(at) {
            return false;
        }
        let (keeps, former) = (self.setup.defect == Some(super::Defect::EmptyDiskLetIn), self.hosts[at].disk.stored());
        let host = &mut self.hosts[at];
        if keeps && !host.removed {
            host.former = former.map(|stored| (stored.disk, stored.starts));
        }
        host.disk.replace();
        host.removed = false;
        self.log.line(self.now, || format!("master {at}   has an empty disk"));
        true
    }

    /// Replaces the disk of a master by an empty one and ends its process, which is started again after `away`. Does
    /// nothing if the group would not survive that.
    pub fn replace_disk(&mut self, at: usize, away: Duration) {
        // A write in progress does not count as durable.
        if !self.survives_without(at) {
            return self.log.line(self.now, || format!("master {at}   keeps its disk: the group would not survive"));
        }
        self.end(at, 0, Some(away), "its disk is lost");
        self.empty(at);
    }

    /// Returns whether the group can continue if the disk of a master is emptied: with what the others have on their
    /// disks in the newest configuration, and in any that may come after it.
    fn survives_without(&self, at: usize) -> bool {
        let Some(newest) = &self.rules.newest else { return false };
        let next = self.changes.iter().filter(|next| next.number == newest.number + 1);
        [newest].into_iter().chain(next).all(|members| self.survives(members, Some(at)))
    }

    /// Returns whether more than half of these members have what they need on their disks. Those that are members
    /// already need the newest configuration. A group that has lost more than that cannot continue, and need not.
    fn survives(&self, members: &Configuration, without: Option<usize>) -> bool {
        let newest = self.rules.newest.as_ref().map_or(0, |newest| newest.number);
        let is_whole = |member: &&peers::Member| {
            let host = self.hosts.iter().enumerate().find(|(_, host)| host.address == member.address);
            let Some((at, host)) = host.filter(|(at, _)| Some(*at) != without) else { return false };
            let is_new = self.rules.newest.as_ref().is_some_and(|newest| newest.with_disk(member.disk).is_none());
            host.disk.stored().is_some_and(|stored| {
                let entered = stored.configuration.map_or(0, |members| members.number);
                stored.disk == member.disk && (entered >= newest || is_new) && self.hosts[at].former.is_none()
            })
        };
        members.members.iter().filter(is_whole).count() >= members.majority()
    }

    /// Performs an action of an operator at a master, if it leads.
    pub(super) fn change(&mut self, at: usize, act: Act, now: Time) {
        let address = |of: usize| self.hosts[of].address.clone();
        let Some(peer) = self.hosts[at].process.as_ref().map(|process| &process.peer) else { return };
        let Some((members, _)) = peer.members() else { return };
        let next = match act {
            Act::Add(of) => self.disk_of(of).and_then(|disk| members.adding(&address(of), disk).ok()),
            Act::Remove(of) => members.removing(&address(of)).ok(),
            Act::HandOver(_) => None,
        };
        if next.as_ref().is_some_and(|next| !self.survives(next, None)) {
            return self.log.line(self.now, || format!("operator <  waits: no group would survive if it {act}"));
        }
        let to = match act {
            Act::Add(of) | Act::Remove(of) | Act::HandOver(Some(of)) => Some(address(of)),
            Act::HandOver(None) => None,
        };
        let to = to.as_deref();
        let Some(process) = &mut self.hosts[at].process else { return };
        let outcome = match act {
            Act::Add(_) => process.peer.add(to.unwrap_or_default(), now),
            Act::Remove(_) => process.peer.remove(to.unwrap_or_default(), now),
            Act::HandOver(_) => process.peer.hand_over(to, now),
        };
        // Publishes the lease at once: it may end before the caller learns the outcome.
        process.lease = process.peer.lease();
        process.has_resigned |= outcome.is_ok() && matches!(act, Act::HandOver(_));
        if outcome.is_ok() {
            self.changes.extend(next);
        }
        let text = outcome.as_ref().err().map_or("begun".to_owned(), ToString::to_string);
        self.log.line(self.now, || format!("operator <  {act}: {text}"));
        self.outcomes.push(text);
        if matches!((outcome, act), (Err(ChangeError::Leads(_)), Act::Remove(_))) {
            self.operate(&[Act::HandOver(None)]);
        }
    }
}
