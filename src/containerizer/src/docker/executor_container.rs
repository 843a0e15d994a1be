//! Executors of Docker tasks in containers of their own (`--docker_mesos_image`), for an agent that runs in a container
//! itself.
//!
//! All processes in the agent's container end with it, so its executors must run in others. Decision 73 in
//! docs/decisions.md.

use agent::ContainerSpec;
use anyhow::Context;
use executor::docker::{CreateRequest, OUTPUT};
use serde_json::json;

/// Suffix of the name of an executor's container, after the name of its task's container.
pub(crate) const SUFFIX: &str = ".executor";

/// Returns the request for an executor's container: this program, in the image of the agent's own container. The
/// container has the sandbox and the daemon's socket at the agent's paths, the host's network, and access to its task's
/// container.
///
/// # Errors
/// The path of this program is unknown.
pub(crate) fn create_request(
    image: &str,
    spec: &ContainerSpec,
    more: Vec<(&str, String)>,
    socket: &str,
    login: Option<String>,
) -> anyhow::Result<CreateRequest> {
    let program = std::env::current_exe().context("The program's own file cannot be found")?;
    let program = program.to_str().context("The program's own file has a name that is not text")?.to_owned();
    let words: Vec<String> = [program].into_iter().chain(spec.argv.iter().skip(1).cloned()).collect();
    let more = more.into_iter().map(|(name, value)| (name.to_owned(), value));
    let more = more.chain([(OUTPUT.to_owned(), spec.sandbox.clone())]);
    let environment: Vec<String> =
        spec.environment.iter().cloned().chain(more).map(|(name, value)| format!("{name}={value}")).collect();
    // The short syntax of binds cannot express a path with colons.
    let same = |path: &str| json!({"Type": "bind", "Source": path, "Target": path});
    let create = json!({
        "Image": image,
        "Entrypoint": words,
        "Cmd": [],
        "Env": environment,
        "WorkingDir": spec.sandbox,
        "User": "0:0",
        "HostConfig": {
            "NetworkMode": "host",
            "PidMode": "host",
            "CapAdd": ["SYS_ADMIN", "SYS_PTRACE"],
            "Mounts": [same(&spec.sandbox), same(socket)],
            "LogConfig": {"Type": "none"},
        },
    });
    Ok(CreateRequest { image: image.to_owned(), pull: false, login: login.unwrap_or_default(), create })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_executor_is_given() {
        let argv = ["tepui", "executor", "command"].map(str::to_owned).to_vec();
        let environment = vec![("MESOS_DIRECTORY".to_owned(), "/w/a:b".to_owned())];
        let spec = ContainerSpec { sandbox: "/w/a:b".into(), argv, environment, ..ContainerSpec::default() };
        let made = create_request("tepui:1", &spec, vec![("MORE", "1".to_owned())], "/run/docker.sock", None).unwrap();
        let create = made.create;
        assert_eq!((create["Image"].as_str(), made.image.as_str(), made.pull), (Some("tepui:1"), "tepui:1", false));
        assert_eq!(create["Entrypoint"][1], "executor");
        assert_eq!(create["Entrypoint"][2], "command");
        assert_eq!(create["Env"], json!(["MESOS_DIRECTORY=/w/a:b", "MORE=1", "TEPUI_DOCKER_OUTPUT=/w/a:b"]));
        let mounts = create["HostConfig"]["Mounts"].as_array().unwrap();
        assert!(mounts.iter().all(|mount| mount["Source"] == mount["Target"]));
        assert_eq!(
            (mounts[0]["Source"].as_str(), mounts[1]["Source"].as_str()),
            (Some("/w/a:b"), Some("/run/docker.sock"))
        );
    }
}
