//! Size limits of infos of frameworks and agents. Mesos has none; infos are kept and shown in every document, so each
//! limit is far above what clients send, and far below what would delay the master.
//!
//! Ids and names of roles have at most 255 bytes and are checked where they are read.

use std::collections::BTreeSet;

use prost::Message as _;
use protos::mesos::scheduler::OfferConstraints;
use protos::mesos::scheduler::attribute_constraint::predicate::Predicate;
use protos::mesos::{ExecutorInfo, FrameworkInfo, Labels, SlaveInfo, TaskInfo};

/// Limit of a name, a user, a principal, a hostname or a URL, in bytes.
const NAME_MAX: usize = 8 << 10;
/// Limit of a list of labels, in bytes of keys and values together.
const LABELS_MAX: usize = 1 << 20;
/// Limit of the number of a framework's roles, and of its suppressed roles.
const ROLES_MAX: usize = 10_000;
/// Limits of a framework's info, and of a task's discovery info, in bytes as protobuf.
const INFO_MAX: usize = 8 << 20;
const DISCOVERY_MAX: usize = 1 << 20;
/// Limit of the attributes of an agent, in bytes as protobuf.
const ATTRIBUTES_MAX: usize = 1 << 20;
/// Limits of the offer constraints of a framework: their number, their bytes as protobuf, and the number of different
/// expressions to compile.
const CONSTRAINTS_MAX: usize = 10_000;
const CONSTRAINTS_BYTES_MAX: usize = 4 << 20;
const EXPRESSIONS_MAX: usize = 1_000;

fn at_most(what: &str, size: usize, limit: usize, unit: &str) -> Result<(), String> {
    if size <= limit { Ok(()) } else { Err(format!("{what} has {size} {unit}, and the limit is {limit}")) }
}

fn name(what: &str, text: Option<&str>) -> Result<(), String> {
    at_most(what, text.map_or(0, str::len), NAME_MAX, "bytes")
}

fn labels(what: &str, labels: Option<&Labels>) -> Result<(), String> {
    let one = |label: &protos::mesos::Label| label.key.len() + label.value.as_ref().map_or(0, String::len);
    let bytes = labels.map_or(0, |labels| labels.labels.len() + labels.labels.iter().map(one).sum::<usize>());
    at_most(what, bytes, LABELS_MAX, "bytes")
}

/// Checks a framework's info.
///
/// # Errors
/// The first item that is too large, and its limit.
pub(crate) fn framework(info: &FrameworkInfo) -> Result<(), String> {
    for (what, text) in [
        ("'FrameworkInfo.name'", Some(info.name.as_str())),
        ("'FrameworkInfo.user'", Some(info.user.as_str())),
        ("'FrameworkInfo.hostname'", info.hostname.as_deref()),
        ("'FrameworkInfo.principal'", info.principal.as_deref()),
        ("'FrameworkInfo.webui_url'", info.webui_url.as_deref()),
    ] {
        name(what, text)?;
    }
    at_most("'FrameworkInfo.roles'", info.roles.len(), ROLES_MAX, "roles")?;
    labels("'FrameworkInfo.labels'", info.labels.as_ref())?;
    at_most("FrameworkInfo", info.encoded_len(), INFO_MAX, "bytes")
}

/// Checks the number of roles that a framework suppresses.
///
/// # Errors
/// There are too many.
pub(crate) fn suppressed(roles: &[String]) -> Result<(), String> {
    at_most("'suppressed_roles'", roles.len(), ROLES_MAX, "roles")
}

/// Checks offer constraints, if the framework sent some.
///
/// # Errors
/// The item with too many entries, and its limit.
pub(crate) fn constraints(sent: Option<&OfferConstraints>) -> Result<(), String> {
    let Some(sent) = sent else { return Ok(()) };
    let groups = || sent.role_constraints.values().flat_map(|of_role| &of_role.groups);
    // An empty group is invalid, but takes time like the others.
    let number = groups().map(|group| group.attribute_constraints.len().max(1)).sum();
    at_most("'offer_constraints'", number, CONSTRAINTS_MAX, "constraints")?;
    at_most("'offer_constraints'", sent.encoded_len(), CONSTRAINTS_BYTES_MAX, "bytes")?;
    let all = groups().flat_map(|group| &group.attribute_constraints);
    let expressions: BTreeSet<&str> = all
        .filter_map(|constraint| match constraint.predicate.predicate.as_ref()? {
            Predicate::TextMatches(text) => Some(text.regex.as_str()),
            Predicate::TextNotMatches(text) => Some(text.regex.as_str()),
            _ => None,
        })
        .collect();
    at_most("'offer_constraints'", expressions.len(), EXPRESSIONS_MAX, "different regular expressions")
}

/// Checks the fields of a task that the master stores.
///
/// # Errors
/// The first item that is too large, and its limit.
pub(crate) fn task(info: &TaskInfo) -> Result<(), String> {
    name("'TaskInfo.name'", Some(info.name.as_str()))?;
    labels("'TaskInfo.labels'", info.labels.as_ref())?;
    at_most(
        "'TaskInfo.discovery'",
        info.discovery.as_ref().map_or(0, |part| part.encoded_len()),
        DISCOVERY_MAX,
        "bytes",
    )
}

