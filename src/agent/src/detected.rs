//! Handles the detection and loss of the leading master: the agent registers, or waits.
//!
//! The master's answers are handled in `registered.rs`.

use std::sync::Arc;
use std::time::Duration;

use base::{Pid, Time};
use protos::mesos as pb;
use protos::mesos::internal::{
    RegisterSlaveMessage, ReregisterSlaveMessage, UpdateSlaveMessage, archive, update_slave_message,
};

use crate::agent::{Agent, AgentState};
use crate::old_resources::in_old_form;
use crate::output::{Outbox, Output};
use crate::state::{Executor, ExecutorState, FrameworkState, Queued, task_for, task_of};
use crate::timers::Timer;

/// Longest wait between two registration attempts.
const REGISTRATION_WAIT_MAX: Duration = Duration::from_secs(60);
/// Shortest silence of a master that is logged as a warning, however often the agent registers.
const SILENCE_MIN: Duration = Duration::from_secs(1);

impl Agent {
    /// Handles a result of leader detection, which may be the same master as before.
    pub(crate) fn detected(&mut self, master: Option<Pid>, now: Time) {
        self.master = master;
        self.streams.pause();
        self.timers.cancel(self.registration.take());
        self.reset_authentication();
        self.timers.cancel(self.ping.take());
        match self.state {
            AgentState::Running => self.state = AgentState::Disconnected,
            AgentState::Recovering | AgentState::Terminating => return,
            AgentState::Disconnected => {}
        }
        self.start_registration(now);
    }

    /// Schedules a registration after a random wait; does nothing without a master.
    pub(crate) fn start_registration(&mut self, now: Time) {
        if self.master.is_none() {
            return;
        }
        let wait = self.random.up_to(self.config.first_registration_wait);
        self.registration_wait = self.config.registration_backoff_factor.saturating_mul(2).min(REGISTRATION_WAIT_MAX);
        self.asked = false;
        self.registration = Some(self.timers.set(now + wait, Timer::Register));
    }

    /// Handles the registration timer: sends a registration, the first one or another.
    pub(crate) fn registration_is_due(&mut self, now: Time, out: &mut Outbox) {
        self.registration = None;
        if self.is_authentication_in_doubt() {
            // A master that is silent for so long may have forgotten the authentication, because a connection broke in
            // between.
            self.reset_authentication();
        }
        self.send_registration(now, out);
    }

    /// Sends one registration, and schedules the next; authenticates first if that is needed.
    pub(crate) fn send_registration(&mut self, now: Time, out: &mut Outbox) {
        let Some(master) = self.master.clone() else { return };
        if self.state != AgentState::Disconnected {
            return;
        }
        if self.must_authenticate() {
            return self.authenticate(now, out);
        }
        out.outputs.push(Output::Link { to: master.clone() });
        match &self.id {
            None => self.send(&master, self.register_slave(), out),
            Some(_) => self.send(&master, self.reregister_slave(), out),
        }
        self.announcements_differ |= self.asked && self.announced_failure != self.checkpoint_failure;
        self.asked = true;
        self.note_announced();
        if self.registration_wait >= REGISTRATION_WAIT_MAX {
            self.note_unanswered_registration();
        }
        let patience = self.config.registration_backoff_factor.saturating_mul(4).max(SILENCE_MIN);
        let is_late = self.registration_wait > patience;
        if is_late && !self.has_warned_of_master {
            self.has_warned_of_master = true;
            let master = master.address();
            let advice = match self.config.credential {
                Some(_) => "see its log",
                None => "see its log; if it authenticates agents, give --credential",
            };
            out.warn(format!("The master at {master} has not answered yet; trying again; {advice}"));
        }
        let wait = self.random.up_to(self.registration_wait);
        self.registration_wait = (self.registration_wait * 2).min(REGISTRATION_WAIT_MAX);
        self.registration = Some(self.timers.set(now + wait, Timer::Register));
    }

    /// Moves the next registration forward to within twice the back-off factor, if it would be later.
    pub(crate) fn register_soon(&mut self, now: Time) {
        let longest = self.config.registration_backoff_factor.saturating_mul(2);
        let Some(key) = self.registration.filter(|key| key.at() > now + longest) else { return };
        self.timers.cancel(Some(key));
        let wait = self.random.up_to(longest);
        self.registration_wait = longest;
        self.registration = Some(self.timers.set(now + wait, Timer::Register));
    }

    /// Returns whether the agent has sent its list of tasks to a master that has not answered yet.
    ///
    /// That list lacks changes that a later message orders. Such a message may come from an earlier master at the same
    /// address, which died while the message was on its way. The master that reads the list would then allocate
    /// resources that are in use a second time.
    pub(crate) fn has_unanswered_registration(&self) -> bool {
        self.state == AgentState::Disconnected && self.asked
    }

    /// Reregisters with a master that has accepted the agent, to correct its view of the agent.
    pub(crate) fn reregister_to_correct_master(&mut self, out: &mut Outbox) {
        if self.state == AgentState::Running {
            self.note_announced();
            self.send_to_master(self.reregister_slave(), out);
        }
    }

    fn note_announced(&mut self) {
        self.announced = Some(Arc::clone(&self.total));
        self.announced_failure.clone_from(&self.checkpoint_failure);
    }

