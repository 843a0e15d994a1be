//! Reregistration of an agent that is registered: its lists are compared with the master's (docs/mesos/libprocess.md).

use std::collections::BTreeSet;

use protos::mesos;
use protos::mesos::internal::{
    DrainSlaveMessage, KillTaskMessage, ReconcileTasksMessage, ShutdownFrameworkMessage, SlaveReregisteredMessage,
};
use protos::mesos::task_status::{Reason, Source};

use super::{AgentLists, AgentRegistration};
use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::registry::RegistryOp;
use crate::state::{Agent, AgentKey, FrameworkKey};

impl Master {
    /// Handles the reregistration of an agent that is registered, connected or not.
    pub(crate) fn reregister_known(
        &mut self,
        key: AgentKey,
        registration: AgentRegistration,
        lists: AgentLists,
        out: &mut Outbox,
    ) {
        // `lists` is needed again below.
        let listed = (lists.tasks.clone(), lists.executors.clone());
        let checked = match Master::check_lists(&lists.frameworks, listed.0, listed.1) {
            Ok(checked) => checked,
            Err(why) => {
                out.warn(format!("Ignoring the reregistration of {}: {why}", registration.pid));
                return;
            }
        };
        out.info(format!("Agent at {} has reregistered", registration.pid));
        self.count(Counter::SlaveReregistrations);
        // The agent may not have the offered resources any more.
        self.rescind_offers_on(key, out);
        let reconciliations = self.missing_tasks(key, &lists);
        let behind = !self.agents.is_task_list_uncertain(key) && self.is_behind(key, &registration, &reconciliations);
        self.reconnect_agent(key, registration, out);
        if behind {
            self.agents.request_task_list(key, self.now, &mut self.timers);
        }
        self.apply_machine_maintenance(key, out);
        self.send_reregistered(key, reconciliations, out);
        self.drop_missing_executors(key, &lists);
        self.adopt_frameworks(&lists, out);
        let tasks = self.adopt(key, checked, false, out);
        self.offer_agent(key);
        for (framework, task) in tasks {
            self.announce_task_added(framework, task, out);
        }
        self.send_missed_messages(key, &lists, out);
        self.agents.check_drained(key, &self.operations);
    }

    /// Returns whether an agent lacks tasks or reservations that it was sent. They may still be on their way and use
    /// resources that are free by the agent's list. Or they are lost, and the master keeps them until the agent has
    /// reported their state.
    fn is_behind(&self, key: AgentKey, registration: &AgentRegistration, missing: &[ReconcileTasksMessage]) -> bool {
        let made = registration.total.to_checkpoint();
        !missing.is_empty() || self.agent(key).is_some_and(|agent| agent.total.to_checkpoint() != made)
    }

    fn reconnect_agent(&mut self, key: AgentKey, registration: AgentRegistration, out: &mut Outbox) {
        let pid = registration.pid.clone();
        let Some(changes) = self.agents.reconnect(key, registration, self.now, &mut self.timers) else { return };
        if let Some(info) = changes.new_info {
            out.persist.push(RegistryOp::UpdateAgent(Box::new((*info).clone())));
        }
        if let Some(old) = changes.old_pid {
            self.peers.forget(&old);
            out.push(Output::Unlink { pid: old });
        }
        out.push(Output::Link { pid });
        if changes.removal_canceled {
            self.count(Counter::SlaveUnreachableCanceled);
        }
    }

    /// Sends an agent that is admitted again the answer to its reregistration.
    pub(crate) fn send_reregistered(
        &self,
        key: AgentKey,
        reconciliations: Vec<ReconcileTasksMessage>,
        out: &mut Outbox,
    ) {
        let Some(agent) = self.agent(key) else { return };
        let connection = Some(self.slave_connection());
        let answer = SlaveReregisteredMessage { slave_id: agent.proto_id(), reconciliations, connection };
        out.push(Output::send(&agent.pid, answer));
    }

