//! Placement constraints of a job: rules over an agent's attributes and host name.
//!
//! The operators are Marathon's. A rule is checked for one agent and the known other tasks of the job; it does not
//! choose among agents.

use std::collections::BTreeMap;
use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Name of the field that stands for the agent's host name.
pub const HOSTNAME: &str = "hostname";
/// Maximum size of the automaton of a regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// A placement rule over one attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constraint {
    /// Name of the attribute, or `hostname`.
    pub field: String,
    /// Condition on the attribute.
    #[serde(flatten)]
    pub operator: Operator,
}

/// The condition of a rule on an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operator", content = "value", rename_all = "snake_case")]
pub enum Operator {
    /// The value equals this one.
    Equal(String),
    /// The value matches this regular expression as a whole.
    Like(String),
    /// The value is missing or does not match this regular expression as a whole.
    Unlike(String),
    /// No two tasks of the job run where the value is the same.
    Unique,
    /// All tasks of the job run where the value is the same.
    Cluster,
    /// Tasks are spread as evenly over the values as possible. The number is the least number of values, so that the
    /// first tasks do not all go to the value that is offered first; without it, the values seen so far count.
    GroupBy(Option<u32>),
    /// At most this many tasks of the job run where the value is the same.
    MaxPer(u32),
}

/// The rule that an invalid constraint breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// There is no operator with this name.
    #[error("'{0}' is not an operator; take equal, like, unlike, unique, cluster, group_by or max_per")]
    Operator(String),
    /// This operator needs a value.
    #[error("'{0}' needs a value, as in [\"rack\", \"{0}\", \"r1\"]")]
    Missing(&'static str),
    /// This operator takes no value.
    #[error("'{0}' takes no value")]
    Superfluous(&'static str),
    /// The value of this operator is not a number from 1 on.
    #[error("'{0}' needs a whole number from 1 on")]
    Number(&'static str),
    /// This value is not a regular expression; the second text is the reason.
    #[error("'{0}' is not a regular expression: {1}")]
    Regex(String, String),
    /// The name of the attribute is empty.
    #[error("the attribute's name is empty")]
    Field,
}

impl Constraint {
    /// Parses a constraint from its words: attribute, operator, and a value if the operator has one.
    ///
    /// # Errors
    /// Returns the rule that the words break.
    pub fn new(field: &str, operator: &str, value: Option<&str>) -> Result<Constraint, ConstraintError> {
        if field.is_empty() {
            return Err(ConstraintError::Field);
        }
        let text = |name| value.map(str::to_owned).ok_or(ConstraintError::Missing(name));
        let none = |name, operator| value.map_or(Ok(operator), |_| Err(ConstraintError::Superfluous(name)));
        let number = |name| match value.and_then(|v| v.parse::<u32>().ok()) {
            Some(number) if number > 0 => Ok(number),
            _ => Err(ConstraintError::Number(name)),
        };
        let operator = match operator.to_ascii_lowercase().as_str() {
            "equal" | "is" => Operator::Equal(text("equal")?),
            "like" => Operator::Like(pattern(&text("like")?)?),
            "unlike" => Operator::Unlike(pattern(&text("unlike")?)?),
            "unique" => none("unique", Operator::Unique)?,
            "cluster" => value.map_or(Operator::Cluster, |v| Operator::Equal(v.to_owned())),
            "group_by" => Operator::GroupBy(value.map(|_| number("group_by")).transpose()?),
            "max_per" => Operator::MaxPer(number("max_per")?),
            other => return Err(ConstraintError::Operator(other.to_owned())),
        };
        Ok(Constraint { field: field.to_owned(), operator })
    }

    /// Returns whether the constraint depends on the job's other tasks.
    pub fn depends_on_other_tasks(&self) -> bool {
        !matches!(self.operator, Operator::Equal(_) | Operator::Like(_) | Operator::Unlike(_))
    }
}

/// Returns the text if it is a valid regular expression.
fn pattern(text: &str) -> Result<String, ConstraintError> {
    match compile(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(ConstraintError::Regex(text.to_owned(), one_line(&error))),
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!("^(?:{text})$")).size_limit(REGEX_BYTES_MAX).build()
}

/// Returns the last line of the library's message, which states the error; the lines before it show its position.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Writes the constraint as in a job file, without brackets: `rack equal r1`.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = &self.field;
        match &self.operator {
            Operator::Equal(value) => write!(f, "{field} equal {value}"),
            Operator::Like(value) => write!(f, "{field} like {value}"),
            Operator::Unlike(value) => write!(f, "{field} unlike {value}"),
            Operator::Unique => write!(f, "{field} unique"),
            Operator::Cluster => write!(f, "{field} cluster"),
            Operator::GroupBy(None) => write!(f, "{field} group_by"),
            Operator::GroupBy(Some(number)) => write!(f, "{field} group_by {number}"),
            Operator::MaxPer(number) => write!(f, "{field} max_per {number}"),
        }
    }
}

