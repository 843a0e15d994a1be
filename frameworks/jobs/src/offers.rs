//! Offers at hand, by agent: several offers of one agent are one place with all their room.
//!
//! It takes resources out of them for a task; which task goes where is decided elsewhere.

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

/// The most offers that are kept; more are given back at once.
pub const OFFERS_MAX: usize = 100_000;

/// An agent, as constraints see it.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// The agent's id.
    pub agent_id: String,
    /// The agent's host.
    pub host: String,
    /// The agent's API as `host:port`; empty if its offers do not say.
    pub agent: String,
    attributes: BTreeMap<String, String>,
}

/// The offers of one agent for one role.
#[derive(Clone, Debug)]
pub struct Room {
    /// The agent.
    pub site: Arc<Site>,
    role: Option<Role>,
    /// The offers that it is made of.
    pub offers: Vec<OfferId>,
    left: Resources,
    /// When it is given back if nothing was placed on it.
    pub until: Time,
    /// Until when a gang keeps it, as the last round found.
    pub kept: Option<Time>,
}

impl Site {
    /// An agent that has offered nothing: how it is reached is not known.
    pub fn new(agent_id: String, host: String, attributes: BTreeMap<String, String>) -> Site {
        Site { agent_id, host, agent: String::new(), attributes }
    }
}

impl Place for Site {
    fn value(&self, field: &str) -> Option<&str> {
        if field == HOSTNAME { Some(&self.host) } else { self.attributes.get(field).map(String::as_str) }
    }
}

/// An agent's address as `host:port`.
fn address_text(address: &Address) -> String {
    let host = address.ip.as_deref().or(address.hostname.as_deref()).unwrap_or_default();
    format!("{host}:{}", address.port)
}

/// What was taken out of a room for one task.
#[derive(Clone, Debug)]
pub struct Taken {
    resources: Resources,
    /// The ports among it.
    pub ports: Vec<u64>,
}

impl Room {
    fn new(offer: &Offer) -> Room {
        let role = offer.allocation_info.as_ref().and_then(|a| a.role.as_deref());
        let site = Site {
            agent_id: offer.agent_id.value.to_string(),
            host: offer.hostname.clone(),
            agent: offer.url.as_ref().map(|url| address_text(&url.address)).unwrap_or_default(),
            attributes: offer.attributes.iter().map(|a| (a.name.clone(), attribute_text(a))).collect(),
        };
        Room {
            site: Arc::new(site),
            role: role.and_then(|r| Role::parse(r).ok()),
            offers: Vec::new(),
            left: Resources::new(),
            until: Time::NEVER,
            kept: None,
        }
    }

    /// How much room there is.
    pub fn free(&self) -> Need {
        room_in(&self.left)
    }

    fn ports(&self) -> Ranges {
        self.left.non_revocable().ports()
    }

    /// Takes what a task needs, reserved resources first and the lowest ports; none if it is not all there.
    pub fn take(&mut self, need: &Need) -> Option<Taken> {
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
        Some(Taken { resources, ports })
    }

    /// Puts back what was taken.
    pub fn put_back(&mut self, taken: Taken) {
        self.left += taken.resources;
    }

    /// What was taken, as the master offered it: allocated to the same role.
    pub fn messages(&self, taken: &Taken) -> Vec<v1::Resource> {
        match &self.role {
            Some(role) => to_v1(&taken.resources.allocated(role)),
            None => to_v1(&taken.resources),
        }
    }
}

/// How much room there is in resources. Volumes, disks with a path and revocable resources are no room.
pub fn room_in(resources: &Resources) -> Need {
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

/// An attribute's value as constraints see it.
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

/// How long an offer that nothing was placed on is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hold {
    /// At least this long.
    pub least: Duration,
    /// Up to so much longer, differently for each offer.
    pub jitter: Duration,
    /// Decides which offer gets how much of it.
    pub seed: u64,
}

/// All offers at hand, in the order in which their agents came.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// One for each agent and role.
    pub rooms: Vec<Room>,
    /// Where the room of an agent and role is.
    places: BTreeMap<(String, Option<Role>), usize>,
    /// Which room an offer is of.
    of: BTreeMap<String, usize>,
    /// Rooms that are void, until the next time that all are examined.
    void: usize,
    /// How many offers there have been; decides how long each is held beyond the least time.
    seen: u64,
    /// Whether offers came since the last call.
    changed: bool,
    /// When the first is given back; earlier if that one is void.
    due: Option<Time>,
}

impl Offers {
    /// Adds an offer, and returns its room; `None` if there are too many, or it is invalid.
    pub fn add(&mut self, offer: Offer, now: Time, hold: &Hold) -> Option<usize> {
        if self.rooms.len() >= OFFERS_MAX {
            return None;
        }
        let resources = from_v1(&offer.resources).ok()?;
        let fresh = Room::new(&offer);
        self.seen += 1;
        let until = now + hold.least + jitter(hold.jitter, hold.seed, self.seen);
        let key = (fresh.site.agent_id.clone(), fresh.role.clone());
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

    /// An offer is void: its room goes, with whatever else the agent offered, which is given back.
    pub fn rescind(&mut self, offer_id: &OfferId) -> Vec<OfferId> {
        let Some(room) = self.of.get(offer_id.value.as_str()).and_then(|place| self.rooms.get_mut(*place)) else {
            return Vec::new();
        };
        // It stays as an empty shell, so that the others keep their places.
        let offers = std::mem::take(&mut room.offers);
        room.left = Resources::new();
        self.places.remove(&(room.site.agent_id.clone(), room.role.clone()));
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

    /// Keeps these rooms and no others, and of these none that is void.
    pub fn set(&mut self, mut rooms: Vec<Room>) {
        rooms.retain(|room| !room.offers.is_empty());
        self.places = rooms.iter().map(|r| (r.site.agent_id.clone(), r.role.clone())).zip(0..).collect();
        self.of = (0..).zip(&rooms).flat_map(|(n, r)| r.offers.iter().map(move |o| (o.value.to_string(), n))).collect();
        self.due = rooms.iter().map(|r| r.kept.unwrap_or(r.until)).min();
        self.void = 0;
        self.rooms = rooms;
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many agents' offers there are.
    pub fn len(&self) -> usize {
        self.rooms.len() - self.void
    }

    /// When they are to be examined, because the first may have to be given back.
    pub fn next(&self) -> Option<Time> {
        self.due
    }

    /// Whether offers came since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}

/// Up to `most`, as the seed and the number of the offer say.
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
        // Anew, it is another room.
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
