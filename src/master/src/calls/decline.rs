//! DECLINE: returns offers, and filters their resources for a while.

use allocator::fairness::OfferEnd;
use cores::Level;
use protos::mesos::scheduler::call::Decline;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::FrameworkKey;

impl Master {
    /// Returns the declined offers to the allocator. Unknown offers and those of other frameworks are ignored. Without
    /// filters the default ones apply.
    pub(crate) fn decline(&mut self, key: FrameworkKey, call: &Decline, out: &mut Outbox) {
        self.count(Counter::MessagesDeclineOffers);
        let filters = call.filters.unwrap_or_default();
        let mut declined = 0;
        for id in &call.offer_ids {
            let Some(offer) = self.offers.find_own(&id.value, key) else {
                out.log(Level::Debug, format!("Ignoring the decline of offer {}: it is not outstanding", id.value));
                continue;
            };
            self.discard_offer(offer, Some(&filters), OfferEnd::Declined);
            declined += 1;
        }
        if let Some(counts) = self.frameworks.counts(key) {
            counts.offers_declined += declined;
        }
    }
}
