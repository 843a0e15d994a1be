//! Paths of the host's directories as a container sees them: the same as on the host, or below the root of an image,
//! which is its own or that of an outer container.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agent::{ContainerName, ContainerSpec};
use containers::isolation::Isolation;
use containers::{Program, Spec};

use crate::mesos::provisioner::{Provisioner, Root, os, see_sandbox};

/// A container's view of its root file system and its sandbox.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Root file system of the container's own, if it has an image.
    root: Option<Root>,
    /// Path of the sandbox in the container; `None` if it is the same as on the host.
    sandbox: Option<String>,
}

impl View {
    /// Returns the view of a container.
    ///
    /// # Errors
    /// An image inside a container with an image, or a damaged file about a root file system.
    pub(crate) fn of(images: &Provisioner, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<View> {
        let root = if spec.session.is_some() { None } else { images.root_of(container)? };
        let mut around = container.parent();
        // A session uses the sandbox of the container that it is in.
        let mut levels = usize::from(spec.session.is_none());
        while let Some(name) = around.as_ref().filter(|name| !images.has_root(name)) {
            around = name.parent();
            levels += 1;
        }
        if around.is_none() {
            let sandbox = root.is_some().then(|| images.sandbox().to_owned());
            return Ok(View { root, sandbox });
        }
        anyhow::ensure!(root.is_none(), "A container inside one with an image cannot have an image of its own");
        // Each level adds a directory 'containers', and one in it.
        let path = Path::new(&spec.sandbox);
        let parts: Vec<_> = path.iter().collect();
        let inside: PathBuf = parts[parts.len().saturating_sub(2 * levels)..].iter().collect();
        let seen = Path::new(images.sandbox()).join(inside);
        Ok(View { root: None, sandbox: Some(seen.to_string_lossy().trim_end_matches('/').to_owned()) })
    }

    /// Returns the root file system of the container's own, if it has an image.
    pub(crate) fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// Returns the path of the sandbox in the container.
    pub(crate) fn sandbox<'a>(&'a self, spec: &'a ContainerSpec) -> &'a str {
        self.sandbox.as_deref().unwrap_or(&spec.sandbox)
    }

    /// Adds the mounts of the root file system to those of the volumes.
    pub(crate) fn enter(&self, spec: &ContainerSpec, isolation: &mut Isolation) {
        if let Some(root) = &self.root {
            root.enter(isolation, &spec.sandbox, self.sandbox(spec));
        }
    }

    /// Applies the view to a spawn request: directory, variables, and the program of an image.
    ///
    /// # Errors
    /// Neither the command nor the image names a program.
    pub(crate) fn apply(&self, spec: &ContainerSpec, process: &mut Spec) -> anyhow::Result<()> {
        let Some(sandbox) = &self.sandbox else { return Ok(()) };
        let mut environment = spec.environment.clone();
        see_sandbox(&mut environment, sandbox);
        process.working_dir = Some(sandbox.into());
        if let Some(root) = &self.root {
            root.add_variables(&mut environment);
            if let Some(directory) = root.working_dir() {
                process.working_dir = Some(directory.into());
            }
            if spec.program.is_empty() {
                let (file, argv) = root.program(&spec.argv)?;
                process.program =
                    Program::Argv { file: OsString::from(file), argv: argv.into_iter().map(OsString::from).collect() };
            }
        }
        process.environment = os(&environment);
        Ok(())
    }
}
