//! Rules about persistent volumes, and the records that they need: the owner, the agent and the content of each.
//!
//! The records come from the requests of schedulers and operators, and from the agents' disks.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use sdk::v1::scheduler::Call;

use super::checker::TaskName;
use crate::world::Note;

/// A broken rule with its description; `None` if all hold.
type Fault = Option<(&'static str, String)>;

/// A volume, with the states of all processes combined.
#[derive(Debug, Default)]
struct Volume {
    /// Whether the destruction of the volume was requested.
    unwanted: bool,
    /// Agent and directory of the volume, while it exists.
    place: Option<(u32, String)>,
    /// Whether the volume was destroyed.
    gone: bool,
    /// Tasks that have written into the volume.
    data: BTreeSet<String>,
    /// Tasks that use the volume now.
    users: Vec<TaskName>,
}

/// All volumes of a world, by their ids.
#[derive(Debug, Default)]
pub(super) struct Volumes(FxHashMap<String, Volume>);

impl Volumes {
    /// Records the volumes that a scheduler's call creates or destroys.
    pub fn called(&mut self, call: &Call) {
        for operation in call.accept.iter().flat_map(|accept| &accept.operations) {
            for id in operation.create.iter().flat_map(|create| &create.volumes).filter_map(v1_id) {
                self.0.entry(id.to_owned()).or_default();
            }
            for id in operation.destroy.iter().flat_map(|destroy| &destroy.volumes).filter_map(v1_id) {
                self.0.entry(id.to_owned()).or_default().unwanted = true;
            }
        }
    }

    /// Handles an event and returns the rule that it breaks.
    ///
    /// `is_kept` returns whether a framework's tasks outlive its connections.
    pub fn noted(&mut self, note: &Note<'_>, is_kept: &dyn Fn(&str) -> bool) -> Fault {
        match note {
            Note::OperatorCalls { call, .. } => {
                let volumes = call.destroy_volumes.iter().flat_map(|destroy| &destroy.volumes);
                for disk in volumes.filter_map(|volume| volume.disk.as_ref()) {
                    let id = disk.persistence.as_ref().map(|persistence| persistence.id.clone());
                    self.0.entry(id.unwrap_or_default()).or_default().unwanted = true;
                }
                None
            }
            Note::VolumeCreated { agent, directory } => self.made(*agent, directory),
            Note::VolumeDestroyed { directory, .. } => self.gone(directory, is_kept),
            Note::VolumeUsed { agent, framework, task, id, shared, data } => {
                let task = ((*framework).to_owned(), (*task).to_owned());
                let alone = !*shared && is_kept(framework);
                self.used(*agent, task, id, alone, *data)
            }
            _ => None,
        }
    }

    /// Records that a task has ended.
    pub fn ended(&mut self, framework: &str, task: &str) {
        for volume in self.0.values_mut() {
            volume.users.retain(|(of, name)| (of.as_str(), name.as_str()) != (framework, task));
        }
    }

    fn made(&mut self, agent: u32, directory: &str) -> Fault {
        let Some(volume) = self.0.get_mut(id_of(directory)) else {
            return Some(("volumes are made on request", format!("{directory} of agent {agent} was not requested")));
        };
        if let Some((other, place)) = &volume.place {
            return Some((
                "a volume is made once",
                format!("{directory} of agent {agent} is {place} of agent {other}"),
            ));
        }
        if volume.gone {
            return Some((
                "a volume is made once",
                format!("{directory} of agent {agent} was destroyed, and still exists"),
            ));
        }
        volume.place = Some((agent, directory.to_owned()));
        None
    }

    fn gone(&mut self, directory: &str, is_kept: &dyn Fn(&str) -> bool) -> Fault {
        let volume = self.0.get_mut(id_of(directory))?;
        (volume.place, volume.gone) = (None, true);
        if !volume.unwanted {
            return Some(("no volume is lost", format!("{directory} was destroyed without a request")));
        }
        // A task of a framework without checkpointing may still run after its master has removed it.
        let user = volume.users.iter().find(|(framework, _)| is_kept(framework))?;
        Some(("no volume is lost", format!("{directory} is destroyed, while task {} of {} uses it", user.1, user.0)))
    }

    fn used(&mut self, agent: u32, task: TaskName, id: &str, alone: bool, data: Option<&BTreeSet<String>>) -> Fault {
        let Some(volume) = self.0.get_mut(id) else {
            return Some(("a task sees its volumes", format!("no framework created {id}, which {} uses", task.1)));
        };
        let here = volume.place.as_ref().is_some_and(|(of, _)| *of == agent);
        let Some(data) = data.filter(|_| here) else {
            return Some(("a task sees its volumes", format!("{id} of {} of {} does not exist", task.1, task.0)));
        };
        if *data != volume.data {
            let text = format!("{id} contains {data:?}, {:?} was written into it", volume.data);
            return Some(("a volume keeps its data", text));
        }
        if let Some(user) = volume.users.first().filter(|_| alone) {
            let text = format!("{id} is used by {} and by {} of {}", user.1, task.1, task.0);
            return Some(("a volume is used by one task at a time", text));
        }
        volume.data.insert(format!("{}/{}", task.0, task.1));
        volume.users.push(task);
        None
    }
}

/// Returns the id of the volume in a directory.
pub(super) fn id_of(directory: &str) -> &str {
    directory.rsplit_once('/').map_or(directory, |(_, id)| id)
}

/// Returns the id of a volume in an operation.
pub(super) fn v1_id(volume: &sdk::v1::Resource) -> Option<&str> {
    Some(volume.disk.as_ref()?.persistence.as_ref()?.id.as_str())
}
