//! Runs the scenarios of `lab/papers` and writes what came out into the pages of `docs/papers`.
//!
//! `cargo xtask papers [TEXT...]` runs it for the pages that name a scenario with TEXT in its name, or for all. A page says what
//! it wants to show in comments, and what lies between them is written anew:
//!
//! ```text
//! <!-- lab table SCENARIO: TITLE = NUMBER; TITLE % = NUMBER -->      a row for each point of the sweep
//! <!-- lab picture SCENARIO: POINT share|waiting|held -->            over time, of the first seed
//! <!-- lab end -->
//! ```
//!
//! NUMBER is a name as `tepui lab run --json` has it; a title that ends with `%` shows hundred times the number. What a number
//! means and what the paper says stands in the page, and is not touched.
#![allow(clippy::disallowed_methods, reason = "tells how long it took, on the clock on the wall")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lab::campaign::{Campaign, Progress, Results};
use lab::measure::Outcome;
use lab::report::{Course, spreads};
use plot::Lines;

type Failed = Box<dyn std::error::Error>;

/// Nobody looks at bars here; a line for each scenario is printed when it is done.
struct Silent;

impl Progress for Silent {
    fn run_is(&self, _: usize, _: f64) -> bool {
        true
    }
    fn finished(&self, _: &Outcome) {}
}

/// What a page wants to show.
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

/// Scenarios that have been run, by name.
#[derive(Default)]
struct Shelf {
    results: BTreeMap<String, Results>,
}

impl Shelf {
    fn of(&mut self, name: &str) -> Result<&Results, Failed> {
        if !self.results.contains_key(name) {
            let file = PathBuf::from("lab/papers").join(format!("{name}.toml"));
            let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
            let campaign = Campaign::new(&text, &file, &Path::new("lab-results").join(name), None)?;
            let (began, threads) = (Instant::now(), std::thread::available_parallelism().map_or(1, usize::from));
            let results = campaign.run(threads, &Silent)?;
            println!("{name}: {} runs in {:.1} s", campaign.runs(), began.elapsed().as_secs_f64());
            self.results.insert(name.to_owned(), results);
        }
        Ok(&self.results[name])
    }
}

/// A number as a reader wants it: three digits that matter.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The table of a block, in Markdown.
fn table(results: &Results, wanted: &str) -> Result<String, Failed> {
    let columns: Result<Vec<(&str, &str)>, Failed> = wanted
        .split(';')
        .map(|column| column.split_once('=').map(|(title, name)| (title.trim(), name.trim())))
        .map(|column| column.ok_or_else(|| format!("'{wanted}': a column is TITLE = NUMBER").into()))
        .collect();
    let columns = columns?;
    let fields = results.first().map(|(values, _)| values.as_slice()).unwrap_or_default();
    let titles = fields.iter().map(|(field, _)| format!("`{}`", field.rsplit('.').next().unwrap_or(field)));
    let titles: Vec<String> = titles.chain(columns.iter().map(|(title, _)| (*title).to_owned())).collect();
    let mut text = format!("| {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for (values, outcomes) in results {
        let all = spreads(outcomes);
        let mut cells: Vec<String> =
            values.iter().map(|(_, value)| value.trim_matches('"').replace('|', "/")).collect();
        for (title, name) in &columns {
            let found = all.iter().find(|spread| spread.name == *name);
            let found = found.ok_or_else(|| format!("there is no number '{name}'"))?;
            let times = if title.ends_with('%') { 100.0 } else { 1.0 };
            let interval = if found.half > 0.0 { format!(" ± {}", number(found.half * times)) } else { String::new() };
            cells.push(format!("{}{interval}", number(found.mean * times)));
        }
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    Ok(text)
}

/// The picture of a block: written beside the page, and named in it.
fn picture(block: &Block, results: &Results) -> Result<String, Failed> {
    let (point, what) = block.wanted.split_once(' ').ok_or("a picture is POINT share|waiting|held")?;
    let point: usize = point.parse()?;
    let (values, outcomes) = results.get(point).ok_or_else(|| format!("there is no point {point}"))?;
    let outcome = outcomes.first().ok_or("no outcome")?;
    let course = match what {
        "share" => Course::Share,
        "waiting" => Course::Waiting,
        "held" => Course::Held,
        _ => return Err(format!("'{what}' is neither share nor waiting nor held").into()),
    };
    let values: Vec<String> = values
        .iter()
        .map(|(field, value)| format!("{} = {value}", field.rsplit('.').next().unwrap_or(field)))
        .collect();
    let title = if values.is_empty() { block.scenario.clone() } else { values.join(", ") };
    let mut lines = Lines { title: title.clone(), ..lab::report::course(outcome, course) };
    // The title does not say what the lines are.
    if course == Course::Waiting {
        lines.y = "tasks that wait".to_owned();
    }
    let name = format!("pictures/{}-{point}-{what}.svg", block.scenario);
    std::fs::create_dir_all("docs/papers/pictures")?;
    std::fs::write(Path::new("docs/papers").join(&name), lines.svg())?;
    Ok(format!("![{}]({name})\n", title.replace(['[', ']'], "")))
}

/// The page with its blocks written anew; none if it has no blocks that are wanted.
fn filled(text: &str, filters: &[String], shelf: &mut Shelf) -> Result<Option<String>, Failed> {
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let (mut new, mut any) = (String::new(), false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        writeln!(new, "{line}")?;
        let Some(block) = block(line).filter(|block| wanted(&block.scenario)) else { continue };
        let results = shelf.of(&block.scenario)?;
        any = true;
        new.push_str(&match block.kind.as_str() {
            "table" => table(results, &block.wanted)?,
            "picture" => picture(&block, results)?,
            other => return Err(format!("'{other}' is neither table nor picture").into()),
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
