//! The pictures of a run: lines for each framework over time, percentiles of waits, tasks on agents.

use plot::{Line, Lines, Page, Small, Strip, Strips};

use super::terms::explain;
use crate::measure::Outcome;

/// The most frameworks that have lines of their own.
pub(super) const LINES: usize = 10;
/// The most agents in the Gantt chart.
const AGENTS: u32 = 32;

/// Values of each framework over time that pictures show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Dominant shares in use, and fair shares as dashed lines.
    Share,
    /// Number of tasks that wait.
    Waiting,
    /// Dominant share held as offers.
    Held,
    /// Number of offers declined so far.
    Declined,
}

impl Course {
    /// All values, in the order of pages.
    const ALL: [Course; 4] = [Course::Share, Course::Waiting, Course::Held, Course::Declined];

    /// Returns the title, the title of the y axis with its unit, and a description of the picture.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Course::Share => (
                "Dominant shares in use",
                "dominant share (of the cluster)",
                "Resources in use by the tasks of each framework, and, dashed, its fair share at that moment. A framework whose line \
                 is below its dashed one has less than its fair share.",
            ),
            Course::Waiting => ("Tasks that wait", "tasks", "Tasks that are submitted and not running yet."),
            Course::Held => (
                "Held as offers",
                "dominant share (of the cluster)",
                "Resources in the unanswered offers of each framework, which no framework can use meanwhile.",
            ),
            Course::Declined => {
                ("Offers declined so far", "offers", "How many offers each framework has declined since the start.")
            }
        }
    }
}

/// Legend of the dashed lines in a picture of shares.
const FAIR: &str = "fair share of the same colour";

/// Returns a picture with a line for each framework over the time of a run.
pub fn course(outcome: &Outcome, what: Course) -> Lines {
    let (title, y, _) = what.words();
    let dashes = if what == Course::Share { FAIR.to_owned() } else { String::new() };
    Lines { dashes, ..Lines::new(title, "time (s)", y, lines_of(outcome, what)) }
}

/// Returns the lines of a picture of these values.
pub(super) fn lines_of(outcome: &Outcome, what: Course) -> Vec<Line> {
    let at = &outcome.series.at;
    let over = |values: &[f64]| at.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
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
    lines
}

/// Adds all pictures of a run to a page, in full size.
pub(super) fn pictures(page: &mut Page, outcome: &Outcome) {
    let series = &outcome.series;
    let over = |values: &[f64]| series.at.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
    let mut level = Vec::new();
    for what in Course::ALL {
        let lines = course(outcome, what);
        match lines.lines.iter().any(moves) {
            true => page.figure(&lines.svg(), what.words().2),
            false => level.push(what.words().0),
        }
    }
    if !level.is_empty() {
        page.text(&format!("Always 0, not drawn: {}.", level.join(", ").to_lowercase()));
    }
    for (title, lines) in own(outcome) {
        let lines = Lines::new(title, "time (s)", "", lines);
        page.figure(&lines.svg(), "Measured by the framework itself. A gap is a time without measurements.");
    }
    let indices = vec![Line::new("gap", over(&series.gap)), Line::new("Jain's index", over(&series.jain))];
    page.figure(
        &Lines::new("Fairness over time", "time (s)", "index (0 to 1)", indices).svg(),
        "A gap of 0 and an index of 1 are fair. Both have these values while no resource is contended.",
    );
    let whole = vec![Line::new("in use", over(&series.utilisation)), Line::new("in offers", over(&series.offered))];
    page.figure(
        &Lines::new("The cluster", "time (s)", "share of the cluster", whole).svg(),
        "The share of the cluster that tasks use, and the share in unanswered offers, each of the resource with the largest \
         share.",
    );
    let waits = outcome.frameworks.iter().take(LINES).map(|framework| {
        let wait = &framework.wait;
        let points = vec![(0.5, wait.p50), (0.9, wait.p90), (0.99, wait.p99), (1.0, wait.max)];
        Line { dots: true, ..Line::new(framework.name.clone(), points) }
    });
    page.figure(
        &Lines::new("Waits by percentile", "share of the tasks", "wait (s)", waits.collect()).svg(),
        "At 0.9 on the x axis: nine of ten tasks waited no longer than this. The last mark is the longest wait.",
    );
    let strips = strips(outcome);
    if !strips.strips.is_empty() {
        page.figure(
            &strips.svg(),
            "Each strip is a task, in the colour of its framework, on its agent. Only the first tasks are drawn.",
        );
    }
    explain(page, &["dominant share", "fair share", "held", "in offers", "in use", "gap", "Jain's index", "wait"]);
}

