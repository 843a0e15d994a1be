//! Table of the frameworks on an agent with their executors, and of completed frameworks.
//!
//! It sends nothing and writes nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::{ExecutorId, FrameworkId};
use cores::StreamId;
use rustc_hash::FxHashMap;

use super::container::ContainerName;
use super::executor::{Executor, ExecutorLink};
use super::framework::Framework;
use crate::config::MAX_COMPLETED_FRAMEWORKS;

/// Key of an executor.
type Key = (FrameworkId, ExecutorId);

/// The frameworks and executors of an agent, with their indices.
#[derive(Debug, Default)]
pub(crate) struct Frameworks {
    rows: Arc<BTreeMap<FrameworkId, Arc<Framework>>>,
    /// Completed frameworks, oldest first.
    completed: Arc<VecDeque<Arc<Framework>>>,
    /// Executors by their containers, until these end.
    by_container: FxHashMap<ContainerName, Key>,
    /// Executors by their event streams.
    by_stream: FxHashMap<StreamId, Key>,
}

impl Frameworks {
    /// Returns the frameworks, for snapshots.
    pub(crate) fn rows(&self) -> &Arc<BTreeMap<FrameworkId, Arc<Framework>>> {
        &self.rows
    }

    /// Returns the completed frameworks, oldest first.
    pub(crate) fn completed(&self) -> &Arc<VecDeque<Arc<Framework>>> {
        &self.completed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.rows.contains_key(id)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Framework>> {
        self.rows.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Framework> {
        Arc::make_mut(&mut self.rows).get_mut(id).map(Arc::make_mut)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Framework>> + Clone {
        self.rows.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Framework> {
        Arc::make_mut(&mut self.rows).values_mut().map(Arc::make_mut)
    }

    /// Returns the executors of all frameworks.
    pub(crate) fn executors(&self) -> impl Iterator<Item = &Arc<Executor>> {
        self.rows.values().flat_map(|framework| framework.executors.values())
    }

    pub(crate) fn executor(&self, framework: &str, executor: &str) -> Option<&Arc<Executor>> {
        self.rows.get(framework)?.executors.get(executor)
    }

    pub(crate) fn executor_mut(&mut self, framework: &str, executor: &str) -> Option<&mut Executor> {
        self.get_mut(framework)?.executors.get_mut(executor).map(Arc::make_mut)
    }

    /// Returns whether this is an executor's container that has not ended.
    pub(crate) fn has_container(&self, container: &ContainerName) -> bool {
        self.by_container.contains_key(container)
    }

    /// Returns the executor of a container that has not ended.
    pub(crate) fn executor_in(&self, container: &ContainerName) -> Option<&Arc<Executor>> {
        let (framework, executor) = self.by_container.get(container)?;
        self.executor(framework.as_str(), executor.as_str())
    }

    /// Returns the executor of a container that has not ended.
    pub(crate) fn executor_in_mut(&mut self, container: &ContainerName) -> Option<&mut Executor> {
        let (framework, executor) = self.by_container.get(container)?;
        let rows = Arc::make_mut(&mut self.rows);
        let framework = rows.get_mut(framework).map(Arc::make_mut)?;
        framework.executors.get_mut(executor).map(Arc::make_mut)
    }

    /// Adds a framework. If it was here before, it gets back its completed executors.
    pub(crate) fn insert(&mut self, mut framework: Framework) {
        let ended = self.completed.iter().position(|completed| completed.id == framework.id);
        if let Some(completed) = ended.and_then(|index| Arc::make_mut(&mut self.completed).remove(index)) {
            framework.completed_executors.clone_from(&completed.completed_executors);
        }
        for executor in framework.executors.values() {
            self.by_container.insert(executor.container.clone(), (framework.id.clone(), executor.id.clone()));
        }
        Arc::make_mut(&mut self.rows).insert(framework.id.clone(), Arc::new(framework));
    }

    /// Moves a framework without executors to the completed ones. Returns whether there was one.
    pub(crate) fn remove_if_idle(&mut self, id: &FrameworkId) -> bool {
        if self.rows.get(id).is_none_or(|framework| !framework.executors.is_empty()) {
            return false;
        }
        let gone = Arc::make_mut(&mut self.rows).remove(id);
        gone.into_iter().for_each(|gone| self.remember(gone));
        true
    }

    /// Adds a completed framework. The oldest ones are removed if there are too many.
    pub(crate) fn remember(&mut self, framework: Arc<Framework>) {
        let completed = Arc::make_mut(&mut self.completed);
        completed.push_back(framework);
        while completed.len() > MAX_COMPLETED_FRAMEWORKS {
            completed.pop_front();
        }
    }

    /// Adds an executor to its framework.
    pub(crate) fn insert_executor(&mut self, executor: Executor) {
        let key = (executor.framework_id.clone(), executor.id.clone());
        if let Some(framework) = self.get_mut(key.0.as_str()) {
            let container = executor.container.clone();
            framework.executors.insert(key.1.clone(), Arc::new(executor));
            self.by_container.insert(container, key);
        }
    }

    /// Moves an executor to the completed ones of its framework, of which `limit` are kept.
    pub(crate) fn complete_executor(&mut self, framework: &str, executor: &str, limit: usize) -> Option<Arc<Executor>> {
        let framework = self.get_mut(framework)?;
        let gone = framework.executors.remove(executor)?;
        let completed = Arc::make_mut(&mut framework.completed_executors);
        completed.push_back(Arc::clone(&gone));
        while completed.len() > limit {
            completed.pop_front();
        }
        Some(gone)
    }

    /// Removes the container of an executor that has ended from the index. Returns the executor's key.
    pub(crate) fn end_container(&mut self, container: &ContainerName) -> Option<Key> {
        self.by_container.remove(container)
    }

    /// Records that an executor is reached over a new event stream.
    pub(crate) fn open_stream(&mut self, stream: StreamId, framework: &str, executor: &str) {
        if let Some(executor) = self.executor_mut(framework, executor) {
            executor.link = ExecutorLink::Stream(stream);
            let key = (executor.framework_id.clone(), executor.id.clone());
            self.by_stream.insert(stream, key);
        }
    }

    /// Records that an event stream is closed. Its executor has none then, unless it has opened another one.
    pub(crate) fn close_stream(&mut self, stream: StreamId) {
        if let Some((framework, executor)) = self.by_stream.remove(&stream)
            && let Some(executor) = self.executor_mut(framework.as_str(), executor.as_str())
            && executor.link == ExecutorLink::Stream(stream)
        {
            executor.link = ExecutorLink::Closed;
        }
    }

    /// Returns the open event streams in order.
    pub(crate) fn streams(&self) -> Vec<StreamId> {
        let mut streams: Vec<_> = self.by_stream.keys().copied().collect();
        streams.sort_unstable();
        streams
    }
}
