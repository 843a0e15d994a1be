//! A registered agent reregisters: what it lists is held against what the master knows (wire/libprocess.md 8.3).

use std::collections::BTreeSet;
use std::sync::Arc;

use protos::mesos;
use protos::mesos::internal::{
    DrainSlaveMessage, KillTaskMessage, ReconcileTasksMessage, ShutdownFrameworkMessage, SlaveReregisteredMessage,
};
use protos::mesos::task_status::{Reason, Source};

use super::{Arrival, Returning};
use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::registry::RegistryOp;
use crate::state::{AgentKey, Doubt, FrameworkKey};

impl Master {
    /// The agent was registered, with or without a connection.
    pub(crate) fn reregister_known(&mut self, key: AgentKey, arrival: Arrival, returning: Returning, out: &mut Outbox) {
        // What is listed is asked for again below.
        let listed = (returning.tasks.clone(), returning.executors.clone());
        let adoption = match Master::adoption(&returning.frameworks, listed.0, listed.1) {
            Ok(adoption) => adoption,
            Err(why) => {
                out.warn(format!("Ignoring the reregistration of {}: {why}", arrival.pid));
                return;
            }
        };
        out.info(format!("Agent at {} has reregistered", arrival.pid));
        self.count(Counter::SlaveReregistrations);
        // What is offered may not be there any more.
        self.rescind_offers_on(key, out);
        let reconciliations = self.missing_tasks(key, &returning);
        let behind = !self.is_doubtful(key) && self.is_behind(key, &arrival, &reconciliations);
        self.reconnect_agent(key, arrival, out);
        if behind {
            self.doubt(key);
        }
        self.learn_unavailability(key, out);
        self.tell_reregistered(key, reconciliations, out);
        self.drop_missing_executors(key, &returning);
        self.adopt_frameworks(&returning, out);
        let tasks = self.adopt(key, adoption, false, out);
        self.offer_agent(key);
        for (framework, task) in tasks {
            self.announce_task_added(framework, task, out);
        }
        self.brief_agent(key, &returning, out);
        self.check_drained(key);
    }

    /// Whether an agent does not have all that it was given. It may be on its way still, and take what the agent's list leaves free;
    /// or it is lost, and this master has it in its books until the agent has answered for it.
    fn is_behind(&self, key: AgentKey, arrival: &Arrival, missing: &[ReconcileTasksMessage]) -> bool {
        let made = arrival.total.to_checkpoint();
        !missing.is_empty() || self.agent(key).is_some_and(|agent| agent.total.to_checkpoint() != made)
    }

    fn reconnect_agent(&mut self, key: AgentKey, arrival: Arrival, out: &mut Outbox) {
        let now = self.now;
        let Some(agent) = self.agent_mut(key) else { return };
        let old = std::mem::replace(&mut agent.pid, arrival.pid.clone());
        if *agent.info != arrival.info {
            out.persist.push(RegistryOp::UpdateAgent(Box::new(arrival.info.clone())));
            agent.info = Arc::new(arrival.info);
        }
        agent.connected = true;
        agent.reregistered = Some(now);
        agent.version = arrival.version;
        agent.capabilities = arrival.capabilities;
        agent.checkpointed = arrival.checkpointed;
        agent.total = arrival.total;
        agent.resource_version = arrival.resource_version;
        if self.agent_pids.get(&old) == Some(&key) {
            self.agent_pids.remove(&old);
        }
        if old != arrival.pid {
            self.forget_authentication(&old);
            out.push(Output::Unlink { pid: old });
        }
        self.agent_pids.insert(arrival.pid.clone(), key);
        out.push(Output::Link { pid: arrival.pid });
        if let Some(book) = self.agent_books.get_mut(&key) {
            book.epoch += 1;
            book.missed = 0;
            if matches!(book.doubt, Doubt::Answered(_)) {
                book.doubt = Doubt::None;
            }
            book.ponged = true;
            let scheduled = std::mem::take(&mut book.removal_scheduled);
            if let Some(token) = book.reregister.take() {
                self.timers.cancel(token);
            }
            if scheduled {
                self.count(Counter::SlaveUnreachableCanceled);
            }
        }
    }

