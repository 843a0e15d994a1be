//! Offers that a modelled framework holds, reduced to the scalars that its tasks need.

use std::sync::Arc;

use base::{Text, Time};
use resources::{Amount, Name, Quantities};
use sdk::v1::resource::AllocationInfo;
use sdk::v1::value::{Scalar, Type};
use sdk::v1::{Offer, OfferId, Resource};

use super::Place;

/// Resources that a task needs; shared between tasks.
pub type Needs = Arc<Quantities>;

/// An offer that has not been answered.
#[derive(Debug)]
pub(super) struct HeldOffer {
    pub id: OfferId,
    pub agent_id: sdk::v1::AgentId,
    pub role: Option<Text>,
    /// Free resources of the offer that are neither reserved nor revocable.
    pub left: Quantities,
    /// Whether the offer is part of the current decision or an earlier one, and has not arrived since.
    pub seen: bool,
    /// Time at which the offer is declined.
    pub until: Time,
    /// The last needs that were converted to messages; most tasks of an offer have equal ones.
    made: Option<(Needs, Vec<Resource>)>,
}

impl HeldOffer {
    /// Creates a held offer that is declined at `until`.
    pub fn new(offer: Offer, until: Time) -> HeldOffer {
        let mut left = Quantities::new();
        for resource in &offer.resources {
            let plain = resource.reservations.is_empty()
                && resource.role.as_deref().is_none_or(|role| role == "*")
                && resource.revocable.is_none()
                && resource.disk.is_none();
            if let Some(scalar) = resource.scalar.as_ref().filter(|_| plain) {
                left.add(&Name::from(resource.name.as_str()), Amount::from_f64(scalar.value));
            }
        }
        HeldOffer {
            role: offer.allocation_info.and_then(|info| info.role),
            id: offer.id,
            agent_id: offer.agent_id,
            left,
            seen: false,
            until,
            made: None,
        }
    }

    /// Converts needs to messages, with the allocation of the offer.
    pub fn messages(&mut self, needs: &Needs) -> Vec<Resource> {
        if let Some((_, made)) = self.made.as_ref().filter(|(of, _)| Arc::ptr_eq(of, needs)) {
            return made.clone();
        }
        let resource = |(name, amount): (Name, Amount)| Resource {
            name: name.text(),
            r#type: Type::Scalar as i32,
            scalar: Some(Scalar { value: amount.to_f64() }),
            allocation_info: Some(AllocationInfo { role: self.role.clone() }),
            ..Resource::default()
        };
        let made: Vec<Resource> = needs.iter().map(resource).collect();
        self.made = Some((Arc::clone(needs), made.clone()));
        made
    }
}

/// Chooses the offer on which a task is placed. `used` has the number of tasks on each offer, `most` their limit.
pub(super) fn choose(
    held: &[HeldOffer],
    used: &[usize],
    most: usize,
    needs: &Quantities,
    place: Place,
) -> Option<usize> {
    let mut found: Option<(usize, f64)> = None;
    for (at, offer) in held.iter().enumerate() {
        if !offer.seen || used[at] >= most || !offer.left.contains(needs) {
            continue;
        }
        // The score is the needed part of the scarcest resource in the offer, negated for packing. The lowest score
        // wins.
        let score = match place {
            Place::First => return Some(at),
            Place::Pack => -needs.ratio(&offer.left),
            Place::Spread => needs.ratio(&offer.left),
        };
        if found.is_none_or(|(_, least)| score < least) {
            found = Some((at, score));
        }
    }
    found.map(|(at, _)| at)
}
