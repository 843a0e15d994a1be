//! The HTML pages of a run, a sweep and a comparison: their content and its order.

use plot::{Column, Page, Table};

use super::pictures::pictures;
use super::points::{PointOutcomes, passed, repetitions};
use super::summary::Compared;
use super::sweep::sweep;
use super::tables::tables;
use super::terms::explain;
use super::{in_unit, summary};

/// Returns the report of a run or a sweep.
///
/// For a run it has tables over the repetitions, and pictures of the first one. For a sweep it has one table of all
/// points, curves over the swept field, and the details of each point on demand.
pub fn page(name: &str, about: &str, text: &str, points: &[PointOutcomes]) -> String {
    let mut page = Page::new(&format!("Laboratory: {name}"));
    if !about.is_empty() {
        page.text(about);
    }
    match points {
        [] => {}
        [(_, outcomes)] => {
            if let Some(first) = outcomes.first() {
                page.text(&repetitions(outcomes));
                tables(&mut page, outcomes);
                page.heading("Over time");
                pictures(&mut page, first);
                explain(&mut page, &["seed"]);
            }
        }
        points => {
            let first = points.iter().find_map(|(_, outcomes)| outcomes.first());
            let each = first.map(passed).unwrap_or_default();
            let runs: usize = points.iter().map(|(_, outcomes)| outcomes.len()).sum();
            page.text(&format!("{} points, {runs} runs, each of {each}.", points.len()));
            sweep(&mut page, points);
        }
    }
    if points.iter().flat_map(|(_, outcomes)| outcomes).any(|outcome| outcome.live.is_none()) {
        explain(&mut page, &["virtual time"]);
    }
    page.heading("The scenario");
    page.verbatim(text);
    page.html()
}

/// Returns the comparison of two results: the significant differences, the lines of the scenario that differ, and the
/// metrics of each point.
pub fn comparison_page((a, b): (&str, &str), lines: &[(bool, &str)], points: &[Compared]) -> String {
    let mut page = Page::new(&format!("{a} and {b}"));
    page.heading("Summary");
    page.list(&summary((a, b), points));
    if !lines.is_empty() {
        page.heading("Lines of the scenario that differ");
        let line = |(second, line): &(bool, &str)| format!("{} {line}", if *second { '+' } else { '-' });
        page.verbatim(&lines.iter().map(line).collect::<Vec<_>>().join("\n"));
        page.text(&format!("- is a line of {a} alone, + of {b}."));
    }
    for point in points {
        page.heading(&if point.values.is_empty() { "Metrics".to_owned() } else { point.title() });
        let words = |title: &str| Column { words: true, ..Column::from(title) };
        let columns =
            [words("metric"), a.into(), b.into(), "difference".into(), "95 % interval of the difference".into()];
        let mut table = Table { sortable: true, ..Table::new(columns.into()) };
        table.columns.push(words("significant?"));
        for pair in &point.numbers {
            let cells = [pair.title(), in_unit(&pair.first), in_unit(&pair.second), pair.changed(), pair.interval()];
            table.row(cells.into_iter().chain([pair.chance().to_owned()]).map(Into::into).collect());
        }
        page.put(&table);
    }
    page.term("significant", "The 95 % interval of the difference does not contain 0. One in twenty metrics that do not differ is significant by chance.");
    page.term("paired", "Runs with the same seed are compared with each other, and the interval is that of their differences. Both runs have the same random choices.");
    explain(
        &mut page,
        &["95 % interval", "gap", "deviation", "lost share", "Jain's index", "dominant share", "fair share"],
    );
    explain(
        &mut page,
        &["wait", "start time", "job time", "held", "in use", "percentile", "seed", "window", "contended time"],
    );
    page.html()
}

#[cfg(test)]
mod tests {

    use super::super::compare::tests::outcome;
    use super::*;
    use crate::measure::{Outcome, Series, Track, WindowOutcome};

    /// Returns the outcome of a run of an hour with this many frameworks, whose values change all the time.
    fn hour(seed: u64, frameworks: usize) -> Outcome {
        let one = outcome(seed, 10.0 + seed as f64);
        let named =
            |n: usize| crate::measure::FrameworkOutcome { name: format!("framework-{n}"), ..one.frameworks[0].clone() };
        let moving = |n: usize| (0..3600).map(|at| (at * (n + 7)) as f64 % 97.0 / 97.0).collect::<Vec<f64>>();
        let track = |n: usize| Track {
            share: moving(n),
            target: moving(n + 1),
            waiting: moving(n + 2),
            held: moving(n + 3),
            declined: moving(n + 4),
            own: Vec::new(),
        };
        let window = WindowOutcome {
            name: "steady".to_owned(),
            from: 0.0,
            to: 3600.0,
            unfairness: crate::measure::Unfairness::default(),
            utilisation: vec![("cpus".to_owned(), 0.5), ("mem".to_owned(), 0.25)],
            offered: 0.1,
            shares: vec![0.1; frameworks],
            targets: vec![0.1; frameworks],
        };
        Outcome {
            frameworks: (0..frameworks).map(named).collect(),
            windows: vec![window],
            series: Series {
                at: (0..3600).map(f64::from).collect(),
                tracks: (0..frameworks).map(track).collect(),
                ..Series::default()
            },
            ..one
        }
    }

    fn swept(points: usize, frameworks: usize) -> String {
        let values = |n: usize| vec![("frameworks.framework-0.conduct.hold".to_owned(), format!("{n}s"))];
        let runs = |n: usize| (1..=2).map(|seed| hour(seed + n as u64, frameworks)).collect();
        let points: Vec<PointOutcomes> = (0..points).map(|n| (values(n), runs(n))).collect();
        page("s", "about", "name = 's'", &points)
    }

    #[test]
    fn a_page_of_a_sweep_is_small_however_many_points_there_are() {
        for (points, frameworks, most) in [(12, 2, 300_000), (12, 8, 350_000), (100, 2, 350_000), (100, 8, 500_000)] {
            let page = swept(points, frameworks);
            assert_eq!(page.matches("<details>").count(), points);
            assert!(page.contains("href=\"#point-3\"") && page.contains("id=\"point-3\""));
            assert!(page.len() < most, "{points} points of {frameworks} frameworks are {} bytes", page.len());
        }
    }

    #[test]
    fn every_term_of_a_page_is_in_its_glossary() {
        let page = page("s", "", "", &[(Vec::new(), vec![hour(1, 2), hour(2, 2)])]);
        let glossary = page.split("id=\"glossary\"").nth(1).unwrap();
        for term in ["gap", "deviation", "lost share", "Jain's index", "wait", "job time", "95 % interval", "seed"] {
            assert!(glossary.contains(&format!("<dt>{term}</dt>")), "{term}");
        }
        assert!(!glossary.contains("<dt>point</dt>"));
    }
}
