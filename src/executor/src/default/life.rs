//! The default executor's life: launches, watches and ends groups of containers through the agent.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use containers::ChildSignals;
use prost::Message;
use rustix::event::PollFlags;

use super::container::{Stage, TaskContainer};
use super::health::FIRST_PROBE;
use super::launch::{launch_call, sees_other_files};
use crate::checks::{CheckLocation, Checks};
use crate::clock;
use crate::environment::Settings;
use crate::exchange::{Answer, Exchange, ExchangeError};
use crate::kill::{Escalation, grace_of};
use crate::link::{Incoming, Link};
use crate::messages::{
    AgentCall, AgentCallType, ContainerId, ContainerStatus, Id, KillPolicy, OfContainer, Reason, Task, TaskState,
    TaskStatus,
};
use crate::poller::{Idleness, Poller, Token, earlier};

/// First token of exchanges.
const FIRST_EXCHANGE: Token = 16;
/// Token for the end of child processes, which are probes.
const CHILDREN: Token = 2;
/// Maximum time in which a connected agent must acknowledge the last updates.
const ACKNOWLEDGE_LIMIT: Duration = Duration::from_secs(60);
/// Wait before a call without a result is repeated.
const AGAIN: Duration = Duration::from_secs(1);

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// Purpose of a call to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Launch,
    Wait,
    Signal(i32),
}

pub(super) struct DefaultExecutor {
    link: Link,
    pub(super) children: ChildSignals,
    idleness: Idleness,
    knows_killing: bool,
    /// Id of this executor's own container; `None` before the first subscription.
    own_id: Option<ContainerId>,
    /// All tasks since the start of the executor.
    pub(super) tasks: Vec<TaskContainer>,
    /// Whether a health check has ended a task.
    pub(super) unhealthy: bool,
    groups: usize,
    /// Unanswered calls, each with the index of its task.
    exchanges: BTreeMap<Token, (usize, Purpose, Exchange)>,
    next_token: Token,
    exit_at: Option<Instant>,
    shutting_down: bool,
    done: bool,
}

impl DefaultExecutor {
    pub(super) fn new(settings: Settings, line: Option<OwnedFd>) -> io::Result<DefaultExecutor> {
        Ok(DefaultExecutor {
            link: Link::new(settings, line),
            children: ChildSignals::open()?,
            idleness: Idleness::default(),
            knows_killing: false,
            own_id: None,
            tasks: Vec::new(),
            unhealthy: false,
            groups: 0,
            exchanges: BTreeMap::new(),
            next_token: FIRST_EXCHANGE,
            exit_at: None,
            shutting_down: false,
            done: false,
        })
    }

    pub(super) fn run(mut self) -> ExitCode {
        loop {
            self.link.on_time();
            while let Some(incoming) = self.link.next() {
                self.on_incoming(incoming);
            }
            self.on_time();
            if self.done {
                return ExitCode::SUCCESS;
            }
            self.link.flush();
            self.wait_for_something();
        }
    }

