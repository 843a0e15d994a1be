//! Labels: arbitrary pairs of texts, equal in any order.

use std::fmt;
use std::sync::Arc;

use protos::mesos;

/// Labels of a reservation or of a disk's source. Two are equal if they have the same pairs in any order.
/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Labels(Arc<mesos::Labels>);

impl Labels {
    /// Returns the message.
    #[must_use]
    pub fn as_proto(&self) -> &mesos::Labels {
        &self.0
    }
}

impl From<mesos::Labels> for Labels {
    fn from(labels: mesos::Labels) -> Self {
        Self(Arc::new(labels))
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || same(&self.0, &other.0)
    }
}

impl Eq for Labels {}

/// Returns whether two messages have the same pairs, in any order.
pub(crate) fn same(a: &mesos::Labels, b: &mesos::Labels) -> bool {
    if a.labels.len() != b.labels.len() {
        return false;
    }
    if a.labels == b.labels {
        return true;
    }
    sorted(a) == sorted(b)
}

fn sorted(labels: &mesos::Labels) -> Vec<(&str, Option<&str>)> {
    let mut pairs: Vec<_> = labels.labels.iter().map(|l| (l.key.as_str(), l.value.as_deref())).collect();
    pairs.sort_unstable();
    pairs
}

/// Formats the labels as `{key: value, key}`.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, label) in self.0.labels.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}", label.key)?;
            if let Some(value) = &label.value {
                write!(f, ": {value}")?;
            }
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, Option<&str>)]) -> Labels {
        let label = |&(key, value): &(&str, Option<&str>)| mesos::Label {
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        mesos::Labels { labels: pairs.iter().map(label).collect() }.into()
    }

    #[test]
    fn order_does_not_matter_but_number_does() {
        let a = labels(&[("x", Some("1")), ("y", None)]);
        assert_eq!(a, labels(&[("y", None), ("x", Some("1"))]));
        assert_ne!(a, labels(&[("y", Some("")), ("x", Some("1"))]));
        assert_ne!(labels(&[("x", None), ("x", None), ("y", None)]), labels(&[("x", None), ("y", None), ("y", None)]));
        assert_eq!(a.to_string(), "{x: 1, y}");
    }
}
