//! Shows video queries: as a table, or as lines about changes.

use video::core::{QueryStatus, State, Status};
use video::schedule::Policy;

use crate::framework::view::{Displayed, ItemState};
use crate::read::table::table;

impl Displayed for Status {
    fn text(&self) -> String {
        text(self)
    }

    fn item_states(&self) -> Vec<ItemState> {
        let item_state = |query: &QueryStatus| {
            let why = if query.message.is_empty() { String::new() } else { format!(": {}", query.message) };
            let task = query.task.as_deref().filter(|_| matches!(query.state, State::Running | State::Starting));
            let task = task.map_or(String::new(), |task| format!(" ({task})"));
            let state = state(query.state);
            ItemState { name: query.name.clone(), state, line: format!("{} is {state}{task}{why}", query.name) }
        };
        let lost = |(name, why): (&String, &String)| ItemState {
            name: name.clone(),
            state: "unreadable",
            line: format!("{name} is not resumed, its saved state cannot be read: {why}; submit it again"),
        };
        self.unreadable.iter().map(lost).chain(self.queries.iter().map(item_state)).collect()
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Starting => "starting",
        State::Running => "running",
        State::Done => "done",
        State::Failed => "failed",
    }
}

fn text(status: &Status) -> String {
    let heads = [
        "QUERY",
        "KIND",
        "STATE",
        "CONFIGURATION",
        "CORES",
        "USED",
        "QUALITY",
        "SAMPLED",
        "GOAL",
        "LAG",
        "GOAL",
        "FOUND",
        "AT",
    ];
    let mut table = table(&heads);
    for query in &status.queries {
        table.add_row(row(query));
    }
    let lines: Vec<String> = table.to_string().lines().map(|l| l.trim_end().to_owned()).collect();
    let policy = match status.policy {
        Policy::Videostorm => "videostorm",
        Policy::Fair => "fair",
    };
    format!("{policy}: {:.3} cores held by tasks\n{}", status.cores, lines.join("\n"))
}

fn row(query: &QueryStatus) -> Vec<String> {
    let config = query.config.map_or("-".to_owned(), |c| c.to_string());
    let running = query.state == State::Running;
    let number = |value: f64, digits: usize| if running { format!("{value:.digits$}") } else { "-".to_owned() };
    let quality = if running { query.quality } else { query.mean_quality };
    vec![
        query.name.clone(),
        query.kind.name().to_owned(),
        state(query.state).to_owned(),
        config,
        number(query.cores, 3),
        number(query.used, 3),
        format!("{quality:.2}"),
        sampled(query),
        format!("{:.2}", query.goals.min_quality),
        format!("{:.1} s", query.lag),
        format!("{:.0} s", query.goals.max_lag),
        query.found.to_string(),
        format!("{:.0} s", query.position),
    ]
}

/// Formats the quality on samples of the stream: with `!` where it disagrees with the profile, `-` where there are too
/// few samples.
fn sampled(query: &QueryStatus) -> String {
    let Some(sampled) = query.sampled else { return "-".to_owned() };
    let mark = if sampled.drifted { "!" } else { "" };
    sampled.quality.map_or("-".to_owned(), |quality| format!("{quality:.2}{mark}"))
}