/// Checks the fields of an executor that the master stores.
///
/// # Errors
/// The first item that is too large, and its limit.
#[allow(deprecated)]
pub(crate) fn executor(info: &ExecutorInfo) -> Result<(), String> {
    name("'ExecutorInfo.name'", info.name.as_deref())?;
    name("'ExecutorInfo.source'", info.source.as_deref())?;
    labels("'ExecutorInfo.labels'", info.labels.as_ref())?;
    let discovery = info.discovery.as_ref().map_or(0, |part| part.encoded_len());
    at_most("'ExecutorInfo.discovery'", discovery, DISCOVERY_MAX, "bytes")
}

/// Checks an agent's info.
///
/// # Errors
/// The first item that is too large, and its limit.
pub(crate) fn agent(info: &SlaveInfo) -> Result<(), String> {
    name("'SlaveInfo.hostname'", Some(info.hostname.as_str()))?;
    let attributes = info.attributes.iter().map(|attribute| attribute.encoded_len()).sum();
    at_most("'SlaveInfo.attributes'", attributes, ATTRIBUTES_MAX, "bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::Label;
    use protos::mesos::scheduler::attribute_constraint::{self, predicate};
    use protos::mesos::scheduler::{AttributeConstraint, offer_constraints};

    fn long() -> String {
        "x".repeat(NAME_MAX + 1)
    }

    fn large() -> Option<Labels> {
        let label = Label { key: "k".to_owned(), value: Some("v".repeat(LABELS_MAX)) };
        Some(Labels { labels: vec![label] })
    }

    #[test]
    fn each_item_has_a_limit() {
        let good = FrameworkInfo { name: "x".repeat(NAME_MAX), ..Default::default() };
        assert_eq!(framework(&good), Ok(()));
        let roles: Vec<String> = (0..=ROLES_MAX).map(|n| format!("r{n}")).collect();
        let other = FrameworkInfo::default;
        for (info, words) in [
            (FrameworkInfo { name: long(), ..other() }, "'FrameworkInfo.name' has 8193 bytes, and the limit is 8192"),
            (FrameworkInfo { user: long(), ..other() }, "'FrameworkInfo.user' has 8193 bytes, and the limit is 8192"),
            (
                FrameworkInfo { principal: Some(long()), ..other() },
                "'FrameworkInfo.principal' has 8193 bytes, and the limit is 8192",
            ),
            (
                FrameworkInfo { roles: roles.clone(), ..other() },
                "'FrameworkInfo.roles' has 10001 roles, and the limit is 10000",
            ),
            (
                FrameworkInfo { labels: large(), ..other() },
                "'FrameworkInfo.labels' has 1048578 bytes, and the limit is 1048576",
            ),
        ] {
            assert_eq!(framework(&info), Err(words.to_owned()));
        }
        let capabilities = vec![Default::default(); INFO_MAX];
        let words = framework(&FrameworkInfo { capabilities, ..other() }).unwrap_err();
        assert!(words.starts_with("FrameworkInfo has ") && words.ends_with("the limit is 8388608"), "{words}");
        assert_eq!(suppressed(&roles).unwrap_err(), "'suppressed_roles' has 10001 roles, and the limit is 10000");

        assert!(task(&TaskInfo { name: long(), ..Default::default() }).unwrap_err().starts_with("'TaskInfo.name'"));
        assert!(
            task(&TaskInfo { labels: large(), ..Default::default() }).unwrap_err().starts_with("'TaskInfo.labels'")
        );
        let info = ExecutorInfo { name: Some(long()), ..Default::default() };
        assert!(executor(&info).unwrap_err().starts_with("'ExecutorInfo.name'"));
        let info = SlaveInfo { hostname: long(), ..Default::default() };
        assert!(agent(&info).unwrap_err().starts_with("'SlaveInfo.hostname'"));
    }

    fn matching(expressions: impl Iterator<Item = String>) -> OfferConstraints {
        let constraint = |regex| AttributeConstraint {
            selector: Default::default(),
            predicate: attribute_constraint::Predicate {
                predicate: Some(Predicate::TextMatches(predicate::TextMatches { regex })),
            },
        };
        let group =
            |regex| offer_constraints::role_constraints::Group { attribute_constraints: vec![constraint(regex)] };
        let groups = expressions.map(group).collect();
        OfferConstraints { role_constraints: [("r".to_owned(), offer_constraints::RoleConstraints { groups })].into() }
    }

    #[test]
    fn constraints_have_limits_of_number_and_size() {
        let checked = |expressions: Vec<String>| constraints(Some(&matching(expressions.into_iter())));
        assert_eq!(checked((0..EXPRESSIONS_MAX).map(|n| n.to_string()).collect()), Ok(()));
        assert_eq!(checked(vec!["same".to_owned(); CONSTRAINTS_MAX]), Ok(()));
        for (expressions, words) in [
            (vec!["same".to_owned(); 200_000], "'offer_constraints' has 200000 constraints, and the limit is 10000"),
            (
                (0..=EXPRESSIONS_MAX).map(|n| n.to_string()).collect(),
                "'offer_constraints' has 1001 different regular expressions, and the limit is 1000",
            ),
        ] {
            assert_eq!(checked(expressions), Err(words.to_owned()));
        }
        let words = checked(vec!["x".repeat(CONSTRAINTS_BYTES_MAX)]).unwrap_err();
        assert!(words.ends_with("bytes, and the limit is 4194304"), "{words}");
    }
}
