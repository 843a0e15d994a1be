//! Resources as the endpoints sum them up: `{"cpus":4.0,"mem":1024.0,"ports":"[31000-32000]"}`.
//!
//! It gives names and values in order; JSON is written elsewhere.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::{Amount, Name, Quantities, Resource, Resources, Value};

/// A value of a summary.
#[derive(Clone, Debug, PartialEq)]
pub enum SummaryValue {
    /// A number: scalars.
    Number(Amount),
    /// A text: ranges `[1-2, 4-5]` and sets `{a, b}`.
    Text(String),
}

/// The names of a summary that are there even if there is none of them, in the order in which they are written.
const ALWAYS: [Name; 4] = [Name::Disk, Name::Mem, Name::Gpus, Name::Cpus];

impl Resources {
    /// The summary of all resources: disk, mem, gpus and cpus always, then all others by name, then revocable ones with
    /// `_revocable` behind the name. Shared resources count once.
    #[must_use]
    pub fn summary(&self) -> Vec<(Cow<'static, str>, SummaryValue)> {
        let mut summary = Vec::with_capacity(6);
        let mut sums = sums(self.iter().filter(|r| !r.is_revocable()));
        for name in ALWAYS {
            let value = sums.remove(&name).unwrap_or(Value::Scalar(Amount::ZERO));
            summary.push((text_of(&name), shown(&value)));
        }
        summary.extend(sums.iter().map(|(name, value)| (text_of(name), shown(value))));
        if self.iter().any(Resource::is_revocable) {
            let revocable = self::sums(self.iter().filter(|r| r.is_revocable()));
            let entry = |(name, value): (&&Name, &Value)| (Cow::Owned(format!("{name}_revocable")), shown(value));
            summary.extend(revocable.iter().map(entry));
        }
        summary
    }
}

impl Quantities {
    /// The four scalars that endpoints always show, then all others by name.
    #[must_use]
    pub fn summary(&self) -> Vec<(Cow<'static, str>, SummaryValue)> {
        let always = ALWAYS.map(|name| (text_of(&name), SummaryValue::Number(self.get(&name))));
        let others = self.others().iter().map(|(name, amount)| (text_of(name), SummaryValue::Number(*amount)));
        always.into_iter().chain(others).collect()
    }
}

/// All values of each name. If a name has values of different kinds, the first kind wins.
fn sums<'a>(resources: impl Iterator<Item = &'a Resource>) -> BTreeMap<&'a Name, Value> {
    let mut sums: BTreeMap<&Name, Value> = BTreeMap::new();
    for resource in resources {
        match sums.get_mut(resource.name()) {
            Some(sum) => sum.add(resource.value()),
            None => {
                sums.insert(resource.name(), resource.value().clone());
            }
        }
    }
    sums
}

fn text_of(name: &Name) -> Cow<'static, str> {
    match name {
        Name::Cpus => "cpus".into(),
        Name::Mem => "mem".into(),
        Name::Disk => "disk".into(),
        Name::Gpus => "gpus".into(),
        Name::Ports => "ports".into(),
        Name::Other(text) => Cow::Owned(text.as_ref().to_owned()),
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
        assert!(line(&all).ends_with(" cpus_revocable=2") && line(&all).contains("cpus=3.5"));
    }
}
