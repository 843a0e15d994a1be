//! Traces of jobs in CSV: a header, then `submit_s,tasks,cpus,mem_mb,duration_s` in the order of time.
//!
//! Columns may come in any order and others may be between them. A file with a bad row is refused whole.

use std::path::Path;
use std::time::Duration;

use super::error::ScenarioError;

/// Rows of one trace.
const MOST_ROWS: usize = 10_000_000;

/// A job of a trace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub submit: Duration,
    pub tasks: u32,
    pub cpus: f64,
    pub mem_mb: f64,
    pub duration: Duration,
}

const COLUMNS: [&str; 5] = ["submit_s", "tasks", "cpus", "mem_mb", "duration_s"];

pub(super) fn read(file: &Path) -> Result<Vec<Row>, ScenarioError> {
    let wrong = |line: usize, rule: String| ScenarioError { file: file.to_owned(), line, rule };
    let text = std::fs::read_to_string(file).map_err(|why| wrong(1, format!("cannot be read: {why}")))?;
    parse(&text).map_err(|(line, rule)| wrong(line, rule))
}

fn parse(text: &str) -> Result<Vec<Row>, (usize, String)> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header: Vec<&str> = lines.next().map(|(_, line)| line.split(',').map(str::trim).collect()).unwrap_or_default();
    let mut places = [0; COLUMNS.len()];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        let found = header.iter().position(|column| *column == name);
        *place = found.ok_or_else(|| (1, format!("the header has no '{name}'; it wants {}", COLUMNS.join(","))))?;
    }
    let mut rows: Vec<Row> = Vec::new();
    for (n, line) in lines {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |column: usize, least: f64, most: f64| {
            let cell = cells.get(places[column]).copied().unwrap_or_default();
            let read = cell.parse::<f64>().ok().filter(|value| (least..=most).contains(value));
            read.ok_or_else(|| (n + 1, format!("'{cell}' is no {}: a number from {least} to {most}", COLUMNS[column])))
        };
        let row = Row {
            submit: Duration::from_secs_f64(number(0, 0.0, 1e9)?),
            tasks: number(1, 1.0, 1e6)? as u32,
            cpus: number(2, 0.0, 1e6)?,
            mem_mb: number(3, 0.0, 1e9)?,
            duration: Duration::from_secs_f64(number(4, 0.0, 1e9)?),
        };
        if row.cpus + row.mem_mb <= 0.0 {
            return Err((n + 1, "a task needs cpus or mem_mb".to_owned()));
        }
        if rows.last().is_some_and(|before| before.submit > row.submit) {
            return Err((n + 1, "rows must be in the order of submit_s".to_owned()));
        }
        if rows.len() == MOST_ROWS {
            return Err((n + 1, format!("a trace has at most {MOST_ROWS} rows")));
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_or_refused() {
        let rows = parse("tasks,submit_s,x,cpus,mem_mb,duration_s\n2,1.5,?,1,512,60\n").unwrap();
        assert_eq!(rows[0].submit, Duration::from_millis(1500));
        assert_eq!(rows[0].tasks, 2);
        let header = COLUMNS.join(",");
        for (text, line, word) in [
            ("a,b\n".to_owned(), 1, "submit_s"),
            (format!("{header}\n1,1,1,1,1\n0,1,1,1,1"), 3, "order"),
            (format!("{header}\n1,0,1,1,1"), 2, "tasks"),
            (format!("{header}\n1,1,nan,1,1"), 2, "cpus"),
            (format!("{header}\n1,1,1,1"), 2, "duration_s"),
            (format!("{header}\n1,1,0,0,1"), 2, "needs"),
        ] {
            let (at, rule) = parse(&text).unwrap_err();
            assert!(at == line && rule.contains(word), "{text}: {at} {rule}");
        }
    }
}
