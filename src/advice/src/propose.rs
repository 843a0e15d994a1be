//! Proposes what a job should request.
//!
//! The proposal is the upper end of the confidence interval of the percentile that the risk chooses, with a margin.
//! Where there are too few values for an upper end it is the largest value, with a margin that grows as the number of
//! values shrinks.

use resources::Amount;
use serde::Serialize;

use crate::amounts::{optional_units, units};
use crate::{Amounts, History, Risk, Usage};

/// Number of measurements below which nothing is proposed.
pub const READINGS_MIN: u64 = 20;
/// Least memory that an agent isolates, in megabytes (Mesos's `MIN_MEMORY`).
pub const MEM_MIN: Amount = Amount::from_units(32);
/// Least share of a processor that an agent isolates (Mesos's `MIN_CPUS`).
const CPUS_MIN: Amount = Amount::from_thousandths(10);
/// Fractions that are added to the upper end of an interval.
const CPUS_MARGIN: f64 = 0.1;
const MEM_MARGIN: f64 = 0.15;
/// Fraction that is added if there is only one value. With more values the margin decreases to those above.
const MARGIN_MAX: f64 = 0.5;
/// Fraction of the time in which tasks are throttled above which they request too few processors.
const THROTTLED_MAX: f64 = 0.05;
/// Least factor by which throttled tasks should request more processors.
const THROTTLED_FACTOR: f64 = 1.5;
/// Fraction of the requested memory above which a task is close to its limit, beyond which it is killed.
const MEM_CLOSE: f64 = 0.9;

/// The comparison of a request with the use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There are too few measurements.
    TooFew,
    /// Less than the request is enough.
    RequestsTooMuch,
    /// The request fits the use.
    Fits,
    /// The request is too small.
    RequestsTooLittle,
}

/// Advice about one resource of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceAdvice {
    /// Amount that a task requests.
    #[serde(serialize_with = "units")]
    pub requested: Amount,
    /// Measured use; absent without measurements.
    pub used: Option<Usage>,
    /// Amount that a task should request; absent if there are too few measurements.
    #[serde(serialize_with = "optional_units")]
    pub proposed: Option<Amount>,
    /// Comparison of the request with the use.
    pub verdict: Verdict,
    /// Reason for the proposal, in words.
    pub why: String,
}

impl ResourceAdvice {
    /// Returns the proposal, or the present request if there is none.
    pub fn recommended(&self) -> Amount {
        self.proposed.unwrap_or(self.requested)
    }
}

/// Advice about a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Advice about processors, in cores.
    pub cpus: ResourceAdvice,
    /// Advice about memory, in megabytes.
    pub mem: ResourceAdvice,
}

impl Advice {
    /// Returns the proposals, or the present requests where there is none.
    pub fn recommended(&self) -> Amounts {
        Amounts { cpus: self.cpus.recommended(), mem: self.mem.recommended() }
    }
}

/// One resource with its measurements.
struct Measured {
    requested: Amount,
    used: Option<Usage>,
    least: Amount,
    /// Multiple to which amounts are rounded up, in thousandths.
    step: i64,
    margin: f64,
    /// Name of the values in texts: "measurements", "tasks".
    values: &'static str,
    unit: &'static str,
    /// Fraction of the request above which use is a shortage.
    close: f64,
    throttled: f64,
}

impl History {
    /// Returns what the job's tasks, which request these amounts, should request.
    pub fn advise(&self, requested: Amounts, risk: Risk) -> Advice {
        let measured = self.measured();
        let cpus = Measured {
            requested: requested.cpus,
            used: self.cpus(risk),
            least: CPUS_MIN,
            step: 10,
            margin: CPUS_MARGIN,
            values: "measurements",
            unit: "cpus",
            close: 1.0,
            throttled: self.throttled(),
        };
        let mem = Measured {
            requested: requested.mem,
            used: self.mem(risk),
            least: MEM_MIN,
            step: 1_000,
            margin: MEM_MARGIN,
            values: "tasks",
            unit: "MB",
            close: MEM_CLOSE,
            throttled: 0.0,
        };
        Advice { cpus: cpus.judge(measured), mem: mem.judge(measured) }
    }
}

impl Measured {
    fn judge(self, measured: u64) -> ResourceAdvice {
        let part =
            |used, proposed, verdict, why| ResourceAdvice { requested: self.requested, used, proposed, verdict, why };
        let Some(used) = self.used.filter(|_| measured >= READINGS_MIN) else {
            let why = format!("{measured} of {READINGS_MIN} measurements: no proposal");
            return part(self.used, None, Verdict::TooFew, why);
        };
        let chosen = used.chosen;
        let margin = self.margin(&used);
        let raw = self.rounded(chosen.high.unwrap_or(used.max) * (1.0 + margin));
        let percentile = format!("{}th percentile", trimmed(100.0 * chosen.level));
        let of = match chosen.high {
            Some(high) => format!("the {percentile} is below {}", self.text(high)),
            None => format!(
                "the largest of {} {} is {} (an upper end of the {percentile} needs {})",
                used.effective,
                self.independent(&used),
                self.text(used.max),
                chosen.needed
            ),
        };
        let with = format!("{of}; the margin is {:.0} %", 100.0 * margin);
        if self.throttled > THROTTLED_MAX {
            let proposed = raw.max(self.rounded(self.requested.to_f64() * THROTTLED_FACTOR));
            let why = format!("the CPU limit throttles it in {:.0} % of the time", 100.0 * self.throttled);
            return part(Some(used), Some(proposed), Verdict::RequestsTooLittle, why);
        }
        if chosen.value > self.close * self.requested.to_f64() {
            let why =
                format!("the {percentile} is {}, of {} requested; {with}", self.text(chosen.value), self.requested);
            return part(Some(used), Some(raw.max(self.requested)), Verdict::RequestsTooLittle, why);
        }
        // A task that requests less than the minimum receives the minimum, so its request may stay.
        let proposed = raw.max(self.least).min(self.requested);
        let verdict = if proposed < self.requested { Verdict::RequestsTooMuch } else { Verdict::Fits };
        part(Some(used), Some(proposed), verdict, with)
    }

    /// Returns the margin, which is larger if there are fewer values than an upper end needs.
    fn margin(&self, used: &Usage) -> f64 {
        let lacking = 1.0 - used.effective as f64 / used.chosen.needed as f64;
        self.margin + (MARGIN_MAX - self.margin) * lacking.max(0.0)
    }

    fn independent(&self, used: &Usage) -> String {
        match used.effective < used.count {
            true => format!("independent {}", self.values),
            false => self.values.to_owned(),
        }
    }

    /// Returns an amount rounded up to the step.
    fn rounded(&self, units: f64) -> Amount {
        let thousandths = Amount::from_f64(units).max(Amount::from_f64(units + 0.000_499)).thousandths();
        let steps = thousandths.div_euclid(self.step) + i64::from(thousandths.rem_euclid(self.step) != 0);
        Amount::from_thousandths(steps.saturating_mul(self.step))
    }

    fn text(&self, value: f64) -> String {
        match self.unit {
            "MB" => format!("{value:.1} MB"),
            unit => format!("{value:.3} {unit}"),
        }
    }
}

/// Formats a percentage without a decimal of 0.
fn trimmed(percent: f64) -> String {
    let text = format!("{percent:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