    fn wait_for_something(&mut self) {
        let until = self.idleness.before_wait(self.wake_at());
        let mut poller = Poller::default();
        self.link.interests(&mut poller);
        poller.add(CHILDREN, self.children.fd(), PollFlags::IN);
        for (token, (_, _, exchange)) in &self.exchanges {
            poller.add(*token, exchange.fd(), exchange.interest());
        }
        self.probe_interests(&mut poller);
        for (token, found) in poller.wait(until) {
            self.idleness.busy();
            match token {
                CHILDREN => self.reap(),
                FIRST_PROBE.. => self.on_probe(token, found),
                FIRST_EXCHANGE.. => self.on_exchange(token, found),
                _ => self.link.on_ready(token, found),
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let of_task = |task: &TaskContainer| {
            let force_at = task.escalation.and_then(|escalation| escalation.wake_at());
            let signal_at = task.signal.map(|(_, at)| at);
            let probe_at = task.checks.wake_at();
            earlier(earlier(earlier(force_at, signal_at), earlier(task.complete_by, task.again_at)), probe_at)
        };
        let tasks = self.tasks.iter().filter(|task| task.is_live()).filter_map(of_task).min();
        earlier(earlier(tasks, self.exit_at), self.link.wake_at())
    }

    fn on_time(&mut self) {
        let now = clock::now();
        for index in 0..self.tasks.len() {
            if self.tasks[index].is_live() {
                self.on_task_time(index, now);
            }
        }
        self.decide_end(now);
    }

    fn on_task_time(&mut self, index: usize, now: Instant) {
        let task = &mut self.tasks[index];
        if task.escalation.as_mut().is_some_and(|escalation| escalation.is_due(now)) {
            task.signal = Some((SIGKILL, now));
        }
        if task.complete_by.is_some_and(|at| now >= at) {
            task.complete_by = None;
            // A task that is being killed already is reported as killed.
            task.overdue = task.escalation.is_none();
            self.kill(index, Duration::ZERO);
        }
        self.tasks[index].checks.on_time(now);
        self.send_check_reports(index);
        if !self.link.is_subscribed() {
            return;
        }
        let task = &mut self.tasks[index];
        if task.stage == Stage::Running && task.signal.is_some_and(|(_, at)| now >= at) {
            self.signal(index);
        }
        let task = &mut self.tasks[index];
        if task.again_at.is_some_and(|at| now >= at) {
            task.again_at = None;
            let purpose = if task.stage == Stage::Launching { Purpose::Launch } else { Purpose::Wait };
            self.call(index, purpose);
        }
    }

    /// Ends the executor when all of its tasks have ended and the agent has acknowledged that, or is gone.
    fn decide_end(&mut self, now: Instant) {
        if self.exit_at.is_some_and(|at| now >= at) {
            stdio::err!("Exiting without the agent's acknowledgement");
            self.done = true;
        }
        let over = self.tasks.iter().all(|task| !task.is_live()) && (self.shutting_down || !self.tasks.is_empty());
        if self.link.is_ended() || over && self.link.updates().is_empty() {
            // Without an agent no container can be ended from here; the agent ends the containers when this process is
            // gone.
            self.done = true;
        } else if self.shutting_down || over && self.link.is_subscribed() {
            self.exit_at = self.exit_at.or(Some(now + ACKNOWLEDGE_LIMIT));
        } else {
            self.exit_at = None;
        }
    }

    fn on_incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Subscribed(subscribed) => {
                self.knows_killing = subscribed.framework_info.knows_killing();
                self.own_id = subscribed.container_id.or(self.own_id.take());
                self.resume();
            }
            Incoming::LaunchGroup(tasks) => self.on_launch_group(tasks),
            Incoming::Launch(_) => {
                stdio::err!("The default executor runs task groups only; shutting down");
                self.on_shutdown();
            }
            Incoming::Kill(task_id, policy) => self.on_kill(&task_id, policy),
            Incoming::Shutdown => self.on_shutdown(),
            Incoming::Disconnected => {
                self.exchanges.clear();
                self.tasks.iter_mut().for_each(|task| task.checks.pause());
            }
            Incoming::Acknowledged(_) => {}
        }
    }

    /// Repeats the unanswered calls after the agent has returned.
    fn resume(&mut self) {
        let now = clock::now();
        self.exchanges.clear();
        for task in self.tasks.iter_mut().filter(|task| task.is_live()) {
            task.again_at = Some(now);
            task.checks.resume(now);
            if task.signal.is_none() && task.escalation.is_some() {
                let forced = task.escalation.is_some_and(|escalation| escalation.wake_at().is_none());
                task.signal = Some((if forced { SIGKILL } else { SIGTERM }, now));
            }
        }
    }

    fn on_launch_group(&mut self, group: Vec<Vec<u8>>) {
        let number = self.groups;
        self.groups += 1;
        let first = self.tasks.len();
        for bytes in group {
            let task = match Task::decode(bytes.as_slice()) {
                Ok(task) => task,
                Err(error) => {
                    stdio::err!("A task from the agent cannot be read: {error}");
                    continue;
                }
            };
            self.link.launched(task.task_id.clone(), bytes.clone());
            let value = base::uuid_text(clock::uuid());
            let id = ContainerId { value, parent: self.own_id.clone().map(Box::new) };
            let sandbox = self.link.settings().sandbox.clone().unwrap_or_default().join("containers").join(&id.value);
            let location = if sees_other_files(&task, &bytes) {
                CheckLocation::Container(&id)
            } else {
                CheckLocation::Sandbox(&sandbox)
            };
            let checks = Checks::of(&task, &location);
            self.tasks.push(TaskContainer::new(task, bytes, id, number, checks));
        }
        for index in first..self.tasks.len() {
            self.tell(index, TaskState::TaskStarting, |_| {});
        }
        for index in first..self.tasks.len() {
            self.call(index, Purpose::Launch);
        }
    }

