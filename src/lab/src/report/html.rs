//! The HTML page of a run or a sweep.

use std::collections::BTreeSet;

use plot::{Line, Lines, Page, Strip, Strips};

use super::metrics::{Spread, spreads, with_interval};
use crate::measure::Outcome;

/// Frameworks that get lines of their own.
const LINES: usize = 10;
/// Agents in the Gantt chart.
const AGENTS: u32 = 32;

/// Swept fields with their values.
type Values = Vec<(String, String)>;

/// A point of a sweep, or the whole of a run without one: the swept values, and the repetitions.
pub type PointOutcomes = (Values, Vec<Outcome>);

/// The report: tables over the repetitions, pictures of the first one, and curves over what was swept.
pub fn page(name: &str, about: &str, text: &str, points: &[PointOutcomes]) -> String {
    let mut page = Page::new(&format!("Laboratory: {name}"));
    if !about.is_empty() {
        page.text(about);
    }
    if points.len() > 1 {
        page.heading("Over what was swept");
        sweep(&mut page, points);
    }
    for (values, outcomes) in points.iter().take(MOST_POINTS) {
        let Some(first) = outcomes.first() else { continue };
        let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if !values.is_empty() {
            page.heading(&values.join(", "));
        }
        let seeds = if outcomes.len() == 1 { "one seed".to_owned() } else { format!("{} seeds", outcomes.len()) };
        page.text(&format!("{}, {seeds}; pictures of seed {}.", passed(first), first.seed));
        tables(&mut page, outcomes);
        pictures(&mut page, first);
    }
    if points.len() > MOST_POINTS {
        page.text(&format!("{} more points are in summary.csv.", points.len() - MOST_POINTS));
    }
    page.heading("The scenario");
    page.verbatim(text);
    page.html()
}

/// How much time has passed, and where.
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

/// Points that are shown one by one.
const MOST_POINTS: usize = 12;

fn tables(page: &mut Page, outcomes: &[Outcome]) {
    let all = spreads(outcomes);
    let find = |name: String| all.iter().find(|spread| spread.name == name).map(with_interval).unwrap_or_default();
    let frameworks = outcomes[0].frameworks.iter().take(40).map(|framework| {
        let name = &framework.name;
        let cell = |what: &str| find(format!("{name}.{what}"));
        vec![
            name.clone(),
            framework.submitted.to_string(),
            cell("finished"),
            cell("failed"),
            cell("left"),
            cell("wait.mean"),
            cell("wait.p50"),
            cell("wait.p99"),
            cell("job.mean"),
            cell("offers.received"),
            cell("offers.declined"),
            cell("offers.held"),
        ]
    });
    page.table(
        &[
            "framework",
            "tasks",
            "finished",
            "failed",
            "left",
            "wait s",
            "p50",
            "p99",
            "job s",
            "offers",
            "declined",
            "held s",
        ],
        &frameworks.collect::<Vec<_>>(),
    );
    let own = outcomes[0].frameworks.iter().take(40).flat_map(|framework| {
        let of = |(own, _): &(String, Option<f64>)| {
            vec![framework.name.clone(), own.clone(), find(format!("{}.{own}", framework.name))]
        };
        framework.own.iter().map(of)
    });
    let own: Vec<Vec<String>> = own.collect();
    if !own.is_empty() {
        page.table(&["framework", "of its own", "in the mean"], &own);
    }
    let windows = outcomes[0].windows.iter().map(|window| {
        let cell = |what: &str| find(format!("{}.{what}", window.name));
        vec![
            window.name.clone(),
            cell("unfairness.gap"),
            cell("unfairness.deviation"),
            cell("unfairness.lost"),
            cell("jain"),
            cell("contended"),
            cell("utilisation.cpus"),
            cell("utilisation.mem"),
            cell("offered"),
        ]
    });
    page.table(
        &["window", "gap", "deviation", "lost share", "Jain", "contended", "cpus used", "mem used", "in offers"],
        &windows.collect::<Vec<_>>(),
    );
}

/// What is known of each framework over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Dominant shares in use, and, dashed, what would be fair.
    Share,
    /// Tasks that wait.
    Waiting,
    /// What is held as offers, as a share.
    Held,
    /// Offers declined so far.
    Declined,
}

