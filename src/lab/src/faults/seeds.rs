//! Plays many seeds on several threads, and adds up what they have seen. It does not know what a seed stands for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::checker::Broken;

/// Which seeds a campaign runs, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings<D> {
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// Number of threads.
    pub threads: usize,
    /// The campaign ends after this many seeds that break a rule.
    pub most: usize,
    /// The deliberate defect of every plan.
    pub defect: Option<D>,
}

/// What seeds have seen.
pub(crate) trait Tally: Default + Send {
    /// Adds what other seeds have seen.
    fn add(&mut self, other: Self);
}

/// Plays the seeds. Returns their sum, and those that broke a rule.
///
/// `progress` is called after each seed, on any thread; returning `false` ends the campaign.
pub(crate) fn play_seeds<T: Tally, D>(
    settings: &Settings<D>,
    progress: &(dyn Fn() -> bool + Sync),
    play: &(dyn Fn(u64) -> (T, Option<Broken>) + Sync),
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
            let (seen, why) = play(seed);
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
