//! Decides which tasks shrink when queries wait for resources, and to which size.
//!
//! The cores that a task holds and the cores that the policy gives its query are two amounts: on an agent, queries
//! share the cores of their tasks. The recent share of a query and what it needs to meet its goals decide how much its
//! task can release. This module decides one round. The scheduler decides when rounds take place, and that a query is
//! not replaced again soon.

/// Least ratio of the held cores to those that the task must keep; a smaller release is not worth a restart.
const OVER: f64 = 1.2;

/// The cores of a running query's task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShrinkableTask {
    /// Number of cores that the task holds.
    pub held: f64,
    /// Least number of cores that the task must keep.
    pub least: f64,
    /// Largest share of cores that the query had recently.
    pub recent_share: f64,
    /// Whether the query meets its lag goal and loses nothing while a worker ends and the next one starts.
    pub can_pause: bool,
}

/// Returns the indices of the tasks to be replaced by smaller ones, with their new sizes: as few as release the
/// `missing` cores, and at most `most`.
///
/// First come those whose queries can pause and were given less than they hold, then those whose queries can pause.
/// Only when none of them has cores to release do the others come, in the same order. Those with the most to release
/// come first.
pub fn tasks_to_shrink(tasks: &[ShrinkableTask], missing: f64, most: usize) -> Vec<(usize, f64)> {
    for (can_pause, all_but_least) in [(true, false), (true, true), (false, false), (false, true)] {
        let keeps = |task: &ShrinkableTask| if all_but_least { task.least } else { task.least.max(task.recent_share) };
        let willing = tasks.iter().enumerate().filter(|(_, task)| task.can_pause == can_pause);
        let mut over: Vec<(usize, f64, f64)> = willing
            .map(|(index, task)| (index, keeps(task), task.held - keeps(task)))
            .filter(|(index, keep, _)| tasks[*index].held > keep * OVER)
            .collect();
        over.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)));
        let mut brought = 0.0;
        let enough = |(index, keep, spare)| {
            let more = brought < missing;
            brought += spare;
            more.then_some((index, keep))
        };
        let chosen: Vec<(usize, f64)> = over.into_iter().take(most).map_while(enough).collect();
        if !chosen.is_empty() {
            return chosen;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shrinkable(held: f64, least: f64, recent_share: f64, can_pause: bool) -> ShrinkableTask {
        ShrinkableTask { held, least, recent_share, can_pause }
    }

    #[test]
    fn those_that_can_pause_and_were_given_less_go_first() {
        let tasks = [
            shrinkable(1.0, 0.1, 0.1, false),
            shrinkable(0.8, 0.2, 0.7, true),
            shrinkable(0.6, 0.2, 0.3, true),
            shrinkable(0.5, 0.3, 0.0, true),
        ];
        assert_eq!(tasks_to_shrink(&tasks, 0.1, 9), [(2, 0.3)]);
        assert_eq!(tasks_to_shrink(&tasks, 0.4, 9), [(2, 0.3), (3, 0.3)]);
        assert_eq!(tasks_to_shrink(&tasks, 0.4, 1), [(2, 0.3)]);
        assert_eq!(tasks_to_shrink(&tasks[..2], 0.1, 9), [(1, 0.2)], "it uses it, and can do without");
        assert_eq!(tasks_to_shrink(&tasks[..1], 0.1, 9), [(0, 0.1)], "there is no other");
    }

    #[test]
    fn a_small_release_is_not_worth_a_restart() {
        assert_eq!(tasks_to_shrink(&[shrinkable(0.35, 0.3, 0.0, true)], 1.0, 9), []);
        assert_eq!(tasks_to_shrink(&[shrinkable(1.0, 0.3, 0.0, true)], 0.0, 9), []);
        assert_eq!(tasks_to_shrink(&[], 1.0, 9), []);
    }

    proptest! {
        #[test]
        fn a_round_releases_no_more_than_queries_can_spare(
            tasks in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64, 0.0..1.0f64, any::<bool>()), 0..40),
            missing in 0.0..5.0f64,
            most in 0..10usize,
        ) {
            let tasks: Vec<ShrinkableTask> = tasks.into_iter().map(|(h, l, g, p)| shrinkable(h, l, g, p)).collect();
            let chosen = tasks_to_shrink(&tasks, missing, most);
            prop_assert!(chosen.len() <= most);
            for (index, size) in &chosen {
                prop_assert!(*size >= tasks[*index].least && *size * OVER < tasks[*index].held);
            }
            let spares: Vec<f64> = chosen.iter().map(|(index, size)| tasks[*index].held - size).collect();
            // Without the last task the release would not have been sufficient.
            let but_last: f64 = spares.iter().take(spares.len().saturating_sub(1)).sum();
            prop_assert!(chosen.is_empty() || but_last < missing);
            let could = tasks.iter().any(|task| task.held > task.least * OVER);
            prop_assert_eq!(chosen.is_empty(), !could || missing <= 0.0 || most == 0);
        }
    }
}
