//! A sweep on a page: one table with a row for each point, curves over the first field, and the details of each point
//! in a section that the reader opens. The size of all pictures together is limited, whatever the number of points.

use std::collections::BTreeMap;

use plot::{Cell, Column, Line, Lines, Page, Table, sparkline};

use super::metrics::{Spread, in_unit, spreads};
use super::pictures::{Course, LINES, lines_of, small, small_lines};
use super::points::{PointOutcomes, repetitions};
use super::tables::tables;
use super::terms::explain;
use crate::measure::Outcome;

/// The most points in the table; further ones are in summary.csv.
const POINTS: usize = 1000;
/// The most points with details.
const DETAILS: usize = 200;
/// The most bytes of the pictures in all details.
const PICTURES: usize = 250_000;
/// The most bytes of the lines in all rows.
const SPARKS: usize = 60_000;
/// Approximate number of bytes for each point of a line.
const PLACE: usize = 6;
/// The most frameworks in the picture of a row.
const SPARK_LINES: usize = 5;
/// The most columns of metrics.
const COLUMNS: usize = 12;
/// The most frameworks whose waits have a column or a picture of their own.
const WAITS: usize = 6;

/// The metrics of all points, and the selection of them that the table shows.
struct Sweep<'a> {
    points: &'a [PointOutcomes],
    numbers: Vec<BTreeMap<String, Spread>>,
    columns: Vec<(Column, String)>,
    /// Window of the headline metrics.
    window: String,
    /// Names of the frameworks of the first point.
    frameworks: Vec<String>,
}

impl Sweep<'_> {
    fn new(points: &[PointOutcomes]) -> Sweep<'_> {
        let of =
            |(_, outcomes): &PointOutcomes| spreads(outcomes).into_iter().map(|one| (one.name.clone(), one)).collect();
        let first = points.iter().find_map(|(_, outcomes)| outcomes.first());
        let window = first.and_then(|first| first.windows.first()).map_or("whole", |window| window.name.as_str());
        let frameworks = first.map(|first| first.frameworks.iter().map(|one| one.name.clone()).collect());
        let mut sweep = Sweep {
            points,
            numbers: points.iter().map(of).collect(),
            columns: Vec::new(),
            window: window.to_owned(),
            frameworks: frameworks.unwrap_or_default(),
        };
        sweep.choose(first);
        sweep
    }

    /// Chooses the metrics of the table: fairness, use, waits, and the frameworks' own measures.
    fn choose(&mut self, first: Option<&Outcome>) {
        let Some(first) = first else { return };
        let window = &self.window;
        let during = if window == "whole" { String::new() } else { format!(", {window}") };
        let mut put = |group: &str, title: &str, name: String| {
            self.columns.push((Column { group: group.to_owned(), ..Column::from(title) }, name));
        };
        let unfair = format!("unfairness (%){during}");
        put(&unfair, "gap", format!("{window}.unfairness.gap"));
        put(&unfair, "deviation", format!("{window}.unfairness.deviation"));
        put(&unfair, "lost share", format!("{window}.unfairness.lost"));
        put(&format!("in use (%){during}"), "CPUs", format!("{window}.utilisation.cpus"));
        for framework in first.frameworks.iter().take(WAITS) {
            put("mean wait (s)", &framework.name, format!("{}.wait.mean", framework.name));
        }
        let own = first.frameworks.iter().flat_map(|one| one.own.iter().map(|(own, _)| (&one.name, own)));
        for (framework, own) in own.take(COLUMNS - 4 - first.frameworks.len().min(WAITS)) {
            put(framework, own, format!("{framework}.{own}"));
        }
    }

    fn table(&self) -> Table {
        let fields =
            self.points[0].0.iter().map(|(field, _)| Column { words: true, ..Column::from(short(field).as_str()) });
        let pictures = Column { pictures: true, group: "over time".to_owned(), ..Column::from("dominant shares") };
        let columns = self.columns.iter().map(|(column, _)| column.clone());
        let caption = "One row for each point. Click a title to sort, or the first value to open the details.";
        let mut table = Table::new(fields.chain(columns).chain([pictures]).collect());
        (table.caption, table.sortable) = (caption.to_owned(), true);
        let frameworks = self.frameworks.len().clamp(1, SPARK_LINES);
        let places = (SPARKS / (self.points.len() * frameworks * PLACE)).min(40);
        for (n, ((values, outcomes), numbers)) in self.points.iter().zip(&self.numbers).take(POINTS).enumerate() {
            let mut cells: Vec<Cell> = values.iter().map(|(_, value)| field(value)).collect();
            if let Some(first) = cells.first_mut().filter(|_| n < DETAILS) {
                first.link = format!("#point-{n}");
            }
            cells.extend(self.columns.iter().map(|(_, name)| numbers.get(name).map(cell).unwrap_or_default()));
            let spark = outcomes.first().filter(|_| places >= 4).map(|first| spark(first, places)).unwrap_or_default();
            cells.push(Cell { svg: spark, ..Cell::default() });
            table.row(cells);
        }
        table
    }

    /// Adds the sections that the reader opens to a page.
    fn details(&self, page: &mut Page) {
        let shown = self.points.len().min(DETAILS);
        let lines = self.points.iter().filter_map(|(_, outcomes)| outcomes.first()).map(small_lines).max().unwrap_or(1);
        let places = PICTURES / (shown * lines.max(1) * PLACE);
        for (n, (values, outcomes)) in self.points.iter().take(shown).enumerate() {
            let Some(first) = outcomes.first() else { continue };
            let values: Vec<String> =
                values.iter().map(|(field, value)| format!("{} = {value}", short(field))).collect();
            page.details(&values.join(", "), &format!("point-{n}"), |page| {
                page.text(&repetitions(outcomes));
                tables(page, outcomes);
                if places >= FEWEST_PLACES {
                    small(page, first, places.min(120));
                }
            });
        }
        if places < FEWEST_PLACES {
            page.text("This sweep has too many points for pictures of each.");
        }
        if shown < self.points.len() {
            page.text(&format!("{} more points are in summary.csv.", self.points.len() - shown));
        }
    }
}

