//! The current offers by agent: several offers of one agent are combined.
//!
//! This module takes resources out of offers for a task; it does not decide on which agent a task runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Time;
use resources::{Amount, Name, Ranges, Reservation, Resource, Resources, Role};
use sdk::task::{from_v1, to_v1};
use sdk::v1::{self, Address, Offer, OfferId};

use crate::Need;
use crate::constraint::{HOSTNAME, Place};
use crate::need::KINDS;

/// Maximum number of offers that are kept; more are declined at once.
pub const OFFERS_MAX: usize = 100_000;

/// Identity and attributes of an agent, as constraints see it.
#[derive(Clone, Debug, Default)]
pub struct AgentIdentity {
    /// Id of the agent.
    pub agent_id: String,
    /// Host name of the agent.
    pub host: String,
    /// Address of the agent's API as `host:port`; empty if its offers do not have it.
    pub address: String,
    attributes: BTreeMap<String, String>,
}

/// The combined offers of one agent for one role.
#[derive(Clone, Debug)]
pub struct AgentOffers {
    /// Agent of the offers.
    pub identity: Arc<AgentIdentity>,
    role: Option<Role>,
    /// Ids of the combined offers.
    pub offers: Vec<OfferId>,
    left: Resources,
    /// Time at which the offers are declined if no task was placed on them.
    pub until: Time,
    /// Time until which the offers are kept for a gang, according to the last round.
    pub kept: Option<Time>,
}

impl AgentIdentity {
    /// Creates the site of an agent that has made no offer: its address is not known.
    pub fn new(agent_id: String, host: String, attributes: BTreeMap<String, String>) -> AgentIdentity {
        AgentIdentity { agent_id, host, address: String::new(), attributes }
    }
}

impl Place for AgentIdentity {
    fn value(&self, field: &str) -> Option<&str> {
        if field == HOSTNAME { Some(&self.host) } else { self.attributes.get(field).map(String::as_str) }
    }
}

/// Returns the address of an agent as `host:port`.
fn address_text(address: &Address) -> String {
    let host = address.ip.as_deref().or(address.hostname.as_deref()).unwrap_or_default();
    format!("{host}:{}", address.port)
}

/// Resources that were taken out of a room for one task.
#[derive(Clone, Debug)]
pub struct TaskResources {
    resources: Resources,
    /// Port numbers among them.
    pub ports: Vec<u64>,
}

impl AgentOffers {
    fn new(offer: &Offer) -> AgentOffers {
        let role = offer.allocation_info.as_ref().and_then(|a| a.role.as_deref());
        let identity = AgentIdentity {
            agent_id: offer.agent_id.value.to_string(),
            host: offer.hostname.clone(),
            address: offer.url.as_ref().map(|url| address_text(&url.address)).unwrap_or_default(),
            attributes: offer.attributes.iter().map(|a| (a.name.clone(), attribute_text(a))).collect(),
        };
        AgentOffers {
            identity: Arc::new(identity),
            role: role.and_then(|r| Role::parse(r).ok()),
            offers: Vec::new(),
            left: Resources::new(),
            until: Time::NEVER,
            kept: None,
        }
    }

    /// Returns the free amounts.
    pub fn free(&self) -> Need {
        usable_amounts(&self.left)
    }

    fn ports(&self) -> Ranges {
        self.left.non_revocable().ports()
    }

    /// Takes the resources that a task needs, reserved ones and the lowest ports first; `None` if they are not all
    /// free.
    pub fn take(&mut self, need: &Need) -> Option<TaskResources> {
        let mut wanted = Resources::new();
        for (name, thousandths) in Name::COMMON.iter().zip(need.0) {
            if thousandths > 0 {
                wanted.add(Resource::scalar(name.clone(), Amount::from_thousandths(thousandths)));
            }
        }
        let count = need.ports();
        let ports: Vec<u64> = if count == 0 { Vec::new() } else { self.ports().numbers().take(count).collect() };
        if ports.len() < count {
            return None;
        }
        if count > 0 {
            wanted.add(Resource::ranges("ports", Ranges::new(ports.iter().map(|&p| (p, p)))));
        }
        let has_revocable = self.left.iter().any(Resource::is_revocable);
        let steady = if has_revocable { Cow::Owned(self.left.non_revocable()) } else { Cow::Borrowed(&self.left) };
        let resources = match &self.role {
            Some(role) if !role.is_star() => {
                steady.find(&wanted.push_reservation(&Reservation::fixed(role.clone())))?
            }
            _ => steady.find(&wanted)?,
        };
        self.left -= &resources;
        Some(TaskResources { resources, ports })
    }

    /// Returns resources that were taken to the room.
    pub fn put_back(&mut self, taken: TaskResources) {
        self.left += taken.resources;
    }

    /// Converts taken resources to messages as the master offered them: allocated to the same role.
    pub fn messages(&self, taken: &TaskResources) -> Vec<v1::Resource> {
        match &self.role {
            Some(role) => to_v1(&taken.resources.allocated(role)),
            None => to_v1(&taken.resources),
        }
    }
}