/// A line for each framework over the time of a run.
pub fn course(outcome: &Outcome, what: Course) -> Lines {
    let at = &outcome.series.at;
    let over = |values: &[f64]| at.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
    let (title, y) = match what {
        Course::Share => ("Dominant shares in use (dashed: fair shares)", "share"),
        Course::Waiting => ("Tasks that wait", "tasks"),
        Course::Held => ("Held as offers", "share"),
        Course::Declined => ("Offers refused so far", "offers"),
    };
    let mut lines = Vec::new();
    for (n, (framework, track)) in outcome.frameworks.iter().zip(&outcome.series.tracks).take(LINES).enumerate() {
        let values = match what {
            Course::Share => &track.share,
            Course::Waiting => &track.waiting,
            Course::Held => &track.held,
            Course::Declined => &track.declined,
        };
        lines.push(Line { colour: Some(n), ..Line::new(framework.name.clone(), over(values)) });
        if what == Course::Share {
            lines.push(Line { colour: Some(n), dashed: true, ..Line::new("", over(&track.target)) });
        }
    }
    Lines::new(title, "seconds", y, lines)
}

fn pictures(page: &mut Page, outcome: &Outcome) {
    let series = &outcome.series;
    let over = |values: &[f64]| series.at.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
    for what in [Course::Share, Course::Waiting, Course::Held, Course::Declined] {
        page.picture(&course(outcome, what).svg());
    }
    own(page, outcome);
    let indices = vec![Line::new("gap", over(&series.gap)), Line::new("Jain's index", over(&series.jain))];
    page.picture(&Lines::new("Fairness from moment to moment", "seconds", "index", indices).svg());
    let whole = vec![Line::new("in use", over(&series.utilisation)), Line::new("in offers", over(&series.offered))];
    page.picture(&Lines::new("The cluster", "seconds", "part", whole).svg());
    let waits = outcome.frameworks.iter().take(LINES).map(|framework| {
        let wait = &framework.wait;
        let points = vec![(0.5, wait.p50), (0.9, wait.p90), (0.99, wait.p99), (1.0, wait.max)];
        Line { dots: true, ..Line::new(framework.name.clone(), points) }
    });
    page.picture(&Lines::new("Waits by percentile", "part of the tasks", "seconds", waits.collect()).svg());
    let strips: Vec<Strip> = outcome
        .strips
        .iter()
        .filter(|(agent, ..)| *agent < AGENTS)
        .map(|&(agent, owner, from, to)| Strip { row: agent as usize, owner: owner as usize, from, to })
        .collect();
    if !strips.is_empty() {
        let rows = strips.iter().map(|strip| strip.row + 1).max().unwrap_or_default();
        let strips = Strips {
            title: "Tasks on agents".to_owned(),
            rows: (0..rows).map(|row| format!("agent {row}")).collect(),
            owners: outcome.frameworks.iter().map(|framework| framework.name.clone()).collect(),
            strips,
        };
        page.picture(&strips.svg());
    }
}

/// What bundled frameworks measure of themselves, over time: a picture for each measure, a line for each framework that
/// has it.
fn own(page: &mut Page, outcome: &Outcome) {
    let mut pictures: Vec<(&str, Vec<Line>)> = Vec::new();
    for (n, (framework, track)) in outcome.frameworks.iter().zip(&outcome.series.tracks).take(LINES).enumerate() {
        for own in &track.own {
            let at = pictures.iter().position(|(title, _)| *title == own.title).unwrap_or(pictures.len());
            if at == pictures.len() {
                pictures.push((&own.title, Vec::new()));
            }
            // A line for each time without a gap; the first has the name.
            let mut name = framework.name.clone();
            for points in without_gaps(&outcome.series.at, &own.values) {
                pictures[at].1.push(Line { colour: Some(n), ..Line::new(std::mem::take(&mut name), points) });
            }
        }
    }
    for (title, lines) in pictures {
        page.picture(&Lines::new(title, "seconds", "", lines).svg());
    }
}

/// The points of a value that is missing now and then, in pieces in which it is not.
fn without_gaps(at: &[f64], values: &[Option<f64>]) -> Vec<Vec<(f64, f64)>> {
    let known: Vec<(f64, Option<f64>)> = at.iter().copied().zip(values.iter().copied()).collect();
    let pieces = known.split(|(_, value)| value.is_none()).filter(|piece| !piece.is_empty());
    pieces.map(|piece| piece.iter().filter_map(|(at, value)| Some((*at, (*value)?))).collect()).collect()
}

/// Swept values, and the numbers of a point.
type Numbers = (Values, Vec<Spread>);

/// Pictures of waits over what was swept, at most: of a framework each.
const WAITS: usize = 6;

