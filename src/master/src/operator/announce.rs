//! Events for subscribed operators: tasks, frameworks and agents that are added, changed and removed.

use authorizer::Action;
use protos::mesos::master::event::{self, Type};
use protos::mesos::{self, TaskState};
use resources::Format;

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{AgentKey, Framework, FrameworkKey, Task, TaskKey};
use crate::views;

impl Master {
    fn may_view(&self, who: Option<&str>, framework: &Framework) -> bool {
        self.config.authorizer.approves(who, Action::ViewFramework, Some(&framework.info.user))
    }

    fn may_view_task(&self, who: Option<&str>, framework: &Framework, task: &Task) -> bool {
        let user = authorizer::launched_user(&task.proto, &framework.info);
        self.may_view(who, framework) && self.config.authorizer.approves(who, Action::ViewTask, Some(user))
    }

    pub(crate) fn announce_task_added(&mut self, framework: FrameworkKey, task: TaskKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let (Some(row), Some(framework)) = (self.task(framework, task), self.framework(framework)) else { return };
        let added = event::TaskAdded { task: row.to_proto() };
        let may_view = |who: Option<&str>| self.may_view_task(who, framework, row);
        self.announce(Type::TaskAdded, may_view, |event| event.task_added = Some(added), out);
    }

    pub(crate) fn announce_task_updated(
        &mut self,
        framework: FrameworkKey,
        task: TaskKey,
        status: &mesos::TaskStatus,
        state: TaskState,
        out: &mut Outbox,
    ) {
        if self.subscribers.is_empty() {
            return;
        }
        let (Some(row), Some(framework)) = (self.task(framework, task), self.framework(framework)) else { return };
        let (framework_id, status) = (framework.proto_id(), status.clone());
        let updated = event::TaskUpdated { framework_id, status, state: state as i32 };
        let may_view = |who: Option<&str>| self.may_view_task(who, framework, row);
        self.announce(Type::TaskUpdated, may_view, |event| event.task_updated = Some(updated), out);
    }

    pub(crate) fn announce_framework_added(&mut self, key: FrameworkKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(row) = self.framework(key) else { return };
        let added = event::FrameworkAdded { framework: views::framework(row, Format::PostRefinement) };
        self.announce(
            Type::FrameworkAdded,
            |who| self.may_view(who, row),
            |event| event.framework_added = Some(added),
            out,
        );
    }

    pub(crate) fn announce_framework_updated(&mut self, key: FrameworkKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(row) = self.framework(key) else { return };
        let updated = event::FrameworkUpdated { framework: views::framework(row, Format::PostRefinement) };
        self.announce(
            Type::FrameworkUpdated,
            |who| self.may_view(who, row),
            |event| event.framework_updated = Some(updated),
            out,
        );
    }

    pub(crate) fn announce_framework_removed(&mut self, key: FrameworkKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(row) = self.framework(key) else { return };
        let removed = event::FrameworkRemoved { framework_info: (*row.info).clone() };
        self.announce(
            Type::FrameworkRemoved,
            |who| self.may_view(who, row),
            |event| event.framework_removed = Some(removed),
            out,
        );
    }

    pub(crate) fn announce_agent_added(&mut self, key: AgentKey, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(agent) = self.agent(key).map(|agent| views::agent(agent, Format::Endpoint)) else { return };
        let added = event::AgentAdded { agent };
        self.announce(Type::AgentAdded, |_| true, |event| event.agent_added = Some(added), out);
    }

    pub(crate) fn announce_agent_removed(&mut self, agent_id: mesos::SlaveId, out: &mut Outbox) {
        if self.subscribers.is_empty() {
            return;
        }
        let removed = event::AgentRemoved { agent_id };
        self.announce(Type::AgentRemoved, |_| true, |event| event.agent_removed = Some(removed), out);
    }
}
