//! Creation of a container's sandbox before the container starts, with links to volumes.
//!
//! It starts nothing.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use agent::ContainerSpec;
use containers::{Directory, User};

use crate::volumes;

/// Parts of a container's spawn request that were prepared.
pub(crate) struct PreparedSandbox {
    /// User to run as; `None`: the agent's own user.
    pub(crate) user: Option<User>,
    /// The open sandbox; `None` for a session.
    pub(crate) sandbox: Option<OwnedFd>,
}

impl PreparedSandbox {
    /// Returns the sandbox as the directory in which a process starts.
    pub(crate) fn directory(self, path: &Path) -> Option<Directory> {
        self.sandbox.map(|fd| Directory { path: path.to_owned(), fd: Arc::new(fd) })
    }
}

/// Creates the sandbox and links the volumes in it, unless they are to be mounted.
///
/// # Errors
/// An error of the system, or a user that does not exist.
pub(crate) fn prepare(spec: &ContainerSpec, mounts: bool) -> anyhow::Result<PreparedSandbox> {
    let user = match &spec.user {
        Some(name) => User::other(name)?,
        None => None,
    };
    if spec.session.is_some() {
        return Ok(PreparedSandbox { user, sandbox: None });
    }
    let sandbox = Path::new(&spec.sandbox);
    let directory = containers::create_sandbox(sandbox, user.as_ref())?;
    if let Some(latest) = &spec.latest {
        store::replace_link(Path::new(latest), sandbox)?;
    }
    // An executor's volumes are mounted. Nested containers share its root, and get links.
    if !mounts || spec.latest.is_none() {
        volumes::link_all(sandbox, &spec.volumes, user.as_ref())?;
    }
    Ok(PreparedSandbox { user, sandbox: Some(directory) })
}
