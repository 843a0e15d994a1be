//! Rejects the parts of a scenario that a real cluster cannot do, or ignores them where that is harmless.

use std::path::Path;
use std::time::Duration;

use resources::{Quantities, Role, parse_quantities, parse_text};

use super::Pace;
use crate::bundled::Catalog;
use crate::scenario::{InvalidField, JobKind, Scenario, ScenarioError, all_kinds, points};
use crate::world::Fidelity;

/// The most agents of a cluster that is started for a run.
pub const MOST_AGENTS: u64 = 64;
/// The most frameworks of a live run.
pub const MOST_FRAMEWORKS: u64 = 200;
/// The most tasks that may run at once on a cluster that is started for a run: each of them is two processes.
pub const MOST_TASKS: u64 = 2_000;
/// The longest duration of a live run.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Checks that a scenario, with all points of its sweep, can run on a real cluster. Returns descriptions of what is
/// ignored.
///
/// `own` is true if a cluster is started for the run; otherwise it is an existing one with its own agents and settings.
/// `catalog` has the bundled frameworks.
///
/// # Errors
/// Returns the first item that is impossible, with file, line and rule.
pub fn check(text: &str, file: &Path, pace: Pace, own: bool, catalog: Catalog) -> Result<Vec<String>, ScenarioError> {
    let (mut points, directory) = (points(text, file)?, file.parent().unwrap_or(Path::new(".")));
    for point in &mut points {
        point.scenario.catalog = catalog;
        one(&point.scenario, pace, own, directory).map_err(|broken| broken.at(file, text))?;
    }
    let mut warnings: Vec<String> = points.iter().flat_map(|point| left_out(&point.scenario, pace, own)).collect();
    warnings.sort();
    warnings.dedup();
    Ok(warnings)
}

fn one(scenario: &Scenario, pace: Pace, own: bool, directory: &Path) -> Result<(), InvalidField> {
    let frameworks: u64 = scenario.frameworks.iter().map(|framework| u64::from(framework.count)).sum();
    if frameworks > MOST_FRAMEWORKS {
        return Err(InvalidField::new(
            "frameworks",
            format!("a live run must have {MOST_FRAMEWORKS} frameworks at most"),
        ));
    }
    if pace.real(scenario.duration.0) > LONGEST {
        return Err(InvalidField::new(
            "duration",
            "a live run must take a day at most: shorten it, or use a higher --speed",
        ));
    }
    if !scenario.faults.is_empty() {
        return Err(InvalidField::new("faults", "faults cannot be injected in a live run: remove this"));
    }
    for (n, framework) in scenario.frameworks.iter().enumerate() {
        let Some(name) = &framework.bundled else { continue };
        let bundled = scenario.catalog.find(name).map_err(|broken| broken.below(&format!("frameworks.{n}")))?;
        if let Some(instead) = bundled.not_live() {
            return Err(InvalidField::new(format!("frameworks.{n}.bundled"), instead));
        }
    }
    if own { of_own(scenario, directory) } else { of_another(scenario) }
}

fn of_own(scenario: &Scenario, directory: &Path) -> Result<(), InvalidField> {
    let agents: u64 = scenario.agents.iter().map(|group| u64::from(group.count)).sum();
    if agents > MOST_AGENTS {
        return Err(InvalidField::new(
            "agents",
            format!("a cluster that a live run starts must have {MOST_AGENTS} agents at most, not {agents}"),
        ));
    }
    let tasks = tasks_at_once(scenario, &all_kinds(scenario, directory)?);
    if tasks > MOST_TASKS {
        let rule = format!("a live run must have resources for {MOST_TASKS} concurrent tasks at most, not {tasks}");
        return Err(InvalidField::new("agents", rule));
    }
    Ok(())
}

fn of_another(scenario: &Scenario) -> Result<(), InvalidField> {
    const OWN: &str = "--master keeps the settings of its cluster: remove this, or --master";
    if !scenario.master.is_default() {
        return Err(InvalidField::new("master", OWN));
    }
    match scenario.roles.keys().next() {
        Some(role) => Err(InvalidField::new(format!("roles.{role}"), OWN)),
        None => Ok(()),
    }
}

