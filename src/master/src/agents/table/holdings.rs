//! Resources, tasks, executors and resource providers of an agent.
//!
//! It updates the sums `used` and `offered`, and does not call the allocator.

use std::sync::Arc;

use base::{ExecutorId, TaskId};
use protos::mesos;
use resources::{Conversion, Resources};

use super::Agents;
use crate::operations::{provider_of, without_allocations};
use crate::state::{Agent, AgentKey, Executor, FrameworkKey, ResourceProvider, TaskKey};

impl Agents {
    /// Adds resources to the offered ones of an agent.
    pub(crate) fn add_offered(&mut self, key: AgentKey, resources: &Resources) {
        if let Some(agent) = self.row(key) {
            agent.offered += resources;
        }
    }

    /// Subtracts resources from the offered ones of an agent.
    pub(crate) fn remove_offered(&mut self, key: AgentKey, resources: &Resources) {
        if let Some(agent) = self.row(key) {
            agent.offered -= resources;
        }
    }

    /// Adds a task, and its resources if they are given.
    pub(crate) fn add_task(
        &mut self,
        key: AgentKey,
        framework: FrameworkKey,
        task: TaskKey,
        taken: Option<&Resources>,
    ) {
        if let Some(taken) = taken
            && let Some(agent) = self.row(key)
        {
            agent.used += taken;
        }
        if let Some(data) = self.private_data.get_mut(&key) {
            data.tasks.insert((framework, task));
        }
    }

    /// Removes a task whose resources were released.
    pub(crate) fn remove_task(&mut self, key: AgentKey, framework: FrameworkKey, task: TaskKey, id: &TaskId) {
        let Some(data) = self.private_data.get_mut(&key) else { return };
        data.tasks.remove(&(framework, task));
        if !data.killed.is_empty() {
            data.killed.remove(&(framework, id.clone()));
        }
    }

    /// Returns the tasks of an agent that run or whose terminal update is not acknowledged.
    pub(crate) fn tasks(&self, key: AgentKey) -> impl Iterator<Item = (FrameworkKey, TaskKey)> + Clone {
        self.private_data.get(&key).into_iter().flat_map(|data| &data.tasks).copied()
    }

    /// Returns whether an agent has a task.
    pub(crate) fn has_task(&self, key: AgentKey, framework: FrameworkKey, task: TaskKey) -> bool {
        self.private_data.get(&key).is_some_and(|data| data.tasks.contains(&(framework, task)))
    }

    /// Subtracts released resources of a task from the used ones.
    pub(crate) fn release(&mut self, key: AgentKey, resources: &Resources) {
        if let Some(agent) = self.row(key) {
            agent.used -= resources;
        }
    }

    /// Keeps the kill of a task until its agent reregisters.
    pub(crate) fn keep_kill(&mut self, key: AgentKey, framework: FrameworkKey, id: &TaskId) {
        if let Some(data) = self.private_data.get_mut(&key) {
            data.killed.insert((framework, id.clone()));
        }
    }

