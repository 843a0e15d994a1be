//! ReregisterSlaveMessage: an agent with an id reregisters (docs/mesos/libprocess.md).

use base::{AgentId, Pid};
use protos::mesos::internal::{RegisterSlaveMessage, ReregisterSlaveMessage, ShutdownMessage};

use super::register_slave::parse_registration;
use crate::agents::{AdminState, AgentLists, AgentRegistration};
use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::refusals::Fault;
use crate::registry::RegistryOp;
use crate::state::AgentKey;
use crate::validate;

/// Name of a refused reregistration in the audit log.
const REREGISTRATION: &str = "ReregisterSlaveMessage";

impl Master {
    /// Readmits an agent, whether it is registered, recovered, unreachable or unknown.
    pub(crate) fn reregister_slave(&mut self, from: Pid, message: ReregisterSlaveMessage, out: &mut Outbox) {
        self.count(Counter::MessagesReregisterSlave);
        if !self.agent_may_register(&from, out) {
            return;
        }
        let text = message.slave.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
        if self.absent.is_gone(text) {
            let why = "Agent has been marked gone";
            self.refuse_message(&from, REREGISTRATION, ("agent", text), Fault::Denied(why.to_owned()), out);
            shut_down(&from, why, out);
            return;
        }
        let id = match validate::reregistration(&message) {
            Ok(id) => id,
            Err(why) => {
                out.warn(format!("Ignoring the reregistration of agent {text} ({from}): {why}"));
                self.refuse_message(&from, REREGISTRATION, ("agent", text), Fault::Invalid(why.to_string()), out);
                return;
            }
        };
        if !self.is_agent_admissible(&from, &message.slave, message.version.as_deref(), out) {
            return;
        }
        let known = self.agent_by_id(id.as_str());
        if known.is_some_and(|key| self.moved(key, &from, &message.slave.hostname)) {
            out.warn(format!("Agent {id} reregisters from another address: {from}"));
            let why = "Agent attempted to reregister with different IP / hostname";
            self.refuse_message(&from, REREGISTRATION, ("agent", id.as_str()), Fault::Denied(why.to_owned()), out);
            shut_down(&from, why, out);
            return;
        }
        match parse_reregistration(from.clone(), message) {
            Ok((registration, lists)) => match known {
                Some(key) => self.reregister_known(key, registration, lists, out),
                None => self.readmit(id, registration, lists, out),
            },
            Err(why) if known.is_some() => {
                out.warn(format!("Agent {id} cannot reregister: {why}"));
                shut_down(&from, &why, out);
            }
            Err(why) => out.warn(format!("Ignoring the reregistration of agent {id} ({from}): {why}")),
        }
    }

    fn moved(&self, key: AgentKey, from: &Pid, hostname: &str) -> bool {
        let Some(agent) = self.agent(key) else { return false };
        agent.pid.address().ip() != from.address().ip() || agent.info.hostname != hostname
    }

    /// Admits an agent that is not registered with this master, with everything that it lists.
    fn readmit(&mut self, id: AgentId, registration: AgentRegistration, mut lists: AgentLists, out: &mut Outbox) {
        // This master has sent nothing to the agent: of the lists only the frameworks are needed again.
        let listed = (std::mem::take(&mut lists.tasks), std::mem::take(&mut lists.executors));
        let checked = match Master::check_lists(&lists.frameworks, listed.0, listed.1) {
            Ok(checked) => checked,
            Err(why) => {
                out.warn(format!("Ignoring the reregistration of agent {id}: {why}"));
                return;
            }
        };
        self.replace_other_agent(&registration.pid, &id, out);
        out.info(format!("Agent {id} ({} at {}) has reregistered", registration.info.hostname, registration.pid));
        out.persist.push(RegistryOp::MarkAgentReachable(Box::new(registration.info.clone())));
        self.count(Counter::SlaveReregistrations);
        let (AdminState { drain, deactivated }, was_unreachable) = self.absent.readmit(&id);
        let key = self.add_agent(id, registration, Some(self.now), out);
        self.agents.set_drain(key, drain, self.now);
        self.agents.set_deactivated(key, deactivated);
        if was_unreachable {
            // The message may have been sent before the agent became unreachable, and list tasks as running that have
            // ended since. And tasks that this master has sent before may still be on their way to the agent.
            self.agents.mark_task_list_uncertain(key);
        }
        self.send_reregistered(key, Vec::new(), out);
        self.adopt_frameworks(&lists, out);
        let tasks = self.adopt(key, checked, was_unreachable, out);
        self.offer_agent(key);
        self.announce_agent_added(key, out);
        for (framework, task) in tasks {
            self.announce_task_added(framework, task, out);
        }
        self.send_missed_messages(key, &lists, out);
        self.adopt_completed(key, lists);
        self.agents.check_drained(key, &self.operations);
    }

    /// Removes an agent with another id at the same address: it has lost its state, and its tasks.
    fn replace_other_agent(&mut self, pid: &Pid, id: &AgentId, out: &mut Outbox) {
        let Some(old) = self.agents.key_of_pid(pid) else { return };
        if self.agent(old).is_some_and(|agent| agent.id != *id) {
            self.replace_agent(old, out);
        }
    }
}

fn shut_down(to: &Pid, why: &str, out: &mut Outbox) {
    out.push(Output::send(to, ShutdownMessage { message: Some(why.to_owned()) }));
}

/// Reads what an agent states when it reregisters, and the lists of its frameworks, tasks and executors.
fn parse_reregistration(pid: Pid, message: ReregisterSlaveMessage) -> Result<(AgentRegistration, AgentLists), String> {
    let lists = AgentLists {
        frameworks: message.frameworks,
        tasks: message.tasks,
        executors: message.executor_infos,
        completed: message.completed_frameworks,
    };
    let registration = RegisterSlaveMessage {
        slave: message.slave,
        checkpointed_resources: message.checkpointed_resources,
        version: message.version,
        agent_capabilities: message.agent_capabilities,
        resource_version_uuid: message.resource_version_uuid,
    };
    Ok((parse_registration(pid, registration)?, lists))
}
