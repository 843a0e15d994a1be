//! Needs of a task beyond scalars: ports, attributes of the agent, revocable resources.
//!
//! A [`Need`] is matched against one [`Bin`] of a packer and selects its resources. The packer and its score choose the
//! bin.

use std::fmt;
use std::str::FromStr;

use resources::{Name, Ranges, Resource, Resources, Value};

use crate::Bin;
use crate::v1::{Attribute, value};

/// Requirements of a task for the agent that it runs on.
#[derive(Clone, Debug, Default)]
pub struct Need {
    /// Required scalars and sets, such as `cpus:1;mem:64`.
    pub resources: Resources,
    /// Required ports by number.
    pub ports: Vec<u16>,
    /// Number of further ports, of any number.
    pub any_ports: usize,
    /// Constraints on the agent's attributes; all of them must hold.
    pub constraints: Vec<Constraint>,
    /// Whether revocable resources are acceptable where no others are free.
    pub revocable: bool,
}

/// Resources of a bin that were selected for a need.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// All resources of the task.
    pub(crate) resources: Resources,
    /// Ports of the task: those required by number first, then the others, ascending.
    pub ports: Vec<u16>,
}

impl Need {
    /// Selects resources of `bin` for this need. Returns `None` if something is missing.
    pub fn find(&self, bin: &Bin) -> Option<Found> {
        if !self.constraints.iter().all(|c| c.holds(bin)) {
            return None;
        }
        let ports = self.choose_ports(bin.left())?;
        let mut needs = self.resources.clone();
        if !ports.is_empty() {
            let ranges = Ranges::new(ports.iter().map(|p| (u64::from(*p), u64::from(*p))));
            needs += [Resource::new(Name::from("ports"), Value::Ranges(ranges))].into_iter().collect::<Resources>();
        }
        let resources = bin.find(&needs).or_else(|| bin.find_revocable(&needs).filter(|_| self.revocable))?;
        Some(Found { resources, ports })
    }

    /// Selects the ports. Returns `None` if there are too few.
    fn choose_ports(&self, left: &Resources) -> Option<Vec<u16>> {
        if self.ports.is_empty() && self.any_ports == 0 {
            return Some(Vec::new());
        }
        let free = left.non_revocable().ports();
        let has = |port: &u16| free.iter().any(|r| (r.begin..=r.end).contains(&u64::from(*port)));
        if !self.ports.iter().all(has) {
            return None;
        }
        let others = free.iter().flat_map(|r| r.begin..=r.end).filter_map(|p| u16::try_from(p).ok());
        let others: Vec<u16> = others.filter(|p| !self.ports.contains(p)).take(self.any_ports).collect();
        (others.len() == self.any_ports).then(|| [&self.ports[..], &others].concat())
    }
}

/// A constraint on an attribute of an agent, or on `hostname`.
///
/// In text: `rack` (the attribute exists), `!rack` (it does not exist), `rack=r1`, `rack!=r1` (also if it does not
/// exist), `rack=r1|r2` (one of these values), `cores>=8`, `cores<=16` (numbers).
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    attribute: String,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Exists,
    Missing,
    Is(Vec<String>),
    IsNot(Vec<String>),
    AtLeast(f64),
    AtMost(f64),
}

/// An error of parsing a [`Constraint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a constraint; write it like rack=r1|r2, rack!=r3, cores>=8, ssd or !ssd")]
pub struct ConstraintError(String);

impl FromStr for Constraint {
    type Err = ConstraintError;

    fn from_str(text: &str) -> Result<Constraint, ConstraintError> {
        let error = || ConstraintError(text.to_owned());
        let number = |value: &str| value.trim().parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(error);
        let words = |value: &str| value.split('|').map(|word| word.trim().to_owned()).collect::<Vec<_>>();
        let (attribute, rule) = if let Some((attribute, value)) = text.split_once(">=") {
            (attribute, Rule::AtLeast(number(value)?))
        } else if let Some((attribute, value)) = text.split_once("<=") {
            (attribute, Rule::AtMost(number(value)?))
        } else if let Some((attribute, value)) = text.split_once("!=") {
            (attribute, Rule::IsNot(words(value)))
        } else if let Some((attribute, value)) = text.split_once('=') {
            (attribute, Rule::Is(words(value)))
        } else if let Some(attribute) = text.strip_prefix('!') {
            (attribute, Rule::Missing)
        } else {
            (text, Rule::Exists)
        };
        let attribute = attribute.trim();
        let allowed = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        if attribute.is_empty() || !attribute.chars().all(allowed) {
            return Err(error());
        }
        Ok(Constraint { attribute: attribute.to_owned(), rule })
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.attribute;
        match &self.rule {
            Rule::Exists => write!(f, "{name}"),
            Rule::Missing => write!(f, "!{name}"),
            Rule::Is(values) => write!(f, "{name}={}", values.join("|")),
            Rule::IsNot(values) => write!(f, "{name}!={}", values.join("|")),
            Rule::AtLeast(number) => write!(f, "{name}>={number}"),
            Rule::AtMost(number) => write!(f, "{name}<={number}"),
        }
    }
}