/// Returns the amounts of resources that tasks can use. Volumes, disks with a path and revocable resources do not
/// count.
pub fn usable_amounts(resources: &Resources) -> Need {
    let mut free = [0; KINDS];
    for resource in resources.iter().filter(|r| r.disk().is_none() && !r.is_revocable() && !r.is_shared()) {
        if let (Some(place), Some(amount)) = (resource.name().common_index(), resource.amount()) {
            free[place] += amount.thousandths();
        }
    }
    let ports = resources.non_revocable().ports().count();
    free[4] = i64::try_from(ports).unwrap_or(i64::MAX / 1_000).min(i64::MAX / 1_000) * 1_000;
    Need(free)
}

/// Returns an attribute's value as text for constraints.
pub fn attribute_text(attribute: &v1::Attribute) -> String {
    if let Some(text) = &attribute.text {
        text.value.clone()
    } else if let Some(scalar) = &attribute.scalar {
        Amount::from_f64(scalar.value).to_string()
    } else if let Some(ranges) = &attribute.ranges {
        let ranges: Vec<String> = ranges.range.iter().map(|r| format!("{}-{}", r.begin, r.end)).collect();
        format!("[{}]", ranges.join(", "))
    } else {
        attribute.set.as_ref().map(|set| set.item.join(", ")).unwrap_or_default()
    }
}

/// Time for which an unused offer is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hold {
    /// Least time for which an offer is kept.
    pub least: Duration,
    /// Largest additional time, which differs between offers.
    pub jitter: Duration,
    /// Seed of the additional times.
    pub seed: u64,
}

/// All current offers, in the order in which their agents first appeared.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// Combined offers, one entry for each agent and role.
    pub rooms: Vec<AgentOffers>,
    /// Index of the room of each agent and role.
    places: BTreeMap<(String, Option<Role>), usize>,
    /// Index of the room of each offer.
    of: BTreeMap<String, usize>,
    /// Number of empty rooms, which are removed when all are examined next.
    void: usize,
    /// Number of offers so far; with the seed it decides the additional time of each.
    seen: u64,
    /// Whether offers have arrived since the last call.
    changed: bool,
    /// Time at which the first room is due to be declined; it may be too early if that room is empty.
    due: Option<Time>,
}

impl Offers {
    /// Adds an offer, and returns the index of its room; `None` if there are too many offers, or it is invalid.
    pub fn add(&mut self, offer: Offer, now: Time, hold: &Hold) -> Option<usize> {
        if self.rooms.len() >= OFFERS_MAX {
            return None;
        }
        let resources = from_v1(&offer.resources).ok()?;
        let fresh = AgentOffers::new(&offer);
        self.seen += 1;
        let until = now + hold.least + jitter(hold.jitter, hold.seed, self.seen);
        let key = (fresh.identity.agent_id.clone(), fresh.role.clone());
        let place = *self.places.entry(key).or_insert(self.rooms.len());
        if place == self.rooms.len() {
            self.rooms.push(fresh);
        }
        let room = &mut self.rooms[place];
        room.left += resources.unallocated();
        self.of.insert(offer.id.value.to_string(), place);
        room.offers.push(offer.id);
        room.until = room.until.min(until);
        self.due = Some(self.due.map_or(room.until, |due| due.min(room.until)));
        self.changed = true;
        Some(place)
    }

    /// Removes a rescinded offer and its room. Returns the other offers of the room, which the caller declines.
    pub fn rescind(&mut self, offer_id: &OfferId) -> Vec<OfferId> {
        let Some(room) = self.of.get(offer_id.value.as_str()).and_then(|place| self.rooms.get_mut(*place)) else {
            return Vec::new();
        };
        // The room stays empty, so that the indices of the others do not change.
        let offers = std::mem::take(&mut room.offers);
        room.left = Resources::new();
        self.places.remove(&(room.identity.agent_id.clone(), room.role.clone()));
        for offer in &offers {
            self.of.remove(offer.value.as_str());
        }
        self.void += 1;
        if self.void * 2 > self.rooms.len() {
            let rest = std::mem::take(&mut self.rooms);
            self.set(rest);
        }
        offers.into_iter().filter(|id| id != offer_id).collect()
    }

    /// Replaces all rooms by these, without the empty ones.
    pub fn set(&mut self, mut rooms: Vec<AgentOffers>) {
        rooms.retain(|room| !room.offers.is_empty());
        self.places = rooms.iter().map(|r| (r.identity.agent_id.clone(), r.role.clone())).zip(0..).collect();
        self.of = (0..).zip(&rooms).flat_map(|(n, r)| r.offers.iter().map(move |o| (o.value.to_string(), n))).collect();
        self.due = rooms.iter().map(|r| r.kept.unwrap_or(r.until)).min();
        self.void = 0;
        self.rooms = rooms;
    }

    /// Returns whether there are no offers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of rooms with offers.
    pub fn len(&self) -> usize {
        self.rooms.len() - self.void
    }