/// The attributes and the host name of an agent.
pub trait Place {
    /// Returns the value of an attribute as text, or the host name for [`HOSTNAME`]; `None` if the agent lacks the
    /// attribute.
    fn value(&self, field: &str) -> Option<&str>;
}

impl Place for BTreeMap<String, String> {
    fn value(&self, field: &str) -> Option<&str> {
        self.get(field).map(String::as_str)
    }
}

/// The constraints of a job, with the number of its tasks by attribute value.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    rules: Vec<(Constraint, Option<Regex>)>,
    /// Number of tasks by attribute value, for each constraint that depends on other tasks.
    counts: Vec<BTreeMap<String, u32>>,
}

impl Checker {
    /// Creates a checker of these constraints, without tasks.
    pub fn new(constraints: &[Constraint]) -> Checker {
        let compiled = |c: &Constraint| match &c.operator {
            Operator::Like(text) | Operator::Unlike(text) => compile(text).ok(),
            _ => None,
        };
        let rules: Vec<_> = constraints.iter().map(|c| (c.clone(), compiled(c))).collect();
        Checker { counts: vec![BTreeMap::new(); rules.len()], rules }
    }

    /// Returns whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether a constraint depends on the job's other tasks.
    pub fn depends_on_other_tasks(&self) -> bool {
        self.rules.iter().any(|(c, _)| c.depends_on_other_tasks())
    }

    /// Returns the attributes whose value must be the same for all tasks of the job.
    pub fn cluster_fields(&self) -> Vec<&str> {
        let cluster = self.rules.iter().filter(|(rule, _)| rule.operator == Operator::Cluster);
        cluster.map(|(rule, _)| rule.field.as_str()).collect()
    }

    /// Returns the largest number of tasks on one agent that the constraints alone allow.
    pub fn most_on_one(&self) -> u32 {
        let most = self.rules.iter().filter_map(|(rule, _)| match rule.operator {
            Operator::Unique => Some(1),
            Operator::MaxPer(most) => Some(most),
            _ => None,
        });
        most.min().unwrap_or(u32::MAX)
    }

    /// Records the values of an agent for `group_by`, so that tasks are reserved for them.
    pub fn note_agent(&mut self, place: &impl Place) {
        for ((rule, _), counts) in self.rules.iter().zip(&mut self.counts) {
            if matches!(rule.operator, Operator::GroupBy(_))
                && let Some(value) = place.value(&rule.field)
            {
                counts.entry(value.to_owned()).or_default();
            }
        }
    }

    /// Counts a task of the job on this agent.
    pub fn placed(&mut self, place: &impl Place) {
        for ((rule, _), counts) in self.rules.iter().zip(&mut self.counts) {
            if rule.depends_on_other_tasks()
                && let Some(value) = place.value(&rule.field)
            {
                *counts.entry(value.to_owned()).or_default() += 1;
            }
        }
    }