impl Constraint {
    /// Returns whether the constraint holds for the agent of `bin`. An attribute may occur several times; one of its
    /// values suffices.
    pub fn holds(&self, bin: &Bin) -> bool {
        let mut values: Vec<String> = bin.attributes().iter().filter(|a| a.name == self.attribute).map(text).collect();
        if self.attribute == "hostname" {
            values.push(bin.hostname().to_owned());
        }
        let number = |value: &String| value.parse::<f64>().ok();
        match &self.rule {
            Rule::Exists => !values.is_empty(),
            Rule::Missing => values.is_empty(),
            Rule::Is(wanted) => values.iter().any(|v| wanted.contains(v)),
            Rule::IsNot(unwanted) => !values.iter().any(|v| unwanted.contains(v)),
            Rule::AtLeast(least) => values.iter().filter_map(number).any(|n| n >= *least),
            Rule::AtMost(most) => values.iter().filter_map(number).any(|n| n <= *most),
        }
    }
}

/// Formats the value of an attribute for people.
pub fn text(attribute: &Attribute) -> String {
    match attribute.r#type() {
        value::Type::Text => attribute.text.as_ref().map(|t| t.value.clone()),
        value::Type::Scalar => attribute.scalar.as_ref().map(|s| s.value.to_string()),
        value::Type::Ranges => attribute
            .ranges
            .as_ref()
            .map(|r| r.range.iter().map(|r| format!("{}-{}", r.begin, r.end)).collect::<Vec<_>>().join(",")),
        value::Type::Set => attribute.set.as_ref().map(|s| s.item.join(",")),
    }
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{AgentId, Offer, OfferId};
    use crate::{Packer, task};
    use resources::{Role, parse_text};

    fn offer(resources: &str, attributes: &[(&str, &str)]) -> Offer {
        let attribute = |(name, value): &(&str, &str)| {
            let mut attribute = Attribute { name: (*name).to_owned(), ..Default::default() };
            match value.parse() {
                Ok(number) => {
                    attribute.r#type = value::Type::Scalar as i32;
                    attribute.scalar = Some(value::Scalar { value: number });
                }
                Err(_) => {
                    attribute.r#type = value::Type::Text as i32;
                    attribute.text = Some(value::Text { value: (*value).to_owned() });
                }
            }
            attribute
        };
        Offer {
            id: OfferId { value: "O".into() },
            agent_id: AgentId { value: "S".into() },
            hostname: "h1".into(),
            resources: task::to_v1(&parse_text(resources, &Role::star()).unwrap()),
            attributes: attributes.iter().map(attribute).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn constraints() {
        let packer = Packer::new([offer("cpus:1", &[("rack", "r1"), ("cores", "8")])]);
        let holds = |text: &str| text.parse::<Constraint>().unwrap().holds(&packer.bins()[0]);
        for text in
            ["rack", "!ssd", "rack=r1", "rack=r0|r1", "rack!=r2", "ssd!=yes", "cores>=8", "cores<=8", "hostname=h1"]
        {
            assert!(holds(text), "{text}");
            assert_eq!(text.parse::<Constraint>().unwrap().to_string(), text);
        }
        for text in ["ssd", "!rack", "rack=r2", "rack!=r1", "cores>=9", "rack>=1", "hostname!=h1"] {
            assert!(!holds(text), "{text}");
        }
        for text in ["", "=r1", "cores>=many", "a b", "!"] {
            assert!(text.parse::<Constraint>().is_err(), "{text}");
        }
    }

    #[test]
    fn ports_by_number_and_any() {
        let mut packer = Packer::new([offer("cpus:2;ports:[31000-31002,31010-31010]", &[])]);
        let need = Need {
            resources: parse_text("cpus:1", &Role::star()).unwrap(),
            ports: vec![31001],
            any_ports: 2,
            ..Default::default()
        };
        let task = || task::shell("t", "true", &Resources::new());
        let (_, ports) = packer.place_need(task(), &need, |_| Some(0.0)).unwrap();
        assert_eq!(ports, [31001, 31000, 31002]);
        assert!(packer.place_need(task(), &need, |_| Some(0.0)).is_err(), "only 31010 is left");
        let placed = &packer.bins()[0].tasks()[0];
        assert_eq!(task::from_v1(&placed.resources).unwrap().ports().count(), 3);
    }

    #[test]
    fn revocable_resources_only_where_they_will_do() {
        let mut spare = offer("cpus:1", &[]);
        spare.resources[0].revocable = Some(crate::v1::resource::RevocableInfo {});
        let mut packer = Packer::new([spare]);
        let mut need = Need { resources: parse_text("cpus:1", &Role::star()).unwrap(), ..Default::default() };
        let task = || task::shell("t", "true", &Resources::new());
        assert!(packer.place_need(task(), &need, |_| Some(0.0)).is_err());
        need.revocable = true;
        assert!(packer.place_need(task(), &need, |_| Some(0.0)).is_ok());
        assert!(packer.bins()[0].tasks()[0].resources[0].revocable.is_some());
    }
}
