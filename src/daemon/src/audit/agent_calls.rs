//! Which calls of the agent's operator API ask for a change, and for which container.
//!
//! The match is exhaustive: a new call needs a decision.

use protos::mesos::{self, agent};

use super::calls::RequestedChange;
use super::entry::Target;

/// Returns the change that an operator's call asks an agent for; `None` if it reads.
#[allow(deprecated, reason = "the calls for nested containers are calls still")]
pub(crate) fn agent_call(call: &agent::Call) -> Option<RequestedChange> {
    use agent::call::Type;
    let kind = call.r#type();
    let target = match kind {
        Type::Unknown
        | Type::GetHealth
        | Type::GetFlags
        | Type::GetVersion
        | Type::GetMetrics
        | Type::GetLoggingLevel
        | Type::ListFiles
        | Type::ReadFile
        | Type::GetState
        | Type::GetContainers
        | Type::GetFrameworks
        | Type::GetExecutors
        | Type::GetOperations
        | Type::GetTasks
        | Type::GetAgent
        | Type::GetResourceProviders
        | Type::WaitNestedContainer
        | Type::WaitContainer
        | Type::AttachContainerOutput => return None,
        Type::SetLoggingLevel => {
            let level = call.set_logging_level.as_ref().map(|set| set.level.to_string());
            Target::default().with_all("level", level.as_deref())
        }
        Type::LaunchNestedContainer => container(call.launch_nested_container.as_ref().map(|body| &body.container_id)),
        Type::KillNestedContainer => container(call.kill_nested_container.as_ref().map(|body| &body.container_id)),
        Type::RemoveNestedContainer => container(call.remove_nested_container.as_ref().map(|body| &body.container_id)),
        Type::LaunchNestedContainerSession => {
            container(call.launch_nested_container_session.as_ref().map(|body| &body.container_id))
        }
        // The container executes its input.
        Type::AttachContainerInput => {
            container(call.attach_container_input.as_ref().and_then(|body| body.container_id.as_ref()))
        }
        Type::LaunchContainer => container(call.launch_container.as_ref().map(|body| &body.container_id)),
        Type::KillContainer => container(call.kill_container.as_ref().map(|body| &body.container_id)),
        Type::RemoveContainer => container(call.remove_container.as_ref().map(|body| &body.container_id)),
        Type::AddResourceProviderConfig => {
            let info = call.add_resource_provider_config.as_ref().map(|body| &body.info);
            provider(info.map(|info| (&*info.r#type, &*info.name)))
        }
        Type::UpdateResourceProviderConfig => {
            let info = call.update_resource_provider_config.as_ref().map(|body| &body.info);
            provider(info.map(|info| (&*info.r#type, &*info.name)))
        }
        Type::RemoveResourceProviderConfig => {
            let body = call.remove_resource_provider_config.as_ref();
            provider(body.map(|body| (&*body.r#type, &*body.name)))
        }
        Type::MarkResourceProviderGone => {
            let id = call.mark_resource_provider_gone.as_ref().map(|body| &*body.resource_provider_id.value);
            Target::default().with_all("resource_provider", id)
        }
        Type::PruneImages => Target::default(),
    };
    Some(RequestedChange::new(kind.as_str_name(), target))
}

/// Returns the container with its parents, outermost first, as in Mesos's logs: `a.b`.
fn container(id: Option<&mesos::ContainerId>) -> Target {
    let mut names: Vec<&str> = Vec::new();
    let mut next = id;
    while let Some(id) = next {
        names.push(&id.value);
        next = id.parent.as_deref();
    }
    names.reverse();
    Target::default().with("container", &names.join("."))
}

fn provider(name: Option<(&str, &str)>) -> Target {
    let name = name.map(|(kind, name)| format!("{kind}.{name}"));
    Target::default().with_all("resource_provider", name.as_deref())
}

#[cfg(test)]
mod tests {
    use protos::mesos::agent::Call;
    use protos::mesos::agent::call::{self, Type};

    use super::*;

    #[test]
    fn calls_that_read_are_left_out() {
        for kind in (0..256).filter_map(|number| Type::try_from(number).ok()) {
            let requested = agent_call(&Call { r#type: Some(kind as i32), ..Default::default() });
            let name = kind.as_str_name();
            let reads = ["GET_", "WAIT_"].iter().any(|start| name.starts_with(start))
                || ["UNKNOWN", "LIST_FILES", "READ_FILE", "ATTACH_CONTAINER_OUTPUT"].contains(&name);
            assert_eq!(requested.is_none(), reads, "{name}");
        }
    }

    #[test]
    fn containers_have_the_names_of_their_parents() {
        let id = |value: &str, parent: Option<mesos::ContainerId>| mesos::ContainerId {
            value: value.to_owned(),
            parent: parent.map(Into::into),
        };
        let kill = call::KillContainer { container_id: id("b", Some(id("a", None))), signal: None };
        let call = Call { r#type: Some(Type::KillContainer as i32), kill_container: Some(kill), ..Default::default() };
        let expected = Target::default().with("container", "a.b");
        assert_eq!(agent_call(&call), Some(RequestedChange::new("KILL_CONTAINER", expected)));
    }
}
