//! Errors of a scenario, with their position in its file.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

/// The reason why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {rule}", .file.display())]
pub struct ScenarioError {
    /// Path of the file with the error.
    pub file: PathBuf,
    /// Line of the error, from 1.
    pub line: usize,
    /// What is invalid, and what is allowed.
    pub rule: String,
}

/// A field that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// Path of the field: names and positions, such as `frameworks.1.jobs.0.tasks`.
    pub path: String,
    /// What is invalid, and what is allowed.
    pub rule: String,
}

impl InvalidField {
    /// Creates an error for a field that breaks a rule.
    pub fn new(path: impl Into<String>, rule: impl Into<String>) -> InvalidField {
        InvalidField { path: path.into(), rule: rule.into() }
    }

    /// Prepends `prefix` to the path of the field.
    pub fn below(mut self, prefix: &str) -> InvalidField {
        self.path = if self.path.is_empty() { prefix.to_owned() } else { format!("{prefix}.{}", self.path) };
        self
    }

    pub(crate) fn at(self, file: &Path, text: &str) -> ScenarioError {
        let offset = locate(text, &self.path);
        ScenarioError {
            file: file.to_owned(),
            line: line_of(text, offset),
            rule: format!("{}: {}", self.path, self.rule),
        }
    }
}

impl ScenarioError {
    pub(crate) fn of_toml(file: &Path, text: &str, why: &toml::de::Error) -> ScenarioError {
        let offset = why.span().map_or(0, |span| span.start);
        ScenarioError {
            file: file.to_owned(),
            line: line_of(text, offset),
            rule: why.message().trim().replace('\n', ", "),
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the offset of a field in the text, or of the last element of its path that exists.
fn locate(text: &str, path: &str) -> usize {
    let Ok(table) = DeTable::parse(text) else { return 0 };
    let mut at = table.span().start;
    let mut names = path.split('.').filter(|name| !name.is_empty());
    let Some((key, mut value)) = names.next().and_then(|name| table.get_ref().get_key_value(name)) else { return at };
    at = key.span().start;
    for name in names {
        match value.get_ref() {
            DeValue::Table(table) => match table.get_key_value(name) {
                Some((key, inner)) => (at, value) = (key.span().start, inner),
                None => return at,
            },
            DeValue::Array(array) => match name.parse::<usize>().ok().and_then(|n| array.get(n)) {
                Some(inner) => (at, value) = (inner.span().start, inner),
                None => return at,
            },
            _ => return at,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let text = "a = 1\n[[b]]\nc = 2\n[[b]]\n\nc = 3\nd = [1,\n 2]\n";
        for (path, line) in [("a", 1), ("b.0.c", 3), ("b.1.c", 6), ("b.1.d.1", 8), ("b.1.e", 4), ("x", 1)] {
            assert_eq!(line_of(text, locate(text, path)), line, "{path}");
        }
    }
}
