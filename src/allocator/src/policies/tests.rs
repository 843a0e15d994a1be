//! Defaults, inheritance, and the errors of invalid policies.

use std::time::Duration;

use resources::Role;

use super::*;

fn role(name: &str) -> Role {
    Role::parse(name).unwrap()
}

fn read(text: &str) -> Result<Policies, String> {
    let policies: Policies = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    policies.check().map_err(|error| error.to_string())?;
    Ok(policies)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn without_policies_everything_is_as_in_mesos() {
    let none = read("").unwrap();
    assert_eq!(none, Policies::default());
    assert_eq!(none.offer_timeout("f", "f", &role("a")), None);
    assert_eq!(none.max_offered_share("f", "f"), None);
    for seconds in [None, Some(-1.0), Some(f64::NAN), Some(0.0), Some(0.25), Some(1e300), Some(7.0)] {
        assert_eq!(none.filter(&role("a"), seconds), Filter::from_refuse_seconds(seconds), "{seconds:?}");
    }
}

#[test]
fn the_most_special_timeout_holds() {
    let policies = read(
        r#"
        offer_timeout = "10mins"
        [roles.a]
        offer_timeout = "1mins"
        [roles."a/b"]
        refusal = { max = "1mins" }
        [frameworks.slow]
        offer_timeout = "2hrs"
        [frameworks."id-1"]
        offer_timeout = "3secs"
    "#,
    )
    .unwrap();
    assert_eq!(policies.offer_timeout("x", "x", &role("c")), Some(secs(600)));
    assert_eq!(policies.offer_timeout("x", "x", &role("a/b/c")), Some(secs(60)), "from the nearest role that says so");
    assert_eq!(policies.offer_timeout("id-2", "slow", &role("a")), Some(secs(7200)));
    assert_eq!(policies.offer_timeout("id-1", "slow", &role("a")), Some(secs(3)), "the id comes first");
}

#[test]
fn refusals_keep_their_limits() {
    let policies = read(
        r#"
        refusal = { default = "10secs", min = "2secs" }
        [roles.batch]
        refusal = { max = "5secs" }
    "#,
    )
    .unwrap();
    let filter = |name: &str, seconds| policies.filter(&role(name), seconds).refuse;
    assert_eq!(filter("a", None), secs(10));
    assert_eq!(filter("a", Some(0.0)), secs(2));
    assert_eq!(filter("batch", None), secs(5), "an inherited default is moved into the role's own limits");
    assert_eq!(filter("batch/night", Some(3600.0)), secs(5));
    assert_eq!(policies.timed_out(&role("a")), None);
}

#[test]
fn what_contradicts_itself_is_refused_with_the_reason() {
    for (text, why) in [
        (r#"offer_timeout = "0secs""#, "offer_timeout must be greater than zero"),
        (r#"max_offered_share = 1.5"#, "max_offered_share must be above 0 and at most 1, not 1.5"),
        (r#"max_offered_share = nan"#, "max_offered_share must be above 0 and at most 1, not NaN"),
        (r#"refusal = { min = "10secs", max = "5secs" }"#, "refusal: min (10secs) is greater than max (5secs)"),
        (
            r#"refusal = { default = "1mins", max = "5secs" }"#,
            "refusal: default (1mins) is not between min (0ns) and max (5secs)",
        ),
        (
            "refusal = { min = \"10secs\" }\n[roles.a]\nrefusal = { max = \"5secs\" }",
            "roles.a.refusal: min (10secs) is greater than max (5secs)",
        ),
        (r#"refusal = { timed_out = "0secs" }"#, "refusal.timed_out must be greater than zero"),
        (r#"refusal = { timed_out = "366days" }"#, "refusal.timed_out (366days) is longer than 365 days"),
        (r#"refusal = { max = "366days" }"#, "refusal.max (366days) is longer than 365 days"),
        (
            r#"refusal = { backoff = { factor = 1.0, max = "1mins" } }"#,
            "refusal.backoff.factor must be above 1 and at most 100, not 1",
        ),
        (
            r#"adaptive_timeout = { min = "2mins", max = "1mins" }"#,
            "adaptive_timeout: min (2mins) is greater than max (1mins)",
        ),
        (r#"offer_granularity = "cpus:0""#, "offer_granularity must name at least one resource"),
        (r#"offer_granularity = "cpus:-1""#, "Invalid amount of 'cpus'"),
        ("[frameworks.f]\noffer_timeout = \"0secs\"", "frameworks.f.offer_timeout must be greater than zero"),
        ("[roles.\"a//b\"]\n", "role 'a//b'"),
        (r#"ofer_timeout = "1secs""#, "unknown field `ofer_timeout`"),
        (r#"offer_timeout = "5""#, "Invalid duration '5'"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.starts_with(why), "{text}: {error}");
    }
}

#[test]
fn written_and_read_again() {
    let policies = read(
        r#"
        offer_timeout = "10mins"
        max_offered_share = 0.25
        offer_granularity = "cpus:8; mem:16384"
        adaptive_timeout = { min = "1secs", max = "5mins" }
        refusal = { min = "1secs", timed_out = "1mins", backoff = { factor = 2.0, max = "1hrs" } }
        [roles."a/b"]
        offer_timeout = "30secs"
        [frameworks.spark]
        max_offered_share = 0.5
    "#,
    )
    .unwrap();
    let text = serde_json::to_string(&policies).unwrap();
    assert_eq!(serde_json::from_str::<Policies>(&text).unwrap(), policies, "{text}");
}
