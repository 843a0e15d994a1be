//! ACCEPT_INVERSE_OFFERS and DECLINE_INVERSE_OFFERS.
//!
//! This master makes no inverse offers, so whatever a framework names is unknown, and ignored as such.

use protos::mesos::OfferId;

use crate::io::{Level, Outbox};
use crate::master::Master;

impl Master {
    pub(crate) fn accept_inverse_offers(&mut self, ids: &[OfferId], out: &mut Outbox) {
        for id in ids {
            out.log(Level::Debug, format!("Ignoring the answer to inverse offer {}: it is not outstanding", id.value));
        }
    }
}
