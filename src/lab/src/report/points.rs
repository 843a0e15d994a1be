//! Points of a sweep with their runs, and descriptions of these.

use crate::measure::Outcome;

/// Swept fields with their values at one point.
pub type Values = Vec<(String, String)>;

/// A point of a sweep, or a run without a sweep: the swept values, and the outcomes of the repetitions.
pub type PointOutcomes = (Values, Vec<Outcome>);

/// Describes the repetitions of a point: their duration, their number, and which of them pictures show.
pub(super) fn repetitions(outcomes: &[Outcome]) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    match outcomes.len() {
        1 => format!("{}, with seed {}.", passed(first), first.seed),
        many => format!(
            "{}, with {many} seeds. Tables have means over all of them; pictures show seed {}.",
            passed(first),
            first.seed
        ),
    }
}

/// Describes how much time has passed in a run, and where it ran.
pub fn passed(outcome: &Outcome) -> String {
    let seconds = outcome.seconds;
    let Some(live) = &outcome.live else { return format!("{seconds:.0} s of virtual time") };
    let tasks = if live.burn { "tasks that use a processor" } else { "tasks that sleep" };
    let agents = match live.agents {
        1 => "one agent".to_owned(),
        agents => format!("{agents} agents"),
    };
    let cluster = match &live.master {
        Some(master) => format!("the cluster of {master} ({agents})"),
        None => format!("a real cluster of {agents}"),
    };
    match live.speed == 1.0 {
        true => format!("{seconds:.1} s on {cluster}, with {tasks}"),
        false => format!(
            "{seconds:.1} s of the scenario in {:.1} s on {cluster}, with {tasks}; all times are the scenario's",
            seconds / live.speed
        ),
    }
}
