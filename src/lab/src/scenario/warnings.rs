//! Warnings about a valid scenario that is probably not intended: tasks that fit on no agent, so that their jobs never
//! end.
//!
//! Such a scenario can be run: work that waits forever can be studied, too.

use std::collections::BTreeSet;
use std::path::Path;

use resources::{Quantities, Role, parse_quantities, parse_text};

use super::error::InvalidField;
use super::jobs::Traces;
use super::kinds_of;
use super::schema::{AgentGroup, Framework, Scenario};
use crate::bundled::Kind;

/// The most kinds of agents that a warning names.
const MOST_NAMED: usize = 3;

/// Returns a warning for each kind of jobs whose tasks fit on no agent, or exceed the limit of their role.
///
/// Kinds that come from a trace or the file of a bundled framework are checked, too. There is at most one warning for
/// each kind of the scenario.
pub(super) fn warnings(scenario: &Scenario, directory: &Path, traces: &Traces) -> Vec<InvalidField> {
    let mut all = Vec::new();
    for (n, framework) in scenario.frameworks.iter().enumerate() {
        // The files were readable when the scenario was checked.
        let kinds = kinds_of(scenario, framework, directory).unwrap_or_default();
        let mut reported = BTreeSet::new();
        for Kind { of, jobs } in &kinds {
            let own = jobs.needs.as_deref().and_then(|text| parse_quantities(text).ok());
            let needs = own.as_slice().iter().chain(if own.is_none() { traces.largest(jobs) } else { &[] });
            let doubt = |needs| too_large(&scenario.agents, needs).or_else(|| beyond_limit(scenario, framework, needs));
            if !reported.contains(of)
                && let Some(rule) = needs.map(doubt).find_map(|doubt| doubt)
            {
                reported.insert(of);
                let said = framework.jobs.get(*of).is_some_and(|kind| kind.needs.is_some());
                let field = if said { ".needs" } else { "" };
                let from = jobs.trace.as_ref().filter(|_| own.is_none()).map(|file| format!("{file}: "));
                let rule = from.unwrap_or_default() + &rule;
                all.push(InvalidField::new(format!("frameworks.{n}.jobs.{of}{field}"), rule));
            }
        }
    }
    all
}

/// Returns a warning if no agent has these resources, even when all are free.
fn too_large(groups: &[AgentGroup], needs: &Quantities) -> Option<String> {
    // The resources were checked when the scenario was read.
    let has_room = |group: &AgentGroup| {
        group.count > 0 && parse_text(&group.resources, &Role::star()).is_ok_and(|all| all.contains_quantities(needs))
    };
    if groups.iter().any(has_room) {
        return None;
    }
    let mut named: Vec<&str> = groups.iter().filter(|group| group.count > 0).map(|g| g.resources.as_str()).collect();
    named.dedup();
    let more = if named.len() > MOST_NAMED { " and others" } else { "" };
    named.truncate(MOST_NAMED);
    let agents = named.join(" or ");
    Some(format!("no agent has {needs} (they have {agents}{more}): these tasks never run"))
}

/// Returns a warning if the limit of the framework's role, or of a role above it, is less than one task needs.
fn beyond_limit(scenario: &Scenario, framework: &Framework, needs: &Quantities) -> Option<String> {
    let is_above =
        |role: &str| framework.role.strip_prefix(role).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    scenario.roles.iter().filter(|(role, _)| is_above(role)).find_map(|(role, part)| {
        let limit = parse_quantities(part.limit.as_deref()?).ok()?;
        let (name, most) = limit.iter().find(|(name, most)| needs.get(name) > *most)?;
        Some(format!(
            "the limit of the role '{role}' is {name}:{most}, less than one task needs: these tasks never run"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Traces;
    use super::super::schema::Scenario;

    const BASE: &str = "
        name = 'x'
        duration = '1m'
        [[agents]]
        count = 2
        resources = 'cpus:4;mem:1000'
        [[agents]]
        resources = 'cpus(a):8;mem:500'
        [roles.'a']
        limit = 'cpus:6'
        [[frameworks]]
        name = 'f'
        role = 'a/b'
        [[frameworks.jobs]]
        at = '0s'
        time = '1s'
        needs = 'NEEDS'
    ";

    fn warnings_in(text: &str, directory: &Path) -> Vec<String> {
        let scenario = Scenario::read(text, Path::new("x.toml")).unwrap();
        let traces = Traces::read(std::iter::once(&scenario), directory).unwrap();
        scenario.warnings(text, Path::new("x.toml"), &traces).iter().map(ToString::to_string).collect()
    }

    fn warnings(needs: &str) -> Vec<String> {
        warnings_in(&BASE.replace("NEEDS", needs), Path::new("."))
    }

    #[test]
    fn tasks_without_room_are_named_with_their_line() {
        assert_eq!(warnings("cpus:4;mem:1000"), [""; 0]);
        assert_eq!(warnings("cpus:6;mem:500"), [""; 0]);
        assert_eq!(
            warnings("cpus:5;mem:600"),
            ["x.toml:17: frameworks.0.jobs.0.needs: no agent has cpus:5; mem:600 (they have cpus:4;mem:1000 or \
              cpus(a):8;mem:500): these tasks never run"]
        );
        assert_eq!(warnings("gpus:1").len(), 1);
        assert_eq!(
            warnings("cpus:7"),
            [
                "x.toml:17: frameworks.0.jobs.0.needs: the limit of the role 'a' is cpus:6, less than one task needs: these \
              tasks never run"
            ]
        );
    }

    #[test]
    fn tasks_of_traces_are_looked_at_where_the_scenario_does_not_say_what_they_need() {
        let directory = std::env::temp_dir().join(format!("tepui-warnings-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let rows = "submit_s,tasks,cpus,mem_mb,duration_s\n0,1,4,1000,1\n1,9,5,100,1\n2,1,5,600,1\n3,1,6,400,1\n";
        std::fs::write(directory.join("jobs.csv"), rows).unwrap();
        let of_trace = |rest: &str| {
            let text = BASE.replace("at = '0s'\n        time = '1s'\n        needs = 'NEEDS'", rest);
            warnings_in(&text, &directory)
        };
        assert_eq!(
            of_trace("trace = 'jobs.csv'"),
            ["x.toml:14: frameworks.0.jobs.0: jobs.csv: no agent has cpus:5; mem:600 (they have cpus:4;mem:1000 or \
              cpus(a):8;mem:500): these tasks never run"]
        );
        assert_eq!(of_trace("trace = 'jobs.csv'\nneeds = 'cpus:1'"), [""; 0]);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
