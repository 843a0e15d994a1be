//! Converts the labels of a file to numbers or to indices of class names.

use super::columns::some_of;
use super::{Breach, in_brackets, is_missing, number, shortened};

const CLASSES_MAX: usize = 10_000;

/// The labels of all rows, with their lines.
#[derive(Debug, Default)]
pub(super) struct Labels {
    numbers: Vec<f64>,
    names: Vec<(String, u64)>,
    classify: bool,
    /// Classes that are allowed; empty if all are.
    known: Vec<String>,
}

impl Labels {
    pub(super) fn new(classify: bool) -> Labels {
        Labels { classify, ..Labels::default() }
    }

    /// Creates labels that name one of these classes.
    pub(super) fn known(classes: &[String]) -> Labels {
        Labels { known: classes.to_vec(), classify: true, ..Labels::default() }
    }

    pub(super) fn push(&mut self, text: &str, line: u64) -> Result<(), Breach> {
        let text = text.trim();
        if !self.known.is_empty() {
            let Some(class) = class(&self.known, text) else {
                let known = some_of(&self.known);
                return Err((line, format!("the label is '{}', and the model knows {known}", shortened(text))));
            };
            self.numbers.push(class as f64);
        } else if !self.classify {
            self.numbers.push(number(text, line, "the label")?);
        } else if text.is_empty() {
            return Err((line, "the label is empty, and must name a class".to_owned()));
        } else if is_missing(text) {
            return Err((line, format!("the label is missing{}, and must name a class", in_brackets(text))));
        } else {
            self.names.push((text.to_owned(), line));
        }
        Ok(())
    }

    /// Returns the labels and the classes. Classes that are all numbers are in numerical order, others in alphabetical
    /// order.
    pub(super) fn finish(self) -> Result<(Vec<f64>, Vec<String>), Breach> {
        if !self.classify || !self.known.is_empty() {
            return Ok((self.numbers, self.known));
        }
        let mut classes: Vec<&str> = self.names.iter().map(|(name, _)| name.as_str()).collect();
        classes.sort_unstable();
        classes.dedup();
        if classes.iter().all(|c| c.parse::<f64>().is_ok_and(f64::is_finite)) {
            let value = |c: &&str| c.parse::<f64>().unwrap_or_default();
            classes.sort_by(|a, b| value(a).total_cmp(&value(b)));
            // The labels 1, 1.0 and +1 are the same class.
            classes.dedup_by(|a, b| value(a) == value(b));
            let place = |name: &str| {
                let wanted = value(&name);
                classes.partition_point(|c| value(c) < wanted) as f64
            };
            let labels = self.names.iter().map(|(name, _)| place(name)).collect();
            return limited(labels, &classes, &self.names);
        }
        let place = |(name, _): &(String, u64)| classes.partition_point(|c| *c < name.as_str()) as f64;
        limited(self.names.iter().map(place).collect(), &classes, &self.names)
    }
}

/// Returns the index of the class of this name; 1, 1.0 and +1 name the same class.
fn class(classes: &[String], name: &str) -> Option<usize> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    let same = |class: &String| class == name || number(name).is_some_and(|n| number(class) == Some(n));
    classes.iter().position(|c| c == name).or_else(|| classes.iter().position(same))
}

fn limited(labels: Vec<f64>, classes: &[&str], names: &[(String, u64)]) -> Result<(Vec<f64>, Vec<String>), Breach> {
    if classes.len() > CLASSES_MAX {
        let (name, line) = names.last().cloned().unwrap_or_default();
        let name = shortened(&name);
        return Err((
            line,
            format!("with '{name}' there are more than {CLASSES_MAX} classes; are these labels numbers?"),
        ));
    }
    Ok((labels, classes.iter().map(|&c| c.to_owned()).collect()))
}
