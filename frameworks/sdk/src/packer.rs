//! Packs tasks into offers, and declines the rest.
//!
//! It selects the first offer that fits, or the best by the caller's score. The caller chooses the order of tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Text;
use resources::{Format, Reservation, Resources, Role};

use crate::calls::{Calls, launch};
use crate::needs::{Found, Need};
use crate::task::{from_v1, twin};
use crate::v1::{AgentId, Attribute, Offer, OfferId, Resource, TaskInfo};

/// Offers, and the tasks placed on them so far.
#[derive(Debug, Default)]
pub struct Packer {
    bins: Vec<Bin>,
}

/// The offers of one agent to one role, which can be accepted in one call.
#[derive(Debug)]
pub struct Bin {
    agent_id: AgentId,
    hostname: String,
    attributes: Vec<Attribute>,
    role: Option<Role>,
    format: Format,
    offers: Vec<OfferId>,
    left: Resources,
    tasks: Vec<TaskInfo>,
}

impl Bin {
    /// Returns the id of the agent whose resources are offered.
    pub fn agent_id(&self) -> &AgentId {
        &self.agent_id
    }

    /// Returns the host name of the agent.
    pub fn hostname(&self) -> &str {
        &self.hostname
    }

    /// Returns the attributes of the agent.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Returns the role to which the resources are offered, if the offer states it.
    pub fn role(&self) -> Option<&Role> {
        self.role.as_ref()
    }

    /// Returns the resources that no task uses yet, without the allocation to a role.
    pub fn left(&self) -> &Resources {
        &self.left
    }

    /// Returns the tasks placed here so far.
    pub fn tasks(&self) -> &[TaskInfo] {
        &self.tasks
    }

    /// Selects resources for `needs`, reserved ones first. Returns `None` if some are missing. Revocable resources are
    /// not used.
    pub(crate) fn find(&self, needs: &Resources) -> Option<Resources> {
        let steady = self.left.non_revocable();
        match &self.role {
            Some(role) if !role.is_star() => steady.find(&needs.push_reservation(&Reservation::fixed(role.clone()))),
            _ => steady.find(needs),
        }
    }

    /// Selects revocable resources for `needs`. Returns `None` if some are missing.
    pub(crate) fn find_revocable(&self, needs: &Resources) -> Option<Resources> {
        let revocable: Resources = needs.clone().into_iter().map(|r| r.with_revocable(true)).collect();
        self.left.revocable().find(&revocable)
    }

    /// Returns the resources of the task's custom executor; they are empty if a task placed here starts that executor
    /// already.
    fn executor_needs(&self, task: &TaskInfo) -> Resources {
        let Some(executor) = &task.executor else { return Resources::new() };
        let same = |t: &TaskInfo| t.executor.as_ref().is_some_and(|e| e.executor_id == executor.executor_id);
        if self.tasks.iter().any(same) {
            return Resources::new();
        }
        from_v1(&executor.resources).unwrap_or_default().unallocated().to_unreserved()
    }

    fn put(&mut self, mut task: TaskInfo, found: &Resources) {
        self.left -= found;
        let for_executor = self.find(&self.executor_needs(&task));
        if let (Some(executor), Some(found)) = (&mut task.executor, for_executor) {
            let first = self.tasks.iter().filter_map(|t| t.executor.as_ref());
            let first = first.into_iter().find(|e| e.executor_id == executor.executor_id);
            // All tasks of an executor must describe it equally.
            executor.resources = match first {
                Some(first) => first.resources.clone(),
                None => self.messages(&found),
            };
            self.left -= &found;
        }
        task.agent_id = self.agent_id.clone();
        task.resources = self.messages(found);
        self.tasks.push(task);
    }

    /// Converts resources to messages as the master offered them: in the same reservation format, allocated to the same
    /// role.
    fn messages(&self, resources: &Resources) -> Vec<Resource> {
        let allocated = match &self.role {
            Some(role) => resources.allocated(role),
            None => resources.clone(),
        };
        allocated.to_proto(self.format).iter().map(twin).collect()
    }
}

