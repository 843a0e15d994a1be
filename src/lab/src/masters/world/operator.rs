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
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Time after which an operator gives up.
const OPERATOR_TIMEOUT: Duration = Duration::from_secs(8);

/// An action of an operator. Masters are identified by their numbers in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorAction {
    /// Starts a master with an empty disk, unless it runs, and adds it to the members.
    Add(usize),
    /// Removes a master from the members.
    Remove(usize),
    /// Makes the leader hand the lead over to a member, or to any.
    HandOver(Option<usize>),
}

impl fmt::Display for OperatorAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperatorAction::Add(at) => write!(f, "adds master {at}"),
            OperatorAction::Remove(at) => write!(f, "removes master {at}"),
            OperatorAction::HandOver(Some(at)) => write!(f, "has the lead handed over to master {at}"),
            OperatorAction::HandOver(None) => f.write_str("has the lead handed over"),
        }
    }
}

/// The actions that an operator performs one after the other.
#[derive(Debug)]
pub(super) struct Task {
    actions: VecDeque<OperatorAction>,
    until: Time,
}

impl World {
    /// Starts an operator that performs these actions one after the other.
    pub fn operate(&mut self, actions: &[OperatorAction]) {
        self.tasks.push(Task { actions: actions.iter().copied().collect(), until: self.now + OPERATOR_TIMEOUT });
        let task = self.tasks.len() - 1;
        self.queue.push(self.now, Event::Operator(task));
    }

    /// Returns whether all operators have finished.
    pub fn operators_rest(&self) -> bool {
        self.tasks.iter().all(|task| task.actions.is_empty())
    }

    /// Checks whether the current action of an operator is done, and requests it from the leader otherwise.
    pub(super) fn operator_looks(&mut self, task: usize) {
        let now = self.now;
        let Some(action) = self.tasks[task].actions.front().copied() else { return };
        if self.is_done(action) {
            self.log.line(now, || format!("operator <  done: {action}"));
            self.tasks[task].actions.pop_front();
            return self.queue.push(now, Event::Operator(task));
        }
        if self.tasks[task].until < now {
            self.log.line(now, || format!("operator <  gives up: {action}"));
            return self.tasks[task].actions.clear();
        }
        if let OperatorAction::Add(at) = action {
            // The leader has added a disk that does not exist any more.
            if self.rules.newest.as_ref().is_some_and(|members| self.member_at(at, members).is_some()) {
                self.tasks[task].actions.push_front(OperatorAction::Remove(at));
                return self.queue.push(now, Event::Operator(task));
            }
            self.prepare(at);
            // Until the process has run for a lease, the leader may know only the master's former disk.
            if self.hosts[at].process.as_ref().is_none_or(|process| now.since(process.began) <= LEASE) {
                return self.after(CHECK_INTERVAL, Event::Operator(task));
            }
        }
        if let Some(leader) = (0..self.hosts.len()).find(|at| self.answers(*at)) {
            if matches!(action, OperatorAction::HandOver(_)) {
                self.tasks[task].actions.pop_front();
            }
            self.push(leader, Job::Change(action));
        }
        self.after(CHECK_INTERVAL, Event::Operator(task));
    }

    /// Returns the number of a master's disk, if it has one.
    fn disk_of(&self, at: usize) -> Option<u64> {
        self.hosts[at].disk.stored().map(|stored| stored.disk)
    }

    fn member_at<'a>(&self, at: usize, configuration: &'a Configuration) -> Option<&'a peers::Member> {
        configuration.at(&self.hosts[at].address)
    }

    /// Returns whether the members are as an action requires.
    fn is_done(&self, action: OperatorAction) -> bool {
        let Some(members) = &self.rules.newest else { return false };
        match action {
            OperatorAction::Add(at) => {
                self.member_at(at, members).is_some_and(|member| Some(member.disk) == self.disk_of(at))
            }
            OperatorAction::Remove(at) => self.member_at(at, members).is_none(),
            OperatorAction::HandOver(_) => false,
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
        let (keeps, reused_disk) =
            (self.setup.defect == Some(super::Defect::EmptyDiskLetIn), self.hosts[at].disk.stored());
        let host = &mut self.hosts[at];
        if keeps && !host.removed {
            host.reused_disk = reused_disk.map(|stored| (stored.disk, stored.starts));
        }
        host.disk.replace();
        host.removed = false;
        self.log.line(self.now, || format!("master {at}   has an empty disk"));
        true
    }

    /// Replaces the disk of a master by an empty one and ends its process, which is started again after `downtime`.
    /// Does nothing if the group would not survive that.
    pub fn replace_disk(&mut self, at: usize, downtime: Duration) {
        // A write in progress does not count as durable.
        if !self.survives_without(at) {
            return self.log.line(self.now, || format!("master {at}   keeps its disk: the group would not survive"));
        }
        self.end(at, 0, Some(downtime), "its disk is lost");
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
                stored.disk == member.disk && (entered >= newest || is_new) && self.hosts[at].reused_disk.is_none()
            })
        };
        members.members.iter().filter(is_whole).count() >= members.majority()
    }

    /// Performs an action of an operator at a master, if it leads.
    pub(super) fn change(&mut self, at: usize, action: OperatorAction, now: Time) {
        let address = |of: usize| self.hosts[of].address.clone();
        let Some(peer) = self.hosts[at].process.as_ref().map(|process| &process.peer) else { return };
        let Some((members, _)) = peer.members() else { return };
        let next = match action {
            OperatorAction::Add(of) => self.disk_of(of).and_then(|disk| members.adding(&address(of), disk).ok()),
            OperatorAction::Remove(of) => members.removing(&address(of)).ok(),
            OperatorAction::HandOver(_) => None,
        };
        if next.as_ref().is_some_and(|next| !self.survives(next, None)) {
            return self.log.line(self.now, || format!("operator <  waits: no group would survive if it {action}"));
        }
        let to = match action {
            OperatorAction::Add(of) | OperatorAction::Remove(of) | OperatorAction::HandOver(Some(of)) => {
                Some(address(of))
            }
            OperatorAction::HandOver(None) => None,
        };
        let to = to.as_deref();
        let Some(process) = &mut self.hosts[at].process else { return };
        let outcome = match action {
            OperatorAction::Add(_) => process.peer.add(to.unwrap_or_default(), now),
            OperatorAction::Remove(_) => process.peer.remove(to.unwrap_or_default(), now),
            OperatorAction::HandOver(_) => process.peer.transfer_leadership(to, now),
        };
        // Publishes the lease at once: it may end before the caller learns the outcome.
        process.lease = process.peer.lease();
        process.has_resigned |= outcome.is_ok() && matches!(action, OperatorAction::HandOver(_));
        if outcome.is_ok() {
            self.changes.extend(next);
        }
        let text = outcome.as_ref().err().map_or("begun".to_owned(), ToString::to_string);
        self.log.line(self.now, || format!("operator <  {action}: {text}"));
        self.outcomes.push(text);
        if matches!((outcome, action), (Err(ChangeError::Leads(_)), OperatorAction::Remove(_))) {
            self.operate(&[OperatorAction::HandOver(None)]);
        }
    }
}
