//! Tasks that are Docker containers (docs/mesos/executors.md, AGT-85).
//!
//! The command executor runs a small process beside it, also of this program, that lets the Docker daemon start the
//! container, copies its output, and exits with the container's exit code. `request.rs` describes a task's container,
//! `client.rs` calls the daemon, `run.rs` is that process. `exec.rs` is another one, for the command of a check inside
//! the container. A custom executor in a Docker container has such a process, too; the agent creates the container, and
//! starts the process.

mod client;
mod error;
mod exec;
mod frames;
mod image;
mod logins;
mod messages;
mod mounts;
mod request;
mod run;
mod task;

use std::process::ExitCode;

pub use client::{Client, ClientError, Listed};
pub use error::{DockerError, InvalidTask, PullError};
pub(crate) use exec::DockerExec;
pub use image::failure_in as pull_failure;
pub use logins::header as login;
pub use request::{ContainerSettings, CreateRequest, create_request, new_limits};
pub use run::address;
pub(crate) use task::{ContainerEvent, DockerTask, is_docker};

/// Variable: path of the Docker daemon's socket; an agent sets it for its Docker tasks.
pub const SOCKET: &str = "TEPUI_DOCKER_SOCKET";
/// Variable: path of the sandbox in a container.
pub const SANDBOX: &str = "TEPUI_DOCKER_SANDBOX";
/// Variable: set if no container may use more CPUs than its resources contain.
pub const QUOTA: &str = "TEPUI_DOCKER_CFS";
/// Variable: name servers of containers that set none, as JSON (`nameservers`, `search`, `options`).
pub const DNS: &str = "TEPUI_DOCKER_DNS";
/// Variable: devices of a container with GPUs, as JSON (`devices`, which are paths, and `variables`, which are pairs).
pub const DEVICES: &str = "TEPUI_DOCKER_DEVICES";
/// Variable: the operator's login to the registry of the task's image, as [`login`] returns it.
pub const LOGIN: &str = "TEPUI_DOCKER_LOGIN";
/// Variable: time, such as `5secs`, for a container to stop without a kill policy; not set for the default.
pub const STOP_TIMEOUT: &str = "TEPUI_DOCKER_STOP_TIMEOUT";
/// Prefix of the names of all containers that agents have started.
pub const PREFIX: &str = "mesos-";

/// Label of containers that are custom executors.
pub const EXECUTOR: &str = "tepui.executor";

/// Variable: the name of the container.
pub const NAME: &str = "TEPUI_DOCKER_NAME";
/// Variable for a container that was started already: the time of its last output, in seconds since the epoch with a
/// fraction; empty if its output is elsewhere.
pub const SINCE: &str = "TEPUI_DOCKER_SINCE";
/// Variable: the directory of the files `stdout` and `stderr` of an executor in a container.
pub const OUTPUT: &str = "TEPUI_DOCKER_OUTPUT";
const IMAGE: &str = "TEPUI_DOCKER_IMAGE";
const PULL: &str = "TEPUI_DOCKER_PULL";
const CREATE: &str = "TEPUI_DOCKER_CREATE";
/// Variable: the command to run inside a running container, in the daemon's form.
const EXEC: &str = "TEPUI_DOCKER_EXEC";

/// Redirects the output of this executor, and of the processes that it starts, to the files of its sandbox if it runs
/// in a container: a process that copies the daemon's log would end with the agent.
///
/// # Errors
/// The files cannot be opened.
pub(crate) fn write_to_files() -> std::io::Result<()> {
    let Some(directory) = std::env::var_os(OUTPUT).map(std::path::PathBuf::from) else { return Ok(()) };
    let open = |name: &str| containers::open_for_output(&directory.join(name));
    rustix::stdio::dup2_stdout(open("stdout")?)?;
    rustix::stdio::dup2_stderr(open("stderr")?)?;
    Ok(())
}

/// Runs one of the processes beside a container: the one that runs the container, or one that runs a command in it.
pub(crate) fn main() -> ExitCode {
    match std::env::var(EXEC) {
        Ok(body) => exec::main(&body),
        Err(_) => run::main(),
    }
}