    fn on_kill(&mut self, task_id: &Id, policy: Option<KillPolicy>) {
        let Some(index) = self.tasks.iter().position(|task| task.task.task_id == *task_id && task.is_live()) else {
            return stdio::err!("Ignoring the kill of task '{}', which is not running", task_id.value);
        };
        let grace = grace_of(policy, self.tasks[index].task.kill_policy);
        self.kill(index, grace);
    }

    fn on_shutdown(&mut self) {
        if self.shutting_down {
            return;
        }
        self.shutting_down = true;
        self.exit_at = Some(clock::now() + self.link.settings().shutdown_grace);
        for index in 0..self.tasks.len() {
            if self.tasks[index].is_live() {
                let grace = grace_of(None, self.tasks[index].task.kill_policy);
                self.kill(index, grace);
            }
        }
    }

    /// Requests the end of a task, and forces it after `grace`. The request is made only once.
    pub(super) fn kill(&mut self, index: usize, grace: Duration) {
        let now = clock::now();
        let task = &mut self.tasks[index];
        if task.escalation.is_some() {
            return;
        }
        task.checks.stop();
        task.escalation = Some(Escalation::new(now, grace));
        task.signal = Some((SIGTERM, now));
        if self.knows_killing && !task.overdue {
            self.tell(index, TaskState::TaskKilling, |_| {});
        }
        if !self.link.is_subscribed() {
            return;
        }
        match self.tasks[index].stage {
            Stage::Running => self.signal(index),
            // The container may be fetching, which can be ended; if not, the signal waits for its start.
            Stage::Launching => self.call(index, Purpose::Signal(SIGTERM)),
            Stage::Ended => {}
        }
    }

    /// Calls the agent for the signal that is due.
    fn signal(&mut self, index: usize) {
        if let Some((signal, _)) = self.tasks[index].signal.take() {
            self.call(index, Purpose::Signal(signal));
        }
    }

    fn call(&mut self, index: usize, purpose: Purpose) {
        let task = &self.tasks[index];
        let of_container = |signal| Some(OfContainer { container_id: task.id.clone(), signal });
        let call = match purpose {
            Purpose::Launch => launch_call(&task.task, &task.bytes, &task.id, self.link.settings().address.as_deref()),
            Purpose::Wait => Ok(AgentCall {
                r#type: Some(AgentCallType::WaitNestedContainer as i32),
                wait_nested_container: of_container(None),
                ..AgentCall::default()
            }),
            Purpose::Signal(signal) => Ok(AgentCall {
                r#type: Some(AgentCallType::KillNestedContainer as i32),
                kill_nested_container: of_container(Some(signal)),
                ..AgentCall::default()
            }),
        };
        let call = match call {
            Ok(call) => call,
            Err(error) => return self.fail(index, &format!("The task cannot be read: {error}")),
        };
        match Exchange::open(self.link.settings(), &call.encode_to_vec()) {
            Ok(exchange) => {
                let token = self.next_token;
                self.next_token += 1;
                self.exchanges.insert(token, (index, purpose, exchange));
            }
            Err(error) => self.on_no_answer(index, purpose, &error.into()),
        }
    }

    fn on_exchange(&mut self, token: Token, found: PollFlags) {
        let Some((index, purpose, exchange)) = self.exchanges.get_mut(&token) else { return };
        let (index, purpose) = (*index, *purpose);
        match exchange.on_ready(found) {
            Ok(None) => {}
            Ok(Some(answer)) => {
                self.exchanges.remove(&token);
                if self.tasks[index].is_live() {
                    self.on_answer(index, purpose, &answer);
                }
            }
            Err(error) => {
                self.exchanges.remove(&token);
                if self.tasks[index].is_live() {
                    self.on_no_answer(index, purpose, &error);
                }
            }
        }
    }

