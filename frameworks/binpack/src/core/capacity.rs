//! What the cluster's agents have in all, as the master reports it: a gang that cannot form even on all of it holds no
//! offers.
//!
//! How the report is had is elsewhere (`service::capacity`); without one, what agents have offered so far counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Time;
use resources::Role;
use sdk::task::from_v1;
use sdk::v1::master::response::get_agents::Agent;

use super::Core;
use super::offers::{Site, attribute_text, room_in};
use super::round::ranks_on;
use crate::Need;
use crate::job::{Job, Kind};

/// One agent and all that it has for this framework's role, in use or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    /// Its id.
    pub agent_id: String,
    /// Its host name.
    pub host: String,
    /// Its attributes, as constraints see them.
    pub attributes: BTreeMap<String, String>,
    /// Its resources, without those that are reserved to other roles.
    pub all: Need,
}

impl Total {
    /// What the master reports of an agent, for a framework of this role; `None` if its resources are invalid.
    pub fn of(agent: &Agent, role: Option<&Role>) -> Option<Total> {
        let mut all = from_v1(&agent.total_resources).ok()?;
        if let Some(role) = role {
            all = all.allocatable_to(role);
        }
        let info = &agent.agent_info;
        Some(Total {
            agent_id: info.id.as_ref().map(|id| id.value.to_string()).unwrap_or_default(),
            host: info.hostname.clone(),
            attributes: info.attributes.iter().map(|a| (a.name.clone(), attribute_text(a))).collect(),
            all: room_in(&all),
        })
    }
}

/// The last report.
#[derive(Clone, Debug, Default)]
pub(super) struct Capacity {
    /// `None` before the first report.
    sites: Option<Vec<(Arc<Site>, Need)>>,
}

/// For how many ranks of a gang the agents have room in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Possible {
    /// There is no report.
    #[default]
    Unknown,
    /// So many, counted up to the size of the gang, by the master's report.
    Ranks(u32),
}

impl Core {
    /// Takes the report in: gangs that were too large may have become possible, or the reverse.
    pub(super) fn set_capacity(&mut self, totals: Vec<Total>, now: Time) {
        let site = |total: Total| {
            let Total { agent_id, host, attributes, all } = total;
            (Arc::new(Site::new(agent_id, host, attributes)), all)
        };
        self.capacity.sites = Some(totals.into_iter().map(site).collect());
        let gangs: Vec<u64> = self.waiting_gangs().collect();
        for serial in gangs {
            self.judge_gang(serial, now);
        }
    }

    /// Whether a gang waits, so that a report is of use.
    pub(super) fn wants_capacity(&self) -> bool {
        self.waiting_gangs().next().is_some()
    }

    fn waiting_gangs(&self) -> impl Iterator<Item = u64> {
        let gangs = self.records.iter().filter(|(_, record)| record.kind() == Kind::Gang && !record.is_over());
        gangs.filter(|(_, record)| record.counts().waiting > 0).map(|(serial, _)| *serial)
    }

    /// Counts for how many ranks of a gang there is room in all, and ends its gathering if that is too few.
    pub(super) fn judge_gang(&mut self, serial: u64, now: Time) {
        let Some(record) = self.records.get(&serial).filter(|record| record.kind() == Kind::Gang) else { return };
        let job = record.job().clone();
        let possible = self.possible(serial, &job, now);
        let Some(record) = self.records.get_mut(&serial) else { return };
        record.head.gang.possible = possible;
        if self.gathering == Some(serial) && possible.is_too_few(job.count) {
            record.head.gang.gather_until = None;
            self.gathering = None;
            // What it kept is free for others.
            self.dirty = true;
        }
    }

    fn possible(&self, serial: u64, job: &Job, now: Time) -> Possible {
        let Some(sites) = &self.capacity.sites else { return Possible::Unknown };
        let (sites, all): (Vec<_>, Vec<Need>) = sites.iter().cloned().unzip();
        let check = self.check(serial, job, &sites, now);
        Possible::Ranks(ranks_on(&sites, &all, job, check, self.knobs.policy))
    }
}

impl Possible {
    /// Whether a gang of this size cannot form, whatever becomes free.
    pub(super) fn is_too_few(self, size: u32) -> bool {
        matches!(self, Possible::Ranks(ranks) if ranks < size)
    }
}
