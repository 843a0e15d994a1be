//! Updates the resources and volumes of a running container when its tasks change.
//!
//! The shell carries out the changes.

use protos::mesos as pb;

use crate::agent::Agent;
use crate::output::{Outbox, Output};
use crate::state::{ContainerName, Prepare, VolumeLink};
use crate::volumes::volumes;

impl Agent {
    /// Requests an update of a running container's resources and limits after its tasks have changed.
    pub(crate) fn resize(&self, framework: &str, executor: &str, out: &mut Outbox) {
        let Some(executor) = self.executor(framework, executor).filter(|_| self.config.resizes) else { return };
        // The executor of a command task ends with its only task.
        if !executor.generated_for_command_task {
            out.outputs.push(Output::Resize {
                container: executor.container.clone(),
                resources: executor.resources(),
                limits: executor.limits(self.config.cpu_quotas),
            });
        }
    }

    /// Returns the volumes of a container, with the preparation of each. A volume gets the container's user as owner,
    /// but a shared one that other containers use is left as it is.
    pub(crate) fn volume_links(&self, container: &ContainerName, resources: &[pb::Resource]) -> Vec<VolumeLink> {
        let of = |(mut link, shared): (VolumeLink, bool)| {
            if shared && self.is_used_elsewhere(&link.directory, container) {
                link.prepare = Prepare::KeepOwner;
            }
            link
        };
        volumes(&self.config.work_dir, resources.iter()).into_iter().map(of).collect()
    }

    fn is_used_elsewhere(&self, directory: &str, container: &ContainerName) -> bool {
        let mut executors = self.frameworks.executors();
        executors
            .any(|other| other.container != *container && other.volumes.iter().any(|link| link.directory == directory))
    }

    /// Requests an update of a running container's volumes to those of its current tasks.
    pub(crate) fn update_volumes(&mut self, framework: &str, executor: &str, out: &mut Outbox) {
        let Some(known) = self.executor(framework, executor) else { return };
        if known.volumes.is_empty() && !known.uses_volumes() {
            return;
        }
        let links = self.volume_links(&known.container, &known.resources());
        let same =
            |a: &VolumeLink, b: &VolumeLink| (&a.container_path, &a.directory) == (&b.container_path, &b.directory);
        let without = |links: &[VolumeLink], others: &[VolumeLink]| -> Vec<VolumeLink> {
            links.iter().filter(|link| !others.iter().any(|other| same(link, other))).cloned().collect()
        };
        let (added, removed) = (without(&links, &known.volumes), without(&known.volumes, &links));
        if added.is_empty() && removed.is_empty() {
            return;
        }
        out.outputs.push(Output::LinkVolumes {
            container: known.container.clone(),
            sandbox: known.directory.to_string(),
            user: known.user.clone(),
            added,
            removed,
        });
        if let Some(known) = self.executor_mut(framework, executor) {
            known.volumes = links;
        }
    }
}
