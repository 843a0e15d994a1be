//! Where a container finds the host's directories: where they are, or below a root made of an image, its own or that of
//! a container around it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agent::{ContainerName, ContainerSpec};
use containers::isolation::Isolation;
use containers::{Program, Spec};

use crate::mesos::provisioner::{Provisioner, Root, os, see_sandbox};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// The root that is its own.
    root: Option<Root>,
    /// Where it finds its sandbox, if that is not where the host has it.
    sandbox: Option<String>,
}

impl View {
    /// # Errors
    /// A root within a root, or a damaged file about one.
    pub(crate) fn of(images: &Provisioner, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<View> {
        let root = if spec.session.is_some() { None } else { images.root_of(container)? };
        let mut around = container.parent();
        // A session has the sandbox of the container that it is in.
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
        // Each level is a directory 'containers', and one in it.
        let path = Path::new(&spec.sandbox);
        let parts: Vec<_> = path.iter().collect();
        let inside: PathBuf = parts[parts.len().saturating_sub(2 * levels)..].iter().collect();
        let seen = Path::new(images.sandbox()).join(inside);
        Ok(View { root: None, sandbox: Some(seen.to_string_lossy().trim_end_matches('/').to_owned()) })
    }

    /// The root that is its own.
    pub(crate) fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// Where it finds its sandbox.
    pub(crate) fn sandbox<'a>(&'a self, spec: &'a ContainerSpec) -> &'a str {
        self.sandbox.as_deref().unwrap_or(&spec.sandbox)
    }

    /// Adds the root's mounts to those of the volumes.
    pub(crate) fn enter(&self, spec: &ContainerSpec, isolation: &mut Isolation) {
        if let Some(root) = &self.root {
            root.enter(isolation, &spec.sandbox, self.sandbox(spec));
        }
    }

    /// Applies the view to a process: directory, variables, and the program of an image.
    ///
    /// # Errors
    /// There is no program.
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
