//! Light agents, of which only the messages with the master are modelled, without faults.
//!
//! They register, run tasks, and send updates one at a time until each is acknowledged. They have no executors,
//! checkpoints and faults, and are not pinged. Worlds with faults use the real cores.

use std::time::Duration;

use base::Pid;
use master::{Message, Outgoing};
use protos::mesos::internal as m;
use protos::mesos::{self as pb, TaskState};

use super::event::Event;
use super::{Observer, World};
use crate::work::{FailureRates, Work};

/// The state of a light agent.
pub(super) struct LightAgent {
    id: Option<pb::SlaveId>,
    /// The agent's pid as text.
    pid: String,
    /// Tasks of the agent; few enough for a linear search.
    tasks: Vec<u32>,
}

/// A task on a light agent.
pub(super) struct LightTask {
    agent: u32,
    serial: u64,
    framework: pb::FrameworkId,
    id: pb::TaskId,
    executor: Option<pb::ExecutorId>,
    ended: bool,
    /// Updates that are not acknowledged, with their numbers; the first has been sent. A task has at most two: that it
    /// runs, and its end.
    updates: [Option<(TaskState, u64)>; 2],
}

/// Returns the capabilities of an agent of version 1.11.
fn capabilities() -> Vec<pb::slave_info::Capability> {
    use pb::slave_info::capability::Type;
    [Type::MultiRole, Type::HierarchicalRole, Type::ReservationRefinement, Type::AgentDraining]
        .map(|kind| pb::slave_info::Capability { r#type: Some(kind as i32) })
        .to_vec()
}

/// Returns the UUID of an update, which encodes the task and the number of the update.
fn uuid(task: u32, serial: u64) -> [u8; 16] {
    // The task is above and the number below the bits of version and variant.
    base::uuid_from((u128::from(task) << 96 | u128::from(serial)).to_be_bytes())
}

/// Returns the task and the number of the update with this UUID.
fn update_of(uuid: &[u8]) -> Option<(u32, u64)> {
    let both = u128::from_be_bytes(uuid.try_into().ok()?);
    Some(((both >> 96) as u32, both as u64 & (u64::MAX >> 2)))
}

impl LightAgent {
    /// Creates a light agent that has not registered.
    pub fn new(pid: &Pid) -> LightAgent {
        LightAgent { id: None, pid: pid.to_string(), tasks: Vec::new() }
    }
}

impl<O: Observer> World<O> {
    pub(super) fn light_registers(&mut self, agent: u32) {
        let message = m::RegisterSlaveMessage {
            slave: self.agents[agent as usize].spec.info(),
            checkpointed_resources: Vec::new(),
            version: Some("1.11.0".to_owned()),
            agent_capabilities: capabilities(),
            resource_version_uuid: Some(pb::Uuid { value: base::uuid_from([7; 16]).to_vec() }),
        };
        self.send_to_master(agent, Message::RegisterSlave(Box::new(message)), self.now);
    }

    pub(super) fn light_message(&mut self, agent: u32, epoch: u32, message: Outgoing) {
        let host = &mut self.agents[agent as usize];
        if !host.to_agent.carries(epoch) {
            return;
        }
        let Some(light) = &mut host.light else { return };
        match message {
            Outgoing::SlaveRegistered(registered) => light.id = Some(registered.slave_id),
            Outgoing::RunTask(run) => self.light_launch(agent, *run),
            Outgoing::StatusUpdateAcknowledgement(acknowledged) => self.light_acknowledged(agent, &acknowledged),
            Outgoing::KillTask(kill) => {
                let is_it = |task: &u32| {
                    let entry = &self.light_tasks[*task as usize];
                    entry.id == kill.task_id && entry.framework == kill.framework_id
                };
                if let Some(task) = light.tasks.iter().copied().find(is_it) {
                    let serial = self.light_tasks[task as usize].serial;
                    self.light_task(agent, task, serial, TaskState::TaskKilled);
                }
            }
            Outgoing::ShutdownFramework(ended) => self.light_framework_ends(agent, &ended.framework_id),
            _ => {}
        }
    }

    fn light_launch(&mut self, agent: u32, run: m::RunTaskMessage) {
        let Some(framework) = run.framework.id.clone() else { return };
        let serial = self.next_id();
        let work = Work::of(&run.task);
        let span = self.task_span(agent, &framework.value, &run.task.task_id.value, work);
        let task = self.light_tasks.insert(LightTask {
            agent,
            serial,
            framework,
            id: run.task.task_id,
            executor: run.task.executor.map(|executor| executor.executor_id),
            ended: false,
            updates: [None; 2],
        }) as u32;
        if let Some(light) = &mut self.agents[agent as usize].light {
            light.tasks.push(task);
        }
        let starts = self.now + self.draw_duration(|model| &model.container_start);
        self.queue.push(starts, Event::LightTask { agent, task, serial, state: TaskState::TaskRunning });
        if let Some((span, state)) = span {
            self.queue.push(starts + span, Event::LightTask { agent, task, serial, state });
        }
    }

    /// Changes the state of a task, and sends an update.
    pub(super) fn light_task(&mut self, agent: u32, task: u32, serial: u64, state: TaskState) {
        let (number, now) = (self.next_id(), self.now);
        let Some(entry) = self.light_tasks.get_mut(task as usize).filter(|entry| entry.serial == serial) else {
            return;
        };
        if entry.ended {
            return;
        }
        entry.ended = state != TaskState::TaskRunning;
        let first = entry.updates[0].is_none();
        entry.updates[usize::from(!first)] = Some((state, number));
        match entry.ended {
            false => self.observer.started(&entry.framework.value, &entry.id.value, now),
            true => self.observer.ended(&entry.framework.value, &entry.id.value, now),
        }
        if first {
            self.light_update(agent, task);
        }
    }

    /// Sends the first update that is not acknowledged.
    fn light_update(&mut self, agent: u32, task: u32) {
        let entry = &self.light_tasks[task as usize];
        let Some((state, number)) = entry.updates[0] else { return };
        let uuid = uuid(task, number);
        let slave_id = self.agents[agent as usize].light.as_ref().and_then(|light| light.id.clone());
        let status = pb::TaskStatus {
            task_id: entry.id.clone(),
            state: state as i32,
            source: Some(pb::task_status::Source::Executor as i32),
            slave_id: slave_id.clone(),
            executor_id: entry.executor.clone(),
            uuid: Some(uuid.to_vec()),
            timestamp: Some(self.now.as_secs_f64()),
            ..pb::TaskStatus::default()
        };
        let update = m::StatusUpdate {
            framework_id: entry.framework.clone(),
            executor_id: entry.executor.clone(),
            slave_id,
            status,
            timestamp: self.now.as_secs_f64(),
            uuid: Some(uuid.to_vec()),
            latest_state: entry.updates.iter().flatten().last().map(|(state, _)| *state as i32),
        };
        let pid = self.agents[agent as usize].light.as_ref().map(|light| light.pid.clone());
        let message = Message::StatusUpdate(Box::new(m::StatusUpdateMessage { update, pid }));
        self.send_to_master(agent, message, self.now);
    }

    fn light_acknowledged(&mut self, agent: u32, message: &m::StatusUpdateAcknowledgementMessage) {
        let Some((task, number)) = update_of(&message.uuid) else { return };
        let Some(light) = &mut self.agents[agent as usize].light else { return };
        let Some(entry) = self.light_tasks.get_mut(task as usize).filter(|entry| entry.agent == agent) else { return };
        if entry.updates[0].is_none_or(|(_, first)| first != number) {
            return;
        }
        entry.updates = [entry.updates[1], None];
        if entry.updates[0].is_some() {
            self.light_update(agent, task);
        } else if entry.ended {
            light.tasks.retain(|one| *one != task);
            self.light_tasks.remove(task as usize);
        }
    }

    /// Ends the tasks of a framework that has been removed; no updates are sent.
    fn light_framework_ends(&mut self, agent: u32, framework: &pb::FrameworkId) {
        let Some(light) = &mut self.agents[agent as usize].light else { return };
        let tasks = &self.light_tasks;
        let gone: Vec<u32> = light.tasks.extract_if(.., |task| tasks[*task as usize].framework == *framework).collect();
        for task in gone {
            let entry = self.light_tasks.remove(task as usize);
            debug_assert_eq!(entry.agent, agent);
            if !entry.ended {
                self.observer.ended(&entry.framework.value, &entry.id.value, self.now);
            }
        }
    }

    /// Returns how long a task runs and in which state it ends; `None` if it runs until it is killed. The draw depends
    /// on the task's name, so that it is the same under every policy.
    pub(super) fn task_span(
        &mut self,
        agent: u32,
        framework: &str,
        task: &str,
        work: Work,
    ) -> Option<(Duration, TaskState)> {
        let span = work.span?;
        let ending = if work.exit == 0 { TaskState::TaskFinished } else { TaskState::TaskFailed };
        let model = &self.model;
        let own = self.agents.get(agent as usize).map_or(0.0, |host| host.spec.failures);
        let failures = model.failures + own * (1.0 - model.failures);
        let failure_rates = FailureRates { failures, stragglers: model.stragglers, straggling: model.straggling };
        match failure_rates.draw(span, || self.seed.child("tasks").child(framework).child(task)) {
            (span, true) => Some((span, TaskState::TaskFailed)),
            (span, false) => Some((span, ending)),
        }
    }
}