/// The fewest points of a line that are worth a picture.
const FEWEST_PLACES: usize = 10;

/// Adds the table, the curves, and the details of a sweep to a page.
pub(super) fn sweep(page: &mut Page, points: &[PointOutcomes]) {
    let sweep = Sweep::new(points);
    page.heading("All points");
    page.put(&sweep.table());
    let legend: Vec<String> = sweep.frameworks.iter().take(SPARK_LINES).cloned().collect();
    page.small(&[], &legend, "");
    explain(page, &["point", "seed", "gap", "deviation", "lost share", "in use", "wait", "dominant share"]);
    if points.iter().any(|(_, outcomes)| outcomes.len() > 1) {
        explain(page, &["95 % interval"]);
    }
    page.heading("Results by swept parameter");
    let before = page.len();
    sweep.over_first_field(page);
    if page.len() == before {
        page.text("The first swept field is neither a number nor a time, so there are no curves over it.");
    }
    page.heading("Each point");
    sweep.details(page);
}

impl Sweep<'_> {
    /// Adds curves over the first swept field, if it is a number or a time.
    fn over_first_field(&self, page: &mut Page) {
        let Some((field, _)) = self.points[0].0.first() else { return };
        let (x, window, one) = (&short(field), &self.window, self.points[0].0.len() == 1);
        let measures = ["gap", "deviation", "lost"].map(|what| (what, format!("{window}.unfairness.{what}")));
        let about = "Means over the seeds, with 95 % intervals. 0 is fair.";
        if one {
            // One line for each measure of unfairness.
            let lines =
                measures.iter().filter_map(|(what, name)| self.curves(name).pop().map(|line| named(line, what)));
            over(page, &format!("Unfairness ({window})"), (x, "unfairness (share)"), lines.collect(), about);
        } else {
            for (what, name) in &measures {
                over(
                    page,
                    &format!("Unfairness: {what} ({window})"),
                    (x, &format!("{what} (share)")),
                    self.curves(name),
                    about,
                );
            }
        }
        let about = "Means over the seeds, with 95 % intervals.";
        let wait = |framework: &String| self.curves(&format!("{framework}.wait.mean"));
        if one {
            let lines =
                self.frameworks.iter().take(LINES).filter_map(|name| wait(name).pop().map(|line| named(line, name)));
            over(page, "Mean wait", (x, "wait (s)"), lines.collect(), about);
        } else {
            for name in self.frameworks.iter().take(WAITS) {
                over(page, &format!("Mean wait of {name}"), (x, "wait (s)"), wait(name), about);
            }
        }
    }

    /// Returns the curves of a metric over the first swept field, one for each combination of the others; empty if that
    /// field is not a number or a time.
    fn curves(&self, name: &str) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for ((values, _), numbers) in self.points.iter().zip(&self.numbers) {
            let x = values.first().and_then(|(_, text)| on_axis(text));
            let (Some(x), Some(spread)) = (x, numbers.get(name)) else { return Vec::new() };
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
}

/// Parses the value of a field as a position on an axis: a number, or a time in seconds.
fn on_axis(text: &str) -> Option<f64> {
    crate::span::parse_span(text).ok().map(|span| span.as_secs_f64()).or_else(|| text.parse().ok())
}

fn field(value: &str) -> Cell {
    Cell { key: on_axis(value), ..Cell::from(value.trim_matches('"').to_owned()) }
}

fn cell(spread: &Spread) -> Cell {
    Cell { key: Some(spread.mean).filter(|mean| mean.is_finite()), ..Cell::from(in_unit(spread)) }
}

/// Returns the dominant shares of a run as a sparkline.
fn spark(outcome: &Outcome, places: usize) -> String {
    let lines = lines_of(outcome, Course::Share).into_iter().filter(|line| !line.dashed);
    let lines: Vec<Line> = lines.take(SPARK_LINES).collect();
    sparkline(&lines, "dominant shares over time", places)
}

fn named(line: Line, name: &str) -> Line {
    Line { name: name.to_owned(), ..line }
}

/// Returns the end of a field's path: `conduct.hold` of `frameworks.slow.conduct.hold`, `poisson` of `jobs.0.poisson`.
/// Fields that vary together are joined by `+`, and named once if their ends are equal.
fn short(field: &str) -> String {
    let mut ends: Vec<&str> = Vec::new();
    for part in field.split('+').map(str::trim) {
        let (before, last) = part.rsplit_once('.').unwrap_or(("", part));
        let owner = before.rsplit('.').next().unwrap_or_default();
        let named = !owner.is_empty() && owner.parse::<usize>().is_err();
        let end = if named { &part[part.len() - last.len() - 1 - owner.len()..] } else { last };
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    ends.join(" + ")
}

fn over(page: &mut Page, title: &str, (x, y): (&str, &str), lines: Vec<Line>, about: &str) {
    if !lines.is_empty() {
        page.figure(&Lines::new(title, x, y, lines).svg(), about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_short_names() {
        assert_eq!(short("frameworks.slow.conduct.hold"), "conduct.hold");
        assert_eq!(short("frameworks.a.jobs.0.poisson + frameworks.b.jobs.0.poisson"), "poisson");
        assert_eq!(short("frameworks.a.role + master.policies"), "a.role + master.policies");
        assert_eq!(short("seed"), "seed");
    }
}
