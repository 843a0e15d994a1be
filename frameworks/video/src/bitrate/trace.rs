//! Bandwidth of a network over time: read from a file, or made by a Markov chain. It downloads nothing.

use super::BitrateError;
use crate::random::SplitMix64;

/// Maximum number of intervals of a trace.
const MOST_INTERVALS: usize = 1_000_000;

/// Bandwidth over time; the trace repeats at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// End of each interval, in seconds from the beginning.
    ends: Vec<f64>,
    /// Bandwidth in each interval, in bytes a second.
    rates: Vec<f64>,
}

/// A Markov chain of mean bandwidths, as in Pensieve's generated traces: neighbours are likelier than distant states,
/// and the bandwidth varies about the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Markov {
    /// Lowest mean in Mbit/s.
    pub lowest: f64,
    /// Highest mean in Mbit/s.
    pub highest: f64,
    /// Number of means.
    pub states: u32,
    /// Probability that the mean changes in the next second.
    pub change: f64,
    /// Length of a trace in seconds.
    pub seconds: u32,
}

impl Default for Markov {
    fn default() -> Markov {
        Markov { lowest: 0.2, highest: 4.3, states: 10, change: 0.1, seconds: 320 }
    }
}

impl Trace {
    /// Creates a trace of intervals, each with its length in seconds and its bandwidth in Mbit/s.
    ///
    /// # Errors
    /// Returns an error for no intervals or more than a million; an interval that is not above 0 seconds, or with a
    /// bandwidth that is not 0 to 10^6 Mbit/s; and for no bandwidth at all.
    pub fn new(intervals: &[(f64, f64)]) -> Result<Trace, BitrateError> {
        let invalid = |rule| Err(BitrateError::Setting { setting: "trace", rule });
        if !(1..=MOST_INTERVALS).contains(&intervals.len()) {
            return invalid("must have 1 to 1,000,000 intervals");
        }
        let usable = |(seconds, rate): &(f64, f64)| (1e-6..=1e6).contains(seconds) && (0.0..=1e6).contains(rate);
        if !intervals.iter().all(usable) {
            return invalid("must have intervals above 0 s with 0 to 10^6 Mbit/s");
        }
        let mut end = 0.0;
        let (ends, rates): (Vec<f64>, Vec<f64>) = intervals
            .iter()
            .map(|(seconds, rate)| {
                end += seconds;
                (end, rate * 125_000.0)
            })
            .unzip();
        // With less than that all the time, a chunk could take weeks.
        if rates.iter().all(|rate| *rate < 1000.0) {
            return invalid("must carry 0.008 Mbit/s at some time");
        }
        Ok(Trace { ends, rates })
    }

    /// Parses a trace: each line has a time in seconds and the bandwidth in Mbit/s until then, as in Pensieve's traces.
    /// The bandwidth of the first line does not count. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Returns the first line that is not two numbers, or is not later than the one before, and the errors of
    /// [`Trace::new`].
    pub fn read(text: &str) -> Result<Trace, BitrateError> {
        let (mut before, mut intervals) = (None, Vec::new());
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let mut parts = content.split([' ', '\t', ',']).filter(|part| !part.is_empty()).map(str::parse::<f64>);
            let (Some(Ok(time)), Some(Ok(rate)), None) = (parts.next(), parts.next(), parts.next()) else {
                return Err(BitrateError::Line { line, rule: "must be seconds and Mbit/s" });
            };
            match before {
                Some(before) if time <= before || time.is_nan() => {
                    return Err(BitrateError::Line { line, rule: "must be later than the line before" });
                }
                Some(before) => intervals.push((time - before, rate)),
                None => {}
            }
            if intervals.len() > MOST_INTERVALS {
                return Err(BitrateError::Line { line, rule: "must be among the first 1,000,000" });
            }
            before = Some(time);
        }
        Trace::new(&intervals)
    }

    /// Makes a trace with an interval for each second. The same seed makes the same trace.
    ///
    /// # Errors
    /// Returns an error for means that are not 0.01 to 1000 Mbit/s or do not rise; no or more than 1000 states; a
    /// probability that is not 0 to 1; and no or more than a million seconds.
    pub fn made(markov: Markov, seed: u64) -> Result<Trace, BitrateError> {
        let Markov { lowest, highest, states, change, seconds } = markov;
        let invalid = |setting, rule| Err(BitrateError::Setting { setting, rule });
        if !(0.01..=1000.0).contains(&lowest) || !(lowest..=1000.0).contains(&highest) {
            return invalid("lowest and highest", "must be 0.01 to 1000 Mbit/s, the lowest first");
        }
        if !(1..=1000).contains(&states) || !(0.0..=1.0).contains(&change) {
            return invalid("states and change", "must be 1 to 1000, and 0 to 1");
        }
        let mut rng = SplitMix64::new(base::scramble(seed ^ 0x7472_6163_6500));
        let mut state = rng.below(u64::from(states)) as i64;
        // Pensieve draws a variance of 0.05 to 0.5 for a trace.
        let deviation = rng.between(0.05, 0.5).sqrt();
        let step = (highest - lowest) / f64::from(states.max(2) - 1);
        let second = |_| {
            if rng.unit() < change {
                // The distance is geometric: each further state is half as likely.
                let mut far = 1;
                while rng.unit() < 0.5 && far < i64::from(states) {
                    far += 1;
                }
                let to = if rng.unit() < 0.5 { state - far } else { state + far };
                state = to.clamp(0, i64::from(states) - 1);
            }
            let mean = lowest + step * state as f64;
            // With a deviation as large as the mean, the bandwidth would often be 0.
            let drawn = mean + deviation.min(mean / 2.0) * rng.normal();
            (1.0, drawn.clamp(lowest / 4.0, 2.0 * highest))
        };
        Trace::new(&(0..(seconds as usize).min(MOST_INTERVALS + 1)).map(second).collect::<Vec<_>>())
    }

    /// Returns the length of the trace in seconds, after which it repeats.
    pub fn seconds(&self) -> f64 {
        self.ends.last().copied().unwrap_or(0.0)
    }

    /// Returns the bandwidth in Mbit/s at a time in seconds.
    pub fn megabits(&self, at: f64) -> f64 {
        self.rates[self.interval(at % self.seconds())] / 125_000.0
    }

    /// Returns the seconds that a transfer of `bytes` takes from the time `at`, if `part` (0 to 1) of the bandwidth is
    /// available.
    pub fn transfer(&self, at: f64, bytes: f64, part: f64) -> f64 {
        let mut place = at % self.seconds();
        let (mut left, mut took) = (bytes, 0.0);
        let mut interval = self.interval(place);
        loop {
            let (rest, rate) = (self.ends[interval] - place, self.rates[interval] * part);
            if rest * rate >= left {
                return took + left / rate.max(f64::MIN_POSITIVE);
            }
            left -= rest.max(0.0) * rate;
            took += rest.max(0.0);
            interval = (interval + 1) % self.ends.len();
            place = if interval == 0 { 0.0 } else { self.ends[interval - 1] };
        }
    }

    fn interval(&self, place: f64) -> usize {
        self.ends.partition_point(|end| *end <= place).min(self.ends.len() - 1)
    }
}