/// Headline numbers of all points, and curves over the first swept field if it is a number.
fn sweep(page: &mut Page, points: &[PointOutcomes]) {
    let frameworks = points.iter().filter_map(|(_, outcomes)| outcomes.first()).flat_map(|first| &first.frameworks);
    let own: BTreeSet<String> =
        frameworks.flat_map(|one| one.own.iter().map(|(own, _)| format!("{}.{own}", one.name))).collect();
    let wanted = |name: &str| {
        let of_all = name.contains("unfairness.") || name.ends_with("wait.mean") || name.contains("utilisation.cpus");
        of_all || own.contains(name)
    };
    let all: Vec<Numbers> = points.iter().map(|(values, outcomes)| (values.clone(), spreads(outcomes))).collect();
    let Some((fields, first)) = all.first() else { return };
    let names: Vec<&str> =
        first.iter().map(|spread| spread.name.as_str()).filter(|name| wanted(name)).take(12).collect();
    let mut rows = Vec::new();
    for (values, numbers) in &all {
        let number = |name: &&str| numbers.iter().find(|spread| spread.name == **name);
        let cells = values.iter().map(|(_, value)| value.clone());
        rows.push(cells.chain(names.iter().map(|name| number(name).map(with_interval).unwrap_or_default())).collect());
    }
    let head: Vec<&str> = fields.iter().map(|(field, _)| short(field)).chain(names.iter().copied()).collect();
    page.table(&head, &rows);
    let window = first.iter().find_map(|spread| spread.name.strip_suffix(".unfairness.gap")).unwrap_or("whole");
    let measures = ["gap", "deviation", "lost"].map(|what| (what, format!("{window}.unfairness.{what}")));
    if fields.len() == 1 {
        // One line for each measure.
        let lines = measures.iter().filter_map(|(what, name)| curves(&all, name).pop().map(|line| named(line, what)));
        over_sweep(page, &format!("Unfairness ({window})"), short(&fields[0].0), "unfairness", lines.collect());
    } else {
        for (what, name) in &measures {
            over_sweep(page, &format!("Unfairness: {what} ({window})"), short(&fields[0].0), what, curves(&all, name));
        }
    }
    let waits: Vec<&str> = first.iter().filter_map(|spread| spread.name.strip_suffix(".wait.mean")).collect();
    let one = |framework: &str| curves(&all, &format!("{framework}.wait.mean"));
    if fields.len() == 1 {
        let lines = waits.iter().take(LINES).filter_map(|name| one(name).pop().map(|line| named(line, name)));
        over_sweep(page, "Mean wait", short(&fields[0].0), "seconds", lines.collect());
    } else {
        for framework in waits.into_iter().take(WAITS) {
            over_sweep(page, &format!("Mean wait: {framework}"), short(&fields[0].0), "seconds", one(framework));
        }
    }
}

fn named(line: Line, name: &str) -> Line {
    Line { name: name.to_owned(), ..line }
}

/// The end of a field's way: `conduct.hold` of `frameworks.slow.conduct.hold`.
fn short(field: &str) -> &str {
    let dots: Vec<usize> = field.match_indices('.').map(|(at, _)| at).collect();
    let begin = dots.len().checked_sub(2).map_or(0, |at| dots[at] + 1);
    if field.contains('+') { field } else { &field[begin..] }
}

/// A number over the first swept field, a line for each combination of the others. None if that field is no number.
fn curves(all: &[Numbers], name: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (values, numbers) in all {
        let x = values.first().and_then(|(_, text)| {
            crate::span::parse_span(text).ok().map(|span| span.as_secs_f64()).or_else(|| text.parse().ok())
        });
        let (Some(x), Some(spread)) = (x, numbers.iter().find(|spread| spread.name == name)) else { return Vec::new() };
        let others: Vec<String> =
            values.iter().skip(1).map(|(field, value)| format!("{} = {value}", short(field))).collect();
        let others = others.join(", ");
        let at = lines.iter().position(|line| line.name == others).unwrap_or(lines.len());
        if at == lines.len() {
            lines.push(Line { dots: true, ..Line::new(others, Vec::new()) });
        }
        lines[at].points.push((x, spread.mean));
        lines[at].whiskers.push(spread.half);
    }
    lines
}

fn over_sweep(page: &mut Page, title: &str, x: &str, y: &str, lines: Vec<Line>) {
    if !lines.is_empty() {
        let lines = Lines::new(title, x, y, lines);
        page.picture(&lines.svg());
    }
}

/// Two results side by side: a title and rows for each point.
pub fn comparison_page(a: &str, b: &str, tables: &[(String, Vec<Vec<String>>)]) -> String {
    let mut page = Page::new(&format!("{a} beside {b}"));
    for (title, rows) in tables {
        if !title.is_empty() {
            page.heading(title);
        }
        page.table(&["number", a, b, "difference", ""], rows);
    }
    page.html()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_points_where_there_is_no_value() {
        let values = [None, Some(1.0), Some(2.0), None, None, Some(3.0)];
        let pieces = without_gaps(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &values);
        assert_eq!(pieces, [vec![(1.0, 1.0), (2.0, 2.0)], vec![(5.0, 3.0)]]);
    }
}
