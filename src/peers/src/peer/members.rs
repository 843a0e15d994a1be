//! What the leader does at an operator's wish: members are added and removed, and the lead is handed over.

use std::time::Duration;

use base::Time;

use super::Leader;
use super::member::Membership;
use crate::members::ChangeError;
use crate::message::Body;

/// A master that has been silent for longer does not ask to join any more.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Masters that ask to join and are remembered.
const STRANGERS_MAX: usize = 16;

impl Membership {
    /// A master that is no member has shown itself.
    pub(super) fn met(&mut self, address: &str, disk: u64, now: Time) {
        self.strangers.retain(|_, (_, met)| now.since(*met) < SILENCE_MAX);
        if self.strangers.len() < STRANGERS_MAX || self.strangers.contains_key(address) {
            self.strangers.insert(address.to_owned(), (disk, now));
        }
    }

    pub(super) fn joining(&self, now: Time) -> Vec<String> {
        let asking = self.strangers.iter().filter(|(_, (_, met))| now.since(*met) < SILENCE_MAX);
        asking.map(|(address, _)| address.clone()).collect()
    }

    fn check_leading(&self, now: Time) -> Result<(), ChangeError> {
        match self.leader(now) {
            Leader::Own => Ok(()),
            _ => Err(ChangeError::NotLeading),
        }
    }

    pub(super) fn add(&mut self, address: &str, now: Time) -> Result<(), ChangeError> {
        self.check_leading(now)?;
        let met = self.strangers.get(address).filter(|(_, met)| now.since(*met) < SILENCE_MAX).map(|(disk, _)| *disk);
        // A member is named as such, and not as one that is silent.
        let next = self.configuration.adding(address, met.unwrap_or_default())?;
        if met.is_none() {
            return Err(ChangeError::Silent(address.to_owned(), self.configuration.addresses()));
        }
        self.reconfigure(&next)
    }

    pub(super) fn remove(&mut self, address: &str, now: Time) -> Result<(), ChangeError> {
        self.check_leading(now)?;
        let next = self.configuration.removing(address)?;
        if self.configuration.at(address).is_some_and(|member| member.number == self.own()) {
            return Err(ChangeError::Leads(address.to_owned()));
        }
        self.reconfigure(&next)
    }

    pub(super) fn hand_over(&mut self, to: Option<&str>, now: Time) -> Result<(), ChangeError> {
        self.check_leading(now)?;
        let others = || self.configuration.members.iter().filter(|member| member.number != self.own());
        let successor = match to {
            Some(address) => others().find(|member| member.address == address).ok_or_else(|| {
                let names = others().map(|member| member.address.as_str()).collect::<Vec<_>>().join(",");
                ChangeError::Absent(address.to_owned(), names)
            })?,
            None => {
                let answering = self.leases.answering(now);
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