    /// Removes a task of the job that was counted on this agent.
    pub fn taken_back(&mut self, place: &impl Place) {
        for ((rule, _), counts) in self.rules.iter().zip(&mut self.counts) {
            if rule.depends_on_other_tasks()
                && let Some(count) = place.value(&rule.field).and_then(|value| counts.get_mut(value))
            {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// Returns the first constraint that a further task on this agent would break.
    pub fn broken_by(&self, place: &impl Place) -> Option<&Constraint> {
        self.broken_by_agent(place).or_else(|| self.broken_by_others(place))
    }

    /// Returns the first broken constraint among those that depend on the agent alone.
    pub fn broken_by_agent(&self, place: &impl Place) -> Option<&Constraint> {
        self.first_broken(place, false)
    }

    /// Returns the first broken constraint among those that depend on the job's other tasks.
    pub fn broken_by_others(&self, place: &impl Place) -> Option<&Constraint> {
        self.first_broken(place, true)
    }

    fn first_broken(&self, place: &impl Place, others: bool) -> Option<&Constraint> {
        let mut rules =
            self.rules.iter().zip(&self.counts).filter(|((rule, _), _)| rule.depends_on_other_tasks() == others);
        let broken = rules
            .find(|((rule, regex), counts)| !allows(&rule.operator, regex.as_ref(), counts, place.value(&rule.field)));
        broken.map(|((rule, _), _)| rule)
    }
}

/// Returns whether one more task may run where the attribute has this value. An agent without the attribute satisfies
/// `unlike` only.
fn allows(operator: &Operator, regex: Option<&Regex>, counts: &BTreeMap<String, u32>, value: Option<&str>) -> bool {
    let Some(value) = value else { return matches!(operator, Operator::Unlike(_)) };
    let here = counts.get(value).copied().unwrap_or_default();
    let matches = regex.is_some_and(|r| r.is_match(value));
    match operator {
        Operator::Equal(wanted) => value == wanted,
        Operator::Like(_) => matches,
        Operator::Unlike(_) => !matches,
        Operator::Unique => here == 0,
        Operator::MaxPer(most) => here < *most,
        Operator::Cluster => counts.iter().all(|(other, count)| *count == 0 || other == value),
        Operator::GroupBy(groups) => {
            // Values that are expected but not seen yet have no task.
            let unseen = groups.is_some_and(|groups| counts.len() < groups as usize);
            let least = if unseen { 0 } else { counts.values().copied().min().unwrap_or_default() };
            here <= least
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Agent(&'static str, &'static str);

    impl Place for Agent {
        fn value(&self, field: &str) -> Option<&str> {
            match field {
                HOSTNAME => Some(self.0),
                "rack" if !self.1.is_empty() => Some(self.1),
                _ => None,
            }
        }
    }

    fn checker(words: &[&str]) -> Checker {
        Checker::new(&[Constraint::new(words[0], words[1], words.get(2).copied()).unwrap()])
    }

    #[test]
    fn rules_over_one_agent() {
        let allows = |words: &[&str], rack| checker(words).broken_by(&Agent("h", rack)).is_none();
        assert!(allows(&["rack", "equal", "r1"], "r1"));
        assert!(!allows(&["rack", "IS", "r1"], "r2"));
        assert!(!allows(&["rack", "equal", "r1"], ""));
        assert!(allows(&["rack", "like", "r[12]"], "r2"));
        assert!(!allows(&["rack", "like", "r"], "r2"), "the whole value must match");
        assert!(!allows(&["rack", "unlike", "r."], "r2"));
        assert!(allows(&["rack", "unlike", "r."], ""));
        assert!(allows(&["hostname", "equal", "h"], ""));
    }

    #[test]
    fn rules_over_the_jobs_tasks() {
        let (a, b) = (Agent("a", "r1"), Agent("b", "r2"));
        let mut unique = checker(&["hostname", "unique"]);
        unique.placed(&a);
        assert!(unique.broken_by(&a).is_some() && unique.broken_by(&b).is_none());
        let mut twice = checker(&["rack", "max_per", "2"]);
        twice.placed(&a);
        assert!(twice.broken_by(&a).is_none());
        twice.placed(&a);
        assert_eq!(twice.broken_by(&a).unwrap().to_string(), "rack max_per 2");
        let mut together = checker(&["rack", "cluster"]);
        assert!(together.broken_by(&b).is_none());
        together.placed(&a);
        assert!(together.broken_by(&b).is_some() && together.broken_by(&a).is_none());
    }

    #[test]
    fn group_by_spreads() {
        let (a, b) = (Agent("a", "r1"), Agent("b", "r2"));
        let mut even = checker(&["rack", "group_by"]);
        even.placed(&a);
        assert!(even.broken_by(&a).is_none(), "no other value is known");
        even.note_agent(&b);
        assert!(even.broken_by(&a).is_some() && even.broken_by(&b).is_none());
        even.placed(&b);
        assert!(even.broken_by(&a).is_none());
        let mut known = checker(&["rack", "group_by", "2"]);
        known.placed(&a);
        assert!(known.broken_by(&a).is_some(), "another value is known to exist");
    }

    #[test]
    fn wrong_words() {
        let error =
            |words: &[&str]| Constraint::new(words[0], words[1], words.get(2).copied()).unwrap_err().to_string();
        assert!(error(&["rack", "near"]).starts_with("'near' is not an operator"));
        assert!(error(&["rack", "equal"]).starts_with("'equal' needs a value"));
        assert_eq!(error(&["rack", "unique", "x"]), "'unique' takes no value");
        assert_eq!(error(&["rack", "max_per", "0"]), "'max_per' needs a whole number from 1 on");
        assert_eq!(error(&["rack", "like", "("]), "'(' is not a regular expression: unclosed group");
        assert_eq!(error(&["", "unique"]), "the attribute's name is empty");
    }

    #[test]
    fn kept_and_read_back() {
        for words in [vec!["a", "equal", "b"], vec!["a", "group_by"], vec!["a", "unique"], vec!["a", "max_per", "3"]] {
            let rule = Constraint::new(words[0], words[1], words.get(2).copied()).unwrap();
            let json = serde_json::to_string(&rule).unwrap();
            assert_eq!(serde_json::from_str::<Constraint>(&json).unwrap(), rule, "{json}");
        }
    }
}