    /// Returns reconciliation requests for the tasks that the master has on an agent and that the agent does not list.
    /// The agent answers with their state.
    fn missing_tasks(&self, key: AgentKey, lists: &AgentLists) -> Vec<ReconcileTasksMessage> {
        let listed: BTreeSet<(&str, &str)> =
            lists.tasks.iter().map(|task| (task.framework_id.value.as_str(), task.task_id.value.as_str())).collect();
        let mut messages: Vec<(FrameworkKey, ReconcileTasksMessage)> = Vec::new();
        for (framework, task) in self.agents.tasks(key) {
            let (Some(entry), Some(row)) = (self.framework(framework), self.task(framework, task)) else { continue };
            if listed.contains(&(entry.id.as_str(), row.id.as_str())) {
                continue;
            }
            if messages.last().is_none_or(|(last, _)| *last != framework) {
                let info = Some((*entry.info).clone());
                let message =
                    ReconcileTasksMessage { framework_id: entry.proto_id(), statuses: Vec::new(), framework: info };
                messages.push((framework, message));
            }
            let status = mesos::TaskStatus {
                task_id: row.proto.task_id.clone(),
                slave_id: Some(row.proto.slave_id.clone()),
                state: row.forwarded_state() as i32,
                source: Some(Source::Master as i32),
                reason: Some(Reason::Reconciliation as i32),
                message: Some("Reconciliation request".to_owned()),
                timestamp: Some(self.now.as_secs_f64()),
                ..Default::default()
            };
            if let Some((_, message)) = messages.last_mut() {
                message.statuses.push(status);
            }
        }
        messages.into_iter().map(|(_, message)| message).collect()
    }

    /// Removes the executors that the master has on an agent and that the agent does not list: they have terminated.
    fn drop_missing_executors(&mut self, key: AgentKey, lists: &AgentLists) {
        let listed: BTreeSet<(&str, &str)> = lists
            .executors
            .iter()
            .map(|info| {
                let framework = info.framework_id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
                (framework, info.executor_id.value.as_str())
            })
            .collect();
        for (framework, id) in self.agents.executors_on(key) {
            let Some(entry) = self.framework(framework) else { continue };
            if !listed.contains(&(entry.id.as_str(), id.as_str())) {
                self.remove_executor(key, framework, id.as_str());
            }
        }
    }

    /// Sends a reregistered agent the kills, shutdowns, drains and updates that it may have missed.
    pub(crate) fn send_missed_messages(&mut self, key: AgentKey, lists: &AgentLists, out: &mut Outbox) {
        let Some(agent) = self.agent(key).cloned() else { return };
        self.send_kept_kills(key, &agent, lists, out);
        for info in &lists.frameworks {
            let id = info.id.clone().unwrap_or_default();
            if self.frameworks.is_completed(id.value.as_str()) {
                out.push(Output::send(&agent.pid, ShutdownFrameworkMessage { framework_id: id }));
            }
        }
        if let Some(drain) = &agent.drain {
            out.push(Output::send(&agent.pid, DrainSlaveMessage { config: drain.config }));
        }
        for info in &lists.frameworks {
            let key = info.id.as_ref().and_then(|id| self.framework_by_id(&id.value));
            let known = key.filter(|key| self.framework(*key).is_some_and(|framework| !framework.recovered()));
            if let Some(message) = known.and_then(|key| self.frameworks.update_message(key)) {
                out.push(Output::send(&agent.pid, message));
            }
        }
        if !agent.capabilities.resource_provider {
            self.send_checkpointed(key, out);
        }
    }

    /// Sends the kills that were requested while the agent was disconnected. Their kill policies are not kept.
    fn send_kept_kills(&mut self, key: AgentKey, agent: &Agent, lists: &AgentLists, out: &mut Outbox) {
        let listed = lists.tasks.iter();
        let frameworks = &self.frameworks;
        let listed = listed.filter_map(|task| Some((frameworks.key_of(&task.framework_id.value)?, task)));
        for task in self.agents.take_kills(key, listed) {
            let kill = KillTaskMessage {
                framework_id: task.framework_id.clone(),
                task_id: task.task_id.clone(),
                kill_policy: None,
            };
            out.push(Output::send(&agent.pid, kill));
        }
    }
}