impl Packer {
    /// Creates a packer of these offers. Those of one agent and role are combined. An offer with resources that this
    /// library cannot read counts as empty; [`finish`](Packer::finish) returns it.
    pub fn new(offers: impl IntoIterator<Item = Offer>) -> Packer {
        let mut places: BTreeMap<(Text, Option<Text>), usize> = BTreeMap::new();
        let mut packer = Packer::default();
        for offer in offers {
            let role = offer.allocation_info.as_ref().and_then(|a| a.role.clone());
            let place = *places.entry((offer.agent_id.value.clone(), role)).or_insert(packer.bins.len());
            if place == packer.bins.len() {
                packer.bins.push(bin(&offer));
            }
            let resources = from_v1(&offer.resources).unwrap_or_default();
            packer.bins[place].left += resources.unallocated();
            packer.bins[place].offers.push(offer.id);
        }
        packer
    }

    /// Returns the bins, one for each agent and role, with their unused resources.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Places a task on the first agent where it fits, and returns the agent. The task's resources are its needs; they
    /// are replaced by the selected ones.
    ///
    /// # Errors
    /// Returns the task if it does not fit.
    pub fn place(&mut self, task: TaskInfo) -> Result<AgentId, Box<TaskInfo>> {
        self.place_by(task, |_| Some(0.0))
    }

    /// Places a task in the bin where it fits and `score` is highest, and returns the agent. A bin whose score is
    /// `None` is excluded.
    ///
    /// # Errors
    /// Returns the task if it does not fit or its needs cannot be read.
    pub fn place_by(&mut self, task: TaskInfo, score: impl Fn(&Bin) -> Option<f64>) -> Result<AgentId, Box<TaskInfo>> {
        let Ok(needs) = from_v1(&task.resources) else { return Err(Box::new(task)) };
        let needs = needs.unallocated().to_unreserved();
        let mut best: Option<(usize, f64, Resources)> = None;
        for (place, bin) in self.bins.iter().enumerate() {
            let Some(score) = score(bin) else { continue };
            if best.as_ref().is_some_and(|(_, highest, _)| score <= *highest) {
                continue;
            }
            let with_executor = &needs + &bin.executor_needs(&task);
            if let Some(found) = bin.find(&with_executor).and_then(|_| bin.find(&needs)) {
                best = Some((place, score, found));
            }
        }
        let Some((place, _, found)) = best else { return Err(Box::new(task)) };
        self.bins[place].put(task, &found);
        Ok(self.bins[place].agent_id.clone())
    }

    /// Places a task in the bin where `need` is met and `score` is highest, and returns the agent and the ports. The
    /// task's resources are replaced by the selected ones.
    ///
    /// # Errors
    /// Returns the task if no agent fits.
    pub fn place_need(
        &mut self,
        task: TaskInfo,
        need: &Need,
        score: impl Fn(&Bin) -> Option<f64>,
    ) -> Result<(AgentId, Vec<u16>), Box<TaskInfo>> {
        let mut best: Option<(usize, f64, Found)> = None;
        for (place, bin) in self.bins.iter().enumerate() {
            let Some(score) = score(bin) else { continue };
            if best.as_ref().is_some_and(|(_, highest, _)| score <= *highest) {
                continue;
            }
            if let Some(found) = need.find(bin) {
                best = Some((place, score, found));
            }
        }
        let Some((place, _, found)) = best else { return Err(Box::new(task)) };
        self.bins[place].put(task, &found.resources);
        Ok((self.bins[place].agent_id.clone(), found.ports))
    }

    /// Launches the placed tasks and declines all other resources, which are not offered again before `refuse` is over.
    pub fn finish(self, calls: &mut Calls, refuse: Duration) {
        let mut unused = Vec::new();
        for bin in self.bins {
            if bin.tasks.is_empty() {
                unused.extend(bin.offers);
            } else {
                calls.accept(bin.offers, vec![launch(bin.tasks)], refuse);
            }
        }
        calls.decline(unused, refuse);
    }
}

fn bin(offer: &Offer) -> Bin {
    let role = offer.allocation_info.as_ref().and_then(|a| a.role.as_deref());
    let older = offer.resources.iter().any(|r| r.role.is_some());
    Bin {
        agent_id: offer.agent_id.clone(),
        hostname: offer.hostname.clone(),
        attributes: offer.attributes.clone(),
        role: role.and_then(|r| Role::parse(r).ok()),
        format: if older { Format::PreRefinement } else { Format::PostRefinement },
        offers: Vec::new(),
        left: Resources::new(),
        tasks: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
