//! Outstanding offers and inverse offers, with an index of each owner's.
//!
//! It does not change agents, frameworks or the allocator; `offers/mod.rs` does.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use base::numbered;
use protos::mesos::OfferId;
use rustc_hash::FxHashMap;

use crate::state::{AgentKey, FrameworkKey, InverseOffer, Offer, OfferKey};
use crate::table::Table;
use crate::timers::Timers;
use crate::tracked::Tracked;

/// Outstanding offers by owner. Owners without offers have no entry.
type Index<K> = FxHashMap<K, BTreeSet<OfferKey>>;

/// Outstanding offers and inverse offers. Both are numbered together.
#[derive(Debug)]
pub(crate) struct Offers {
    /// Prefix of the ids of all offers: `<master id>-O`.
    prefix: String,
    rows: Tracked<Table<Offer>>,
    by_framework: Index<FrameworkKey>,
    by_agent: Index<AgentKey>,
    inverse: Tracked<Arc<BTreeMap<OfferKey, InverseOffer>>>,
}

impl Offers {
    /// Returns an empty table of the offers of the master with that id.
    pub(crate) fn new(master_id: &str) -> Offers {
        Offers {
            prefix: prefix(master_id),
            rows: Tracked::default(),
            by_framework: Index::default(),
            by_agent: Index::default(),
            inverse: Tracked::default(),
        }
    }

    /// Returns whether an offer or inverse offer was added or removed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        self.rows.take_changed() | self.inverse.take_changed()
    }

    /// Returns the offers for readers.
    pub(crate) fn rows(&self) -> &Table<Offer> {
        &self.rows
    }

    /// Returns the inverse offers for readers.
    pub(crate) fn inverse(&self) -> &Arc<BTreeMap<OfferKey, InverseOffer>> {
        &self.inverse
    }

    /// Returns the key of the next offer.
    pub(crate) fn next_key(&self) -> OfferKey {
        OfferKey(self.rows.next_key())
    }

    /// Returns the id of an offer or inverse offer.
    pub(crate) fn id(&self, key: OfferKey) -> OfferId {
        OfferId { value: numbered(&self.prefix, key.0, "").into() }
    }

    /// Returns an outstanding offer.
    pub(crate) fn get(&self, key: OfferKey) -> Option<&Arc<Offer>> {
        self.rows.get(key.0)
    }

    /// Returns the outstanding offer of an id.
    pub(crate) fn find(&self, id: &str) -> Option<(OfferKey, &Arc<Offer>)> {
        let key = self.key_of(id)?;
        Some((key, self.get(key)?))
    }

    /// Returns the outstanding offer of an id if it is `framework`'s.
    pub(crate) fn find_own(&self, id: &str, framework: FrameworkKey) -> Option<OfferKey> {
        self.find(id).filter(|(_, offer)| offer.framework == framework).map(|(key, _)| key)
    }

    /// Returns the outstanding inverse offer of an id if it is `framework`'s.
    pub(crate) fn find_own_inverse(&self, id: &str, framework: FrameworkKey) -> Option<OfferKey> {
        self.key_of(id).filter(|key| self.inverse.get(key).is_some_and(|offer| offer.framework == framework))
    }

    /// Returns the keys of all outstanding offers.
    pub(crate) fn keys(&self) -> Vec<OfferKey> {
        self.rows.iter().map(|(key, _)| OfferKey(key)).collect()
    }

    /// Returns a framework's outstanding offers, oldest first.
    pub(crate) fn of_framework(&self, framework: FrameworkKey) -> Vec<OfferKey> {
        self.by_framework.get(&framework).into_iter().flatten().copied().collect()
    }

    /// Returns the outstanding offers of an agent's resources, oldest first.
    pub(crate) fn on_agent(&self, agent: AgentKey) -> Vec<OfferKey> {
        self.by_agent.get(&agent).into_iter().flatten().copied().collect()
    }

    /// Adds an offer under the key that [`Offers::next_key`] returned.
    pub(crate) fn insert(&mut self, offer: Offer) -> OfferKey {
        let (framework, agent) = (offer.framework, offer.agent);
        let key = OfferKey(self.rows.insert(Arc::new(offer)));
        self.by_framework.entry(framework).or_default().insert(key);
        self.by_agent.entry(agent).or_default().insert(key);
        key
    }

    /// Removes an offer, and cancels its timer.
    pub(crate) fn remove(&mut self, key: OfferKey, timers: &mut Timers) -> Option<Arc<Offer>> {
        let offer = self.rows.remove(key.0)?;
        unlist(&mut self.by_framework, offer.framework, key);
        unlist(&mut self.by_agent, offer.agent, key);
        timers.cancel(offer.timeout);
        Some(offer)
    }

    /// Reserves the key of an inverse offer, which the caller then inserts.
    pub(crate) fn take_inverse_key(&mut self) -> OfferKey {
        OfferKey(self.rows.take_key())
    }

    /// Adds an inverse offer under a key from [`Offers::take_inverse_key`].
    pub(crate) fn insert_inverse(&mut self, key: OfferKey, offer: InverseOffer) {
        Arc::make_mut(&mut self.inverse).insert(key, offer);
    }

    /// Removes an inverse offer, and cancels its timer.
    pub(crate) fn remove_inverse(&mut self, key: OfferKey, timers: &mut Timers) -> Option<InverseOffer> {
        let offer = Arc::make_mut(&mut self.inverse).remove(&key)?;
        timers.cancel(offer.timeout);
        Some(offer)
    }

    /// Returns the parts that `invariants/broken.rs` breaks: the offers, and their index by framework.
    pub(crate) fn breakable(&mut self) -> (&mut Table<Offer>, &mut Index<FrameworkKey>) {
        (&mut self.rows, &mut self.by_framework)
    }

    /// Parses an id of this master, whose number has no sign and no leading zeros.
    fn key_of(&self, id: &str) -> Option<OfferKey> {
        let number = id.strip_prefix(self.prefix.as_str())?;
        let canonical = number == "0" || !number.starts_with(['0', '+']);
        number.parse().ok().filter(|_| canonical).map(OfferKey)
    }
}

/// Returns the id of an offer or inverse offer of a master.
pub(crate) fn id_of(master_id: &str, key: OfferKey) -> OfferId {
    OfferId { value: numbered(&prefix(master_id), key.0, "").into() }
}

fn prefix(master_id: &str) -> String {
    [master_id, "-O"].concat()
}

fn unlist<K: Eq + Hash>(index: &mut Index<K>, owner: K, key: OfferKey) {
    use std::collections::hash_map::Entry;
    if let Entry::Occupied(mut own) = index.entry(owner) {
        own.get_mut().remove(&key);
        if own.get().is_empty() {
            own.remove();
        }
    }
}
