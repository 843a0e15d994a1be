//! Parser of offer constraints, as a framework sends them (SCH-110 to SCH-113).
//!
//! It does not compare agents with them; the allocator does.

use std::collections::BTreeMap;

use super::sizes;
use allocator::{Constraint, Predicate, RegexLimits, Selector};
use protos::mesos::scheduler::attribute_constraint::predicate::Predicate as Wire;
use protos::mesos::scheduler::attribute_constraint::selector::{PseudoattributeType, Selector as WireSelector};
use protos::mesos::scheduler::{AttributeConstraint, OfferConstraints};

/// Parses offer constraints. Returns empty ones if the framework sent none.
///
/// # Errors
/// The rule that they break, in Mesos's words.
pub(crate) fn offer_constraints(
    sent: Option<&OfferConstraints>,
    limits: RegexLimits,
) -> Result<allocator::OfferConstraints, String> {
    sizes::constraints(sent)?;
    let mut roles = BTreeMap::new();
    for (role, of_role) in sent.iter().flat_map(|sent| &sent.role_constraints) {
        let group = |constraints: &[AttributeConstraint]| constraints.iter().map(constraint).collect();
        let groups: Result<Vec<Vec<Constraint>>, &str> =
            of_role.groups.iter().map(|sent| group(&sent.attribute_constraints)).collect();
        let groups = groups.map_err(|why| format!("A role {role} has an invalid 'AttributeConstraint': {why}"))?;
        roles.insert(role.clone(), groups);
    }
    allocator::OfferConstraints::new(roles, limits).map_err(|why| why.to_string())
}

fn constraint(sent: &AttributeConstraint) -> Result<Constraint, &'static str> {
    let selector = match &sent.selector.selector {
        None => {
            return Err("Exactly one of 'AttributeConstraint::Selector::name' or \
                        'AttributeConstraint::Selector::pseudoattribute_type' must be set");
        }
        Some(WireSelector::AttributeName(name)) => Selector::Attribute(name.clone()),
        Some(WireSelector::PseudoattributeType(kind)) => match PseudoattributeType::try_from(*kind) {
            Ok(PseudoattributeType::Hostname) => Selector::Hostname,
            Ok(PseudoattributeType::Region) => Selector::Region,
            Ok(PseudoattributeType::Zone) => Selector::Zone,
            Ok(PseudoattributeType::Unknown) | Err(_) => return Err("Unknown pseudoattribute type"),
        },
    };
    let predicate = match &sent.predicate.predicate {
        None => return Err("Unknown predicate type"),
        Some(Wire::Exists(_)) => Predicate::Exists,
        Some(Wire::NotExists(_)) => Predicate::NotExists,
        Some(Wire::TextEquals(text)) => Predicate::TextEquals(text.value.clone()),
        Some(Wire::TextNotEquals(text)) => Predicate::TextNotEquals(text.value.clone()),
        Some(Wire::TextMatches(text)) => Predicate::TextMatches(text.regex.clone()),
        Some(Wire::TextNotMatches(text)) => Predicate::TextNotMatches(text.regex.clone()),
    };
    Ok(Constraint { selector, predicate })
}
