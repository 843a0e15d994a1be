//! Hash over all messages to schedulers. Equal hashes mean equal runs.
//!
//! Frequent events are hashed field by field, in memory; all others in their encoded form. It is not a cryptographic
//! hash.

use prost::Message;
use protos::mesos::{Offer, Resource, TaskStatus, resource::AllocationInfo, scheduler::Event, value::Scalar};

/// A hash over the messages so far.
#[derive(Debug, Default)]
pub(super) struct Digest {
    hash: u64,
    /// Buffer for messages that are encoded only to be hashed.
    scratch: Vec<u8>,
}

impl Digest {
    /// Returns the hash over the messages so far.
    pub fn value(&self) -> u64 {
        self.hash
    }

    /// Adds an event for a scheduler, and the time of its arrival.
    pub fn event(&mut self, scheduler: u32, nanos: i64, event: &Event) {
        self.word(u64::from(scheduler));
        self.word(nanos.cast_unsigned());
        match event {
            Event { update: Some(update), .. } => self.status(&update.status),
            Event { offers: Some(offers), .. } => {
                self.word(offers.offers.len() as u64);
                offers.offers.iter().for_each(|offer| self.offer(offer));
            }
            other => self.message(other),
        }
    }

    fn status(&mut self, status: &TaskStatus) {
        // Destructures every field by name, so that one that is added later cannot be forgotten.
        let TaskStatus {
            task_id,
            state,
            message,
            source,
            reason,
            data,
            slave_id,
            executor_id,
            timestamp,
            uuid,
            healthy,
            check_status,
            labels,
            container_status,
            unreachable_time,
            limitation,
        } = status;
        self.text(&task_id.value);
        self.number(Some(*state));
        self.some_bytes(message.as_ref().map(String::as_bytes));
        self.number(*source);
        self.number(*reason);
        self.some_bytes(data.as_deref());
        self.some_bytes(slave_id.as_ref().map(|id| id.value.as_bytes()));
        self.some_bytes(executor_id.as_ref().map(|id| id.value.as_bytes()));
        self.word(timestamp.map_or(u64::MAX, f64::to_bits));
        self.some_bytes(uuid.as_deref());
        self.number(healthy.map(i32::from));
        self.rare(check_status.as_ref());
        self.rare(labels.as_ref());
        self.rare(container_status.as_ref());
        self.rare(unreachable_time.as_ref());
        self.rare(limitation.as_ref());
    }

    fn offer(&mut self, offer: &Offer) {
        let Offer {
            id,
            framework_id,
            slave_id,
            hostname,
            url,
            domain,
            resources,
            attributes,
            executor_ids,
            unavailability,
            allocation_info,
        } = offer;
        self.text(&id.value);
        self.text(&framework_id.value);
        self.text(&slave_id.value);
        self.text(hostname);
        self.rare(url.as_ref());
        self.rare(domain.as_ref());
        self.word(resources.len() as u64);
        resources.iter().for_each(|resource| self.resource(resource));
        self.word(attributes.len() as u64);
        attributes.iter().for_each(|attribute| self.message(attribute));
        self.word(executor_ids.len() as u64);
        executor_ids.iter().for_each(|id| self.text(&id.value));
        self.rare(unavailability.as_ref());
        self.allocation(allocation_info.as_ref());
    }

    fn resource(&mut self, resource: &Resource) {
        match resource {
            // A scalar resource without other properties.
            Resource {
                name,
                r#type,
                scalar: Some(Scalar { value }),
                role,
                allocation_info,
                provider_id: None,
                ranges: None,
                set: None,
                reservation: None,
                reservations,
                disk: None,
                revocable: None,
                shared: None,
            } if reservations.is_empty() => {
                self.text(name);
                self.number(Some(*r#type));
                self.word(value.to_bits());
                self.some_bytes(role.as_ref().map(|role| role.as_bytes()));
                self.allocation(allocation_info.as_ref());
            }
            other => self.message(other),
        }
    }

    fn allocation(&mut self, info: Option<&AllocationInfo>) {
        self.number(info.map(|_| 0));
        self.some_bytes(info.and_then(|info| info.role.as_ref()).map(|role| role.as_bytes()));
    }

    /// Adds an optional message that is rarely present.
    fn rare(&mut self, part: Option<&impl Message>) {
        match part {
            Some(part) => self.message(part),
            None => self.word(u64::MAX),
        }
    }

    fn message(&mut self, message: &impl Message) {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        // Encoding into a vector cannot fail.
        let written = message.encode(&mut bytes);
        debug_assert!(written.is_ok());
        self.bytes(&bytes);
        self.scratch = bytes;
    }

    fn number(&mut self, number: Option<i32>) {
        self.word(number.map_or(u64::MAX, |number| u64::from(number.cast_unsigned())));
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn some_bytes(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bytes(bytes),
            None => self.word(u64::MAX),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        let tail = rest.iter().fold(0, |tail, byte| (tail << 8) | u64::from(*byte));
        // The length distinguishes concatenated texts, and an empty text from a missing one.
        self.word(tail ^ ((bytes.len() as u64) << 56));
    }

    fn word(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::scheduler::event::{Offers, Update};

    fn of(event: &Event) -> u64 {
        let mut digest = Digest::default();
        digest.event(1, 2, event);
        digest.value()
    }

    fn update(change: impl FnOnce(&mut TaskStatus)) -> u64 {
        let mut status = TaskStatus { state: 1, ..TaskStatus::default() };
        change(&mut status);
        of(&Event { update: Some(Update { status }), ..Event::default() })
    }

    fn offer(change: impl FnOnce(&mut Offer)) -> u64 {
        let scalar = Some(Scalar { value: 1.0 });
        let resource = Resource { name: "cpus".into(), scalar, ..Resource::default() };
        let mut offer = Offer { resources: vec![resource], ..Offer::default() };
        change(&mut offer);
        of(&Event { offers: Some(Offers { offers: vec![offer] }), ..Event::default() })
    }

    #[test]
    fn every_difference_shows() {
        let all = [
            update(|_| {}),
            update(|status| status.state = 2),
            update(|status| status.task_id.value = "t".into()),
            update(|status| status.task_id.value = "u".into()),
            update(|status| status.message = Some(String::new())),
            update(|status| status.message = Some("well".to_owned())),
            update(|status| status.data = Some(vec![0])),
            update(|status| status.data = Some(vec![0, 0])),
            update(|status| status.uuid = Some(vec![7; 16])),
            update(|status| status.healthy = Some(false)),
            update(|status| status.healthy = Some(true)),
            update(|status| status.timestamp = Some(0.0)),
            update(|status| status.labels = Some(protos::mesos::Labels::default())),
            offer(|_| {}),
            offer(|offer| offer.hostname = "h".to_owned()),
            offer(|offer| offer.resources[0].scalar = Some(Scalar { value: 2.0 })),
            offer(|offer| offer.resources[0].role = Some("*".into())),
            offer(|offer| offer.resources[0].revocable = Some(Default::default())),
            offer(|offer| offer.resources[0].allocation_info = Some(AllocationInfo::default())),
            offer(|offer| offer.allocation_info = Some(AllocationInfo::default())),
            offer(|offer| offer.resources.clear()),
            of(&Event::default()),
            of(&Event { r#type: Some(3), ..Event::default() }),
        ];
        let different: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
    }
}