    fn register_slave(&self) -> RegisterSlaveMessage {
        RegisterSlaveMessage {
            slave: self.info_in_old_form(),
            checkpointed_resources: self.checkpointed_resources(),
            version: Some(self.config.version.clone()),
            agent_capabilities: self.capabilities(),
            resource_version_uuid: Some(self.resource_version_uuid()),
        }
    }

    /// Returns the message with all tasks and executors for a master.
    ///
    /// Frameworks that a master has shut down are left out, because that master has removed them. No update of their
    /// tasks will follow, so another master would keep them forever.
    fn reregister_slave(&self) -> ReregisterSlaveMessage {
        let frameworks = self.frameworks.values().filter(|framework| framework.state == FrameworkState::Running);
        let executors = || frameworks.clone().flat_map(|framework| framework.executors.values());
        let listed = executors().filter(|executor| executor.state != ExecutorState::Terminated);
        ReregisterSlaveMessage {
            slave: self.info_in_old_form(),
            checkpointed_resources: self.checkpointed_resources(),
            executor_infos: listed
                .filter(|executor| !executor.generated_for_command_task)
                .map(|executor| {
                    let mut info = pb::ExecutorInfo::clone(&executor.info);
                    info.framework_id = Some(pb::FrameworkId { value: (&executor.framework_id).into() });
                    in_old_form(&mut info.resources);
                    info
                })
                .collect(),
            tasks: executors().flat_map(|executor| self.tasks_of(executor)).chain(self.waiting_tasks()).collect(),
            frameworks: frameworks.clone().map(|framework| pb::FrameworkInfo::clone(&framework.info)).collect(),
            completed_frameworks: self.archive(),
            version: Some(self.config.version.clone()),
            agent_capabilities: self.capabilities(),
            resource_version_uuid: Some(self.resource_version_uuid()),
        }
    }

    /// Returns an executor's tasks for a master: queued ones as staging, launched ones, and ended ones that are not
    /// acknowledged.
    ///
    /// The last forwarded state is added. The newest state may still wait for its turn, and a master that has just
    /// started would forward it too early.
    fn tasks_of(&self, executor: &Executor) -> Vec<pb::Task> {
        let queued = executor.queued.iter().flat_map(Queued::tasks);
        let staging = queued.map(|task| {
            let mut task = task_of(task, executor);
            in_old_form(&mut task.resources);
            task
        });
        let known = executor.launched.iter().chain(&executor.terminated).map(|(id, task)| {
            let mut task = task_in_old_form(task);
            if let Some((state, uuid)) = self.streams.latest(&executor.framework_id, id) {
                (task.status_update_state, task.status_update_uuid) = (Some(state), Some(uuid));
            }
            task
        });
        staging.chain(known).collect()
    }

    /// Returns the tasks that wait for the end of an earlier executor with the same id.
    fn waiting_tasks(&self) -> impl Iterator<Item = pb::Task> {
        let of = |framework: &Arc<crate::Framework>| -> Vec<pb::Task> {
            let tasks = framework.waiting_tasks();
            tasks.map(|info| task_in_old_form(&task_for(info, &framework.id))).collect()
        };
        self.frameworks.values().flat_map(of)
    }

    /// Returns the completed frameworks for a new master.
    fn archive(&self) -> Vec<archive::Framework> {
        let of = |framework: &Arc<crate::Framework>| archive::Framework {
            framework_info: pb::FrameworkInfo::clone(&framework.info),
            pid: framework.pid.as_ref().map(ToString::to_string),
            tasks: framework
                .completed_executors
                .iter()
                .flat_map(|executor| executor.completed.iter().chain(executor.terminated.values()))
                .map(|task| task_in_old_form(task))
                .collect(),
        };
        self.frameworks.completed().iter().map(of).collect()
    }

    /// Sends the operations and oversubscribed resources to the master; called after each registration.
    pub(crate) fn update_slave(&self, out: &mut Outbox) {
        let operations = self.operations.to_proto();
        let oversubscribed = self.oversubscribed();
        let update = UpdateSlaveMessage {
            slave_id: self.slave_id(),
            update_oversubscribed_resources: Some(oversubscribed.is_some()),
            oversubscribed_resources: oversubscribed
                .map(|total| total.to_proto(resources::Format::PostRefinement))
                .unwrap_or_default(),
            operations: Some(update_slave_message::Operations { operations }),
            resource_version_uuid: Some(self.resource_version_uuid()),
            resource_providers: Some(update_slave_message::ResourceProviders::default()),
        };
        self.send_to_master(update, out);
    }

    fn info_in_old_form(&self) -> pb::SlaveInfo {
        let mut info = pb::SlaveInfo::clone(&self.info);
        in_old_form(&mut info.resources);
        if let Some(unhealthy) = self.unhealthy_attribute() {
            info.attributes.push(unhealthy);
        }
        info
    }

    fn checkpointed_resources(&self) -> Vec<pb::Resource> {
        self.total.to_checkpoint().to_proto(resources::Format::PreRefinement)
    }

    fn capabilities(&self) -> Vec<pb::slave_info::Capability> {
        let of = |capability: &pb::slave_info::capability::Type| pb::slave_info::Capability {
            r#type: Some(*capability as i32),
        };
        self.config.capabilities.iter().map(of).collect()
    }

    pub(crate) fn resource_version_uuid(&self) -> pb::Uuid {
        pb::Uuid { value: self.resource_version.to_vec() }
    }
}

fn task_in_old_form(task: &pb::Task) -> pb::Task {
    let mut task = task.clone();
    in_old_form(&mut task.resources);
    task
}
