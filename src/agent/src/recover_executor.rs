//! Recovers one framework and its executors from their checkpoints.

use std::sync::Arc;

use base::{ContainerId, Time};
use protos::mesos as pb;
use protos::mesos::internal::{ReconnectExecutorMessage, StatusUpdateRecord, status_update_record::Type};

use crate::agent::Agent;
use crate::disk::{Directory, RecoveredExecutor, RecoveredFramework, RecoveredRun, RecoveredTask, paths};
use crate::output::{Outbox, Output, Persist};
use crate::state::{ContainerName, Executor, ExecutorLink, ExecutorState, Framework, is_terminal, note_status};

impl Agent {
    /// Recovers a framework with the executors that have not ended; those that have become completed ones.
    pub(crate) fn recover_framework(
        &mut self,
        recovered: RecoveredFramework,
        rebooted: bool,
        now: Time,
        out: &mut Outbox,
    ) {
        let Some(info) = recovered.info else {
            return self.discard(Directory::Framework(recovered.id), now);
        };
        let mut framework = Framework::new(recovered.id, Arc::new(info), recovered.pid);
        let mut dead = Vec::new();
        for executor in recovered.executors {
            for run in &executor.old_runs {
                self.discard(Directory::Run(framework.id.clone(), executor.id.clone(), run.clone()), now);
            }
            if executor.latest.as_ref().is_some_and(|run| run.completed) {
                self.discard(Directory::Executor(framework.id.clone(), executor.id.clone()), now);
                let ended = self.completed_executor(&framework, executor).map(Arc::new);
                Arc::make_mut(&mut framework.completed_executors).extend(ended);
                continue;
            }
            let Some((executor, lives)) = self.recover_executor(&framework, executor, rebooted, now, out) else {
                continue;
            };
            if !lives {
                dead.push(executor.container.clone());
            }
            framework.executors.insert(executor.id.clone(), Arc::new(executor));
        }
        if framework.executors.is_empty() {
            self.discard(Directory::Framework(framework.id.clone()), now);
            if !framework.completed_executors.is_empty() {
                self.frameworks.remember(Arc::new(framework));
            }
            return;
        }
        self.frameworks.insert(framework);
        for container in dead {
            self.container_exited(&container, None, now, out);
        }
    }

    /// Returns an executor as it was checkpointed, without its tasks, and its newest run. `None` if its info or its run
    /// is missing.
    fn checkpointed_executor(
        &self,
        framework: &Framework,
        recovered: RecoveredExecutor,
    ) -> Option<(Executor, RecoveredRun)> {
        let (info, run) = recovered.info.zip(recovered.latest)?;
        let container = ContainerName::top(&ContainerId::new(&run.container).ok()?);
        let directory = paths::run(self.id.as_ref()?, &framework.id, &recovered.id, &run.container);
        let user = self.user_of(&framework.info, info.command.as_ref());
        let place = (self.config.work_dir.as_str(), directory.as_str());
        let mut executor = Executor::new(recovered.id, framework.id.clone(), info, container, place, user);
        executor.generated_for_command_task = recovered.generated_for_command_task;
        executor.needs_token = executor.is_builtin();
        Some((executor, run))
    }

    /// Returns the record of an executor that had ended, with all updates acknowledged.
    fn completed_executor(&self, framework: &Framework, recovered: RecoveredExecutor) -> Option<Executor> {
        let (mut executor, run) = self.checkpointed_executor(framework, recovered)?;
        executor.state = ExecutorState::Terminated;
        for task in run.tasks {
            if let Some(info) = task.info {
                executor.completed.push_back(Arc::new(with_recorded_updates(info, &task.records)));
            }
        }
        Some(executor)
    }

    /// Returns an executor as its newest run left it, and whether its process may still run.
    fn recover_executor(
        &mut self,
        framework: &Framework,
        recovered: RecoveredExecutor,
        rebooted: bool,
        now: Time,
        out: &mut Outbox,
    ) -> Option<(Executor, bool)> {
        if recovered.info.is_none() || recovered.latest.is_none() {
            self.discard(Directory::Executor(framework.id.clone(), recovered.id), now);
            return None;
        }
        let (mut executor, run) = self.checkpointed_executor(framework, recovered)?;
        let lives = run.forked_pid.filter(|_| !rebooted);
        if let Some(pid) = lives {
            self.reattach_executor(&mut executor, &run, pid, out);
        }
        for task in run.tasks {
            self.recover_task(&mut executor, task, now, out);
        }
        executor.volumes = self.volume_links(&executor.container, &executor.resources());
        Some((executor, lives.is_some()))
    }

    /// Watches the process of a recovered executor, and asks a v0 executor to reconnect.
    fn reattach_executor(&self, executor: &mut Executor, run: &RecoveredRun, pid: u32, out: &mut Outbox) {
        out.outputs.push(Output::Reattach {
            container: executor.container.clone(),
            pid,
            recorded: run.forked_at,
            sandbox: Some(executor.directory.to_string()),
        });
        executor.pid = Some(pid);
        if let Some(driver) = &run.libprocess_pid {
            executor.link = ExecutorLink::Pid(driver.clone());
            let message = ReconnectExecutorMessage { slave_id: self.slave_id() };
            self.send(driver, message, out);
        } else if run.http {
            executor.link = ExecutorLink::Closed;
            executor.needs_token = run.needs_token;
        }
    }

    /// Recovers a task with its updates; those that are not acknowledged are queued in its stream again.
    fn recover_task(&mut self, executor: &mut Executor, recovered: RecoveredTask, now: Time, out: &mut Outbox) {
        let file = paths::task_file(&executor.run, &recovered.id, paths::UPDATES);
        if let Some(bytes) = recovered.torn {
            out.persist.push(Persist::Replace { path: file.clone(), bytes });
        }
        let Some(task) = recovered.info else { return };
        executor.was_given_a_task = true;
        let task = with_recorded_updates(task, &recovered.records);
        let key = (&executor.framework_id, &recovered.id);
        let done = self.streams.restore(key, &file.into(), &recovered.records, now);
        let (ended, task) = (is_terminal(task.state), Arc::new(task));
        if done {
            executor.completed.push_back(task);
        } else if ended {
            executor.terminated.insert(recovered.id, task);
        } else {
            executor.launched.insert(recovered.id, task);
        }
    }
}

/// Returns a task in the state after its recorded updates.
fn with_recorded_updates(mut task: pb::Task, records: &[StatusUpdateRecord]) -> pb::Task {
    let updates = records.iter().filter(|record| record.r#type == Type::Update as i32);
    for update in updates.filter_map(|record| record.update.as_ref()) {
        note_status(&mut task, &update.status);
    }
    task
}
