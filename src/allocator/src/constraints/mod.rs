//! Offer constraints: conditions on the attributes of agents that a framework is offered in a role (
//! 1.6).
//!
//! An agent qualifies if all constraints of at least one group hold. A role without an entry accepts every agent. This
//! module uses [`AgentOptions`], and reads no messages: the caller converts its own to [`Constraint`]s.

mod pattern;

use std::collections::BTreeMap;
use std::sync::Arc;

use resources::Role;

use crate::AgentOptions;
use pattern::Pattern;
pub use pattern::{PatternError, RegexLimits};

/// The property of an agent that a constraint tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The first attribute of that name.
    Attribute(String),
    /// The host name; every agent has one.
    Hostname,
    /// The region of its fault domain; an agent without a domain has none.
    Region,
    /// The zone of its fault domain, likewise.
    Zone,
}

/// The condition on an attribute. The four conditions on text are true of an attribute that is not text. Without the
/// attribute, the negated conditions are true and the others false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// It is there.
    Exists,
    /// It is not there.
    NotExists,
    /// Its text is this.
    TextEquals(String),
    /// Its text is not this.
    TextNotEquals(String),
    /// This regular expression (RE2's syntax) matches the whole of its text.
    TextMatches(String),
    /// It does not.
    TextNotMatches(String),
}

/// One constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The selected property; it may be missing, as in the message.
    pub selector: Selector,
    /// What must hold.
    pub predicate: Predicate,
}

/// Why constraints are refused: the words are Mesos's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintsError {
    /// A role with a list of groups that is empty.
    #[error("'OfferConstraints::role_constraints' has an empty 'RoleConstraints::groups' for role {role}")]
    NoGroups {
        /// The role of the entry.
        role: String,
    },
    /// A group without constraints.
    #[error("'OfferConstraints::RoleConstraints::groups' for role {role} contains an empty RoleConstraints::Group")]
    EmptyGroup {
        /// The role of the entry.
        role: String,
    },
    /// A regular expression that cannot be used.
    #[error("A role {role} has an invalid 'AttributeConstraint': {why}")]
    Pattern {
        /// The role of the entry.
        role: String,
        /// What is wrong with it.
        why: PatternError,
    },
}

/// An attribute of an agent as constraints see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its text; none if it is a number, ranges or a set.
    pub text: Option<String>,
}

/// Parsed offer constraints of a framework in all of its roles; empty if the framework sent none. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct OfferConstraints {
    /// By role name, which need not be one that exists.
    roles: Arc<BTreeMap<String, Groups>>,
}

type Groups = Vec<Vec<Test>>;

/// Each expression is compiled once, however many constraints have it.
type Patterns = BTreeMap<String, Arc<Pattern>>;

/// A constraint whose expression has been compiled.
#[derive(Debug)]
struct Test {
    constraint: Constraint,
    pattern: Option<Arc<Pattern>>,
}

impl PartialEq for Test {
    fn eq(&self, other: &Test) -> bool {
        // A pattern follows from its constraint.
        self.constraint == other.constraint
    }
}

impl PartialEq for OfferConstraints {
    fn eq(&self, other: &OfferConstraints) -> bool {
        Arc::ptr_eq(&self.roles, &other.roles) || self.roles == other.roles
    }
}

impl OfferConstraints {
    /// Makes constraints ready for use: per role, groups of constraints.
    ///
    /// # Errors
    /// No group, an empty group, or an expression that is broken or too large for `limits`.
    pub fn new(
        roles: BTreeMap<String, Vec<Vec<Constraint>>>,
        limits: RegexLimits,
    ) -> Result<OfferConstraints, ConstraintsError> {
        let (mut compiled, mut patterns) = (BTreeMap::new(), Patterns::default());
        for (role, groups) in roles {
            if groups.is_empty() {
                return Err(ConstraintsError::NoGroups { role });
            }
            if groups.iter().any(Vec::is_empty) {
                return Err(ConstraintsError::EmptyGroup { role });
            }
            let mut test = |constraint| Test::new(constraint, limits, &mut patterns);
            let group = |group: Vec<Constraint>| group.into_iter().map(&mut test).collect();
            let groups: Result<Groups, PatternError> = groups.into_iter().map(group).collect();
            let groups = groups.map_err(|why| ConstraintsError::Pattern { role: role.clone(), why })?;
            compiled.insert(role, groups);
        }
        Ok(OfferConstraints { roles: Arc::new(compiled) })
    }

    /// Whether an agent may be offered in this role.
    #[must_use]
    pub fn allow(&self, role: &Role, agent: &AgentOptions) -> bool {
        // Nearly all frameworks have none.
        self.roles.is_empty()
            || self
                .roles
                .get(role.as_str())
                .is_none_or(|groups| groups.iter().any(|g| g.iter().all(|t| t.holds(agent))))
    }

    /// Whether a role has constraints.
    pub(crate) fn are_for(&self, role: &Role) -> bool {
        self.roles.contains_key(role.as_str())
    }

    /// Without constraints in any role.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Whether two say the same about a role.
    pub(crate) fn same_in(&self, role: &Role, other: &OfferConstraints) -> bool {
        Arc::ptr_eq(&self.roles, &other.roles) || self.roles.get(role.as_str()) == other.roles.get(role.as_str())
    }
}

impl Test {
    fn new(constraint: Constraint, limits: RegexLimits, known: &mut Patterns) -> Result<Test, PatternError> {
        let (Predicate::TextMatches(text) | Predicate::TextNotMatches(text)) = &constraint.predicate else {
            return Ok(Test { constraint, pattern: None });
        };
        let pattern = match known.get(text) {
            Some(pattern) => Arc::clone(pattern),
            None => {
                let pattern = Arc::new(Pattern::new(text, limits)?);
                known.insert(text.clone(), Arc::clone(&pattern));
                pattern
            }
        };
        Ok(Test { constraint, pattern: Some(pattern) })
    }

    fn holds(&self, agent: &AgentOptions) -> bool {
        let found = match &self.constraint.selector {
            Selector::Attribute(name) => {
                agent.attributes.iter().find(|attribute| attribute.name == *name).map(|a| a.text.as_deref())
            }
            Selector::Hostname => Some(Some(agent.hostname.as_str())),
            Selector::Region => agent.region.as_deref().map(Some),
            Selector::Zone => agent.zone.as_deref().map(Some),
        };
        let matches = |text| self.pattern.as_ref().is_some_and(|pattern| pattern.matches(text));
        match (found, &self.constraint.predicate) {
            (found, Predicate::Exists) => found.is_some(),
            (found, Predicate::NotExists) => found.is_none(),
            // What is there and is not text is left alone.
            (Some(None), _) => true,
            (Some(Some(text)), Predicate::TextEquals(value)) => text == value,
            (Some(Some(text)), Predicate::TextNotEquals(value)) => text != value,
            (Some(Some(text)), Predicate::TextMatches(_)) => matches(text),
            (Some(Some(text)), Predicate::TextNotMatches(_)) => !matches(text),
            (None, Predicate::TextEquals(_) | Predicate::TextMatches(_)) => false,
            (None, Predicate::TextNotEquals(_) | Predicate::TextNotMatches(_)) => true,
        }
    }
}

#[cfg(test)]
mod tests;
