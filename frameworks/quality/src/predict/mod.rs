//! Predicts the progress of a training job: fits its loss curve and extrapolates it (SLAQ, section 4).
//!
//! [`fn@fit`] fits a curve to a history, [`TimeModel`] predicts how long an iteration takes on a number of cores, and a
//! [`Forecaster`] has both for one job. This module does not share cores.

mod curve;
mod fit;
mod forecast;
mod time;

pub use curve::{Curve, Family};
pub use fit::{Fit, fit};
pub use forecast::{Errors, Forecast, Forecaster, HORIZON};
pub use time::TimeModel;
