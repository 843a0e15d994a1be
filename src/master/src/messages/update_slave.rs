//! UpdateSlaveMessage: an agent's resource version, oversubscribed resources, providers (wire/libprocess.md 8.3).

use std::sync::Arc;

use protos::mesos;
use protos::mesos::internal::{ReconcileOperationsMessage, UpdateSlaveMessage, reconcile_operations_message};
use resources::{Resources, from_proto};

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::AgentKey;

impl Master {
    pub(crate) fn update_slave(&mut self, message: UpdateSlaveMessage, out: &mut Outbox) {
        self.count(Counter::MessagesUpdateSlave);
        let id = message.slave_id.value.clone();
        let Some(key) = self.agent_by_id(&id) else {
            out.warn(format!("Ignoring an update of agent {id}: it is not registered"));
            return;
        };
        // Agents before 1.5 do not set the flag: for them it is always a matter of oversubscription.
        let oversubscribed = match message.update_oversubscribed_resources.unwrap_or(true) {
            true => match from_proto(&message.oversubscribed_resources) {
                Ok(resources) => Some(resources.revocable()),
                Err(why) => {
                    out.warn(format!("Ignoring an update of agent {id}: {why}"));
                    return;
                }
            },
            false => None,
        };
        let Some(agent) = self.agent_mut(key) else { return };
        if message.resource_version_uuid.is_some() {
            agent.resource_version = message.resource_version_uuid;
        }
        if let Some(listed) = message.operations {
            self.compare_operations(key, listed.operations, out);
        }
        let (Some(oversubscribed), Some(agent)) = (oversubscribed, self.agent(key)) else { return };
        let total: Resources = agent.total.non_revocable() + &oversubscribed;
        if total == agent.total {
            return;
        }
        let book = self.agent_books.get(&key);
        let offers = book.map(|book| book.offers.clone()).unwrap_or_default();
        for offer in offers {
            let revocable = self.offers.get(offer.0).is_some_and(|o| o.resources.iter().any(|r| r.is_revocable()));
            if revocable {
                self.rescind_offer(offer, out);
            }
        }
        if let Some(agent) = self.agent_mut(key) {
            agent.total = total;
        }
        if let Some(agent) = self.agents.get(key.0) {
            self.allocation.update_agent(agent);
        }
    }

    /// Operations that the agent does not list are asked for; those that this master does not know are taken over.
    fn compare_operations(&mut self, key: AgentKey, listed: Vec<mesos::Operation>, out: &mut Outbox) {
        let Some(agent) = self.agent_mut(key) else { return };
        let missing = agent.operations.keys().filter(|uuid| !listed.iter().any(|other| other.uuid.value == **uuid));
        let operations: Vec<_> = missing
            .map(|uuid| reconcile_operations_message::Operation {
                operation_uuid: Some(mesos::Uuid { value: uuid.clone() }),
                operation_id: None,
                resource_provider_id: None,
            })
            .collect();
        for operation in listed {
            agent.operations.entry(operation.uuid.value.clone()).or_insert_with(|| Arc::new(operation));
        }
        if !operations.is_empty() {
            let pid = agent.pid.clone();
            out.send(&pid, ReconcileOperationsMessage { operations, framework_id: None });
        }
    }
}