    fn on_answer(&mut self, index: usize, purpose: Purpose, answer: &Answer) {
        match (purpose, answer.status) {
            // 202: the container runs already, because an earlier call without a response has launched it.
            (Purpose::Launch, 200 | 202) => self.on_launched(index),
            (Purpose::Launch | Purpose::Wait, 503) => self.tasks[index].again_at = Some(clock::now() + AGAIN),
            (Purpose::Launch, _) => self.fail(index, &answer.words()),
            (Purpose::Wait, _) => self.end(index, |task, status| task.terminal(answer, status)),
            // 404: the container has ended; WAIT returns its status.
            (Purpose::Signal(_), 200 | 202 | 404) => {}
            (Purpose::Signal(signal), _) => {
                stdio::err!("The agent refuses signal {signal}: {} {}", answer.status, answer.words());
                self.signal_again(index, signal);
            }
        }
    }

    /// Handles a call whose connection was lost. It is repeated when the agent has returned, or after a pause if the
    /// agent is still connected.
    fn on_no_answer(&mut self, index: usize, purpose: Purpose, error: &ExchangeError) {
        stdio::err!("A call to the agent ({purpose:?}) was not answered: {}", base::error_chain(error));
        match purpose {
            Purpose::Signal(signal) => self.signal_again(index, signal),
            Purpose::Launch | Purpose::Wait => self.tasks[index].again_at = Some(clock::now() + AGAIN),
        }
    }

    fn signal_again(&mut self, index: usize, signal: i32) {
        let task = &mut self.tasks[index];
        if task.signal.is_none() {
            task.signal = Some((signal, clock::now() + AGAIN));
        }
    }

    fn on_launched(&mut self, index: usize) {
        self.tasks[index].stage = Stage::Running;
        self.link_sandbox(index);
        let task = &mut self.tasks[index];
        if task.escalation.is_none() {
            task.complete_by = task.task.max_completion_time.map(|time| clock::now() + time.duration());
            task.checks.start(clock::now());
            self.tell(index, TaskState::TaskRunning, |_| {});
        }
        self.call(index, Purpose::Wait);
    }

    /// Creates the link `tasks/<task id>` to the task's sandbox, so that people find it by the task's name.
    fn link_sandbox(&self, index: usize) {
        let task = &self.tasks[index];
        let sandbox = self.link.settings().sandbox.clone().unwrap_or_default();
        let directory = sandbox.join("tasks");
        let target = format!("../containers/{}", task.id.value);
        let made = std::fs::create_dir_all(&directory)
            .and_then(|()| std::os::unix::fs::symlink(target, directory.join(&task.task.task_id.value)));
        match made {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                stdio::err!("Failed to link the sandbox of task '{}': {error}", task.task.task_id.value);
            }
            _ => {}
        }
    }

    /// Ends a task whose container could not be launched.
    fn fail(&mut self, index: usize, words: &str) {
        self.end(index, |task, status| {
            let killed = task.escalation.is_some();
            status.state = if killed { TaskState::TaskKilled } else { TaskState::TaskFailed } as i32;
            status.reason = (!killed).then_some(Reason::ContainerLaunchFailed as i32);
            status.message = Some(words.to_owned());
        });
    }

    /// Reports the task's end, and ends its group if it has failed.
    fn end(&mut self, index: usize, complete: impl FnOnce(&TaskContainer, &mut TaskStatus)) {
        let mut status = self.status(index, TaskState::TaskFailed);
        complete(&self.tasks[index], &mut status);
        status.healthy = self.unhealthy.then_some(false);
        self.tasks[index].stage = Stage::Ended;
        self.tasks[index].checks.stop();
        let ill = status.state == TaskState::TaskFailed as i32 || status.state == TaskState::TaskKilled as i32;
        self.link.update(status);
        if ill {
            let group = self.tasks[index].group;
            for sibling in 0..self.tasks.len() {
                if self.tasks[sibling].group == group && self.tasks[sibling].is_live() {
                    let grace = grace_of(None, self.tasks[sibling].task.kill_policy);
                    self.kill(sibling, grace);
                }
            }
        }
    }

    fn status(&self, index: usize, state: TaskState) -> TaskStatus {
        let task = &self.tasks[index];
        TaskStatus {
            task_id: task.task.task_id.clone(),
            state: state as i32,
            container_status: Some(ContainerStatus {
                container_id: Some(task.id.clone()),
                ..ContainerStatus::default()
            }),
            check_status: task.checks.status(),
            healthy: task.healthy,
            ..TaskStatus::default()
        }
    }

    pub(super) fn tell(&mut self, index: usize, state: TaskState, complete: impl FnOnce(&mut TaskStatus)) {
        let mut status = self.status(index, state);
        complete(&mut status);
        self.link.update(status);
    }
}
