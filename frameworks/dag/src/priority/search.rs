//! Searches for the smallest drop and the least sprint with which response times meet their targets. It predicts
//! nothing itself.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::drop::DropRatio;
use super::response::{Model, Response, Sprint};

/// The target of a class, and the fraction of its tasks that may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Bound of the mean response; unbounded if absent.
    pub mean: Option<Duration>,
    /// Bound of the 95th percentile of responses; unbounded if absent.
    pub p95: Option<Duration>,
    /// Largest fraction of tasks that may be dropped, for the accuracy.
    pub drop: DropRatio,
}

impl Target {
    fn is_met(&self, response: &Response) -> bool {
        let within = |bound: Option<Duration>, is: f64| bound.is_none_or(|bound| is <= bound.as_secs_f64());
        within(self.mean, response.mean) && within(self.p95, response.p95)
    }
}

/// The drops and the sprint of a search, with the predicted responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Fraction of tasks to drop, by class.
    pub drops: Vec<DropRatio>,
    /// Sprint of the highest class; `None` if none is needed.
    pub sprint: Option<Sprint>,
    /// Predicted responses, by class.
    pub responses: Vec<Response>,
    /// Whether all targets are met. If not, the choice uses everything that is allowed.
    pub is_met: bool,
}

/// Step between the fractions that are tried, in thousandths.
const STEP: u32 = 5;

/// Chooses the smallest drop and then the latest sprint with which all targets are met.
///
/// All classes below the highest drop the same fraction, each up to its own bound. The highest drops nothing unless its
/// bound allows it and nothing else suffices. `sprint` is the largest sprint: its timeout is the earliest.
pub fn search(model: &Model, targets: &[Target], sprint: Option<Sprint>) -> Choice {
    let bound = |class: usize| targets.get(class).map_or(0, |target| target.drop.thousandths());
    let drops = |part: u32| -> Vec<DropRatio> {
        (0..model.classes.len()).map(|class| DropRatio::new(part.min(bound(class))).unwrap_or_default()).collect()
    };
    let low = |part: u32| -> Vec<DropRatio> {
        let mut drops = drops(part);
        if let Some(highest) = drops.last_mut() {
            *highest = DropRatio::NONE;
        }
        drops
    };
    let most = (0..model.classes.len()).map(bound).max().unwrap_or(0);
    let steps = || (0..=most.div_ceil(STEP)).map(|n| (n * STEP).min(most));
    let all = steps().map(low).chain(steps().map(drops));
    let mut last = None;
    for drops in all {
        let choice = choose(model, targets, drops, sprint);
        if choice.is_met {
            return choice;
        }
        last = Some(choice);
    }
    // At least the drop of nothing was tried.
    last.unwrap_or_else(|| choose(model, targets, Vec::new(), sprint))
}

/// Returns the choice with these drops: no sprint if that is enough, otherwise the latest that is, otherwise the
/// earliest.
fn choose(model: &Model, targets: &[Target], drops: Vec<DropRatio>, sprint: Option<Sprint>) -> Choice {
    let tried = |sprint: Option<Sprint>| {
        let responses = model.predict(&drops, sprint);
        let is_met = targets.iter().zip(&responses).all(|(target, response)| target.is_met(response));
        Choice { drops: drops.clone(), sprint, responses, is_met }
    };
    let without = tried(None);
    let Some(earliest) = sprint.filter(|_| !without.is_met) else { return without };
    let at = |timeout: Duration| Some(Sprint { timeout, ..earliest });
    let mut best = tried(Some(earliest));
    if !best.is_met {
        return best;
    }
    let longest = without.responses.last().map_or(0.0, |response| response.service * 4.0);
    let (mut early, mut late) = (earliest.timeout, earliest.timeout + Duration::from_secs_f64(longest.min(1e9)));
    for _ in 0..24 {
        let middle = early + (late - early) / 2;
        let choice = tried(at(middle));
        match choice.is_met {
            true => (early, best) = (middle, choice),
            false => late = middle,
        }
    }
    best
}
