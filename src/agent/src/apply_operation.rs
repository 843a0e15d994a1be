//! Applies operations to the agent's own resources: reservations and volumes (docs/mesos/libprocess.md).
//!
//! An operation is applied, checkpointed and reported in one step. The report is repeated until it is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use base::Time;
use protos::mesos::internal::{
    AcknowledgeOperationStatusMessage, ApplyOperationMessage, CheckpointResourcesMessage, ReconcileOperationsMessage,
    UpdateOperationStatusMessage, slave::ResourceState,
};
use protos::mesos::{self as pb, OperationState};
use resources::{Conversion, Format, Resource, Resources};

use crate::agent::{Agent, AgentState};
use crate::disk::{frame, paths};
use crate::output::{Outbox, Output, Persist};
use crate::state::{RETRY_MAX, RETRY_MIN};
use crate::timers::Timer;
use crate::volumes::{shared_volume_directory, volume_changes};

impl Agent {
    /// Handles ApplyOperationMessage: applies the operation, checkpoints it and reports its status.
    pub(crate) fn apply_operation(&mut self, message: ApplyOperationMessage, now: Time, out: &mut Outbox) {
        if message.resource_version_uuid.resource_provider_id.is_some() {
            out.warn("Dropped an operation: its resource provider is not subscribed");
            return;
        }
        if let Some(known) = self.operations.get(&message.operation_uuid.value) {
            return self.send_operation_status(known, known.latest_status.clone(), out);
        }
        if let Some(why) = self.refusal("Operation") {
            return self.refuse_operation(&message, why, out);
        }
        let conversions = resources::conversions(&message.operation_info).map_err(|why| why.to_string());
        let changed = conversions.and_then(|conversions| {
            let conversions: Vec<_> = conversions.into_iter().map(unallocated).collect();
            let total = self.total.apply_conversions(&conversions).map_err(|why| why.to_string())?;
            match shared_volume_directory(&self.config.work_dir, &total) {
                None => Ok(total),
                Some(path) => Err(format!("There is a volume in '{path}' already")),
            }
        });
        let (state, text) = match changed {
            Ok(total) => {
                self.change_total(total, out);
                (OperationState::OperationFinished, None)
            }
            Err(why) => (OperationState::OperationError, Some(why)),
        };
        let status = pb::OperationStatus {
            operation_id: message.operation_info.id.clone(),
            state: state as i32,
            message: text,
            uuid: Some(pb::Uuid { value: self.random.uuid().to_vec() }),
            slave_id: Some(self.slave_id()),
            ..pb::OperationStatus::default()
        };
        let operation = pb::Operation {
            framework_id: message.framework_id,
            slave_id: Some(self.slave_id()),
            info: message.operation_info,
            latest_status: status.clone(),
            statuses: vec![status],
            uuid: message.operation_uuid,
        };
        let uuid = operation.uuid.value.clone();
        self.operations.push(operation);
        self.checkpoint_resources(out);
        self.report_operation(&uuid, RETRY_MIN, now, out);
        if state == OperationState::OperationError {
            // The master has already applied the operation to its own state.
            self.reregister_to_correct_master(out);
        }
    }

    /// Reports that an operation is dropped. Nothing of it is kept, as if it had never arrived.
    fn refuse_operation(&mut self, message: &ApplyOperationMessage, why: String, out: &mut Outbox) {
        let status = pb::OperationStatus {
            operation_id: message.operation_info.id.clone(),
            state: OperationState::OperationDropped as i32,
            message: Some(why),
            slave_id: Some(self.slave_id()),
            ..pb::OperationStatus::default()
        };
        let update = UpdateOperationStatusMessage {
            framework_id: message.framework_id.clone(),
            slave_id: Some(self.slave_id()),
            latest_status: Some(status.clone()),
            status,
            operation_uuid: Some(message.operation_uuid.clone()),
        };
        if let Some(master) = &self.master {
            out.at_once.push(Output::Send { to: master.clone(), message: Arc::new(update.into()) });
        }
        // The master has already applied the operation to its own state.
        self.reregister_to_correct_master(out);
    }

    /// Reports an operation's status to the master, and sets the time of the next report.
    pub(crate) fn report_operation(&mut self, uuid: &[u8], wait: Duration, now: Time, out: &mut Outbox) {
        let Some(operation) = self.operations.get(uuid).cloned() else { return };
        if self.state == AgentState::Running {
            self.send_operation_status(&operation, operation.latest_status.clone(), out);
        }
        let again = Timer::OperationRetry { uuid: uuid.to_vec(), wait: (wait * 2).min(RETRY_MAX) };
        self.timers.set(now + wait, again);
    }

    /// Reports the status of all operations to the master; called after each registration.
    pub(crate) fn report_operations(&self, out: &mut Outbox) {
        for operation in self.operations.iter() {
            self.send_operation_status(operation, operation.latest_status.clone(), out);
        }
    }

    fn send_operation_status(&self, operation: &pb::Operation, status: pb::OperationStatus, out: &mut Outbox) {
        let message = UpdateOperationStatusMessage {
            framework_id: operation.framework_id.clone(),
            slave_id: Some(self.slave_id()),
            latest_status: Some(operation.latest_status.clone()),
            status,
            operation_uuid: Some(operation.uuid.clone()),
        };
        self.send_to_master(message, out);
    }

    /// Handles AcknowledgeOperationStatusMessage: forgets the operation.
    pub(crate) fn acknowledge_operation_status(
        &mut self,
        message: &AcknowledgeOperationStatusMessage,
        out: &mut Outbox,
    ) {
        if self.operations.acknowledge(&message.operation_uuid, &message.status_uuid) {
            self.checkpoint_resources(out);
        }
    }

