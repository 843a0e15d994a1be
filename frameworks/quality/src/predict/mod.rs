//! What a training job will gain: its loss curve is fitted and followed into the future (SLAQ, section 4).
//!
//! [`fit`] finds a curve through a history, [`TimeModel`] knows how long an iteration takes on so many cores, and a
//! [`Forecaster`] keeps both for one job. Nothing here decides who gets cores.

mod curve;
mod fit;
mod forecast;
mod time;

pub use curve::{Curve, Family};
pub use fit::{Fit, fit};
pub use forecast::{Errors, Forecaster, HORIZON, Outlook};
pub use time::TimeModel;
