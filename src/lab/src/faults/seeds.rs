//! Runs many seeds on several threads, and adds up their results.
//!
//! The code does not depend on what a seed stands for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::checker::Violation;

/// The seeds of a campaign, and how they are run.
#[derive(Clone, Copy, Debug)]
pub struct Settings<D> {
    /// First seed of the campaign.
    pub first: u64,
    /// Number of seeds that are run.
    pub seeds: u64,
    /// Number of threads that run them.
    pub threads: usize,
    /// Number of broken seeds after which the campaign ends.
    pub most: usize,
    /// A deliberate defect in every plan; `None` in a normal campaign.
    pub defect: Option<D>,
}

/// Totals of several seeds.
pub(crate) trait Tally: Default + Send {
    /// Adds the totals of other seeds.
    fn add(&mut self, other: Self);
}

/// Runs the seeds of a campaign. Returns their totals, and the seeds that broke a rule.
///
/// `progress` is called after each seed, on any thread; returning `false` ends the campaign.
pub(crate) fn run_seeds<T: Tally, D>(
    settings: &Settings<D>,
    progress: &(dyn Fn() -> bool + Sync),
    run_plan: &(dyn Fn(u64) -> (T, Option<Violation>) + Sync),
) -> (T, Vec<(u64, String)>) {
    let Settings { first, seeds, threads, most, .. } = *settings;
    let next = AtomicU64::new(0);
    let total: Mutex<(T, Vec<(u64, String)>)> = Mutex::default();
    let broken = AtomicU64::new(0);
    let work = || {
        let (mut mine, mut wrong) = (T::default(), Vec::new());
        while broken.load(Ordering::Relaxed) < most as u64 {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= seeds {
                break;
            }
            let seed = first.wrapping_add(at);
            let (seen, why) = run_plan(seed);
            mine.add(seen);
            if let Some(why) = why {
                wrong.push((seed, why.to_string()));
                broken.fetch_add(1, Ordering::Relaxed);
            }
            if !progress() {
                break;
            }
        }
        if let Ok(mut total) = total.lock() {
            total.0.add(mine);
            total.1.extend(wrong);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let (sum, mut wrong) = total.into_inner().unwrap_or_default();
    wrong.sort();
    wrong.truncate(most);
    (sum, wrong)
}
