//! Distributions of durations in scenarios: `5s`, `exponential 23s`, `uniform 1s 10s`, `lognormal 20s 1.2`, `pareto 10s
//! 1.5`, `normal 30s 10s`.
//!
//! The code does not depend on what the durations are for.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand_distr::{Distribution, Exp1, LogNormal, Pareto, StandardNormal, StandardUniform};

use crate::seeds::Rng;
use crate::span::{parse_span, show_span};

/// A distribution of durations.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum Dist {
    /// Always this duration.
    Constant(Duration),
    /// Uniform between two durations.
    Uniform(Duration, Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Log-normal with this median, and this standard deviation of the logarithm.
    LogNormal(Duration, f64),
    /// Pareto with this least duration, and this exponent of the tail.
    Pareto(Duration, f64),
    /// Normal with this mean and this standard deviation; negative draws are 0.
    Normal(Duration, Duration),
}

/// The longest duration that is drawn, in seconds: a hundred years.
const LONGEST: f64 = 100.0 * 365.0 * 86_400.0;

/// The error for a text that is not a distribution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a distribution of times: must be '5s', 'uniform 1s 10s', 'exponential 23s', 'lognormal MEDIAN SIGMA', \
     'pareto LEAST EXPONENT' and 'normal MEAN DEVIATION'"
)]
pub struct DistError(String);

impl Dist {
    /// The distribution that always draws a duration of 0.
    pub const ZERO: Dist = Dist::Constant(Duration::ZERO);

    /// Draws a duration; at most a hundred years.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        let seconds = match self {
            Dist::Constant(always) => return *always,
            Dist::Uniform(least, most) => {
                let part: f64 = StandardUniform.sample(rng);
                least.as_secs_f64() + part * (most.as_secs_f64() - least.as_secs_f64())
            }
            Dist::Exponential(mean) => {
                let one: f64 = Exp1.sample(rng);
                one * mean.as_secs_f64()
            }
            Dist::LogNormal(median, sigma) => {
                LogNormal::new(median.as_secs_f64().max(1e-9).ln(), *sigma).map_or(0.0, |dist| dist.sample(rng))
            }
            Dist::Pareto(least, exponent) => {
                Pareto::new(least.as_secs_f64().max(1e-9), *exponent).map_or(0.0, |dist| dist.sample(rng))
            }
            Dist::Normal(mean, deviation) => {
                let one: f64 = StandardNormal.sample(rng);
                mean.as_secs_f64() + one * deviation.as_secs_f64()
            }
        };
        Duration::from_secs_f64(seconds.clamp(0.0, LONGEST))
    }

    /// Returns the mean; `None` if it is infinite. For a normal distribution, the part below 0 is ignored.
    pub fn mean(&self) -> Option<Duration> {
        let seconds = match self {
            Dist::Constant(always) => return Some(*always),
            Dist::Uniform(least, most) => (least.as_secs_f64() + most.as_secs_f64()) / 2.0,
            Dist::Exponential(mean) | Dist::Normal(mean, _) => return Some(*mean),
            Dist::LogNormal(median, sigma) => median.as_secs_f64() * (sigma * sigma / 2.0).exp(),
            Dist::Pareto(_, exponent) if *exponent <= 1.0 => return None,
            Dist::Pareto(least, exponent) => least.as_secs_f64() * exponent / (exponent - 1.0),
        };
        Some(Duration::from_secs_f64(seconds.clamp(0.0, LONGEST)))
    }
}

/// Parses the shape of a distribution, a number that is positive and finite.
fn shape(text: &str) -> Option<f64> {
    text.parse().ok().filter(|shape: &f64| shape.is_finite() && *shape > 0.0 && *shape < 100.0)
}

impl FromStr for Dist {
    type Err = DistError;

    fn from_str(text: &str) -> Result<Dist, DistError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let time = |text: &str| parse_span(text).ok();
        let read = match words[..] {
            [always] | ["constant", always] => time(always).map(Dist::Constant),
            ["uniform", least, most] => {
                time(least).zip(time(most)).filter(|(least, most)| least <= most).map(|(a, b)| Dist::Uniform(a, b))
            }
            ["exponential", mean] => time(mean).map(Dist::Exponential),
            ["lognormal", median, sigma] => time(median).zip(shape(sigma)).map(|(a, b)| Dist::LogNormal(a, b)),
            ["normal", mean, deviation] => time(mean).zip(time(deviation)).map(|(a, b)| Dist::Normal(a, b)),
            ["pareto", least, exponent] => time(least).zip(shape(exponent)).map(|(a, b)| Dist::Pareto(a, b)),
            _ => None,
        };
        read.ok_or_else(|| DistError(text.to_owned()))
    }
}

impl TryFrom<String> for Dist {
    type Error = DistError;

    fn try_from(text: String) -> Result<Dist, DistError> {
        text.parse()
    }
}

impl fmt::Display for Dist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |duration: &Duration| show_span(*duration);
        match self {
            Dist::Constant(always) => f.write_str(&text(always)),
            Dist::Uniform(least, most) => write!(f, "uniform {} {}", text(least), text(most)),
            Dist::Exponential(mean) => write!(f, "exponential {}", text(mean)),
            Dist::LogNormal(median, sigma) => write!(f, "lognormal {} {sigma}", text(median)),
            Dist::Pareto(least, exponent) => write!(f, "pareto {} {exponent}", text(least)),
            Dist::Normal(mean, deviation) => write!(f, "normal {} {}", text(mean), text(deviation)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::Seed;

    #[test]
    fn what_is_drawn_has_the_mean() {
        for text in [
            "5secs",
            "uniform 1secs 9secs",
            "exponential 5secs",
            "lognormal 3secs 1",
            "pareto 2secs 3",
            "normal 30secs 10secs",
        ] {
            let dist: Dist = text.parse().unwrap();
            assert_eq!(dist.to_string().parse(), Ok(dist.clone()), "{text}");
            let mut rng = Seed::root(1).rng();
            let sum: f64 = (0..100_000).map(|_| dist.draw(&mut rng).as_secs_f64()).sum();
            let (got, mean) = (sum / 1e5, dist.mean().unwrap().as_secs_f64());
            assert!((got / mean - 1.0).abs() < 0.03, "{text}: {got}, not {mean}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "5", "exponential", "uniform 9s 1s", "lognormal 3s -1", "pareto 1s nan", "gauss 1s 2s"] {
            assert!(text.parse::<Dist>().is_err(), "{text}");
        }
    }
}
