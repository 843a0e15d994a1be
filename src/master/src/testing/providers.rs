//! Builds an agent's report of its resource providers from the words of a script.

use protos::mesos::internal::update_slave_message::{self, Operations, ResourceProviders};
use protos::mesos::{self, offer, offer::operation};

use super::build::{agent_id, framework_id, reserved, resources};
use super::script::Script;
use super::words::Words;

pub(super) fn id(text: &str) -> mesos::ResourceProviderId {
    mesos::ResourceProviderId { value: text.to_owned() }
}

/// Builds a report from `providers=p1/1/disk:100,p2/1/disk:50`: ids, versions and resources; `reserved=10` of each
/// provider's disk is reserved to `role=`. `open=5:f` lists a reservation of `reserving=10` with that UUID and
/// framework as pending, `closed=5:f` as finished.
pub(super) fn report(script: &Script, words: &Words<'_>) -> ResourceProviders {
    let providers = words.list("providers").into_iter().map(|text| {
        let mut parts = text.splitn(3, '/');
        let name = parts.next().unwrap_or_default();
        let version: u8 = parts.next().and_then(|text| text.parse().ok()).unwrap_or_default();
        let mut total_resources = resources(parts.next().unwrap_or_default());
        if let Some(amount) = words.get("reserved") {
            total_resources.extend(reserved(words, &format!("disk:{amount}")));
        }
        let provider = words.get("of").unwrap_or(name);
        total_resources.iter_mut().for_each(|resource| resource.provider_id = Some(id(provider)));
        let mut operations = Operations::default();
        for (state, word) in
            [(mesos::OperationState::OperationPending, "open"), (mesos::OperationState::OperationFinished, "closed")]
        {
            operations
                .operations
                .extend(words.list(word).into_iter().map(|text| reservation(script, words, text, state)));
        }
        update_slave_message::ResourceProvider {
            info: Some(mesos::ResourceProviderInfo {
                id: Some(id(name)),
                r#type: "org.apache.mesos.rp.test".to_owned(),
                name: name.to_owned(),
                ..Default::default()
            }),
            total_resources,
            operations,
            resource_version_uuid: mesos::Uuid { value: base::uuid_from([version; 16]).to_vec() },
        }
    });
    ResourceProviders { providers: providers.collect() }
}

fn reservation(script: &Script, words: &Words<'_>, text: &str, state: mesos::OperationState) -> mesos::Operation {
    let (uuid, framework) = text.split_once(':').unwrap_or((text, "f"));
    let mut list = reserved(words, &format!("disk:{}", words.get("reserving").unwrap_or("10")));
    let provider = words.list("providers").first().and_then(|text| text.split('/').next()).unwrap_or_default();
    list.iter_mut().for_each(|resource| resource.provider_id = Some(id(provider)));
    let operation_id = words.get("op").map(|id| mesos::OperationId { value: id.to_owned() });
    mesos::Operation {
        framework_id: Some(framework_id(script, framework)),
        slave_id: Some(agent_id(script, words.at(1))),
        info: offer::Operation {
            r#type: Some(operation::Type::Reserve as i32),
            id: operation_id.clone(),
            reserve: Some(operation::Reserve { source: Vec::new(), resources: list }),
            ..Default::default()
        },
        latest_status: mesos::OperationStatus { operation_id, state: state as i32, ..Default::default() },
        statuses: Vec::new(),
        uuid: mesos::Uuid { value: base::uuid_from([uuid.parse().unwrap_or_default(); 16]).to_vec() },
    }
}
