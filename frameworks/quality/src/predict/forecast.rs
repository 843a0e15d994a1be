//! Records the progress of one job, and forecasts it.

use std::collections::VecDeque;

use super::curve::{Curve, Family};
use super::fit::{Fit, fit};
use super::time::TimeModel;

/// Number of iterations ahead at which predictions are compared with the actual loss.
pub const HORIZON: u64 = 10;
/// Minimum number of losses for a prediction.
const LOSSES_MIN: usize = 5;
/// Number of losses that are kept for fitting.
const LOSSES_MAX: usize = 32;
/// Number of prediction errors that are kept.
const ERRORS_MAX: usize = 256;
/// Share of the loss reduction that a new job is assumed to leave in each iteration.
const FIRST_RATE: f64 = 0.85;
/// Maximum distance of a fit, as a share of the losses' variation; a worse fit is not used.
const MISS_MAX: f64 = 0.25;
/// Variation of the losses below which they have converged, as a share of the job's loss reduction.
const STILL: f64 = 0.01;

/// The losses and times of one job, with the fitted curve and the errors of its predictions.
#[derive(Clone, Debug, Default)]
pub struct Forecaster {
    family: Option<Family>,
    losses: VecDeque<f64>,
    /// Number of losses in all; the newest iteration has this number less one.
    count: u64,
    first: f64,
    lowest: f64,
    largest_change: f64,
    fit: Option<Fit>,
    time: TimeModel,
    errors: Errors,
}

/// Errors of predictions, as shares of the actual loss.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    /// Iterations that were predicted, with the predicted losses.
    waiting: VecDeque<(u64, f64)>,
    /// Errors of the newest predictions.
    recent: VecDeque<f64>,
}

impl Errors {
    /// Returns the errors of the newest predictions, oldest first.
    pub fn recent(&self) -> impl Iterator<Item = f64> {
        self.recent.iter().copied()
    }

    /// Returns the median of the newest errors.
    pub fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.recent.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    fn compare(&mut self, iteration: u64, loss: f64) {
        while let Some((of, predicted)) = self.waiting.front().copied().filter(|(of, _)| *of <= iteration) {
            self.waiting.pop_front();
            if of == iteration && loss != 0.0 {
                self.recent.push_back(((predicted - loss) / loss).abs());
            }
        }
        while self.recent.len() > ERRORS_MAX {
            self.recent.pop_front();
        }
    }
}

/// The prediction of a job's near future for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forecast {
    /// Too few iterations are known. Until there are enough, the job is assumed to learn as fast as most jobs do at
    /// first.
    TooEarly {
        /// Times of iterations, if one has been measured.
        time: TimeModel,
    },
    /// The losses follow no curve.
    NoCurve,
    /// The losses follow a curve.
    Fitted {
        /// Curve from the newest iteration on.
        curve: Curve,
        /// Change of the loss that changes the normalised loss by one.
        scale: f64,
        /// Times of iterations.
        time: TimeModel,
    },
}

impl Forecast {
    /// Returns the fall of the normalised loss within this many seconds on this many cores.
    pub fn gain(&self, seconds: f64, cores: u32) -> f64 {
        match self {
            Forecast::Fitted { curve, scale, time } => {
                let iterations = time.iterations(seconds, cores);
                (curve.at(0.0) - curve.at(iterations)).max(0.0) / scale
            }
            Forecast::TooEarly { time } => {
                // An iteration counts as a second until one is measured.
                let second = TimeModel::known(1.0, 0.0);
                let iterations = if time.is_known() { *time } else { second }.iterations(seconds, cores);
                1.0 - FIRST_RATE.powf(iterations)
            }
            Forecast::NoCurve => 0.0,
        }
    }
}

impl Forecaster {
    /// Creates a forecaster for a job whose family may be known.
    pub fn new(family: Option<Family>) -> Forecaster {
        Forecaster { family, ..Forecaster::default() }
    }

    /// Records the loss of the next iteration.
    pub fn observe(&mut self, loss: f64) {
        if !loss.is_finite() {
            return;
        }
        match self.losses.back() {
            Some(last) => self.largest_change = self.largest_change.max(last - loss),
            None => (self.first, self.lowest) = (loss, loss),
        }
        self.lowest = self.lowest.min(loss);
        self.errors.compare(self.count, loss);
        self.count += 1;
        self.losses.push_back(loss);
        if self.losses.len() > LOSSES_MAX {
            self.losses.pop_front();
        }
        self.fit = None;
        if self.losses.len() >= LOSSES_MIN {
            self.fit = fit(self.losses.make_contiguous(), self.family);
        }
        if let Some(predicted) = self.predict(HORIZON as f64) {
            self.errors.waiting.push_back((self.count - 1 + HORIZON, predicted));
        }
    }

    /// Sets the loss with which the job began, if the recorded losses do not include it.
    pub fn set_first_loss(&mut self, loss: f64) {
        if loss.is_finite() {
            self.first = loss;
        }
    }

    /// Sets the times of the job's iterations, if they were learnt before.
    pub fn set_time_model(&mut self, time: TimeModel) {
        self.time = time;
    }

    /// Records the duration of an iteration on `cores` cores, of which they computed `busy` seconds in all.
    pub fn observe_time(&mut self, seconds: f64, cores: u32, busy: f64) {
        self.time.learn(seconds, cores, busy);
    }

    /// Records the duration of an iteration that did the share `now` of the work, among iterations that do the share
    /// `mean` of it on average.
    pub fn observe_part(&mut self, seconds: f64, cores: u32, busy: f64, now: f64, mean: f64) {
        self.time.learn_part(seconds, cores, busy, now, mean);
    }

