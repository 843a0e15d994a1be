//! The sandbox of a container: it is made before the container starts, with links to volumes.
//!
//! It starts nothing.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use agent::ContainerSpec;
use containers::{Directory, User};

use crate::volumes;

/// What a container is started with that has to be prepared before.
pub(crate) struct Ready {
    /// The user to run as, if it is another one.
    pub(crate) user: Option<User>,
    /// The open sandbox, if it is at hand.
    pub(crate) sandbox: Option<OwnedFd>,
}

impl Ready {
    /// The sandbox for the process that starts in it.
    pub(crate) fn directory(self, path: &Path) -> Option<Directory> {
        self.sandbox.map(|fd| Directory { path: path.to_owned(), fd: Arc::new(fd) })
    }
}

/// Makes the sandbox and shows the volumes in it, unless they are to be mounted.
///
/// # Errors
/// What the system refuses, or a user that does not exist.
pub(crate) fn prepare(spec: &ContainerSpec, mounts: bool) -> anyhow::Result<Ready> {
    let user = match &spec.user {
        Some(name) => User::other(name)?,
        None => None,
    };
    if spec.session.is_some() {
        return Ok(Ready { user, sandbox: None });
    }
    let sandbox = Path::new(&spec.sandbox);
    let directory = containers::create_sandbox(sandbox, user.as_ref())?;
    if let Some(latest) = &spec.latest {
        store::replace_link(Path::new(latest), sandbox)?;
    }
    // An executor's volumes are mounted; what is inside its container shares its root, and gets links.
    if !mounts || spec.latest.is_none() {
        volumes::show(sandbox, &spec.volumes, user.as_ref())?;
    }
    Ok(Ready { user, sandbox: Some(directory) })
}
