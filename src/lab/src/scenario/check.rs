//! Rules of a scenario beyond the types of its fields.

use std::collections::BTreeSet;
use std::time::Duration;

use resources::{Role, parse_attributes, parse_quantities, parse_text};

use super::error::InvalidField;
use super::jobs;
use super::schema::{AgentGroup, ConductPart, Framework, RolePart, Scenario, Window};

/// The most agents of all groups together.
pub(crate) const MOST_AGENTS: u64 = 200_000;
/// The most frameworks of a scenario.
pub(crate) const MOST_FRAMEWORKS: u64 = 10_000;
/// The most repetitions of a scenario.
pub(crate) const MOST_REPETITIONS: u32 = 1_000;
/// The most samples of one run.
pub(crate) const MOST_SAMPLES: u128 = 1_000_000;

type Checked = Result<(), InvalidField>;

pub(crate) fn check(scenario: &Scenario) -> Checked {
    name("name", &scenario.name)?;
    let duration = scenario.duration.0;
    positive("duration", duration)?;
    positive("sample", scenario.sample.0)?;
    if duration.as_nanos() / scenario.sample.0.as_nanos() > MOST_SAMPLES {
        return Err(InvalidField::new("sample", format!("must result in {MOST_SAMPLES} samples of a run at most")));
    }
    if !(1..=MOST_REPETITIONS).contains(&scenario.repetitions) {
        return Err(InvalidField::new("repetitions", format!("must be 1 to {MOST_REPETITIONS}")));
    }
    model(scenario)?;
    agents(&scenario.agents)?;
    for (role, part) in &scenario.roles {
        Role::parse(role).map_err(|why| InvalidField::new(format!("roles.{role}"), why.to_string()))?;
        role_part(part).map_err(|broken| broken.below(&format!("roles.{role}")))?;
    }
    if let Some(manager) = &scenario.manager {
        positive("manager.every", manager.every.0)?;
    }
    frameworks(&scenario.frameworks)?;
    for (n, window) in scenario.windows.iter().enumerate() {
        self::window(window, duration).map_err(|broken| broken.below(&format!("windows.{n}")))?;
    }
    super::faults::check(scenario)?;
    scenario.master.policies.check().map_err(|why| InvalidField::new("master.policies", why.to_string()))?;
    super::setup::master_config(scenario).map(|_| ())
}

fn model(scenario: &Scenario) -> Checked {
    let part = |path: &str, share: f64| match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(InvalidField::new(path, "must be a share from 0 to 1")),
    };
    part("model.failures", scenario.model.failures)?;
    part("model.stragglers", scenario.model.stragglers)?;
    match scenario.model.straggling {
        Some(times) if !(1.0..=1e6).contains(&times) => {
            Err(InvalidField::new("model.straggling", "must be 1 to 1000000"))
        }
        _ => Ok(()),
    }
}

fn agents(groups: &[AgentGroup]) -> Checked {
    if groups.is_empty() {
        return Err(InvalidField::new("agents", "there must be at least one [[agents]]"));
    }
    let total: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    if total == 0 || total > MOST_AGENTS {
        return Err(InvalidField::new("agents", format!("there must be 1 to {MOST_AGENTS} agents")));
    }
    for (n, group) in groups.iter().enumerate() {
        let broken = |field: &str, why: String| Err(InvalidField::new(format!("agents.{n}.{field}"), why));
        if !(0.0..=1.0).contains(&group.failures) {
            return broken("failures", "must be a share from 0 to 1".to_owned());
        }
        if let Err(why) = parse_text(&group.resources, &Role::star()) {
            return broken("resources", why.to_string());
        }
        if let Err(why) = parse_attributes(&group.attributes) {
            return broken("attributes", why.to_string());
        }
        if group.zone.is_some() && group.region.is_none() {
            return broken("zone", "needs a region".to_owned());
        }
        name("name", &group.name).map_err(|broken| broken.below(&format!("agents.{n}")))?;
    }
    Ok(())
}

