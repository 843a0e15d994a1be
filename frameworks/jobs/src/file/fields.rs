//! Parses the fields of a table one by one, each with its type and rule; invalid ones are reported and skipped.
//!
//! Fields that were not read are unknown; the nearest known name is suggested.

use std::collections::BTreeMap;
use std::time::Duration;

use super::fault::Collector;
use super::seconds;
use super::tree::{Field, Node, Value};

/// The fields of one table.
pub struct Fields<'a, 'f> {
    at: usize,
    fields: &'a [Field],
    /// Names of all fields that were read.
    known: Vec<&'static str>,
    /// Collector of the faults.
    pub faults: &'f mut Collector<'a>,
}

/// Least similarity of two names for one to be suggested for the other.
const ALIKE: f64 = 0.75;

impl<'a, 'f> Fields<'a, 'f> {
    /// Creates the fields of a table that starts at `at`.
    pub fn new(at: usize, fields: &'a [Field], faults: &'f mut Collector<'a>) -> Fields<'a, 'f> {
        Fields { at, fields, known: Vec::new(), faults }
    }

    /// Returns the fields of a node; reports a fault if it is not a table.
    pub fn of(what: &str, node: &'a Node, faults: &'f mut Collector<'a>) -> Option<Fields<'a, 'f>> {
        match &node.value {
            Value::Table(fields) => Some(Fields::new(node.at, fields, faults)),
            other => {
                faults.add(node.at, format!("{what} must be a table, and this is {}", other.what()));
                None
            }
        }
    }

    /// Returns the byte at which the table starts.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns a field's value, if it is present. `null` counts as absent.
    pub fn take(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        let field = self.fields.iter().find(|f| f.name == name)?;
        (field.node.value != Value::Nothing).then_some(&field.node)
    }

    fn wrong(&mut self, node: &Node, name: &str, wanted: &str) {
        self.faults.add(node.at, format!("{name} must be {wanted}, and this is {}", node.value.what()));
    }

    /// Returns a text that is not empty, with its position.
    pub fn text(&mut self, name: &'static str) -> Option<(&'a str, usize)> {
        let node = self.take(name)?;
        match &node.value {
            Value::Text(text) if text.contains('\0') => {
                self.faults.add(node.at, format!("{name} must not hold a NUL character"));
                None
            }
            Value::Text(text) if text.is_empty() => {
                self.faults.add(node.at, format!("{name} must not be empty"));
                None
            }
            Value::Text(text) => Some((text, node.at)),
            _ => {
                self.wrong(node, name, "a text");
                None
            }
        }
    }