    /// Returns the time at which rooms must be examined, since the first one may have to be declined.
    pub fn next(&self) -> Option<Time> {
        self.due
    }

    /// Returns whether offers have arrived since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}

/// Returns a time up to `most` that follows from the seed and the number of the offer.
fn jitter(most: Duration, seed: u64, number: u64) -> Duration {
    let bits = base::scramble(seed.wrapping_add(number.wrapping_mul(base::GAMMA)));
    most.mul_f64(base::fraction(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use resources::parse_text;
    use sdk::v1::AgentId;

    fn offer(id: &str, agent: &str, resources: &str) -> Offer {
        Offer {
            id: OfferId { value: id.into() },
            agent_id: AgentId { value: agent.into() },
            hostname: "h".into(),
            resources: to_v1(&parse_text(resources, &Role::star()).unwrap()),
            ..Default::default()
        }
    }

    #[test]
    fn offers_of_one_agent_are_one_room() {
        let (mut offers, hold, now) = (Offers::default(), Hold::default(), Time::from_secs(1));
        assert!(offers.add(offer("o1", "a", "cpus:1;mem:64"), now, &hold).is_some());
        assert!(offers.add(offer("o2", "b", "cpus:2;mem:64"), now, &hold).is_some());
        assert!(offers.add(offer("o3", "a", "cpus:1;ports:[10-12,20-20]"), now, &hold).is_some());
        assert_eq!(offers.rooms.len(), 2);
        let room = &mut offers.rooms[0];
        assert_eq!(room.free(), Need([2_000, 64_000, 0, 0, 4_000]));
        let taken = room.take(&Need([1_500, 64_000, 0, 0, 2_000])).unwrap();
        assert_eq!(taken.ports, [10, 11]);
        assert_eq!(room.free(), Need([500, 0, 0, 0, 2_000]));
        assert!(room.take(&Need::of(1.0, 0.0)).is_none());
        room.put_back(taken);
        assert_eq!(room.free(), Need([2_000, 64_000, 0, 0, 4_000]));
        let other = offers.rescind(&OfferId { value: "o3".into() });
        assert_eq!(other, [OfferId { value: "o1".into() }]);
        assert_eq!(offers.len(), 1);
        assert!(offers.rescind(&OfferId { value: "o1".into() }).is_empty());
        // A new offer of the agent makes another room.
        assert_eq!(offers.add(offer("o4", "a", "cpus:1;mem:64"), now, &hold), Some(2));
        assert_eq!(offers.rooms[2].free(), Need([1_000, 64_000, 0, 0, 0]));
        assert!(offers.rescind(&OfferId { value: "o2".into() }).is_empty());
        assert_eq!((offers.len(), offers.rooms.len()), (1, 1), "most were void");
        assert_eq!(offers.rooms[0].offers, [OfferId { value: "o4".into() }]);
    }

    #[test]
    fn reserved_resources_are_taken_first_and_allocated_to_the_role() {
        let role = Role::parse("r").unwrap();
        let mut offered = offer("o", "a", "");
        offered.resources = to_v1(&parse_text("cpus(r):1;cpus:2;mem(r):64", &Role::star()).unwrap().allocated(&role));
        offered.allocation_info = Some(v1::resource::AllocationInfo { role: Some("r".into()) });
        let mut offers = Offers::default();
        let place = offers.add(offered, Time::EPOCH, &Hold::default()).unwrap();
        let room = &mut offers.rooms[place];
        assert_eq!(room.free(), Need([3_000, 64_000, 0, 0, 0]));
        let taken = room.take(&Need::of(1.5, 32.0)).unwrap();
        assert_eq!(taken.resources.reserved().cpus(), Amount::from_units(1));
        assert_eq!(taken.resources.unreserved().cpus(), Amount::from_f64(0.5));
        let messages = room.messages(&taken);
        assert!(messages.iter().all(|m| m.allocation_info.as_ref().and_then(|a| a.role.as_deref()) == Some("r")));
        assert_eq!(room.free(), Need([1_500, 32_000, 0, 0, 0]));
    }

    #[test]
    fn what_is_no_room_is_not_counted() {
        let mut offers = Offers::default();
        let place = offers.add(offer("o", "a", "cpus:1;disk:100"), Time::EPOCH, &Hold::default()).unwrap();
        let room = &mut offers.rooms[place];
        room.left += Resources::from(Resource::scalar("cpus", Amount::from_units(7)).with_revocable(true));
        assert_eq!(room.free().amount(0), Amount::from_units(1));
        assert!(room.take(&Need::of(2.0, 0.0)).is_none());
    }

    #[test]
    fn jitter_is_within_its_bound_and_differs() {
        let most = Duration::from_secs(60);
        let some: Vec<Duration> = (0..100).map(|n| jitter(most, 7, n)).collect();
        assert!(some.iter().all(|j| *j < most));
        assert!(some.iter().max() > some.iter().min());
        assert_eq!(jitter(Duration::ZERO, 7, 1), Duration::ZERO);
    }
}