    /// Predicts the loss this many iterations after the newest: the newest loss, less the fall of the curve from there.
    pub fn predict(&self, ahead: f64) -> Option<f64> {
        let (curve, newest) = (self.fit?.curve, *self.losses.back()?);
        let fall = curve.at(0.0) - curve.at(ahead);
        Some((newest - fall).max(curve.end().min(newest)))
    }

    /// Returns the prediction for the scheduler.
    pub fn forecast(&self) -> Forecast {
        if self.losses.len() < LOSSES_MIN || !self.time.is_known() {
            return Forecast::TooEarly { time: self.time };
        }
        match self.fit {
            Some(fit) if fit.distance <= MISS_MAX * self.variation() => {
                Forecast::Fitted { curve: fit.curve, scale: self.scale(&fit.curve), time: self.time }
            }
            // Losses that hardly change any more are predictable, even if they fluctuate: no gain is expected.
            _ if self.variation() <= (STILL * (self.first - self.lowest)).max(1e-12 * self.first.abs()) => {
                Forecast::Fitted {
                    curve: Curve::Exponential { height: 0.0, rate: 0.5, end: self.losses[self.losses.len() - 1] },
                    scale: 1.0,
                    time: self.time,
                }
            }
            _ => Forecast::NoCurve,
        }
    }

    /// Returns the loss reduction of the whole training, which corresponds to a normalised loss of one.
    fn scale(&self, curve: &Curve) -> f64 {
        let range = self.first - curve.end();
        if range > 0.0 { range } else { self.largest_change.max(f64::MIN_POSITIVE) }
    }

    /// Returns the difference of the highest and the lowest of the kept losses.
    fn variation(&self) -> f64 {
        let highest = self.losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        highest - self.losses.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the newest loss as a share of the range from the first loss to the limit of the curve; `None` without a
    /// fitted curve.
    pub fn normalised(&self) -> Option<f64> {
        let newest = *self.losses.back()?;
        let end = self.fit.map(|f| f.curve.end())?;
        let range = self.first - end;
        (range > 0.0).then(|| ((newest - end) / range).clamp(0.0, 1.0))
    }

    /// Returns the fitted curve.
    pub fn curve(&self) -> Option<Curve> {
        self.fit.map(|f| f.curve)
    }

    /// Returns the times of iterations.
    pub fn time(&self) -> TimeModel {
        self.time
    }

    /// Returns the errors of past predictions.
    pub fn errors(&self) -> &Errors {
        &self.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_job_is_predicted_well() {
        let mut forecaster = Forecaster::new(None);
        assert_eq!(forecaster.forecast(), Forecast::TooEarly { time: TimeModel::default() });
        assert!(forecaster.forecast().gain(3.0, 2) > forecaster.forecast().gain(3.0, 1));
        for k in 0..60_u32 {
            forecaster.observe(0.2 + 1.0 / (1.0 + 0.2 * f64::from(k)));
            forecaster.observe_time(1.0, 2, 1.8);
        }
        assert!(forecaster.errors().median().unwrap() < 0.01);
        assert!(forecaster.errors().recent().count() > 40);
        let forecast = forecaster.forecast();
        assert!(matches!(forecast, Forecast::Fitted { .. }));
        let gains: Vec<f64> = (0..8).map(|cores| forecast.gain(3.0, cores)).collect();
        assert_eq!(gains[0], 0.0);
        // More cores gain more, each less than the one before.
        let steps: Vec<f64> = gains.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(steps.iter().all(|s| *s > 0.0) && steps.windows(2).all(|w| w[1] <= w[0]), "{gains:?}");
        let normalised = forecaster.normalised().unwrap();
        assert!((0.05..0.12).contains(&normalised), "{normalised}");
    }

    #[test]
    fn a_job_that_jumps_about_is_unclear() {
        let mut forecaster = Forecaster::new(None);
        for k in 0..30_u32 {
            forecaster.observe(1.0 + f64::from(k * 7 % 5) - 0.001 * f64::from(k));
            forecaster.observe_time(1.0, 1, 1.0);
        }
        assert_eq!(forecaster.forecast(), Forecast::NoCurve);
        assert_eq!(forecaster.forecast().gain(1.0, 1), 0.0);
    }

    #[test]
    fn a_job_that_has_converged_and_jitters_gains_nothing() {
        let mut forecaster = Forecaster::new(None);
        forecaster.observe_time(1.0, 1, 1.0);
        // As a perceptron's, the loss falls from 1 to 0.1, and then fluctuates by a thousandth.
        for k in 0..90_u32 {
            forecaster.observe(0.1 + 0.9 * 0.7_f64.powi(k as i32) + 0.000_5 * f64::from(k * 7 % 5));
        }
        assert!(matches!(forecaster.forecast(), Forecast::Fitted { .. }), "{:?}", forecaster.forecast());
        assert!(forecaster.forecast().gain(10.0, 4) < 0.003, "{}", forecaster.forecast().gain(10.0, 4));
        // The loss changes by as much as the job has learnt in all, so nothing can be predicted.
        for k in 0..30_u32 {
            forecaster.observe(0.1 + 0.2 * f64::from(k * 7 % 5));
        }
        assert_eq!(forecaster.forecast(), Forecast::NoCurve);
    }

    #[test]
    fn a_job_that_has_ended_gains_nothing() {
        let mut forecaster = Forecaster::new(None);
        for _ in 0..40 {
            forecaster.observe(0.5);
            forecaster.observe_time(1.0, 1, 1.0);
        }
        assert!(matches!(forecaster.forecast(), Forecast::Fitted { .. }));
        assert_eq!(forecaster.forecast().gain(10.0, 4), 0.0);
        forecaster.observe(f64::NAN);
        assert_eq!(forecaster.predict(1.0), None);
    }
}
