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
    /// Counts resources as offered.
    pub(crate) fn add_offered(&mut self, key: AgentKey, resources: &Resources) {
        if let Some(agent) = self.row(key) {
            agent.offered += resources;
        }
    }

    /// Counts resources as offered no longer.
    pub(crate) fn remove_offered(&mut self, key: AgentKey, resources: &Resources) {
        if let Some(agent) = self.row(key) {
            agent.offered -= resources;
        }
    }

    /// Adds a task, and what it takes, unless that was given back.
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
        if let Some(book) = self.books.get_mut(&key) {
            book.tasks.insert((framework, task));
        }
    }

    /// Takes a task out whose resources were given back.
    pub(crate) fn remove_task(&mut self, key: AgentKey, framework: FrameworkKey, task: TaskKey, id: &TaskId) {
        let Some(book) = self.books.get_mut(&key) else { return };
        book.tasks.remove(&(framework, task));
        if !book.killed.is_empty() {
            book.killed.remove(&(framework, id.clone()));
        }
    }

    /// The tasks that run on an agent or whose end is not acknowledged.
    pub(crate) fn tasks(&self, key: AgentKey) -> impl Iterator<Item = (FrameworkKey, TaskKey)> + Clone {
        self.books.get(&key).into_iter().flat_map(|book| &book.tasks).copied()
    }

    /// Whether an agent has that task.
    pub(crate) fn has_task(&self, key: AgentKey, framework: FrameworkKey, task: TaskKey) -> bool {
        self.books.get(&key).is_some_and(|book| book.tasks.contains(&(framework, task)))
    }

    /// Gives back what a task took.
    pub(crate) fn release(&mut self, key: AgentKey, resources: &Resources) {
        if let Some(agent) = self.row(key) {
            agent.used -= resources;
        }
    }

    /// Keeps the kill of a task until its agent reregisters.
    pub(crate) fn keep_kill(&mut self, key: AgentKey, framework: FrameworkKey, id: &TaskId) {
        if let Some(book) = self.books.get_mut(&key) {
            book.killed.insert((framework, id.clone()));
        }
    }

    /// Takes the kills that were kept: of those that the agent lists, as `(framework, task)`, the ones to be sent.
    pub(crate) fn take_kills<'a>(
        &mut self,
        key: AgentKey,
        listed: impl Iterator<Item = (FrameworkKey, &'a mesos::Task)>,
    ) -> Vec<&'a mesos::Task> {
        let killed = self.books.get_mut(&key).map(|book| std::mem::take(&mut book.killed)).unwrap_or_default();
        let is_killed = |framework: FrameworkKey, task: &mesos::Task| {
            killed.iter().any(|(owner, id)| *owner == framework && id.as_str() == task.task_id.value)
        };
        listed.filter(|(framework, task)| is_killed(*framework, task)).map(|(_, task)| task).collect()
    }

    /// Adds an executor and what it takes.
    pub(crate) fn add_executor(&mut self, key: AgentKey, id: ExecutorId, executor: Executor) {
        let Some(agent) = self.row(key) else { return };
        agent.used += &executor.resources;
        agent.executors.entry(executor.framework).or_default().insert(id, Arc::new(executor));
    }

    /// Takes an executor out, and what it took.
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

    /// The executors on an agent.
    pub(crate) fn executors_on(&self, key: AgentKey) -> Vec<(FrameworkKey, ExecutorId)> {
        let executors = self.get(key).into_iter().flat_map(|agent| &agent.executors);
        executors.flat_map(|(framework, mine)| mine.keys().map(|id| (*framework, id.clone()))).collect()
    }

    /// A framework's executors, by agent.
    pub(crate) fn executors_of(&self, framework: FrameworkKey) -> Vec<(AgentKey, ExecutorId)> {
        let mine = self.iter().filter_map(|(key, agent)| Some((key, agent.executors.get(&framework)?)));
        mine.flat_map(|(key, mine)| mine.keys().map(move |id| (key, id.clone()))).collect()
    }

    /// Sets what all tasks and executors of an agent take.
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

    /// Carries the conversions of an operation out on an agent's resources, and on those of the provider that it names.
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

    /// Adds a resource provider, or replaces what is known of it.
    pub(crate) fn set_provider(&mut self, key: AgentKey, id: String, provider: ResourceProvider) {
        if let Some(agent) = self.row(key) {
            agent.providers.insert(id, provider);
        }
    }

    /// Removes a resource provider.
    pub(crate) fn remove_provider(&mut self, key: AgentKey, id: &str) -> Option<&Agent> {
        let agent = self.row(key)?;
        agent.providers.remove(id);
        Some(agent)
    }

    /// Notes that an operation has ended at its provider, and whether it succeeded. If the provider's last report does
    /// not show what the operation has made, that is made up for: returns the agent's new total.
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