/// Returns the number of tasks that fit on all agents at once, taking on each agent the kind that fits most often.
fn tasks_at_once(scenario: &Scenario, kinds: &[JobKind]) -> u64 {
    let needs: Vec<Quantities> = kinds
        .iter()
        .filter_map(|kind| parse_quantities(kind.needs.as_deref()?).ok())
        .filter(|needs| !needs.is_empty())
        .collect();
    let room = |all: &Quantities, needs: &Quantities| {
        let times = needs.iter().map(|(name, amount)| all.get(&name).to_f64() / amount.to_f64().max(1e-3));
        times.fold(f64::INFINITY, f64::min) as u64
    };
    let of_group = |resources: &str| {
        let all = parse_text(resources, &Role::star()).unwrap_or_default().quantities();
        needs.iter().map(|needs| room(&all, needs)).max().unwrap_or(0)
    };
    scenario.agents.iter().map(|group| u64::from(group.count).saturating_mul(of_group(&group.resources))).sum()
}

/// Returns descriptions of what the run ignores of the scenario.
fn left_out(scenario: &Scenario, pace: Pace, own: bool) -> Vec<String> {
    let model = &scenario.model;
    let modelled = [
        ("latency", model.latency.is_some()),
        ("master_cost", model.master_cost.is_some()),
        ("registry_write", model.registry_write.is_some()),
        ("agent_write", model.agent_write.is_some()),
        ("container_start", model.container_start.is_some()),
        ("fidelity", model.fidelity != Fidelity::Full),
    ];
    let names = modelled.iter().filter(|(_, given)| *given);
    let mut all: Vec<String> = names.map(|(name, _)| format!("model.{name} is ignored: the cluster is real")).collect();
    if !own {
        all.push("the scenario's agents are ignored: the run uses those of the cluster".to_owned());
    }
    if !own && pace.speed != 1.0 {
        all.push("the times of the cluster's own settings are not divided by --speed".to_owned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "name = 's'\nduration = '1m'\n[model]\nlatency = '1ms'\n[master]\nallocation_interval = '2s'\n[[agents]]\ncount = 8\n\
        resources = 'cpus:4;mem:4096'\n[roles.a]\nweight = 2.0\n[[frameworks]]\nname = 'f'\n[[frameworks.jobs]]\nat = '0s'\n\
        needs = 'cpus:1;mem:64'\ntime = '2s'\n";

    fn checked(text: &str, pace: Pace, own: bool) -> Result<Vec<String>, String> {
        check(text, Path::new("s.toml"), pace, own, Catalog::default()).map_err(|why| why.to_string())
    }

    #[test]
    fn scenarios_that_a_real_cluster_cannot_run_are_rejected() {
        let pace = Pace::default();
        let warnings = checked(SMALL, pace, true).unwrap();
        assert!(warnings.len() == 1 && warnings[0].starts_with("model.latency"), "{warnings:?}");
        for (from, to, own, start) in [
            ("count = 8", "count = 65", true, "s.toml:7: agents: "),
            (
                "cpus:1;mem:64",
                "cpus:0.01",
                true,
                "s.toml:7: agents: a live run must have resources for 2000 concurrent tasks",
            ),
            ("name = 'f'", "name = 'f'\ncount = 201", true, "s.toml:12: frameworks: "),
            ("[model]", "[[faults]]\nwhat = 'failover'\nat = '5s'\nfor = '1s'\n[model]", true, "s.toml:3: faults: "),
            ("duration = '1m'", "duration = '2d'", true, "s.toml:2: duration: "),
            (
                "name = 'f'",
                "name = 'f'\nbundled = 'x'",
                true,
                "s.toml:14: frameworks.0.bundled: 'x' is not a bundled framework",
            ),
            ("name", "name", false, "s.toml:5: master: "),
            ("[master]\nallocation_interval = '2s'", "", false, "s.toml:9: roles.a: "),
        ] {
            let why = checked(&SMALL.replacen(from, to, 1), pace, own).unwrap_err();
            assert!(why.starts_with(start), "{to}: {why}");
        }
        let fast = Pace { speed: 100.0, burn: false };
        assert!(checked(&SMALL.replacen("'1m'", "'2d'", 1), fast, true).is_ok());
        let swept = format!("{SMALL}[sweep]\n'agents.0.count' = [8, 80]\n");
        assert!(checked(&swept, pace, true).unwrap_err().contains("64 agents at most, not 80"));
    }
}
