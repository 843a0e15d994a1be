//! Operators of a group of masters: they add and remove members, empty disks, and have the lead handed over, through
//! any master that leads.
//!
//! Operators of a world know what is on which disk. They do nothing that no group survives: see [`World::survives`].

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use base::Time;
use peers::{ChangeError, Configuration};

use super::host::Job;
use super::{Event, LEASE, World};

/// How often an operator looks whether something is done.
const LOOK: Duration = Duration::from_millis(200);
/// After so long an operator gives up.
const PATIENCE: Duration = Duration::from_secs(8);

/// What an operator does. Masters are known by their numbers in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Starts a master with an empty disk, unless it runs, and makes it a member.
    Add(usize),
    /// Makes a member none.
    Remove(usize),
    /// Has the lead handed over to a member, or to any.
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

/// What an operator has to do, one after the other.
#[derive(Debug)]
pub(super) struct Task {
    acts: VecDeque<Act>,
    until: Time,
}

impl World {
    /// An operator begins to do these things, one after the other.
    pub fn operate(&mut self, acts: &[Act]) {
        self.tasks.push(Task { acts: acts.iter().copied().collect(), until: self.now + PATIENCE });
        let task = self.tasks.len() - 1;
        self.queue.push(self.now, Event::Operator(task));
    }

    /// Whether no operator has anything to do.
    pub fn operators_rest(&self) -> bool {
        self.tasks.iter().all(|task| task.acts.is_empty())
    }

    /// An operator looks whether something is done, and asks for it otherwise.
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
            // The leader has added a disk that is not there any more.
            if self.rules.newest.as_ref().is_some_and(|members| self.member_at(at, members).is_some()) {
                self.tasks[task].acts.push_front(Act::Remove(at));
                return self.queue.push(now, Event::Operator(task));
            }
            self.prepare(at);
            // Before, the leader may know of the disk that the master had until now.
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

    /// The disk's number of a master, if it is known.
    fn disk_of(&self, at: usize) -> Option<u64> {
        self.hosts[at].disk.stored().map(|stored| stored.disk)
    }

    fn member_at<'a>(&self, at: usize, configuration: &'a Configuration) -> Option<&'a peers::Member> {
        configuration.at(&self.hosts[at].address)
    }

    /// Whether the members are as an operator wants.
    fn is_done(&self, act: Act) -> bool {
        let Some(members) = &self.rules.newest else { return false };
        match act {
            Act::Add(at) => self.member_at(at, members).is_some_and(|member| Some(member.disk) == self.disk_of(at)),
            Act::Remove(at) => self.member_at(at, members).is_none(),
            Act::HandOver(_) => false,
        }
    }

    /// Starts a master that is to be added. The disk of one that was removed is emptied before.
    fn prepare(&mut self, at: usize) {
        let was_removed = self.hosts[at].removed;
        if was_removed && !self.empty(at) {
            return;
        }
        self.start(at);
    }

    /// Puts an empty disk in the place of that of a master that does not run; `false` if no group survives that.
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

    /// The disk of a master is replaced by an empty one, and its process ends; it is started again after `away`.
    /// Nothing happens if no group survives that.
    pub fn replace_disk(&mut self, at: usize, away: Duration) {
        // A write in progress is not relied on yet.
        if !self.survives_without(at) {
            return self.log.line(self.now, || format!("master {at}   keeps its disk: the group would not survive"));
        }
        self.end(at, 0, Some(away), "its disk is lost");
        self.empty(at);
    }

    /// Whether the group can go on if the disk of a master is emptied: with what the others have on their disks in the
    /// newest configuration, and in any that may come after it.
    fn survives_without(&self, at: usize) -> bool {
        let Some(newest) = &self.rules.newest else { return false };
        let next = self.changes.iter().filter(|next| next.number == newest.number + 1);
        [newest].into_iter().chain(next).all(|members| self.survives(members, Some(at)))
    }

    /// Whether more than half of these members have what they need on their disks: those that are members already, the
    /// newest configuration. A group that has lost more than that cannot go on, and need not.
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

    /// A master does what an operator wants, if it leads.
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
        // The lease ends before the caller knows.
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
