//! The tables of a point, or of a run without a sweep: tasks, offers, own measures, windows.

use std::collections::BTreeMap;

use plot::{Column, Page, Table};

use super::metrics::{Spread, in_unit, spreads};
use super::terms::explain;
use crate::measure::Outcome;

/// The most frameworks in a table.
const FRAMEWORKS: usize = 40;

/// A column of a table: its group, its title, and the end of its metric's name.
type Shown = (&'static str, &'static str, &'static str);

const TASKS: [Shown; 9] = [
    ("tasks", "submitted", ""),
    ("tasks", "finished", "finished"),
    ("tasks", "failed", "failed"),
    ("tasks", "unfinished", "left"),
    ("wait (s)", "mean", "wait.mean"),
    ("wait (s)", "median", "wait.p50"),
    ("wait (s)", "99th percentile", "wait.p99"),
    ("job time (s)", "mean", "job.mean"),
    ("job time (s)", "99th percentile", "job.p99"),
];

const OFFERS: [Shown; 5] = [
    ("offers", "received", "offers.received"),
    ("offers", "accepted", "offers.accepted"),
    ("offers", "declined", "offers.declined"),
    ("offers", "rescinded", "offers.rescinded"),
    ("", "mean time held (s)", "offers.held"),
];

const WINDOW: [Shown; 8] = [
    ("unfairness (%)", "gap", "unfairness.gap"),
    ("unfairness (%)", "deviation", "unfairness.deviation"),
    ("unfairness (%)", "lost share", "unfairness.lost"),
    ("fairness", "Jain's index (0 to 1)", "jain"),
    ("fairness", "contended time (%)", "contended"),
    ("cluster (%)", "CPUs in use", "utilisation.cpus"),
    ("cluster (%)", "memory in use", "utilisation.mem"),
    ("cluster (%)", "in offers", "offered"),
];

/// Returns these columns after a first one of names.
fn columns(first: &str, shown: &[Shown]) -> Vec<Column> {
    let rest = shown.iter().map(|(group, title, _)| Column { group: (*group).to_owned(), ..Column::from(*title) });
    std::iter::once(Column { words: true, ..Column::from(first) }).chain(rest).collect()
}

/// Adds the tables of a point's repetitions to a page.
pub(super) fn tables(page: &mut Page, outcomes: &[Outcome]) {
    let (Some(first), all) = (outcomes.first(), spreads(outcomes)) else { return };
    let known: BTreeMap<&str, &Spread> = all.iter().map(|spread| (spread.name.as_str(), spread)).collect();
    let find = |name: &str| known.get(name).map(|spread| in_unit(spread)).unwrap_or_default();
    let mut tasks = Table { caption: "Tasks".to_owned(), ..Table::new(columns("framework", &TASKS)) };
    let mut offers = Table { caption: "Offers".to_owned(), ..Table::new(columns("framework", &OFFERS)) };
    for framework in first.frameworks.iter().take(FRAMEWORKS) {
        let cell = |(_, _, what): &Shown| match what.is_empty() {
            true => framework.submitted.to_string(),
            false => find(&format!("{}.{what}", framework.name)),
        };
        let row = |shown: &[Shown]| {
            std::iter::once(framework.name.clone()).chain(shown.iter().map(cell)).map(Into::into).collect()
        };
        tasks.row(row(&TASKS));
        offers.row(row(&OFFERS));
    }
    page.put(&tasks);
    page.put(&offers);
    if first.frameworks.len() > FRAMEWORKS {
        page.text(&format!("{} more frameworks are in summary.csv.", first.frameworks.len() - FRAMEWORKS));
    }
    own(page, first, &find);
    let mut windows = Table { caption: "Fairness and use".to_owned(), ..Table::new(columns("window", &WINDOW)) };
    let mut shares = Table { caption: "Shares (%)".to_owned(), ..Table::new(columns("framework", &[])) };
    for window in &first.windows {
        let name = match window.name.as_str() {
            "whole" => "whole".to_owned(),
            name => format!("{name} ({:.0} to {:.0} s)", window.from, window.to),
        };
        let cells = WINDOW.iter().map(|(_, _, what)| find(&format!("{}.{what}", window.name)));
        windows.row(std::iter::once(name).chain(cells).map(Into::into).collect());
        let column = |title: &str| Column { group: format!("window {}", window.name), ..Column::from(title) };
        shares.columns.extend([column("dominant share"), column("fair share")]);
    }
    page.put(&windows);
    for framework in first.frameworks.iter().take(FRAMEWORKS) {
        let of = |window: &crate::measure::WindowOutcome| {
            ["share", "fair"].map(|what| find(&format!("{}.{what}.{}", window.name, framework.name)))
        };
        let cells = first.windows.iter().take(SHARES).flat_map(of);
        shares.row(std::iter::once(framework.name.clone()).chain(cells).map(Into::into).collect());
    }
    shares.columns.truncate(1 + 2 * SHARES);
    page.put(&shares);
    explain(page, &["wait", "job time", "percentile", "unfinished", "offer", "held", "rescinded", "gap", "deviation"]);
    explain(page, &["lost share", "share-seconds", "Jain's index", "contended time", "in use", "in offers", "window"]);
    explain(page, &["dominant share", "fair share"]);
    if first.windows.iter().any(|window| window.name == "whole") {
        explain(page, &["whole"]);
    }
    if outcomes.len() > 1 {
        explain(page, &["95 % interval"]);
    }
}

/// The most windows in the table of shares.
const SHARES: usize = 4;

/// Adds the table of the bundled frameworks' own measures to a page, if there are any.
fn own(page: &mut Page, first: &Outcome, find: &dyn Fn(&str) -> String) {
    let columns = ["framework", "metric", "description"].map(|title| Column { words: true, ..Column::from(title) });
    let mut table = Table { caption: "Metrics reported by frameworks".to_owned(), ..Table::new(columns.into()) };
    table.columns.push(Column::from("mean of the run"));
    let windows: Vec<&str> =
        first.windows.iter().map(|window| window.name.as_str()).filter(|name| *name != "whole").collect();
    table.columns.extend(windows.iter().map(|window| Column::from(format!("in {window}").as_str())));
    for framework in first.frameworks.iter().take(FRAMEWORKS) {
        for (name, _) in &framework.own {
            let title = framework.own_titles.get(name).cloned().unwrap_or_default();
            page.term(name, &title);
            let measure = format!("{}.{name}", framework.name);
            let words = [framework.name.clone(), name.clone(), title, find(&measure)];
            let during = windows.iter().map(|window| find(&format!("{window}.{measure}")));
            table.row(words.into_iter().chain(during).map(Into::into).collect());
        }
    }
    if !table.rows.is_empty() {
        page.put(&table);
    }
}
