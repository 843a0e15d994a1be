//! Calls of operators to the leader: members are added and removed, and the lead is handed over.

use std::time::Duration;

use base::Time;

use super::Leader;
use super::member::Membership;
use crate::members::{ChangeError, Configuration};
use crate::message::Body;

/// Longest silence after which a master still counts as asking to join.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Maximum number of masters that ask to join and are remembered.
const STRANGERS_MAX: usize = 16;

impl Membership {
    /// Records the announcement of a master that is not a member.
    pub(super) fn record_joining(&mut self, address: &str, disk: u64, now: Time) {
        let silence = self.silence();
        self.joining_masters.retain(|_, (_, met)| now.since(*met) < silence);
        if self.joining_masters.len() < STRANGERS_MAX || self.joining_masters.contains_key(address) {
            self.joining_masters.insert(address.to_owned(), (disk, now));
        }
    }

    /// Returns the silence after which a master no longer counts as asking to join: a lease, in which it asks several
    /// times. A master that has been silent for longer may have another disk by now, and would be a member that never
    /// answers.
    fn silence(&self) -> Duration {
        self.leases.length().min(SILENCE_MAX)
    }

    /// Returns the disk of the master at an address, if it asks to join.
    fn disk_of(&self, address: &str, now: Time) -> Option<u64> {
        let known = self.joining_masters.get(address).filter(|(_, met)| now.since(*met) < self.silence());
        known.map(|(disk, _)| *disk)
    }

    pub(super) fn joining(&self, now: Time) -> Vec<String> {
        self.joining_masters.keys().filter(|address| self.disk_of(address, now).is_some()).cloned().collect()
    }

    fn check_leading(&self, now: Time) -> Result<(), ChangeError> {
        match self.leader(now) {
            Leader::Own => Ok(()),
            _ => Err(ChangeError::NotLeading),
        }
    }

    pub(super) fn add(&mut self, address: &str, now: Time) -> Result<(), ChangeError> {
        self.check_leading(now)?;
        let disk = self.disk_of(address, now);
        // A member is reported as such, and not as silent.
        let next = self.configuration.adding(address, disk.unwrap_or_default())?;
        if disk.is_none() {
            return Err(ChangeError::Silent(address.to_owned(), self.configuration.addresses()));
        }
        self.begin(&next)
    }

    /// Changes the members, unless the last change has only just been made.
    fn begin(&mut self, next: &Configuration) -> Result<(), ChangeError> {
        match self.leases.is_confirmed() {
            true => self.reconfigure(next),
            false => Err(ChangeError::UnderWay),
        }
    }

    pub(super) fn remove(&mut self, address: &str, now: Time) -> Result<(), ChangeError> {
        self.check_leading(now)?;
        let next = self.configuration.removing(address)?;
        if self.configuration.at(address).is_some_and(|member| member.number == self.own()) {
            return Err(ChangeError::Leads(address.to_owned()));
        }
        self.begin(&next)
    }

    pub(super) fn transfer_leadership(&mut self, to: Option<&str>, now: Time) -> Result<(), ChangeError> {
        self.check_leading(now)?;
        let others = || self.configuration.members.iter().filter(|member| member.number != self.own());
        let answering = self.leases.answering(now);
        let successor = match to {
            Some(address) => {
                let named = others().find(|member| member.address == address).ok_or_else(|| {
                    let names = others().map(|member| member.address.as_str()).collect::<Vec<_>>().join(",");
                    ChangeError::Absent(address.to_owned(), names)
                })?;
                // A member in another configuration could not be elected by the others.
                if !answering.contains(&named.number) {
                    return Err(ChangeError::Unreachable(address.to_owned()));
                }
                named
            }
            None => {
                let best = others().find(|member| answering.contains(&member.number));
                best.or_else(|| others().next()).ok_or(ChangeError::TooFew)?
            }
        };
        let chosen = successor.number;
        let messages =
            others().map(|member| (member.address.clone(), Body::Release { successor: member.number == chosen }));
        let messages: Vec<_> = messages.collect();
        self.outgoing.extend(messages);
        self.resigned = true;
        self.leases.end();
        Ok(())
    }
}
