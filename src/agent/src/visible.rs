//! Views of an agent for a principal, and the actions that calls about containers need (docs/mesos/security.md).
//!
//! It describes the objects of decisions; the authorizer decides.

use std::collections::VecDeque;
use std::sync::Arc;

use authorizer::{Action, executor_user, launched_user, task_user};
use protos::mesos::{self as pb, agent as api};

use crate::nested_call::{container_of, launch_request};
use crate::snapshot::Snapshot;
use crate::state::{ContainerName, Executor, Framework, Queued};

/// A function that returns whether an action on an object of a user is allowed.
type May<'m> = &'m dyn Fn(Action, &str) -> bool;

impl Snapshot {
    /// Returns the snapshot with only those frameworks, executors and tasks that may be viewed. With `executors` false,
    /// executors are not filtered: the view is about tasks.
    #[must_use]
    pub fn visible(&self, may: May<'_>, executors: bool) -> Snapshot {
        let framework = |framework: &Arc<Framework>| visible_framework(framework, may, executors);
        let shown = |known: &&Arc<Framework>| may(Action::ViewFramework, &known.info.user);
        let frameworks = self.frameworks.iter().filter(|(_, known)| shown(known));
        Snapshot {
            frameworks: Arc::new(frameworks.map(|(id, known)| (id.clone(), framework(known))).collect()),
            completed_frameworks: Arc::new(self.completed_frameworks.iter().filter(shown).map(framework).collect()),
            ..self.clone()
        }
    }

    /// Returns the executor of a root container, and its framework.
    fn owner(&self, root: &ContainerName) -> Option<(&Framework, &Executor)> {
        let of = |framework: &'_ Arc<Framework>| framework.executors.values().any(|one| one.container == *root);
        let framework = self.frameworks.values().find(|framework| of(framework))?;
        let executor = framework.executors.values().find(|one| one.container == *root)?;
        Some((framework, executor))
    }

    /// Returns the containers of executors that may not be viewed.
    pub fn hidden_containers(&self, may: May<'_>) -> Vec<ContainerName> {
        let all = self.frameworks.values().flat_map(|framework| {
            framework.executors.values().map(|executor| (executor_user(&executor.info, &framework.info), executor))
        });
        let hidden = all.filter(|(user, _)| !may(Action::ViewContainer, user));
        hidden.map(|(_, executor)| executor.container.clone()).collect()
    }

    /// Returns the user of a sandbox, by its path. For an unknown executor it is the user of the framework; `None` if
    /// the framework is unknown too.
    pub fn sandbox_user(&self, path: &str) -> Option<&str> {
        let (_, rest) = path.rsplit_once("/frameworks/")?;
        let (framework, rest) = rest.split_once("/executors/")?;
        let mut parts = rest.split('/');
        let (executor, run) = (parts.next()?, parts.nth(1).filter(|run| *run != "latest"));
        let mut all = self.frameworks.values().chain(&*self.completed_frameworks);
        let framework = all.find(|known| known.id.as_str() == framework)?;
        let all = framework.executors.values().chain(framework.completed_executors.iter());
        let is_run = |known: &Arc<Executor>| run.is_none_or(|run| known.container.as_str() == run);
        let executor = all.into_iter().find(|known| known.id.as_str() == executor && is_run(known));
        Some(executor.map_or(framework.info.user.as_str(), |executor| executor_user(&executor.info, &framework.info)))
    }

    /// Returns the actions that a call about a container needs, each with the user that it concerns. Without a user,
    /// the action concerns all standalone containers.
    pub fn container_actions(&self, call: &api::Call) -> Vec<(Action, Option<String>)> {
        use api::call::Type;
        let kind = call.r#type();
        let Some(name) = container_of(call) else { return Vec::new() };
        let command = launch_request(call.clone()).and_then(|launch_request| launch_request.command.user);
        let owner = self.owner(&name.root());
        let parents = owner.map(|(framework, executor)| executor_user(&executor.info, &framework.info).to_owned());
        let own = command.or_else(|| parents.clone());
        match (kind, owner.is_some()) {
            (Type::LaunchContainer | Type::LaunchNestedContainer, true) => {
                vec![(Action::LaunchNestedContainerAsUser, own), (Action::LaunchNestedContainerUnderParent, parents)]
            }
            (Type::LaunchNestedContainerSession, _) => {
                vec![(Action::LaunchSessionAsUser, own), (Action::LaunchSessionUnderParent, parents)]
            }
            (Type::WaitContainer | Type::WaitNestedContainer, true) => vec![(Action::WaitNestedContainer, parents)],
            (Type::KillContainer | Type::KillNestedContainer, true) => vec![(Action::KillNestedContainer, parents)],
            (Type::RemoveContainer | Type::RemoveNestedContainer, true) => {
                vec![(Action::RemoveNestedContainer, parents)]
            }
            (Type::AttachContainerInput, _) => vec![(Action::AttachContainerInput, parents)],
            (Type::AttachContainerOutput, _) => vec![(Action::AttachContainerOutput, parents)],
            (Type::LaunchContainer | Type::LaunchNestedContainer, false) => {
                vec![(Action::LaunchStandaloneContainer, None)]
            }
            (Type::WaitContainer | Type::WaitNestedContainer, false) => vec![(Action::WaitStandaloneContainer, None)],
            (Type::KillContainer | Type::KillNestedContainer, false) => vec![(Action::KillStandaloneContainer, None)],
            (Type::RemoveContainer | Type::RemoveNestedContainer, false) => {
                vec![(Action::RemoveStandaloneContainer, None)]
            }
            _ => Vec::new(),
        }
    }
}