fn role_part(part: &RolePart) -> Checked {
    if part.weight.is_some_and(|weight| !(weight > 0.0 && weight.is_finite())) {
        return Err(InvalidField::new("weight", "must be positive"));
    }
    let read = |field: &str, text: &Option<String>| {
        let amounts = text.as_deref().map(parse_quantities).transpose();
        amounts.map_err(|why| InvalidField::new(field, why.to_string()))
    };
    let (guarantee, limit) = (read("guarantee", &part.guarantee)?, read("limit", &part.limit)?);
    let is_nothing = |amount: &str| amount.rsplit_once(':').is_some_and(|(_, value)| value.trim().parse() == Ok(0.0));
    if part.limit.as_deref().is_some_and(|text| text.split(';').any(is_nothing)) {
        return Err(InvalidField::new("limit", "must be more than 0"));
    }
    let (Some(guarantee), Some(limit)) = (guarantee, limit) else { return Ok(()) };
    // A resource that a limit does not name is not limited. The master rejects a quota whose guarantee exceeds its
    // limit.
    match guarantee.iter().find(|(name, most)| limit.iter().any(|(of, least)| of == *name && least < *most)) {
        Some((name, _)) => {
            Err(InvalidField::new("guarantee", format!("more {name} is guaranteed than the limit allows")))
        }
        None => Ok(()),
    }
}

fn frameworks(frameworks: &[Framework]) -> Checked {
    if frameworks.is_empty() {
        return Err(InvalidField::new("frameworks", "there must be at least one [[frameworks]]"));
    }
    let total: u64 = frameworks.iter().map(|framework| u64::from(framework.count)).sum();
    if total > MOST_FRAMEWORKS {
        return Err(InvalidField::new("frameworks", format!("must be {MOST_FRAMEWORKS} at most")));
    }
    let mut names = BTreeSet::new();
    for (n, framework) in frameworks.iter().enumerate() {
        self::framework(framework).map_err(|broken| broken.below(&format!("frameworks.{n}")))?;
        if !names.insert(&framework.name) {
            return Err(InvalidField::new(format!("frameworks.{n}.name"), "another framework has this name"));
        }
    }
    Ok(())
}

fn framework(framework: &Framework) -> Checked {
    name("name", &framework.name)?;
    if framework.count == 0 {
        return Err(InvalidField::new("count", "must be at least 1"));
    }
    Role::parse(&framework.role).map_err(|why| InvalidField::new("role", why.to_string()))?;
    bundled(framework)?;
    conduct(&framework.conduct)?;
    for (n, step) in framework.script.iter().enumerate() {
        conduct(&step.conduct).map_err(|broken| broken.below(&format!("script.{n}")))?;
    }
    for (n, kind) in framework.jobs.iter().enumerate() {
        if let Some(of_jobs) = &kind.name {
            name("name", of_jobs).map_err(|broken| broken.below(&format!("jobs.{n}")))?;
        }
        let checked = jobs::arrivals(kind).and_then(|()| match framework.bundled {
            Some(_) => Ok(()),
            None => jobs::work(kind),
        });
        checked.map_err(|broken| broken.below(&format!("jobs.{n}")))?;
    }
    Ok(())
}

/// Checks that a framework has only fields that apply to bundled ones, or to others.
fn bundled(framework: &Framework) -> Checked {
    if framework.bundled.is_none() {
        const ONLY: &str = "options need a bundled framework: set `bundled`";
        if !framework.options.is_empty() {
            return Err(InvalidField::new("options", ONLY));
        }
        let with_options = framework.jobs.iter().position(|kind| !kind.options.is_empty());
        return with_options.map_or(Ok(()), |n| Err(InvalidField::new(format!("jobs.{n}.options"), ONLY)));
    }
    let modelled = [
        ("like", framework.like.is_some()),
        ("conduct", framework.conduct != ConductPart::default()),
        ("script", !framework.script.is_empty()),
    ];
    match modelled.iter().find(|(_, given)| *given) {
        Some((field, _)) => {
            Err(InvalidField::new(*field, "a bundled framework has fixed behaviour: use its `options`"))
        }
        None => Ok(()),
    }
}

fn conduct(conduct: &ConductPart) -> Checked {
    match conduct.attempt == Some(0) || conduct.tasks_per_offer == Some(0) {
        true => Err(InvalidField::new("conduct", "attempt and tasks_per_offer must be at least 1")),
        false => Ok(()),
    }
}

fn window(window: &Window, duration: Duration) -> Checked {
    name("name", &window.name)?;
    match window.from < window.to && window.to.0 <= duration {
        true => Ok(()),
        false => Err(InvalidField::new("to", "must be after `from` and within the run's `duration`")),
    }
}

fn positive(path: &str, span: Duration) -> Checked {
    match span.is_zero() {
        false => Ok(()),
        true => Err(InvalidField::new(path, "must be more than 0")),
    }
}

fn name(path: &str, name: &str) -> Checked {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.len() <= 100 && name.chars().all(good) {
        true => Ok(()),
        false => Err(InvalidField::new(
            path,
            format!("'{name}' is not a name: must be 1 to 100 letters, digits, '-' and '_'"),
        )),
    }
}
