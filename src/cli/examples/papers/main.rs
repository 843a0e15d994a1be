//! Runs the scenarios of `lab/papers` and writes the results into the pages of `docs/papers`.
//!
//! `cargo xtask papers [TEXT...]` runs it for the pages that name a scenario with TEXT in its name, or for all. A page
//! requests results in comments; the text between these is replaced:
//!
//! ```text
//! <!-- lab table SCENARIO: TITLE = NUMBER; TITLE % = NUMBER -->      a row for each point of the sweep
//! <!-- lab factors SCENARIO: TITLE = NUMBER; TITLE % = NUMBER -->    a row for each number: first against last point
//! <!-- lab picture SCENARIO: POINT share|waiting|held -->            over time, of the first seed; replays have others
//! <!-- lab curve SCENARIO: AXIS := 1 | 2 | 4; TITLE = NUMBER -->     over the points of the sweep
//! <!-- lab end -->
//! ```
//!
//! NUMBER is a name as `tepui lab run --json` has it; a title that ends with `%` shows hundred times the number. `A of
//! B` is A over both together, over the time of all seeds.
//!
//! In a table, `TITLE := ONE | TWO` is a column of words, one for each row. If it is the first column it replaces the
//! sweep's values, and a row without a word is left out. In a curve such words are the positions of the points on the
//! axis; a word that is not a number is drawn as a horizontal line. The page itself explains the numbers and quotes the
//! paper; that text is not changed.
#![allow(clippy::print_stdout, reason = "an example prints what it does")]
#![allow(clippy::disallowed_methods, reason = "tells how long it took, on the clock on the wall")]

mod curve;
mod row;
mod stages;
mod streams;
mod training;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use self::training::Training;
use lab::campaign::{Campaign, Progress};
use lab::measure::Outcome;
use lab::report::Spread;
use plot::Lines;
use row::Row;
use stages::Stages;
use streams::Streams;

type Failed = Box<dyn std::error::Error>;

/// A progress display that shows nothing; a line is printed for each finished scenario.
struct Silent;

impl Progress for Silent {
    fn on_progress(&self, _: usize, _: f64) -> bool {
        true
    }
    fn finished(&self, _: &Outcome) {}
}

/// A block of a page that requests results.
struct Block {
    kind: String,
    scenario: String,
    wanted: String,
}

fn block(line: &str) -> Option<Block> {
    let inner = line.trim().strip_prefix("<!-- lab ")?.strip_suffix("-->")?;
    let (head, wanted) = inner.split_once(':')?;
    let (kind, scenario) = head.trim().split_once(' ')?;
    Some(Block { kind: kind.to_owned(), scenario: scenario.trim().to_owned(), wanted: wanted.trim().to_owned() })
}

/// Results of the scenarios that have been run, by name.
#[derive(Default)]
struct Shelf {
    rows: BTreeMap<String, Vec<Row>>,
}

impl Shelf {
    fn of(&mut self, name: &str) -> Result<&[Row], Failed> {
        if !self.rows.contains_key(name) {
            let file = PathBuf::from("lab/papers").join(format!("{name}.toml"));
            let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
            let began = Instant::now();
            let rows = rows(name, &file, &text)?;
            println!("{name}: {} points in {:.1} s", rows.len(), began.elapsed().as_secs_f64());
            self.rows.insert(name.to_owned(), rows);
        }
        Ok(&self.rows[name])
    }
}

/// Runs a scenario in the laboratory's world, or with `replay` as a replay of a framework's policies alone.
fn rows(name: &str, file: &Path, text: &str) -> Result<Vec<Row>, Failed> {
    let directory = Path::new("lab/papers");
    let table: toml::Table = toml::from_str(text)?;
    match table.get("replay").and_then(toml::Value::as_str) {
        Some("training") => Training::rows(text, directory),
        Some("streams") => Streams::rows(text, directory),
        Some("stages") => Stages::rows(text),
        Some(other) => Err(format!("'{other}' is not a replay: training, streams or stages").into()),
        None => {
            let campaign = Campaign::new(text, file, &Path::new("lab-results").join(name), None, cli::BUNDLED)?;
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            Ok(row::of_world(&campaign.run(threads, &Silent)?))
        }
    }
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() => "–".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Parses the columns of a block: the titles and the names of their numbers.
fn columns(wanted: &str) -> Result<Vec<(&str, &str)>, Failed> {
    let columns = wanted
        .split(';')
        .map(|column| column.split_once('=').map(|(title, name)| (title.trim(), name.trim())))
        .map(|column| column.ok_or_else(|| format!("'{wanted}': a column is TITLE = NUMBER").into()));
    columns.collect()
}

/// Returns a number of a row.
fn find<'a>(row: &'a Row, name: &str) -> Result<&'a Spread, Failed> {
    let found = row.numbers.iter().find(|spread| spread.name == name);
    found.ok_or_else(|| format!("there is no number '{name}'").into())
}

/// Formats a number of a row with its interval.
fn cell(row: &Row, title: &str, name: &str) -> Result<(f64, String), Failed> {
    if let Some((part, rest)) = name.split_once(" of ") {
        let total = |name: &str| row.totals.get(name).copied().ok_or_else(|| format!("there is no total of '{name}'"));
        let (part, rest) = (total(part)?, total(rest)?);
        let share = part / (part + rest);
        return Ok((share, number(if title.ends_with('%') { share * 100.0 } else { share })));
    }
    let found = find(row, name)?;
    let times = if title.ends_with('%') { 100.0 } else { 1.0 };
    let interval = if found.half > 0.0 { format!(" ± {}", number(found.half * times)) } else { String::new() };
    Ok((found.mean, format!("{}{interval}", number(found.mean * times))))
}

