//! Whether offer constraints can be understood (mesos-features.md SCH-110 to SCH-113).
//!
//! It does not hold agents against them.

use protos::mesos::scheduler::attribute_constraint::selector::{PseudoattributeType, Selector};
use protos::mesos::scheduler::{AttributeConstraint, OfferConstraints};
use resources::Role;

pub(crate) fn offer_constraints(constraints: Option<&OfferConstraints>) -> Result<(), String> {
    for (role, of_role) in constraints.iter().flat_map(|constraints| &constraints.role_constraints) {
        let invalid = |why: String| format!("OfferConstraints for role '{role}' are invalid: {why}");
        Role::parse(role).map_err(|why| invalid(why.to_string()))?;
        if of_role.groups.is_empty() {
            return Err(invalid("an empty list of groups is not allowed".to_owned()));
        }
        for group in &of_role.groups {
            if group.attribute_constraints.is_empty() {
                return Err(invalid("an empty group is not allowed".to_owned()));
            }
            group.attribute_constraints.iter().try_for_each(constraint).map_err(invalid)?;
        }
    }
    Ok(())
}

fn constraint(constraint: &AttributeConstraint) -> Result<(), String> {
    match &constraint.selector.selector {
        None => return Err("a selector must name an attribute or a pseudoattribute".to_owned()),
        Some(Selector::PseudoattributeType(kind)) => match PseudoattributeType::try_from(*kind) {
            Ok(PseudoattributeType::Unknown) | Err(_) => return Err("unknown pseudoattribute type".to_owned()),
            Ok(_) => {}
        },
        Some(Selector::AttributeName(_)) => {}
    }
    match constraint.predicate.predicate {
        Some(_) => Ok(()),
        None => Err("unknown predicate type".to_owned()),
    }
}
