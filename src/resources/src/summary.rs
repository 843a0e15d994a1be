//! Summaries of resources in the form of endpoints: `{"cpus":4.0,"mem":1024.0,"ports":"[31000-32000]"}`.
//!
//! It returns names and values in order; JSON is written elsewhere.

use std::borrow::Cow;

use crate::{Amount, Name, Quantities, Resource, Resources, Value};

/// A value of a summary.
#[derive(Clone, Debug, PartialEq)]
pub enum SummaryValue {
    /// A number, for scalars.
    Number(Amount),
    /// A text, for ranges `[1-2, 4-5]` and sets `{a, b}`.
    Text(String),
}

/// Names that a summary always contains, in the order in which they are written.
const ALWAYS: [Name; 4] = [Name::Disk, Name::Mem, Name::Gpus, Name::Cpus];

impl Resources {
    /// Returns the summary of all resources: always disk, mem, gpus and cpus, then all others by name, then revocable
    /// ones with `_revocable` after the name. Shared resources count once.
    #[must_use]
    pub fn summary(&self) -> Vec<(Cow<'static, str>, SummaryValue)> {
        let mut summary = Vec::with_capacity(6);
        self.visit_summary(|name, value| summary.push((owned(name), shown(value))));
        summary
    }

    /// Calls `visit` for each name of [`Resources::summary`] with the value whose text or amount is written.
    pub fn visit_summary(&self, mut visit: impl FnMut(&str, &Value)) {
        let sums = Sums::of(self.iter().filter(|r| !r.is_revocable()));
        for name in ALWAYS {
            // A common name whose values are ranges or a set is among the others.
            if sums.others.is_empty() || sums.others.iter().all(|(other, _)| **other != name) {
                visit(name.as_str(), &Value::Scalar(sums.common.get(&name)));
            }
        }
        for (name, value) in &sums.others {
            visit(name.as_str(), value);
        }
        if self.iter().any(Resource::is_revocable) {
            let revocable = Sums::of(self.iter().filter(|r| r.is_revocable()));
            for (name, amount) in revocable.common.iter() {
                visit(&format!("{name}_revocable"), &Value::Scalar(amount));
            }
            for (name, value) in &revocable.others {
                visit(&format!("{name}_revocable"), value);
            }
        }
    }
}

impl Quantities {
    /// Returns the four scalars that endpoints always show, then all others by name.
    #[must_use]
    pub fn summary(&self) -> Vec<(Cow<'static, str>, SummaryValue)> {
        let always = ALWAYS.map(|name| (owned(name.as_str()), SummaryValue::Number(self.get(&name))));
        let others = self.others().iter().map(|(name, amount)| (owned(name.as_str()), SummaryValue::Number(*amount)));
        always.into_iter().chain(others).collect()
    }
}

/// Sums of the values of each name.
struct Sums<'a> {
    /// Amounts of the four names that a summary always contains.
    common: Quantities,
    /// Values of all other names, sorted by name. If a name has values of different kinds, the first kind counts.
    others: Vec<(&'a Name, Value)>,
}

impl<'a> Sums<'a> {
    fn of(resources: impl Iterator<Item = &'a Resource>) -> Self {
        let mut sums = Self { common: Quantities::new(), others: Vec::new() };
        for resource in resources {
            match (resource.name().common_index(), resource.amount()) {
                (Some(_), Some(amount)) => sums.common.add(resource.name(), amount),
                _ => sums.add_other(resource),
            }
        }
        sums.others.sort_by_key(|(name, _)| *name);
        sums
    }

    fn add_other(&mut self, resource: &'a Resource) {
        match self.others.iter_mut().find(|(name, _)| *name == resource.name()) {
            Some((_, sum)) => sum.add(resource.value()),
            None => self.others.push((resource.name(), resource.value().clone())),
        }
    }
}

fn owned(name: &str) -> Cow<'static, str> {
    match name {
        "cpus" => "cpus".into(),
        "mem" => "mem".into(),
        "disk" => "disk".into(),
        "gpus" => "gpus".into(),
        "ports" => "ports".into(),
        other => Cow::Owned(other.to_owned()),
    }
}

fn shown(value: &Value) -> SummaryValue {
    match value {
        Value::Scalar(amount) => SummaryValue::Number(*amount),
        other => SummaryValue::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, parse_text};

    fn line(resources: &Resources) -> String {
        let value = |value: &SummaryValue| match value {
            SummaryValue::Number(amount) => amount.to_string(),
            SummaryValue::Text(text) => format!("{text:?}"),
        };
        resources.summary().iter().map(|(name, v)| format!("{name}={}", value(v))).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn shows_the_four_always() {
        assert_eq!(line(&Resources::new()), "disk=0 mem=0 gpus=0 cpus=0");
        let mut all =
            parse_text("cpus:1;cpus(a):2.5;ports(a):[1-2];ports:[3-4,9-9];fish:{eel,cod}", &Role::star()).unwrap();
        assert_eq!(line(&all), "disk=0 mem=0 gpus=0 cpus=3.5 ports=\"[1-4, 9-9]\" fish=\"{cod, eel}\"");
        all.add(Resource::scalar("cpus", Amount::from_units(2)).with_revocable(true));
        let strange = parse_text("mem:[1-2];cpus:1", &Role::star()).unwrap();
        assert_eq!(line(&strange), "disk=0 gpus=0 cpus=1 mem=\"[1-2]\"");
        assert!(line(&all).ends_with(" cpus_revocable=2") && line(&all).contains("cpus=3.5"));
    }
}
