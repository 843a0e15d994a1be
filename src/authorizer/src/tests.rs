//! Properties, against the rule as it is written in docs/mesos/security.md:
//!
//! - [`Authorizer::approves`] follows SEC-21 and SEC-22, with rules of several values split;
//! - a [`Verdict`] other than `Depends` holds for every object;
//! - every invalid text is rejected with an error.

use proptest::prelude::*;

use super::*;
use crate::action::{KNOWN, Kind};

#[derive(Clone, Debug)]
struct PlainEntity {
    kind: &'static str,
    values: Vec<String>,
}

#[derive(Clone, Debug)]
struct PlainRule {
    principals: PlainEntity,
    objects: PlainEntity,
}

/// Returns whether a rule matches (SEC-21): request ANY matches ANY or NONE; request SOME matches ANY, NONE, or SOME
/// that has its value.
fn matches(request: Option<&str>, entity: &PlainEntity, is_same: fn(&str, &str) -> bool) -> bool {
    match (request, entity.kind) {
        (_, "ANY" | "NONE") => true,
        (None, _) => false,
        (Some(value), _) => entity.values.iter().any(|known| is_same(known, value)),
    }
}

/// Returns whether a rule allows (SEC-21): ANY is allowed only by ANY, SOME by ANY or SOME, and NONE never allows.
fn allows(request: Option<&str>, entity: &PlainEntity, is_same: fn(&str, &str) -> bool) -> bool {
    match (request, entity.kind) {
        (_, "ANY") => true,
        (_, "NONE") | (None, _) => false,
        (Some(_), _) => matches(request, entity, is_same),
    }
}

fn same(known: &str, value: &str) -> bool {
    known == value
}

/// Returns whether a rule names a role (SEC-22): `a/%` means what is strictly below `a`.
fn same_role(known: &str, role: &str) -> bool {
    match known.strip_suffix("/%") {
        Some(above) => role.strip_prefix(above).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/')),
        None => known == role,
    }
}

fn plainly(rules: &[PlainRule], permissive: bool, subject: Option<&str>, object: Option<&str>, roles: bool) -> bool {
    let is_same = if roles { same_role } else { same };
    let split = rules.iter().flat_map(|rule| {
        let one = |value: &String| {
            let values = vec![value.clone()];
            PlainRule { objects: PlainEntity { kind: "SOME", values }, ..rule.clone() }
        };
        match rule.objects.kind {
            "SOME" => rule.objects.values.iter().map(one).collect(),
            _ => vec![rule.clone()],
        }
    });
    let split: Vec<PlainRule> = split.collect();
    let first =
        split.iter().find(|rule| matches(subject, &rule.principals, same) && matches(object, &rule.objects, is_same));
    first.map_or(permissive, |rule| allows(subject, &rule.principals, same) && allows(object, &rule.objects, is_same))
}

