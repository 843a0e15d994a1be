//! RegisterSlaveMessage: an agent without an id registers (docs/mesos/libprocess.md).

use base::Pid;
use protos::mesos;
use protos::mesos::internal::{RegisterSlaveMessage, ShutdownMessage, SlaveRegisteredMessage};
use resources::from_proto;

use crate::agents::{AgentRegistration, total_of};
use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::messages::REGISTRATION;
use crate::refusals::Fault;
use crate::registry::RegistryOp;
use crate::state::AgentCapabilities;
use crate::validate;

impl Master {
    /// Admits a new agent, or repeats the answer to one that has not received it.
    pub(crate) fn register_slave(&mut self, from: Pid, message: RegisterSlaveMessage, out: &mut Outbox) {
        self.count(Counter::MessagesRegisterSlave);
        if !self.agent_may_register(&from, out) {
            return;
        }
        if let Err(why) = validate::registration(&message) {
            let host = &message.slave.hostname;
            out.warn(format!("Ignoring the registration of agent {from} ({host}): {why}"));
            self.refuse_message(&from, REGISTRATION, ("hostname", host), Fault::Invalid(why.to_string()), out);
            return;
        }
        if !self.is_agent_admissible(&from, &message.slave, message.version.as_deref(), out) {
            return;
        }
        let known = self.agents.key_of_pid(&from);
        if let Some(known) = known {
            // Each process of an agent generates a version. A message with another version is not a repetition: the
            // process has no memory of the former one, nor of what that was sent.
            let asked = &message.resource_version_uuid;
            let is_it = |version: &Option<mesos::Uuid>| asked.is_none() || version.is_none() || asked == version;
            if self.agent(known).is_some_and(|agent| agent.connected && is_it(&agent.resource_version)) {
                self.send_registered(known, out);
                return;
            }
        }
        // Checked before anything is changed: removing an agent removes its link, and only an admitted one is linked
        // again.
        let registration = match parse_registration(from.clone(), message) {
            Ok(registration) => registration,
            Err(why) => {
                out.warn(format!("Ignoring the registration of agent {from}: {why}"));
                return;
            }
        };
        known.into_iter().for_each(|known| self.replace_agent(known, out));
        self.admit_new(registration, out);
    }

    /// Returns whether an agent with a valid message may register, by the checks of docs/mesos/libprocess.md in their
    /// order. An agent on a machine that is down is shut down; others are ignored.
    pub(crate) fn is_agent_admissible(
        &mut self,
        from: &Pid,
        info: &mesos::SlaveInfo,
        version: Option<&str>,
        out: &mut Outbox,
    ) -> bool {
        if !self.authorize_agent(from, info, out) {
            return false;
        }
        if self.maintenance.is_down(&info.hostname, from) {
            out.warn(format!("Refusing the agent at {from} ({}): its machine is down", info.hostname));
            let fault = Fault::Denied("its machine is down".to_owned());
            self.refuse_message(from, REGISTRATION, ("hostname", &info.hostname), fault, out);
            out.push(Output::send(from, ShutdownMessage { message: Some("Machine is `DOWN`".to_owned()) }));
            return false;
        }
        if let Err(why) = validate::agent_fits(info, version, &self.info, &self.config) {
            out.warn(format!("Ignoring agent {from} ({}): {why}", info.hostname));
            self.refuse_message(from, REGISTRATION, ("hostname", &info.hostname), Fault::Invalid(why.to_string()), out);
            return false;
        }
        true
    }

    fn admit_new(&mut self, mut registration: AgentRegistration, out: &mut Outbox) {
        let Some(id) = self.agents.next_id() else { return };
        registration.info.id = Some(mesos::SlaveId { value: (&id).into() });
        out.info(format!("Agent {id} ({} at {}) has registered", registration.info.hostname, registration.pid));
        out.persist.push(RegistryOp::AdmitAgent(Box::new(registration.info.clone())));
        self.count(Counter::SlaveRegistrations);
        let key = self.add_agent(id, registration, None, out);
        self.offer_agent(key);
        self.send_registered(key, out);
        self.announce_agent_added(key, out);
    }

    fn send_registered(&mut self, key: crate::state::AgentKey, out: &mut Outbox) {
        let Some(agent) = self.agent(key) else { return };
        let answer = SlaveRegisteredMessage { slave_id: agent.proto_id(), connection: Some(self.slave_connection()) };
        out.push(Output::send(&agent.pid, answer));
    }
}

/// Reads what an agent states when it registers.
pub(super) fn parse_registration(pid: Pid, message: RegisterSlaveMessage) -> Result<AgentRegistration, String> {
    let own = from_proto(&message.slave.resources).map_err(|why| why.to_string())?;
    let checkpointed = from_proto(&message.checkpointed_resources).map_err(|why| why.to_string())?;
    Ok(AgentRegistration {
        total: total_of(&own, &checkpointed)?,
        checkpointed,
        pid,
        version: message.version.unwrap_or_default(),
        capabilities: AgentCapabilities::new(&message.agent_capabilities),
        resource_version: message.resource_version_uuid,
        info: message.slave,
    })
}
