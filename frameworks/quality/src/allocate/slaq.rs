//! SLAQ's policy (section 4.3): gives one core at a time to the job whose predicted normalised loss it lowers most.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Bid, floors, raise, scarce};
use crate::predict::Forecast;

/// The gain of one more core for a job. A heap returns the largest gain first, and among equals the first job.
#[derive(PartialEq)]
struct Gain {
    more: f64,
    job: Reverse<usize>,
    /// Worth of all cores of the job, with that core.
    in_all: f64,
}

impl Eq for Gain {}

impl Ord for Gain {
    fn cmp(&self, other: &Gain) -> Ordering {
        self.more.total_cmp(&other.more).then(self.job.cmp(&other.job))
    }
}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Gain) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Worth of a core that a job does not hold yet, relative to one that it holds: the iteration of another job has to end
/// first, and the worker has to generate or read its new data.
const MOVED: f64 = 0.8;

/// Returns the worth of this many cores for a job in an epoch: the fall of its normalised loss, and the share of its
/// remaining work that they do, each with its weight. If the remaining work is not known, the fall stands for both.
fn worth(bid: &Bid, cores: u32, epoch: f64, completion: f64) -> f64 {
    let gain = bid.forecast.gain(epoch, cores);
    let done = match bid.remaining {
        Some(remaining) if remaining > 0.0 => (f64::from(cores) * epoch / remaining).min(1.0),
        Some(_) => f64::from(u8::from(cores > 0)),
        None => gain,
    };
    bid.priority * ((1.0 - completion) * gain + completion * done)
}

/// Shares the cores by predicted gain. Floors come first, and jobs without a fitted curve get an equal share. All other
/// cores go one at a time to the largest predicted gain; the remainder goes to jobs that can use it.
///
/// With fewer cores than jobs a floor of one is kept over time: a job that has waited for
/// [`MAX_EPOCHS_WAITING`](super::MAX_EPOCHS_WAITING) epochs gets a core for a
/// [`MIN_EPOCHS_SERVED`](super::MIN_EPOCHS_SERVED); all others compete with the gain of a first core.
///
/// `completion` is the weight of completion against quality in the worth of a core.
pub(super) fn slaq(bids: &[Bid], cores: u32, epoch: f64, completion: f64) -> Vec<u32> {
    let worth = |bid: &Bid, cores: u32| worth(bid, cores, epoch, completion);
    let mut given = vec![0; bids.len()];
    let mut order: Vec<usize> = (0..bids.len()).collect();
    if scarce(bids, cores) {
        let gain = |bid: &Bid| worth(bid, 1);
        let due = |bid: &Bid| {
            bid.has_waited_too_long() || bid.must_keep_core() || bid.floor > 1 || bid.forecast == Forecast::NoCurve
        };
        order.retain(|j| due(&bids[*j]));
        order.sort_by(|a, b| gain(&bids[*b]).total_cmp(&gain(&bids[*a])));
    }
    let mut left = floors(bids, cores, &order, &mut given);
    let share = cores / u32::try_from(bids.len().max(1)).unwrap_or(u32::MAX);
    for (job, bid) in bids.iter().enumerate().filter(|(_, b)| b.forecast == Forecast::NoCurve && !b.reached) {
        left -= raise(&mut given[job], share.min(bid.ceiling), left);
    }
    left = greedy(bids, left, worth, &mut given);
    // No job gains any more, so the remaining cores are shared in turn; jobs at their target come last.
    for reached in [false, true] {
        while left > 0 {
            let before = left;
            for (job, bid) in bids.iter().enumerate().filter(|(_, b)| b.reached == reached) {
                let to = given[job].saturating_add(1).min(bid.ceiling);
                left -= raise(&mut given[job], to, left);
            }
            if before == left {
                break;
            }
        }
    }
    given
}

/// Gives one core at a time to the largest gain, until no core or no gain is left. Returns the number of cores that are
/// left.
fn greedy(bids: &[Bid], mut left: u32, worth: impl Fn(&Bid, u32) -> f64, given: &mut [u32]) -> u32 {
    let next = |job: usize, has: u32, in_all: f64| {
        let bid = &bids[job];
        if has >= bid.ceiling || bid.reached {
            return None;
        }
        let with = worth(bid, has + 1);
        let moved = if has >= bid.held { MOVED } else { 1.0 };
        let more = moved * (with - in_all);
        (more > 0.0).then_some(Gain { more, job: Reverse(job), in_all: with })
    };
    let first = |(job, bid): (usize, &Bid)| next(job, given[job], worth(bid, given[job]));
    let mut heap: BinaryHeap<Gain> = bids.iter().enumerate().filter_map(first).collect();
    while left > 0
        && let Some(Gain { job: Reverse(job), in_all, .. }) = heap.pop()
    {
        given[job] += 1;
        left -= 1;
        heap.extend(next(job, given[job], in_all));
    }
    left
}