    /// What an agent is told when it is admitted again.
    pub(crate) fn tell_reregistered(
        &self,
        key: AgentKey,
        reconciliations: Vec<ReconcileTasksMessage>,
        out: &mut Outbox,
    ) {
        let Some(agent) = self.agent(key) else { return };
        let connection = Some(self.slave_connection());
        let answer = SlaveReregisteredMessage { slave_id: agent.proto_id(), reconciliations, connection };
        out.send(&agent.pid, answer);
    }

    /// Tasks that the master believes on the agent and the agent does not list: the agent is to answer for them.
    fn missing_tasks(&self, key: AgentKey, returning: &Returning) -> Vec<ReconcileTasksMessage> {
        let listed: BTreeSet<(&str, &str)> = returning
            .tasks
            .iter()
            .map(|task| (task.framework_id.value.as_str(), task.task_id.value.as_str()))
            .collect();
        let mut messages: Vec<(FrameworkKey, ReconcileTasksMessage)> = Vec::new();
        let booked = self.agent_books.get(&key).map(|book| &book.tasks);
        for (framework, task) in booked.into_iter().flatten() {
            let (Some(entry), Some(row)) = (self.framework(*framework), self.task(*framework, *task)) else { continue };
            if listed.contains(&(entry.id.as_str(), row.id.as_str())) {
                continue;
            }
            if messages.last().is_none_or(|(last, _)| last != framework) {
                let info = Some((*entry.info).clone());
                let message =
                    ReconcileTasksMessage { framework_id: entry.proto_id(), statuses: Vec::new(), framework: info };
                messages.push((*framework, message));
            }
            let status = mesos::TaskStatus {
                task_id: row.proto.task_id.clone(),
                slave_id: Some(row.proto.slave_id.clone()),
                state: row.told_state() as i32,
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

    /// Executors that the master knows and the agent does not list have ended.
    fn drop_missing_executors(&mut self, key: AgentKey, returning: &Returning) {
        let listed: BTreeSet<(&str, &str)> = returning
            .executors
            .iter()
            .map(|info| {
                let framework = info.framework_id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
                (framework, info.executor_id.value.as_str())
            })
            .collect();
        let Some(agent) = self.agent(key).cloned() else { return };
        for (framework, mine) in &agent.executors {
            let Some(framework_id) = self.framework(*framework).map(|entry| entry.id.clone()) else { continue };
            for id in mine.keys() {
                if !listed.contains(&(framework_id.as_str(), id.as_str())) {
                    self.remove_executor(key, *framework, id.as_str());
                }
            }
        }
    }

    /// What an agent that has come back must know.
    pub(crate) fn brief_agent(&mut self, key: AgentKey, returning: &Returning, out: &mut Outbox) {
        let Some(agent) = self.agent(key).cloned() else { return };
        self.send_remembered_kills(key, returning, out);
        for info in &returning.frameworks {
            let id = info.id.clone().unwrap_or_default();
            if self.completed_ids.contains_key(id.value.as_str()) {
                out.send(&agent.pid, ShutdownFrameworkMessage { framework_id: id });
            }
        }
        if let Some(drain) = &agent.drain {
            out.send(&agent.pid, DrainSlaveMessage { config: drain.config });
        }
        for info in &returning.frameworks {
            let key = info.id.as_ref().and_then(|id| self.framework_by_id(&id.value));
            let known = key.filter(|key| self.framework(*key).is_some_and(|framework| !framework.recovered()));
            if let Some(message) = known.and_then(|key| self.update_framework_message(key)) {
                out.send(&agent.pid, message);
            }
        }
        if !agent.capabilities.resource_provider {
            self.send_checkpointed(key, out);
        }
    }

    /// Kills that came while the agent was away are sent now, without their kill policies.
    fn send_remembered_kills(&mut self, key: AgentKey, returning: &Returning, out: &mut Outbox) {
        let killed = match self.agent_books.get_mut(&key) {
            Some(book) => std::mem::take(&mut book.killed),
            None => return,
        };
        let Some(pid) = self.agent(key).map(|agent| agent.pid.clone()) else { return };
        for task in &returning.tasks {
            let Some(framework) = self.framework_by_id(&task.framework_id.value) else { continue };
            if killed.iter().any(|(owner, id)| *owner == framework && id.as_str() == task.task_id.value) {
                let kill = KillTaskMessage {
                    framework_id: task.framework_id.clone(),
                    task_id: task.task_id.clone(),
                    kill_policy: None,
                };
                out.send(&pid, kill);
            }
        }
    }
}
