//! The HTML page of a run or a sweep.

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
}

/// A line for each framework over the time of a run.
pub fn course(outcome: &Outcome, what: Course) -> Lines {
    let at = &outcome.series.at;
    let over = |values: &[f64]| at.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
    let (title, y) = match what {
        Course::Share => ("Dominant shares in use (dashed: fair shares)", "share"),
        Course::Waiting => ("Tasks that wait", "tasks"),
        Course::Held => ("Held as offers", "share"),
    };
    let mut lines = Vec::new();
    for (n, (framework, track)) in outcome.frameworks.iter().zip(&outcome.series.tracks).take(LINES).enumerate() {
        let values = match what {
            Course::Share => &track.share,
            Course::Waiting => &track.waiting,
            Course::Held => &track.held,
        };
        lines.push(Line { colour: Some(n), ..Line::new(framework.name.clone(), over(values)) });
        if what == Course::Share {
            lines.push(Line { colour: Some(n), dashed: true, ..Line::new("", over(&track.target)) });
        }
    }
    Lines { title: title.to_owned(), x: "seconds".to_owned(), y: y.to_owned(), lines, ..Lines::default() }
}

fn pictures(page: &mut Page, outcome: &Outcome) {
    let series = &outcome.series;
    let over = |values: &[f64]| series.at.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
    for what in [Course::Share, Course::Waiting, Course::Held] {
        page.picture(&course(outcome, what).svg());
    }
    let whole = vec![Line::new("in use", over(&series.utilisation)), Line::new("in offers", over(&series.offered))];
    let cluster = Lines {
        title: "The cluster".to_owned(),
        x: "seconds".to_owned(),
        y: "part".to_owned(),
        lines: whole,
        ..Lines::default()
    };
    page.picture(&cluster.svg());
    let waits = outcome.frameworks.iter().take(LINES).map(|framework| {
        let wait = &framework.wait;
        let points = vec![(0.5, wait.p50), (0.9, wait.p90), (0.99, wait.p99), (1.0, wait.max)];
        Line { dots: true, ..Line::new(framework.name.clone(), points) }
    });
    let waits = waits.collect();
    page.picture(
        &Lines {
            title: "Waits by percentile".to_owned(),
            x: "part of the tasks".to_owned(),
            y: "seconds".to_owned(),
            lines: waits,
            ..Lines::default()
        }
        .svg(),
    );
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

/// Headline numbers over the first swept field, if it is a number.
fn sweep(page: &mut Page, points: &[PointOutcomes]) {
    let wanted =
        |name: &str| name.contains("unfairness.") || name.ends_with("wait.mean") || name.contains("utilisation.cpus");
    let mut rows = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let all: Vec<(Values, Vec<Spread>)> =
        points.iter().map(|(values, outcomes)| (values.clone(), spreads(outcomes))).collect();
    for (values, spreads) in &all {
        let chosen: Vec<&Spread> = spreads.iter().filter(|spread| wanted(&spread.name)).take(12).collect();
        if names.is_empty() {
            names = values.iter().map(|(name, _)| name.clone()).collect();
            names.extend(chosen.iter().map(|spread| spread.name.clone()));
        }
        let cells = values.iter().map(|(_, value)| value.clone());
        rows.push(cells.chain(chosen.iter().map(|spread| with_interval(spread))).collect());
    }
    let head: Vec<&str> = names.iter().map(String::as_str).collect();
    page.table(&head, &rows);
    let x = |values: &[(String, String)]| {
        let text = &values.first()?.1;
        crate::span::parse_span(text).ok().map(|span| span.as_secs_f64()).or_else(|| text.parse().ok())
    };
    let Some(field) = all.first().and_then(|(values, _)| values.first()).map(|(name, _)| name.clone()) else { return };
    for (title, part) in [("Unfairness", "unfairness."), ("Mean wait", "wait.mean")] {
        let mut lines: Vec<Line> = Vec::new();
        for (values, spreads) in &all {
            let Some(x) = x(values) else { return };
            let others: Vec<String> = values.iter().skip(1).map(|(_, value)| value.clone()).collect();
            for spread in spreads.iter().filter(|spread| spread.name.contains(part)) {
                let name = [spread.name.clone()].into_iter().chain(others.clone()).collect::<Vec<_>>().join(" ");
                match lines.iter_mut().find(|line| line.name == name) {
                    Some(line) => line.points.push((x, spread.mean)),
                    None => lines.push(Line { dots: true, ..Line::new(name, vec![(x, spread.mean)]) }),
                }
            }
        }
        page.picture(
            &Lines { title: title.to_owned(), x: field.clone(), y: title.to_owned(), lines, ..Lines::default() }.svg(),
        );
    }
}

/// Two results side by side.
pub fn comparison_page(a: &str, b: &str, rows: &[Vec<String>]) -> String {
    let mut page = Page::new(&format!("{a} beside {b}"));
    page.table(&["number", a, b, "difference", ""], rows);
    page.html()
}
