//! What is told to operators that listen: tasks, frameworks and agents that come, change and go.

use protos::mesos::master::event::{self, Type};
use protos::mesos::{self, TaskState};
use resources::Format;

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey, TaskKey};
use crate::views;

impl Master {
    pub(crate) fn announce_task_added(&mut self, framework: FrameworkKey, task: TaskKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(task) = self.task(framework, task).map(|row| row.to_proto()) else { return };
        self.announce(Type::TaskAdded, |event| event.task_added = Some(event::TaskAdded { task }), out);
    }

    pub(crate) fn announce_task_updated(
        &mut self,
        framework: FrameworkKey,
        status: &mesos::TaskStatus,
        state: TaskState,
        out: &mut Outbox,
    ) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(framework_id) = self.framework(framework).map(|framework| framework.proto_id()) else { return };
        let status = status.clone();
        let updated = event::TaskUpdated { framework_id, status, state: state as i32 };
        self.announce(Type::TaskUpdated, |event| event.task_updated = Some(updated), out);
    }

    pub(crate) fn announce_framework_added(&mut self, key: FrameworkKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(framework) = self.framework(key).map(|framework| views::framework(framework, Format::PostRefinement))
        else {
            return;
        };
        let added = event::FrameworkAdded { framework };
        self.announce(Type::FrameworkAdded, |event| event.framework_added = Some(added), out);
    }

    pub(crate) fn announce_framework_updated(&mut self, key: FrameworkKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(framework) = self.framework(key).map(|framework| views::framework(framework, Format::PostRefinement))
        else {
            return;
        };
        let updated = event::FrameworkUpdated { framework };
        self.announce(Type::FrameworkUpdated, |event| event.framework_updated = Some(updated), out);
    }

    pub(crate) fn announce_framework_removed(&mut self, key: FrameworkKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(framework_info) = self.framework(key).map(|framework| (*framework.info).clone()) else { return };
        let removed = event::FrameworkRemoved { framework_info };
        self.announce(Type::FrameworkRemoved, |event| event.framework_removed = Some(removed), out);
    }

    pub(crate) fn announce_agent_added(&mut self, key: AgentKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(agent) = self.agent(key).map(|agent| views::agent(agent, Format::PostRefinement)) else { return };
        let added = event::AgentAdded { agent };
        self.announce(Type::AgentAdded, |event| event.agent_added = Some(added), out);
    }

    pub(crate) fn announce_agent_removed(&mut self, agent_id: mesos::SlaveId, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let removed = event::AgentRemoved { agent_id };
        self.announce(Type::AgentRemoved, |event| event.agent_removed = Some(removed), out);
    }
}
