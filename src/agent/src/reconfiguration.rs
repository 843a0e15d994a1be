//! Decides whether an agent may keep its id with changed flags (AGT-26).

use protos::mesos::{self as pb, value::Type};
use resources::{InvalidResource, Resource, Resources};

use crate::config::Reconfiguration;

/// A difference that the reconfiguration policy does not permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// The hostname has changed.
    #[error("the hostname was '{0}' and is '{1}'")]
    Hostname(String, String),
    /// The port has changed.
    #[error("the port was {0} and is {1}")]
    Port(i32, i32),
    /// The old or the new resources are invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidResource),
    /// The resources have changed.
    #[error("the resources were {0} and are {1}")]
    Resources(Resources, Resources),
    /// The agent has less of this resource.
    #[error("there is less than {0}")]
    Less(Resource),
    /// The attributes have changed.
    #[error("the attributes were '{0}' and are '{1}'")]
    Attributes(String, String),
    /// This attribute is missing or has changed.
    #[error("the attribute '{0}' is missing or has changed")]
    Attribute(String),
    /// The fault domain has changed.
    #[error("the domain has changed")]
    Domain,
}

/// Checks the agent's new info against the one that it registered with.
///
/// # Errors
/// The first difference that the policy does not permit.
pub(crate) fn check(policy: Reconfiguration, old: &pb::SlaveInfo, new: &pb::SlaveInfo) -> Result<(), Incompatible> {
    if old.hostname != new.hostname {
        return Err(Incompatible::Hostname(old.hostname.clone(), new.hostname.clone()));
    }
    if old.port() != new.port() {
        return Err(Incompatible::Port(old.port(), new.port()));
    }
    let (old_resources, new_resources) =
        (resources::from_proto(&old.resources)?, resources::from_proto(&new.resources)?);
    match policy {
        Reconfiguration::Equal => equal(old, new, &old_resources, &new_resources),
        Reconfiguration::Additive => additive(old, new, &old_resources, &new_resources),
    }
}

fn equal(old: &pb::SlaveInfo, new: &pb::SlaveInfo, was: &Resources, is: &Resources) -> Result<(), Incompatible> {
    if was != is {
        return Err(Incompatible::Resources(was.clone(), is.clone()));
    }
    let sorted = |info: &pb::SlaveInfo| {
        let mut attributes = info.attributes.clone();
        attributes.sort_by(|a, b| a.name.cmp(&b.name));
        attributes
    };
    if sorted(old) != sorted(new) {
        let text = |info: &pb::SlaveInfo| resources::attributes_text(&info.attributes);
        return Err(Incompatible::Attributes(text(old), text(new)));
    }
    if old.domain != new.domain {
        return Err(Incompatible::Domain);
    }
    Ok(())
}

fn additive(old: &pb::SlaveInfo, new: &pb::SlaveInfo, was: &Resources, is: &Resources) -> Result<(), Incompatible> {
    if old.domain.is_some() && old.domain != new.domain {
        return Err(Incompatible::Domain);
    }
    for resource in was {
        let kept = is.iter().any(|other| other.contains(resource));
        if !kept {
            return Err(Incompatible::Less(resource.clone()));
        }
    }
    for attribute in &old.attributes {
        let kept = new.attributes.iter().any(|other| other.name == attribute.name && includes(other, attribute));
        if !kept {
            let text = resources::attributes_text(std::slice::from_ref(attribute));
            return Err(Incompatible::Attribute(text));
        }
    }
    Ok(())
}

/// Returns whether an attribute includes its former value: ranges may grow, all others must be equal.
fn includes(new: &pb::Attribute, old: &pb::Attribute) -> bool {
    if new.r#type != old.r#type {
        return false;
    }
    if old.r#type != Type::Ranges as i32 {
        return new == old;
    }
    let ranges = |attribute: &pb::Attribute| {
        attribute.ranges.as_ref().map(resources::Ranges::from_proto).unwrap_or_else(|| resources::Ranges::new([]))
    };
    ranges(new).contains(&ranges(old))
}

#[cfg(test)]
mod tests {
    use super::*;
    use resources::{Format, Role, parse_attributes, parse_text};

    fn info(resources: &str, attributes: &str) -> pb::SlaveInfo {
        pb::SlaveInfo {
            hostname: "h".into(),
            resources: parse_text(resources, &Role::star()).unwrap().to_proto(Format::PostRefinement),
            attributes: parse_attributes(attributes).unwrap(),
            ..pb::SlaveInfo::default()
        }
    }

    #[test]
    fn equal_refuses_every_difference() {
        let old = info("cpus:4;mem:1024", "rack:r1");
        let check = |new: &pb::SlaveInfo| check(Reconfiguration::Equal, &old, new);
        assert_eq!(check(&info("mem:1024;cpus:4", "rack:r1")), Ok(()));
        assert!(
            check(&info("cpus:5;mem:1024", "rack:r1")).is_err_and(|why| matches!(why, Incompatible::Resources(..)))
        );
        assert!(
            check(&info("cpus:4;mem:1024", "rack:r2")).is_err_and(|why| matches!(why, Incompatible::Attributes(..)))
        );
        let mut moved = old.clone();
        moved.hostname = "other".into();
        assert!(check(&moved).is_err_and(|why| matches!(why, Incompatible::Hostname(..))));
    }

    #[test]
    fn additive_lets_an_agent_grow_and_not_shrink() {
        let old = info("cpus:4;mem:1024;ports:[1-10]", "rack:r1;span:[1-5]");
        let check = |new: &pb::SlaveInfo| check(Reconfiguration::Additive, &old, new);
        assert_eq!(check(&info("cpus:6;mem:1024;ports:[1-20];widgets:3", "rack:r1;span:[1-9];size:7")), Ok(()));
        assert!(
            check(&info("cpus:3;mem:1024;ports:[1-10]", "rack:r1;span:[1-5]"))
                .unwrap_err()
                .to_string()
                .contains("cpus")
        );
        assert!(check(&info("cpus:4;mem:1024;ports:[2-10]", "rack:r1;span:[1-5]")).is_err());
        assert!(
            check(&info("cpus:4;mem:1024;ports:[1-10]", "rack:r2;span:[1-5]"))
                .unwrap_err()
                .to_string()
                .contains("rack")
        );
        assert!(
            check(&info("cpus:4;mem:1024;ports:[1-10]", "rack:r1;span:[2-5]"))
                .unwrap_err()
                .to_string()
                .contains("span")
        );
    }
}