fn json(rules: &[PlainRule], action: Action, permissive: bool) -> String {
    let known = &KNOWN[action as usize];
    let entity = |entity: &PlainEntity| match entity.kind {
        // The type may be left out.
        "SOME" => format!(r#"{{"values": {:?}}}"#, entity.values),
        kind => format!(r#"{{"type": "{kind}", "values": {:?}}}"#, entity.values),
    };
    let rules: Vec<String> = rules
        .iter()
        .map(|rule| {
            format!(r#"{{"principals": {}, "{}": {}}}"#, entity(&rule.principals), known.object, entity(&rule.objects))
        })
        .collect();
    format!(r#"{{"permissive": {permissive}, "{}": [{}]}}"#, known.key, rules.join(","))
}

fn entities(words: &'static [&'static str]) -> impl Strategy<Value = PlainEntity> {
    let values = prop::collection::vec(prop::sample::select(words).prop_map(str::to_owned), 0..3);
    (prop::sample::select(&["SOME", "SOME", "ANY", "NONE"][..]), values)
        .prop_map(|(kind, values)| PlainEntity { kind, values })
}

const ROLES: &[&str] = &["a", "b", "a/b", "a/b/c", "ab", "a/", "*"];

fn rules() -> impl Strategy<Value = Vec<PlainRule>> {
    let objects = entities(&["a", "b", "a/b", "a/%", "a/b/%", "/%", "%"]);
    let one = (entities(&["ann", "ben"]), objects).prop_map(|(principals, objects)| PlainRule { principals, objects });
    prop::collection::vec(one, 0..4)
}

proptest! {
    #[test]
    fn it_decides_as_the_rule_says(
        rules in rules(),
        permissive: bool,
        subject in prop::option::of(prop::sample::select(&["ann", "ben", "cat"][..])),
        object in prop::option::of(prop::sample::select(ROLES)),
        roles: bool,
    ) {
        let action = if roles { Action::ViewRole } else { Action::RunTask };
        let authorizer = Authorizer::from(Acls::parse(&json(&rules, action, permissive)).unwrap());
        let approved = authorizer.approves(subject, action, object);
        prop_assert_eq!(approved, plainly(&rules, permissive, subject, object, roles));
        prop_assert!(!authorizer.approves(Subject::Claims, action, object));
        match authorizer.verdict(subject, action) {
            Verdict::Depends => {}
            Verdict::Everything => prop_assert!(object.is_none() || approved),
            Verdict::Nothing => prop_assert!(!approved),
        }
        // Other actions have no rules.
        prop_assert_eq!(authorizer.approves(subject, Action::ViewTask, object), permissive);
    }

    #[test]
    fn no_text_is_too_strange(text in ".{0,80}", inner in ".{0,20}") {
        let _ = Acls::parse(&text);
        let _ = Acls::parse(&format!(r#"{{"run_tasks": [{{"principals": {{"type": "{inner}"}}}}]}}"#));
    }
}

#[test]
fn without_lists_everything_is_allowed() {
    let open = Authorizer::default();
    assert!(!open.is_on() && open.approves(None, Action::RunTask, Some("root")));
    assert_eq!(open.verdict(Some("x"), Action::ViewTask), Verdict::Everything);
    assert_eq!(open.approves_all(None, Action::RegisterFramework, []), Ok(()));
}

#[test]
fn all_roles_must_be_allowed() {
    let text = |permissive| {
        format!(
            r#"{{"permissive": {permissive}, "register_frameworks": [
            {{"principals": {{"type": "ANY"}}, "roles": {{"values": ["a", "b/%"]}}}}]}}"#
        )
    };
    let strict = Authorizer::from(Acls::parse(&text(false)).unwrap());
    let all = |roles: &[&'static str]| strict.approves_all(Some("x"), Action::RegisterFramework, roles.iter().copied());
    assert_eq!(all(&["a", "b/c"]), Ok(()));
    assert_eq!(all(&["a", "b"]), Err(Some("b")));
    assert_eq!(all(&[]), Err(None));
    let open = Authorizer::from(Acls::parse(&text(true)).unwrap());
    assert_eq!(open.approves_all(Some("x"), Action::RegisterFramework, []), Ok(()));
}

#[test]
fn without_a_user_all_users_must_be_allowed() {
    let lists = |text: &str| Authorizer::from(Acls::parse(text).unwrap());
    let not_root = lists(r#"{"run_tasks": [{"principals": {"type": "NONE"}, "users": {"values": ["root"]}}]}"#);
    assert!(not_root.may_run_as(Some("p"), "www") && !not_root.may_run_as(Some("p"), "root"));
    assert!(!not_root.may_run_as(Some("p"), ""));
    let of_one = lists(
        r#"{"run_tasks": [{"principals": {"values": ["p"]}, "users": {"type": "ANY"}}, {"principals": {"type": "ANY"}, "users": {"type": "NONE"}}]}"#,
    );
    assert!(of_one.may_run_as(Some("p"), "") && !of_one.may_run_as(Some("q"), ""));
    assert!(Authorizer::default().may_run_as(None, ""));
    // The decision is the same for all objects, so that all subjects that may see everything get the same document.
    assert_eq!(of_one.verdict(Some("p"), Action::RunTask), Verdict::Everything);
    assert_eq!(of_one.verdict(Some("q"), Action::RunTask), Verdict::Nothing);
    assert_eq!(not_root.verdict(Some("p"), Action::RunTask), Verdict::Depends);
}

#[test]
fn every_action_has_its_key() {
    assert_eq!(Action::ALL.len(), KNOWN.len());
    for action in Action::ALL {
        let known = &KNOWN[*action as usize];
        assert_eq!(action.key(), known.key);
        let rule = |object: &str| {
            format!(r#"{{"{}": [{{"principals": {{"type": "ANY"}}, "{}": {object}}}]}}"#, known.key, known.object)
        };
        let none = Acls::parse(&rule(r#"{"type": "NONE"}"#)).unwrap();
        assert!(!Authorizer::from(none).approves(Some("x"), *action, Some("y")));
        let named = Acls::parse(&rule(r#"{"values": ["/metrics/snapshot"]}"#));
        assert_eq!(named.is_err(), known.kind == Kind::AnyOrNone, "{}", known.key);
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |text: &str| Acls::parse(text).unwrap_err().to_string();
    for (text, words) in [
        ("", "is not a JSON object"),
        ("[]", "is not a JSON object"),
        (r#"{"permissive": 1}"#, "'permissive' must be true or false"),
        (r#"{"run_tasks": {}}"#, "'run_tasks' must be a list"),
        (r#"{"run_tasks": [{"users": {}}]}"#, "rule 1 of 'run_tasks': 'principals' is missing"),
        (r#"{"run_tasks": [{"principals": {}}]}"#, "rule 1 of 'run_tasks': 'users' is missing"),
        (r#"{"run_tasks": [{"principals": {}, "users": []}]}"#, "'users' is not an object"),
        (r#"{"run_tasks": [{"principals": {}, "users": {"type": "any"}}]}"#, "'users.type' must be SOME, ANY or NONE"),
        (r#"{"run_tasks": [{"principals": {}, "users": {"values": [1]}}]}"#, "'users.values' is not a list of texts"),
        (
            r#"{"view_flags": [{"principals": {}, "flags": {"type": "ANY"}}, {"principals": {}, "flags": {"values": ["a"]}}]}"#,
            "rule 2 of 'view_flags': 'flags' can only have the type ANY or NONE",
        ),
        (
            r#"{"get_endpoints": [{"principals": {}, "paths": {"values": ["/state"]}}]}"#,
            "rule 1 of 'get_endpoints': '/state' is not an endpoint with authorization",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn misspelt_keys_are_refused_and_the_likely_ones_named() {
    for (text, words) in [
        (r#"{"view_framework": []}"#, "the key 'view_framework' is not known, did you mean 'view_frameworks'?"),
        (r#"{"permisive": false}"#, "the key 'permisive' is not known, did you mean 'permissive'?"),
        (r#"{"something": []}"#, "the key 'something' is not known"),
        (
            r#"{"run_tasks": [{"principals": {"type": "ANY"}, "users": {"type": "NONE"}, "user": {}}]}"#,
            "the key 'user' in rule 1 of 'run_tasks' is not known, did you mean 'users'?",
        ),
        (
            r#"{"run_tasks": [{"principals": {"typ": "ANY"}, "users": {"type": "NONE"}}]}"#,
            "the key 'typ' of 'principals' in rule 1 of 'run_tasks' is not known, did you mean 'type'?",
        ),
        (
            r#"{"run_tasks": [{"principals": {}, "users": {"value": ["a"]}}]}"#,
            "the key 'value' of 'users' in rule 1 of 'run_tasks' is not known, did you mean 'values'?",
        ),
    ] {
        assert_eq!(Acls::parse(text).unwrap_err().to_string(), words);
    }
}
