//! Launches tasks: on an existing executor, or on a new one that is started for them.
//!
//! `run_task.rs` has validated the launch.

use std::sync::Arc;

use base::{ContainerId, ExecutorId, FrameworkId, TaskId, Time};
use protos::mesos::internal::{ExitedExecutorMessage, RunTaskMessage};
use protos::mesos::{self as pb, executor as api, task_status::Reason};

use crate::agent::Agent;
use crate::disk::{frame, paths};
use crate::environment::{executor_environment, executor_references, program_of};
use crate::executor_events::{launch_event, launch_group_event};
use crate::output::{Outbox, Output, Persist};
use crate::state::{
    ContainerName, ContainerSpec, Executor, ExecutorKey, ExecutorLink, ExecutorState, Framework, Launch, LaunchError,
    Queued, task_of,
};
use crate::timers::Timer;

impl Agent {
    /// Adds a framework that has no executors; the history that it left here is kept.
    pub(crate) fn add_framework(&mut self, framework: Framework, out: &mut Outbox) {
        self.checkpoint_framework(&framework, out);
        self.frameworks.insert(framework);
    }

    /// Checkpoints a framework's info and pid, if the framework checkpoints.
    pub(crate) fn checkpoint_framework(&self, framework: &Framework, out: &mut Outbox) {
        let Some(agent) = self.id.as_ref().filter(|_| framework.checkpoints()) else { return };
        let directory = paths::framework(agent, &framework.id);
        let pid = framework.pid.clone().unwrap_or_default().to_string();
        self.checkpoint(format!("{directory}/framework.info"), frame(&*framework.info), out);
        self.checkpoint(format!("{directory}/framework.pid"), pid.into_bytes(), out);
    }

    /// Launches tasks on the existing executor, or starts the executor.
    pub(crate) fn launch(&mut self, framework: &FrameworkId, launch: Launch, now: Time, out: &mut Outbox) {
        let executor = launch.executor.executor_id.value.clone();
        let existing = self.executor(framework.as_str(), &executor).map(|executor| executor.state);
        let Some(known) = self.frameworks.get(framework.as_str()) else { return };
        let info = Arc::clone(&known.info);
        let drop = match (existing, launch.expects_new) {
            (None, Some(false)) => {
                let why = "No executor is expected to launch and there is no executor running";
                LaunchError::new(Reason::ExecutorTerminated, why)
            }
            (None, _) => return self.launch_executor(framework, launch, now, out),
            (Some(_), _) if known.may_wait(&launch) => return self.wait_for_executor(framework, launch, now, out),
            // Other tasks may not use or disturb the executor of a command task.
            (Some(_), _) if launch.generated_for_command_task => {
                let why = format!("The executor of an earlier task with the id '{executor}' has not ended yet");
                LaunchError::new(Reason::ExecutorTerminated, why)
            }
            (Some(ExecutorState::Terminating), _) => {
                LaunchError::new(Reason::ExecutorTerminated, "Executor terminating")
            }
            (Some(ExecutorState::Terminated), _) => LaunchError::new(Reason::ExecutorTerminated, "Executor terminated"),
            (Some(_), Some(true)) => {
                self.shut_down_executor(framework, &executor, now, out);
                LaunchError::new(Reason::ExecutorTerminated, "Master wants to launch executor, but one already exists")
            }
            (Some(state), _) => return self.enqueue(framework, &executor, launch.queued, state, out),
        };
        self.drop_launch(framework, &info, &launch, &drop, now, out);
        self.remove_framework_if_idle(framework, now, out);
    }

    /// Queues more tasks for an existing executor, and delivers them if it runs.
    fn enqueue(
        &mut self,
        framework: &FrameworkId,
        executor: &str,
        queued: Queued,
        state: ExecutorState,
        out: &mut Outbox,
    ) {
        let Some(known) = self.executor_mut(framework.as_str(), executor) else { return };
        known.queued.push(queued);
        if state == ExecutorState::Running {
            self.deliver(framework, executor, out);
        }
    }

    pub(crate) fn launch_executor(&mut self, framework: &FrameworkId, launch: Launch, now: Time, out: &mut Outbox) {
        let (Ok(id), Some(agent)) = (ExecutorId::of(&launch.executor.executor_id.value), self.id.clone()) else {
            return;
        };
        let Some(known) = self.frameworks.get(framework.as_str()) else { return };
        let (framework_info, checkpoints) = (Arc::clone(&known.info), known.checkpoints());
        // The text of a UUID is a valid id.
        let container = ContainerId::new(&base::uuid_text(self.random.uuid())).expect("a UUID is a valid id");
        let container = ContainerName::top(&container);
        let directory = paths::executor(&agent, framework, &id);
        let run = paths::run_of(&directory, container.as_str());
        let user = self.user_of(&framework_info, launch.executor.command.as_ref());
        let info = self.with_default_container(launch.executor);
        let place = (self.config.work_dir.as_str(), run.as_str());
        let mut executor = Executor::new(id.clone(), framework.clone(), info, container.clone(), place, user);
        executor.generated_for_command_task = launch.generated_for_command_task;
        executor.needs_token = executor.is_builtin();
        executor.queued = vec![launch.queued];
        executor.timer = Some(self.timers.set(
            now + self.config.executor_registration_timeout,
            Timer::ExecutorRegistration {
                framework: framework.clone(),
                executor: id.clone(),
                container: container.clone(),
            },
        ));
        if executor.uses_volumes() {
            executor.volumes = self.volume_links(&executor.container, &executor.resources());
        }
        if checkpoints {
            self.checkpoint_executor(&executor, &directory, run, out);
        }
        let spec = Box::new(self.container_of(&executor, checkpoints));
        out.outputs.push(Output::Launch { container, spec });
        self.frameworks.insert_executor(executor);
    }

