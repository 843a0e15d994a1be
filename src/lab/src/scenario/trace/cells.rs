//! The cells of a line of a trace. Every error names the column, by number and name, and the rule.

use std::time::Duration;

use super::Wrong;
use super::shape::Shape;

/// The cells of a line that its shape needs, in the order of the shape's columns.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    pub line: usize,
    names: &'static [&'static str],
    places: &'a [usize],
    cells: Vec<&'a str>,
}

impl<'a> Cells<'a> {
    /// Splits a line and selects the cells at `places`.
    ///
    /// A line of a file without a header must have all of them; one with a header may end early, as in files whose last
    /// columns are mostly empty.
    pub fn cut(
        line: usize,
        text: &'a str,
        shape: Shape,
        places: &'a [usize],
        headed: bool,
    ) -> Result<Cells<'a>, Wrong> {
        let names = shape.columns();
        let all: Vec<&str> = text.split(shape.separator()).map(str::trim).collect();
        if !headed && all.len() != names.len() {
            return Err((line, format!("has {} columns: must have {}: {}", all.len(), names.len(), names.join(","))));
        }
        let cells = places.iter().map(|place| all.get(*place).copied().unwrap_or_default()).collect();
        Ok(Cells { line, names, places, cells })
    }

    /// Returns the text of a cell.
    pub fn text(&self, name: &str) -> &'a str {
        self.cells[self.at(name)]
    }

    /// Returns whether a cell is empty.
    pub fn is_empty(&self, name: &str) -> bool {
        self.text(name).is_empty()
    }

    /// Parses a number within bounds.
    pub fn number(&self, name: &str, least: f64, most: f64) -> Result<f64, Wrong> {
        let read = self.text(name).parse::<f64>().ok().filter(|value| (least..=most).contains(value));
        read.ok_or_else(|| self.wrong(name, &format!("a number from {least} to {most}")))
    }

    /// Parses a number within bounds; an empty cell is 0.
    pub fn number_or_zero(&self, name: &str, least: f64, most: f64) -> Result<f64, Wrong> {
        if self.is_empty(name) { Ok(0.0) } else { self.number(name, least, most) }
    }

    /// Parses a time in seconds since the trace's beginning.
    pub fn seconds(&self, name: &str) -> Result<Duration, Wrong> {
        Ok(Duration::from_secs_f64(self.number(name, 0.0, 1e10)?))
    }

    /// Parses a date with a time of day, as the time since 1970.
    pub fn moment(&self, name: &str) -> Result<Duration, Wrong> {
        moment(self.text(name)).ok_or_else(|| self.wrong(name, "a time: YYYY-MM-DD HH:MM:SS"))
    }

    /// Returns the error that a cell breaks a rule.
    pub fn wrong(&self, name: &str, rule: &str) -> Wrong {
        let place = self.places[self.at(name)] + 1;
        (self.line, format!("column {place} ({name}): '{}' is not {rule}", self.text(name)))
    }

    /// Returns the index of a column, which must be one of the shape's.
    fn at(&self, name: &str) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or_default()
    }
}

/// Parses `YYYY-MM-DD HH:MM:SS`, with an optional fraction of the second and an optional `+00:00`, as the time since
/// 1970.
pub(super) fn moment(text: &str) -> Option<Duration> {
    let text = text.strip_suffix("+00:00").unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = fraction.len() <= 18 && !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let numbers: Vec<u64> = whole.split(['-', ' ', ':']).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day, hour, minute, second] = numbers[..] else { return None };
    let sane = (1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sane || !digits || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years are counted from March on, so that the leap day is the last day of its year.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1;
    // January 1, 1970 by the same count.
    const FIRST: u64 = 719_468;
    let seconds = (days - FIRST) * 86_400 + hour * 3600 + minute * 60 + second;
    let part: f64 = format!("0.{fraction}").parse().ok()?;
    Some(Duration::from_secs(seconds) + Duration::from_secs_f64(part))
}