fn visible_framework(framework: &Arc<Framework>, may: May<'_>, executors: bool) -> Arc<Framework> {
    let info = &*framework.info;
    let shown = |one: &&Arc<Executor>| !executors || may(Action::ViewExecutor, executor_user(&one.info, info));
    let visible = |one: &Arc<Executor>| Arc::new(visible_executor(one, info, may));
    let known = framework.executors.iter().filter(|(_, one)| shown(one));
    let completed: VecDeque<_> = framework.completed_executors.iter().filter(shown).map(visible).collect();
    Arc::new(Framework {
        executors: known.map(|(id, one)| (id.clone(), visible(one))).collect(),
        completed_executors: Arc::new(completed),
        ..Framework::clone(framework)
    })
}

fn visible_executor(executor: &Executor, info: &pb::FrameworkInfo, may: May<'_>) -> Executor {
    let mut executor = executor.clone();
    let shown = |task: &Arc<pb::Task>| may(Action::ViewTask, launched_user(task, info));
    executor.launched.retain(|_, task| shown(task));
    executor.terminated.retain(|_, task| shown(task));
    executor.completed.retain(shown);
    let waits = |task: &Arc<pb::TaskInfo>| may(Action::ViewTask, task_user(task, info));
    executor.queued.retain_mut(|queued| match queued {
        Queued::Task(task) => waits(task),
        Queued::Group(tasks) => {
            tasks.retain(&waits);
            !tasks.is_empty()
        }
    });
    executor
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ContainerId, ExecutorId, FrameworkId};

    fn framework(id: &str, user: &str) -> Framework {
        let info = pb::FrameworkInfo { user: user.into(), ..pb::FrameworkInfo::default() };
        Framework::new(FrameworkId::new(id).unwrap(), Arc::new(info), None)
    }

    /// Returns an executor with one run, with a user of its own if one is named.
    fn executor(framework: &str, id: &str, run: &str, user: Option<&str>) -> Arc<Executor> {
        let command = pb::CommandInfo { user: user.map(Into::into), ..pb::CommandInfo::default() };
        let info = pb::ExecutorInfo { command: Some(command), ..pb::ExecutorInfo::default() };
        let container = ContainerName::top(&ContainerId::new(run).unwrap());
        let framework = FrameworkId::new(framework).unwrap();
        Arc::new(Executor::new(ExecutorId::new(id).unwrap(), framework, info, container, ("/w", run), None))
    }

    fn snapshot() -> Snapshot {
        let mut known = framework("F", "alice");
        let mut add = |one: Arc<Executor>| known.executors.insert(one.id.clone(), one);
        add(executor("F", "plain", "r1", None));
        add(executor("F", "own", "r3", Some("carol")));
        Arc::make_mut(&mut known.completed_executors).push_back(executor("F", "own", "r2", Some("bob")));
        let gone = framework("G", "dave");
        Snapshot {
            state: crate::agent::AgentState::Running,
            id: None,
            info: Arc::default(),
            resources: Arc::default(),
            master: None,
            registered: None,
            recovery_time: None,
            frameworks: Arc::new([(known.id.clone(), Arc::new(known))].into()),
            completed_frameworks: Arc::new([Arc::new(gone)].into()),
            drain: None,
            drain_start: None,
            operations: Arc::default(),
            oversubscribed: None,
            counters: crate::snapshot::Counters::default(),
            garbage: 0,
            garbage_kept_for: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn the_user_of_a_sandbox() {
        let snapshot = snapshot();
        let of = |rest: &str| snapshot.sandbox_user(&format!("/w/slaves/S/frameworks/{rest}"));
        // The command's user takes precedence over the framework's, and each run of an executor has its own.
        assert_eq!(of("F/executors/plain/runs/r1"), Some("alice"));
        assert_eq!(of("F/executors/own/runs/r3"), Some("carol"));
        assert_eq!(of("F/executors/own/runs/r2"), Some("bob"));
        assert_eq!(of("F/executors/own/runs/r2/containers/c/stdout"), Some("bob"));
        // The newest run is the one of the running executor.
        assert_eq!(of("F/executors/own/runs/latest"), Some("carol"));
        assert_eq!(of("F/executors/own"), Some("carol"));
        // An unknown run belongs to the framework's user.
        assert_eq!(of("F/executors/own/runs/r9"), Some("alice"));
        assert_eq!(of("F/executors/other/runs/r1"), Some("alice"));
        assert_eq!(of("G/executors/e/runs/r"), Some("dave"));
        // The user of a sandbox of an unknown framework is not known.
        assert_eq!(of("H/executors/e/runs/r"), None);
        assert_eq!(of("F"), None);
        assert_eq!(snapshot.sandbox_user("/w/containers/alone"), None);
    }
}