    /// Returns a boolean.
    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        let node = self.take(name)?;
        if let Value::Flag(flag) = node.value {
            return Some(flag);
        }
        self.wrong(node, name, "true or false");
        None
    }

    /// Returns whether the field is a whole number above a bound.
    pub fn is_above(&mut self, name: &'static str, bound: i64) -> bool {
        matches!(self.take(name).map(|node| &node.value), Some(Value::Whole(number)) if *number > bound)
    }

    /// Returns a whole number within bounds.
    pub fn whole(&mut self, name: &'static str, least: i64, most: i64) -> Option<i64> {
        let node = self.take(name)?;
        match node.value {
            Value::Whole(number) if (least..=most).contains(&number) => return Some(number),
            Value::Whole(number) => {
                self.faults.add(node.at, format!("{name} must be {least} to {most}, and this is {number}"));
            }
            Value::Real(number) => {
                self.faults.add(node.at, format!("{name} must be a whole number, and this is {number}"));
            }
            _ => self.wrong(node, name, "a whole number"),
        }
        None
    }

    /// Returns a finite number, with its position.
    pub fn number(&mut self, name: &'static str) -> Option<(f64, usize)> {
        let node = self.take(name)?;
        match node.value {
            Value::Whole(number) => return Some((number as f64, node.at)),
            Value::Real(number) if number.is_finite() => return Some((number, node.at)),
            Value::Real(number) => self.faults.add(node.at, format!("{name} must be a number, and this is {number}")),
            _ => self.wrong(node, name, "a number"),
        }
        None
    }

    /// Returns a number within bounds.
    pub fn number_within(&mut self, name: &'static str, least: f64, most: f64) -> Option<f64> {
        let (number, at) = self.number(name)?;
        if (least..=most).contains(&number) {
            return Some(number);
        }
        self.faults.add(at, format!("{name} must be {least} to {most}, and this is {number}"));
        None
    }

    /// Returns a duration: a number of seconds, or a text with a unit.
    pub fn time(&mut self, name: &'static str) -> Option<Duration> {
        let node = self.take(name)?;
        let time = match &node.value {
            Value::Text(text) => seconds::parse(text),
            Value::Whole(number) => u64::try_from(*number).ok().map(Duration::from_secs),
            Value::Real(number) => Duration::try_from_secs_f64(*number).ok(),
            _ => None,
        };
        let time = time.filter(|t| *t <= seconds::LONGEST);
        if time.is_none() {
            let rule =
                format!("{name} must be a time such as 10, \"1.5s\", \"500ms\", \"2m\" or \"1h\", a year at most");
            self.faults.add(node.at, rule);
        }
        time
    }

    /// Returns a list; empty if the field is absent.
    pub fn list(&mut self, name: &'static str) -> &'a [Node] {
        let Some(node) = self.take(name) else { return &[] };
        if let Value::List(list) = &node.value {
            return list;
        }
        self.wrong(node, name, "a list");
        &[]
    }

    /// Returns a list of texts, each with its position.
    pub fn texts(&mut self, name: &'static str) -> Vec<(&'a str, usize)> {
        let mut texts = Vec::new();
        for node in self.list(name) {
            match &node.value {
                Value::Text(text) if !text.contains('\0') => texts.push((text.as_str(), node.at)),
                other => {
                    self.faults.add(node.at, format!("{name} must be a list of texts, and this is {}", other.what()));
                }
            }
        }
        texts
    }

    /// Returns a table of texts; numbers and booleans are converted. `rule` returns the rule that a name breaks.
    pub fn map(&mut self, name: &'static str, rule: impl Fn(&str) -> Option<&'static str>) -> BTreeMap<String, String> {
        let mut map = BTreeMap::new();
        let Some(node) = self.take(name) else { return map };
        let Value::Table(fields) = &node.value else {
            self.wrong(node, name, "a table");
            return map;
        };
        for field in fields {
            if let Some(rule) = rule(&field.name) {
                self.faults.add(field.at, format!("{name}: {rule}"));
            }
            let text = match &field.node.value {
                Value::Text(text) if !text.contains('\0') => text.clone(),
                Value::Whole(number) => number.to_string(),
                Value::Real(number) => number.to_string(),
                Value::Flag(flag) => flag.to_string(),
                other => {
                    let what = other.what();
                    self.faults
                        .add(field.node.at, format!("{name}: '{}' must be a text, and this is {what}", field.name));
                    continue;
                }
            };
            map.insert(field.name.clone(), text);
        }
        map
    }

    /// Reports the fields that were not read. `hint` explains names of other systems.
    pub fn finish(self, hint: impl Fn(&str) -> Option<String>) {
        for field in self.fields.iter().filter(|f| !self.known.contains(&f.name.as_str())) {
            // The search for the nearest name takes time, and further faults are not reported.
            if self.faults.is_full() {
                return;
            }
            let name = &field.name;
            let nearest =
                self.known.iter().map(|k| (strsim::jaro_winkler(k, name), k)).max_by(|a, b| a.0.total_cmp(&b.0));
            let rule = match (hint(name), nearest) {
                (Some(hint), _) => hint,
                (None, Some((alike, known))) if alike >= ALIKE => {
                    format!("there is no field '{name}'; did you mean '{known}'?")
                }
                _ => {
                    let known: std::collections::BTreeSet<&str> = self.known.iter().copied().collect();
                    format!("there is no field '{name}'; there are {}", Vec::from_iter(known).join(", "))
                }
            };
            self.faults.add(field.at, rule);
        }
    }
}