/// Formats the table of a block in Markdown, with a row for each point.
fn table(rows: &[Row], wanted: &str) -> Result<String, Failed> {
    let columns = columns(wanted)?;
    let named = columns.first().is_some_and(|(title, _)| title.ends_with(':'));
    let fields = rows.first().map(|row| row.values.as_slice()).filter(|_| !named).unwrap_or_default();
    let titles = fields.iter().map(|(field, _)| format!("`{}`", field.rsplit('.').next().unwrap_or(field)));
    let titles: Vec<String> =
        titles.chain(columns.iter().map(|(title, _)| title.trim_end_matches([' ', ':']).to_owned())).collect();
    let mut text = format!("| {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for (at, row) in rows.iter().enumerate() {
        if named && words(columns[0].1, at, rows.len())?.is_empty() {
            continue;
        }
        let values = row.values.iter().filter(|_| !named);
        let mut cells: Vec<String> = values.map(|(_, value)| value.trim_matches('"').replace('|', "/")).collect();
        for (title, name) in &columns {
            cells.push(match title.ends_with(':') {
                true => words(name, at, rows.len())?,
                false => cell(row, title, name)?.1,
            });
        }
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    Ok(text)
}

/// Returns the words of a row in a column of words.
fn words(all: &str, row: usize, rows: usize) -> Result<String, Failed> {
    let words: Vec<&str> = all.split('|').map(str::trim).collect();
    match words.len() == rows {
        true => Ok(words[row].to_owned()),
        false => Err(format!("'{all}' has {} words for {rows} rows", words.len()).into()),
    }
}

/// Formats a table with a row for each number, and the ratio of the first point to the last.
fn factors(rows: &[Row], wanted: &str) -> Result<String, Failed> {
    let [first, .., last] = rows else { return Err("factors are of two points or more".into()) };
    let mut text = "| | first | last | first / last |\n|---|---|---|---|\n".to_owned();
    for (title, name) in columns(wanted)? {
        let ((before, shown), (after, then)) = (cell(first, title, name)?, cell(last, title, name)?);
        writeln!(text, "| {title} | {shown} | {then} | {:.2} |", before / after)?;
    }
    Ok(text)
}

/// Draws the picture of a block into a file beside the page, and returns the line that includes it.
fn picture(block: &Block, rows: &[Row]) -> Result<String, Failed> {
    let (point, what) = block.wanted.split_once(' ').ok_or("a picture is POINT share|waiting|held|...")?;
    let point: usize = point.parse()?;
    let row = rows.get(point).ok_or_else(|| format!("there is no point {point}"))?;
    let lines = row.pictures.iter().find(|(name, _)| *name == what).map(|(_, lines)| lines);
    let lines = lines.ok_or_else(|| format!("there is no picture '{what}'"))?;
    let values: Vec<String> = row
        .values
        .iter()
        .map(|(field, value)| format!("{} = {value}", field.rsplit('.').next().unwrap_or(field)))
        .collect();
    let title = if values.is_empty() { block.scenario.clone() } else { values.join(", ") };
    let lines = Lines { title: title.clone(), ..lines.clone() };
    drawn(&lines, &format!("{}-{point}-{what}", block.scenario))
}

/// Writes a picture beside the page, and returns the line that includes it.
fn drawn(lines: &Lines, name: &str) -> Result<String, Failed> {
    let file = format!("pictures/{name}.svg");
    std::fs::create_dir_all("docs/papers/pictures")?;
    std::fs::write(Path::new("docs/papers").join(&file), lines.svg())?;
    Ok(format!("![{}]({file})\n", lines.title.replace(['[', ']'], "")))
}

/// Returns the page with its blocks replaced; `None` if no block is selected.
fn filled(text: &str, filters: &[String], shelf: &mut Shelf) -> Result<Option<String>, Failed> {
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let (mut new, mut any) = (String::new(), false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        writeln!(new, "{line}")?;
        let Some(block) = block(line).filter(|block| wanted(&block.scenario)) else { continue };
        let rows = shelf.of(&block.scenario)?;
        any = true;
        new.push_str(&match block.kind.as_str() {
            "table" => table(rows, &block.wanted)?,
            "factors" => factors(rows, &block.wanted)?,
            "picture" => picture(&block, rows)?,
            "curve" => {
                drawn(&curve::lines(&block.scenario, rows, &block.wanted)?, &format!("{}-curve", block.scenario))?
            }
            other => return Err(format!("'{other}' is none of table, factors, picture and curve").into()),
        });
        let end = lines.find(|line| line.trim() == "<!-- lab end -->");
        writeln!(new, "{}", end.ok_or_else(|| format!("'{line}' has no end"))?)?;
    }
    Ok(any.then_some(new))
}

fn main() -> Result<(), Failed> {
    let filters: Vec<String> = std::env::args().skip(1).collect();
    let mut shelf = Shelf::default();
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir("docs/papers")?.map(|entry| Ok(entry?.path())).collect::<Result<_, Failed>>()?;
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    for page in pages {
        let said = |why: Failed| format!("{}: {why}", page.display());
        let text = std::fs::read_to_string(&page)?;
        if let Some(new) = filled(&text, &filters, &mut shelf).map_err(said)? {
            std::fs::write(&page, new)?;
            println!("{} is written", page.display());
        }
    }
    Ok(())
}