    fn with_default_container(&self, mut info: pb::ExecutorInfo) -> pb::ExecutorInfo {
        if info.container.is_none() {
            info.container.clone_from(&self.config.default_container_info);
        }
        info
    }

    /// Returns the user that runs a command: the one that the command names, or its framework's; `None` without
    /// `--switch_user`.
    pub(crate) fn user_of(&self, framework: &pb::FrameworkInfo, command: Option<&pb::CommandInfo>) -> Option<String> {
        let named = command.and_then(|command| command.user.clone()).filter(|user| !user.is_empty());
        let user = named.unwrap_or_else(|| framework.user.clone());
        (self.config.switch_user && !user.is_empty()).then_some(user)
    }

    fn checkpoint_executor(&self, executor: &Executor, directory: &str, run: String, out: &mut Outbox) {
        let generated: &[u8] = if executor.generated_for_command_task { b"1" } else { b"0" };
        let (latest, target) = (paths::below(directory, "runs/latest"), self.config.meta_path(&run));
        self.checkpoint(paths::below(directory, "executor.info"), frame(&*executor.info), out);
        self.checkpoint(paths::below(directory, "executor_generated_for_command_task"), generated.to_vec(), out);
        out.persist.push(Persist::Directory { path: run });
        out.persist.push(Persist::Link { path: latest, target });
    }

    /// Returns the description of an executor's container for the containerizer.
    fn container_of(&self, executor: &Executor, checkpoint: bool) -> ContainerSpec {
        let info = &executor.info;
        let none = pb::CommandInfo::default();
        let command = info.command.as_ref().unwrap_or(&none);
        let (program, argv) = if executor.is_default() {
            (self.config.program.clone(), vec![self.config.program.clone(), "executor".into(), "default".into()])
        } else {
            program_of(command)
        };
        let runs = executor.directory.rsplit_once('/').map(|(runs, _)| runs);
        let key = ExecutorKey {
            framework: executor.framework_id.as_str().to_owned(),
            executor: executor.id.as_str().to_owned(),
        };
        ContainerSpec {
            executor: Some(key),
            is_builtin_executor: executor.is_builtin(),
            secrets: executor_references(info.command.as_ref()),
            sandbox: executor.directory.to_string(),
            latest: runs.map(|runs| paths::below(runs, "latest")),
            argv,
            program,
            environment: executor_environment(self, executor, checkpoint),
            user: executor.user.clone(),
            uris: command.uris.clone(),
            resources: executor.resources(),
            limits: executor.limits(self.config.cpu_quotas),
            volumes: executor.volumes.clone(),
            container: info.container.clone(),
            session: None,
        }
    }

    /// Sends all queued tasks to a running executor.
    pub(crate) fn deliver(&mut self, framework: &FrameworkId, executor: &str, out: &mut Outbox) {
        let Some(target) = self.executor_mut(framework.as_str(), executor) else { return };
        let queued = std::mem::take(&mut target.queued);
        for queued in &queued {
            for task in queued.tasks() {
                // The id was validated with the launch.
                let Ok(id) = TaskId::of(&task.task_id.value) else { continue };
                let record = Arc::new(task_of(task, target));
                target.launched.insert(id, record);
            }
        }
        target.was_given_a_task |= !queued.is_empty();
        self.update_volumes(framework.as_str(), executor, out);
        self.resize(framework.as_str(), executor, out);
        let Some(known) = self.frameworks.get(framework.as_str()) else { return };
        let Some(target) = known.executors.get(executor) else { return };
        for queued in queued {
            for task in queued.tasks().iter().filter(|_| known.checkpoints()) {
                if let Some((id, record)) = target.launched.get_key_value(task.task_id.value.as_str()) {
                    self.checkpoint(paths::task_file(&target.run, id, "task.info"), frame(&**record), out);
                }
            }
            self.send_tasks(known, target, queued, out);
        }
    }

    fn send_tasks(&self, framework: &Framework, executor: &Executor, queued: Queued, out: &mut Outbox) {
        match (&executor.link, queued) {
            (ExecutorLink::Pid(pid), queued) => {
                for task in queued.tasks() {
                    let run = RunTaskMessage {
                        framework: Arc::clone(&framework.info).into(),
                        task: pb::TaskInfo::clone(task),
                        pid: Some(framework.pid.clone().unwrap_or_default().to_string()),
                        ..RunTaskMessage::default()
                    };
                    self.send(pid, run, out);
                }
            }
            (link, Queued::Task(task)) => self.event(link, launch_event(Arc::unwrap_or_clone(task)), out),
            (link, Queued::Group(tasks)) => {
                let tasks = tasks.into_iter().map(Arc::unwrap_or_clone).collect();
                self.event(link, launch_group_event(tasks), out);
            }
        }
    }

    /// Writes an event to an executor's stream; drops the event if the executor has none.
    pub(crate) fn event(&self, link: &ExecutorLink, event: api::Event, out: &mut Outbox) {
        if let ExecutorLink::Stream(stream) = link {
            out.outputs.push(Output::ExecutorEvent { stream: *stream, event: Arc::new(event) });
        }
    }

    /// Tells the master that an executor has ended. The message is sent only once.
    pub(crate) fn exited_executor(&self, framework: &FrameworkId, executor: &str, status: i32, out: &mut Outbox) {
        let message = ExitedExecutorMessage {
            slave_id: self.slave_id(),
            framework_id: pb::FrameworkId { value: framework.into() },
            executor_id: pb::ExecutorId { value: executor.into() },
            status,
        };
        self.send_to_master(message, out);
    }
}