    /// Handles ReconcileOperationsMessage: answers a framework about the operations that are known, and the master
    /// about those that are not.
    pub(crate) fn reconcile_operations(&self, message: ReconcileOperationsMessage, out: &mut Outbox) {
        for asked in message.operations.into_iter().filter(|asked| asked.resource_provider_id.is_none()) {
            match (self.operations.asked_for(&asked), &message.framework_id, asked.operation_uuid.clone()) {
                (Some(known), Some(_), _) => {
                    let status = pb::OperationStatus { uuid: None, ..known.latest_status.clone() };
                    self.send_operation_status(known, status, out);
                }
                (None, None, Some(uuid)) => {
                    let status = pb::OperationStatus {
                        state: OperationState::OperationDropped as i32,
                        slave_id: Some(self.slave_id()),
                        ..pb::OperationStatus::default()
                    };
                    let message = UpdateOperationStatusMessage {
                        slave_id: Some(self.slave_id()),
                        status,
                        operation_uuid: Some(uuid),
                        ..UpdateOperationStatusMessage::default()
                    };
                    self.send_to_master(message, out);
                }
                _ => {}
            }
        }
    }

    /// Handles CheckpointResourcesMessage, by which old masters set reservations and volumes as a whole.
    pub(crate) fn checkpoint_resources_message(&mut self, message: &CheckpointResourcesMessage, out: &mut Outbox) {
        let parsed = resources::from_proto(&message.resources).map_err(|why| why.to_string());
        let own = resources::from_proto(&self.info.resources).map_err(|why| why.to_string());
        let total = own.and_then(|own| own.with_checkpointed(&parsed?).map_err(|why| why.to_string()));
        match total {
            Ok(total) => {
                self.change_total(total, out);
                self.checkpoint_resources(out);
            }
            Err(why) => out.warn(format!("Dropped checkpointed resources that this agent does not have: {why}")),
        }
    }

    /// Replaces the agent's total resources, and creates and deletes volumes accordingly.
    fn change_total(&mut self, total: Resources, out: &mut Outbox) {
        self.change_volumes(&Arc::clone(&self.total), &total, out);
        self.total = Arc::new(total);
    }

    /// Creates and deletes the directories of the volumes that differ between two states of the resources.
    ///
    /// Until that is reported as done, the target file has the new state, and the state file has all volumes that may
    /// still be on the disk. From the two files a restarted agent can tell which volumes to delete.
    fn change_volumes(&mut self, old: &Resources, new: &Resources, out: &mut Outbox) {
        let (gone, new) = volume_changes(&self.config.work_dir, old, new);
        if gone.is_empty() && new.is_empty() {
            return;
        }
        let old = old.filter(Resource::is_persistent_volume);
        if self.volumes_settled == self.volume_change {
            self.volumes_on_disk = old;
        } else {
            let known = self.volumes_on_disk.clone();
            self.volumes_on_disk += &old.filter(|volume| !known.contains_resource(volume));
            let resources = self.volumes_on_disk.to_proto(Format::PostRefinement);
            let state = ResourceState { resources, ..ResourceState::default() };
            self.checkpoint(paths::RESOURCES.to_owned(), frame(&state), out);
        }
        self.volume_change += 1;
        out.outputs.push(Output::ChangeVolumes { change: self.volume_change, gone, new });
    }

    /// Repeats a change of volumes that the previous agent process had begun; the volumes of `on_disk` may exist.
    ///
    /// How far that process got is not known. To create an existing directory or to delete a missing one changes
    /// nothing.
    pub(crate) fn resume_volumes(&mut self, on_disk: Resources, out: &mut Outbox) {
        let wanted = self.total.filter(Resource::is_persistent_volume);
        let (gone, _) = volume_changes(&self.config.work_dir, &on_disk, &wanted);
        let (_, new) = volume_changes(&self.config.work_dir, &Resources::default(), &wanted);
        self.volumes_on_disk = on_disk;
        self.volume_change += 1;
        out.outputs.push(Output::ChangeVolumes { change: self.volume_change, gone, new });
    }

    /// Handles the completion of a change of volumes: the directories match the target file, which becomes the state
    /// file unless a later change is in progress.
    pub(crate) fn volumes_changed(&mut self, change: u64, out: &mut Outbox) {
        if change != self.volume_change {
            return;
        }
        self.volumes_settled = change;
        self.checkpoint_resources(out);
        for path in [paths::RESOURCES_TARGET, paths::RESOURCES_INFO_TARGET] {
            out.persist.push(Persist::Remove { path: path.to_owned() });
        }
    }

    fn checkpoint_resources(&self, out: &mut Outbox) {
        let resources = self.total.to_checkpoint();
        let state = ResourceState {
            operations: self.operations.to_proto(),
            resources: resources.to_proto(Format::PostRefinement),
        };
        let old: Vec<u8> = resources.to_proto(Format::PreRefinement).iter().flat_map(frame).collect();
        let (path, old_path) = match self.volumes_settled == self.volume_change {
            true => (paths::RESOURCES, paths::RESOURCES_INFO),
            false => (paths::RESOURCES_TARGET, paths::RESOURCES_INFO_TARGET),
        };
        self.checkpoint(path.to_owned(), frame(&state), out);
        self.checkpoint(old_path.to_owned(), old, out);
    }
}

/// Returns a conversion without allocations: the agent's own resources have none, unlike those of an offer.
fn unallocated(conversion: Conversion) -> Conversion {
    Conversion {
        consumed: conversion.consumed.unallocated(),
        converted: conversion.converted.unallocated(),
        must_be_gone: conversion.must_be_gone.map(|volume| volume.with_allocation(None)),
    }
}
