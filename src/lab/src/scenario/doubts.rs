//! What a scenario may well say and hardly means: tasks for which there is no room anywhere, so that their jobs never end.
//!
//! Nothing is refused for it: work that waits for ever is something to study, too.

use resources::{Quantities, Role, parse_quantities, parse_text};

use super::error::Broken;
use super::schema::{AgentGroup, Framework, Scenario};

/// So many kinds of agents are named in one doubt.
const MOST_NAMED: usize = 3;

/// Kinds of jobs whose tasks no agent has room for, or whose role may never have enough. What traces and the files of
/// bundled frameworks say is not looked at.
pub(super) fn doubts(scenario: &Scenario) -> Vec<Broken> {
    let mut all = Vec::new();
    for (n, framework) in scenario.frameworks.iter().enumerate() {
        for (k, kind) in framework.jobs.iter().enumerate() {
            // A bundled framework's own form of them was checked by itself.
            let Some(needs) = kind.needs.as_deref().and_then(|text| parse_quantities(text).ok()) else { continue };
            let doubt = too_large(&scenario.agents, &needs).or_else(|| beyond_limit(scenario, framework, &needs));
            all.extend(doubt.map(|rule| Broken::new(format!("frameworks.{n}.jobs.{k}.needs"), rule)));
        }
    }
    all
}

/// Whether no agent has so much, were it all free.
fn too_large(groups: &[AgentGroup], needs: &Quantities) -> Option<String> {
    // Checked when the scenario was read.
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
    Some(format!("no agent has {needs} (they have {agents}{more}): these tasks never run, and wait to the end"))
}

/// Whether the limit of the framework's role, or of one above it, is less than what one task needs.
fn beyond_limit(scenario: &Scenario, framework: &Framework, needs: &Quantities) -> Option<String> {
    let is_above =
        |role: &str| framework.role.strip_prefix(role).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    scenario.roles.iter().filter(|(role, _)| is_above(role)).find_map(|(role, part)| {
        let limit = parse_quantities(part.limit.as_deref()?).ok()?;
        let (name, most) = limit.iter().find(|(name, most)| needs.get(name) > *most)?;
        Some(format!(
            "the limit of the role '{role}' is {name}:{most}, less than one task needs: these tasks never run, and wait to the end"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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

    fn doubts(needs: &str) -> Vec<String> {
        let text = BASE.replace("NEEDS", needs);
        let file = Path::new("x.toml");
        let told = |doubt: super::super::ScenarioError| doubt.to_string();
        Scenario::read(&text, file).unwrap().doubts(&text, file).into_iter().map(told).collect()
    }

    #[test]
    fn tasks_without_room_are_named_with_their_line() {
        assert_eq!(doubts("cpus:4;mem:1000"), [""; 0]);
        assert_eq!(doubts("cpus:6;mem:500"), [""; 0]);
        assert_eq!(
            doubts("cpus:5;mem:600"),
            ["x.toml:17: frameworks.0.jobs.0.needs: no agent has cpus:5; mem:600 (they have cpus:4;mem:1000 or \
              cpus(a):8;mem:500): these tasks never run, and wait to the end"]
        );
        assert_eq!(doubts("gpus:1").len(), 1);
        assert_eq!(
            doubts("cpus:7"),
            [
                "x.toml:17: frameworks.0.jobs.0.needs: the limit of the role 'a' is cpus:6, less than one task needs: these \
              tasks never run, and wait to the end"
            ]
        );
    }
}