fn strips(outcome: &Outcome) -> Strips {
    let strips = outcome.strips.iter().filter(|(agent, ..)| *agent < AGENTS);
    let strips: Vec<Strip> = strips
        .map(|&(agent, owner, from, to)| Strip { row: agent as usize, owner: owner as usize, from, to })
        .collect();
    let rows = strips.iter().map(|strip| strip.row + 1).max().unwrap_or_default();
    Strips {
        title: "Tasks on agents".to_owned(),
        rows: (0..rows).map(|row| format!("agent {row}")).collect(),
        owners: outcome.frameworks.iter().map(|framework| framework.name.clone()).collect(),
        strips,
    }
}

/// Adds small pictures of a run to a page, with at most `points` points of each line.
pub(super) fn small(page: &mut Page, outcome: &Outcome, points: usize) {
    let plot = |(title, lines): (&str, Vec<Line>)| Small { title: title.to_owned(), lines, points }.svg();
    let courses = Course::ALL.iter().map(|what| {
        let title = match what {
            Course::Share => "Dominant shares in use",
            Course::Waiting => "Tasks that wait",
            Course::Held => "Held as offers (share)",
            Course::Declined => "Offers declined so far",
        };
        (title, lines_of(outcome, *what))
    });
    let svgs: Vec<String> =
        courses.chain(own(outcome)).filter(|(_, lines)| lines.iter().any(moves)).map(plot).collect();
    let legend: Vec<String> = outcome.frameworks.iter().take(LINES).map(|one| one.name.clone()).collect();
    page.small(&svgs, &legend, FAIR);
    explain(page, &["dominant share", "fair share", "held"]);
}

/// Returns whether a line is not 0 throughout. Other lines are not drawn.
fn moves(line: &Line) -> bool {
    line.points.iter().any(|point| point.1 != 0.0)
}

/// Returns the number of lines in the small pictures of a run.
pub(super) fn small_lines(outcome: &Outcome) -> usize {
    let tracks = || outcome.series.tracks.iter().take(LINES);
    tracks().map(|track| 5 + track.own.len()).sum()
}

/// Returns the bundled frameworks' own measures over time: a title for each measure, and a line for each framework that
/// has it.
fn own(outcome: &Outcome) -> Vec<(&str, Vec<Line>)> {
    let mut pictures: Vec<(&str, Vec<Line>)> = Vec::new();
    for (n, (framework, track)) in outcome.frameworks.iter().zip(&outcome.series.tracks).take(LINES).enumerate() {
        for own in &track.own {
            let at = pictures.iter().position(|(title, _)| *title == own.title).unwrap_or(pictures.len());
            if at == pictures.len() {
                pictures.push((&own.title, Vec::new()));
            }
            // Adds a line for each period without a gap. Only the first has the name.
            let mut name = framework.name.clone();
            for points in without_gaps(&outcome.series.at, &own.values) {
                pictures[at].1.push(Line { colour: Some(n), ..Line::new(std::mem::take(&mut name), points) });
            }
        }
    }
    pictures
}

/// Splits the points of a value at the times at which it is missing.
fn without_gaps(at: &[f64], values: &[Option<f64>]) -> Vec<Vec<(f64, f64)>> {
    let known: Vec<(f64, Option<f64>)> = at.iter().copied().zip(values.iter().copied()).collect();
    let pieces = known.split(|(_, value)| value.is_none()).filter(|piece| !piece.is_empty());
    pieces.map(|piece| piece.iter().filter_map(|(at, value)| Some((*at, (*value)?))).collect()).collect()
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
