//! Offer constraints: conditions on the attributes of agents that a framework is offered in a role (SCH-110 to
//! SCH-113).
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

/// Property of an agent that a constraint tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The first attribute of that name.
    Attribute(String),
    /// The hostname, which every agent has.
    Hostname,
    /// The region of the agent's fault domain; missing without a domain.
    Region,
    /// The zone of the agent's fault domain; missing without a domain.
    Zone,
}

/// A condition on an attribute. The four conditions on text are true of an attribute that is not text. If the attribute
/// is missing, the negated conditions are true and the others false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// The attribute exists.
    Exists,
    /// The attribute is missing.
    NotExists,
    /// The attribute's text is equal to this.
    TextEquals(String),
    /// The attribute's text differs from this.
    TextNotEquals(String),
    /// This regular expression (RE2's syntax) matches the whole of the attribute's text.
    TextMatches(String),
    /// This regular expression does not match the whole of the attribute's text.
    TextNotMatches(String),
}

/// A condition on one property of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Selected property. It may be missing, as in the message.
    pub selector: Selector,
    /// Condition that must hold for the property.
    pub predicate: Predicate,
}

/// Reasons why constraints are refused, in Mesos's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintsError {
    /// A role has an empty list of groups.
    #[error("'OfferConstraints::role_constraints' has an empty 'RoleConstraints::groups' for role {role}")]
    NoGroups {
        /// Role of the entry.
        role: String,
    },
    /// A group has no constraints.
    #[error("'OfferConstraints::RoleConstraints::groups' for role {role} contains an empty RoleConstraints::Group")]
    EmptyGroup {
        /// Role of the entry.
        role: String,
    },
    /// A regular expression cannot be used.
    #[error("A role {role} has an invalid 'AttributeConstraint': {why}")]
    Pattern {
        /// Role of the entry.
        role: String,
        /// Error of the expression.
        why: PatternError,
    },
}

/// An attribute of an agent as constraints see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Name of the attribute.
    pub name: String,
    /// Text of the attribute; `None` if it is a number, ranges or a set.
    pub text: Option<String>,
}

/// Compiled offer constraints of a framework in all of its roles; empty if the framework sent none. `clone` is cheap.
#[derive(Clone, Debug, Default)]
pub struct OfferConstraints {
    /// Groups by the name of the role, which need not exist.
    roles: Arc<BTreeMap<String, Groups>>,
}

type Groups = Vec<Vec<Test>>;

/// Compiled expressions by text. Each is compiled once, however many constraints use it.
type Patterns = BTreeMap<String, Arc<Pattern>>;

/// A constraint with its compiled expression.
#[derive(Debug)]
struct Test {
    constraint: Constraint,
    pattern: Option<Arc<Pattern>>,
}

impl PartialEq for Test {
    fn eq(&self, other: &Test) -> bool {
        // Equal constraints have equal patterns.
        self.constraint == other.constraint
    }
}

impl PartialEq for OfferConstraints {
    fn eq(&self, other: &OfferConstraints) -> bool {
        Arc::ptr_eq(&self.roles, &other.roles) || self.roles == other.roles
    }
}

impl OfferConstraints {
    /// Compiles constraints, which are given as groups per role.
    ///
    /// # Errors
    /// There is no group, an empty group, or an expression that is invalid or too large for `limits`.
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

    /// Returns whether an agent may be offered in this role.
    #[must_use]
    pub fn allow(&self, role: &Role, agent: &AgentOptions) -> bool {
        // Nearly all frameworks have none.
        self.roles.is_empty()
            || self
                .roles
                .get(role.as_str())
                .is_none_or(|groups| groups.iter().any(|g| g.iter().all(|t| t.holds(agent))))
    }

    /// Returns whether a role has constraints.
    pub(crate) fn are_for(&self, role: &Role) -> bool {
        self.roles.contains_key(role.as_str())
    }

    /// Returns whether there are no constraints in any role.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Returns whether two sets of constraints are equal for a role.
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
            // An attribute that is not text passes.
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