    /// Removes all kept kills of an agent. Returns those that must be sent: the ones whose tasks the agent lists, as
    /// `(framework, task)`.
    pub(crate) fn take_kills<'a>(
        &mut self,
        key: AgentKey,
        listed: impl Iterator<Item = (FrameworkKey, &'a mesos::Task)>,
    ) -> Vec<&'a mesos::Task> {
        let killed = self.private_data.get_mut(&key).map(|data| std::mem::take(&mut data.killed)).unwrap_or_default();
        let is_killed = |framework: FrameworkKey, task: &mesos::Task| {
            killed.iter().any(|(owner, id)| *owner == framework && id.as_str() == task.task_id.value)
        };
        listed.filter(|(framework, task)| is_killed(*framework, task)).map(|(_, task)| task).collect()
    }

    /// Adds an executor and its resources.
    pub(crate) fn add_executor(&mut self, key: AgentKey, id: ExecutorId, executor: Executor) {
        let Some(agent) = self.row(key) else { return };
        agent.used += &executor.resources;
        agent.executors.entry(executor.framework).or_default().insert(id, Arc::new(executor));
    }

    /// Removes an executor and its resources.
    pub(crate) fn remove_executor(
        &mut self,
        key: AgentKey,
        framework: FrameworkKey,
        id: &str,
    ) -> Option<Arc<Executor>> {
        let agent = self.row(key)?;
        let mine = agent.executors.get_mut(&framework)?;
        let executor = mine.remove(id)?;
        if mine.is_empty() {
            agent.executors.remove(&framework);
        }
        agent.used -= &executor.resources;
        Some(executor)
    }

    /// Returns the executors on an agent.
    pub(crate) fn executors_on(&self, key: AgentKey) -> Vec<(FrameworkKey, ExecutorId)> {
        let executors = self.get(key).into_iter().flat_map(|agent| &agent.executors);
        executors.flat_map(|(framework, mine)| mine.keys().map(|id| (*framework, id.clone()))).collect()
    }

    /// Returns the executors of a framework, each with its agent.
    pub(crate) fn executors_of(&self, framework: FrameworkKey) -> Vec<(AgentKey, ExecutorId)> {
        let mine = self.iter().filter_map(|(key, agent)| Some((key, agent.executors.get(&framework)?)));
        mine.flat_map(|(key, mine)| mine.keys().map(move |id| (key, id.clone()))).collect()
    }

    /// Sets the sum of the resources that the tasks and executors of an agent use.
    pub(crate) fn set_used(&mut self, key: AgentKey, used: Resources) {
        if let Some(agent) = self.row(key) {
            agent.used = used;
        }
    }

    pub(crate) fn set_total(&mut self, key: AgentKey, total: Resources) {
        if let Some(agent) = self.row(key) {
            agent.total = total;
        }
    }

    pub(crate) fn set_resource_version(&mut self, key: AgentKey, version: mesos::Uuid) {
        if let Some(agent) = self.row(key) {
            agent.resource_version = Some(version);
        }
    }

    /// Applies the conversions of an operation to an agent's resources, and to those of the provider that it names.
    pub(crate) fn convert(&mut self, key: AgentKey, provider: Option<&str>, conversions: &[Conversion]) {
        let Some(agent) = self.row(key) else { return };
        let provided = provider.and_then(|id| agent.providers.get_mut(id)).map(|provider| &mut provider.total);
        for total in std::iter::once(&mut agent.total).chain(provided) {
            for conversion in conversions {
                *total -= &conversion.consumed.unallocated();
                *total += &conversion.converted.unallocated();
            }
        }
        agent.checkpointed = agent.total.to_checkpoint();
    }

    /// Adds a resource provider of an agent, or replaces it.
    pub(crate) fn set_provider(&mut self, key: AgentKey, id: String, provider: ResourceProvider) {
        if let Some(agent) = self.row(key) {
            agent.providers.insert(id, provider);
        }
    }

    /// Removes a resource provider of an agent.
    pub(crate) fn remove_provider(&mut self, key: AgentKey, id: &str) -> Option<&Agent> {
        let agent = self.row(key)?;
        agent.providers.remove(id);
        Some(agent)
    }

    /// Records that an operation has ended at its provider, and whether it succeeded. If the provider's last report
    /// does not contain the operation's result, returns the agent's new total with it.
    pub(crate) fn settle_provided(
        &mut self,
        key: AgentKey,
        operation: &mesos::Operation,
        succeeded: bool,
    ) -> Option<Resources> {
        let agent = self.row(key)?;
        let provider = agent.providers.get_mut(provider_of(&operation.info)?)?;
        if !provider.undone.remove(&operation.uuid.value) || !succeeded {
            return None;
        }
        let conversions = resources::conversions(&without_allocations(&operation.info)).ok()?;
        let provided = provider.total.apply_conversions(&conversions).ok()?;
        let total = agent.total.apply_conversions(&conversions).ok()?;
        provider.total = provided;
        Some(total)
    }
}
