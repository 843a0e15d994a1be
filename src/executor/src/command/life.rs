//! The command executor's life: waits for its task, runs it, ends it, and reports its states.

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use containers::{ChildSignals, Launcher, Spec, WaitStatus};
use prost::Message;
use rustix::event::PollFlags;

use crate::checks::{CheckLocation, CheckReport, Checks};
use crate::clock;
use crate::docker::{ContainerEvent, DockerTask, is_docker};
use crate::environment::Settings;
use crate::kill::{DEFAULT_GRACE, Escalation, grace_or};
use crate::link::{Incoming, Link};
use crate::messages::{
    ContainerStatus, Id, IpAddress, KillPolicy, Label, Labels, NetworkInfo, Reason, Task, TaskState, TaskStatus,
};
use crate::poller::{Idleness, Poller, Token, earlier};
use crate::process::task_spec;

const CHILDREN: Token = 2;
const DOCKER: Token = 3;
/// First token of probes.
const PROBES: Token = 8;

/// Maximum time in which a connected agent must acknowledge the last update.
const ACKNOWLEDGE_LIMIT: Duration = Duration::from_secs(60);
/// Difference between the agent's grace period of a SHUTDOWN and the executor's: the time that Mesos needs to detect
/// the end, and one second to report it (EXE-24).
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(2);
/// Label with the address of a Docker container.
const ADDRESS_LABEL: &str = "Docker.NetworkSettings.IPAddress";
/// Maximum time until the processes that a task has left behind have ended.
const LEFTOVERS_LIMIT: Duration = Duration::from_secs(10);

/// A launched task.
struct Running {
    task: Task,
    /// First process of the task; `None` when it has ended, or was never started.
    pid: Option<i32>,
    /// The task's Docker container, if it is one; `pid` is then that of the process beside it.
    docker: Option<DockerTask>,
    checks: Checks,
    /// Last result of the health check.
    healthy: Option<bool>,
    /// Whether the health check has ended the task.
    ill: bool,
    escalation: Option<Escalation>,
    /// Time at which the task's `max_completion_time` is over.
    complete_by: Option<Instant>,
    overdue: bool,
}

impl Running {
    fn new(task: Task, docker: Option<DockerTask>) -> Running {
        let checks = Checks::of(&task, &docker.as_ref().map_or(CheckLocation::Executor, CheckLocation::Docker));
        Running {
            task,
            pid: None,
            docker,
            checks,
            healthy: None,
            ill: false,
            escalation: None,
            complete_by: None,
            overdue: false,
        }
    }

    /// Returns the grace period of a kill.
    fn grace(&self, kill: Option<KillPolicy>) -> Duration {
        let default = self.docker.as_ref().map_or(DEFAULT_GRACE, |docker| docker.grace);
        grace_or(kill, self.task.kill_policy, default)
    }
}

pub(super) struct CommandExecutor {
    link: Link,
    children: ChildSignals,
    idleness: Idleness,
    knows_killing: bool,
    /// Id of the executor's container.
    container: String,
    running: Option<Running>,
    /// Time at which the executor exits in any case.
    exit_at: Option<Instant>,
    /// Whether SHUTDOWN was received.
    shutting_down: bool,
    done: bool,
}

impl CommandExecutor {
    pub(super) fn new(settings: Settings, line: Option<OwnedFd>) -> io::Result<CommandExecutor> {
        let children = ChildSignals::open()?;
        containers::adopt_orphans()?;
        Ok(CommandExecutor {
            link: Link::new(settings, line),
            children,
            idleness: Idleness::default(),
            knows_killing: false,
            container: String::new(),
            running: None,
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
                break;
            }
            self.link.flush();
            self.wait();
        }
        // The container ends with this process; processes that the task has left in the background end now.
        if containers::has_children()
            && let Err(error) = containers::kill_children(LEFTOVERS_LIMIT)
        {
            stdio::err!("{error}");
        }
        // The connections are closed by the end of the process, so that the agent is woken only once.
        std::mem::forget(self);
        ExitCode::SUCCESS
    }

    fn wait(&mut self) {
        let until = self.idleness.before_wait(self.wake_at());
        let mut poller = Poller::default();
        self.link.interests(&mut poller);
        poller.add(CHILDREN, self.children.fd(), PollFlags::IN);
        if let Some(running) = &self.running {
            running.checks.interests(PROBES, &mut poller);
            if let Some(docker) = running.docker.as_ref().filter(|_| running.pid.is_some()) {
                poller.add(DOCKER, docker.fd(), PollFlags::IN);
            }
        }
        for (token, found) in poller.wait(until) {
            self.idleness.busy();
            match token {
                CHILDREN => self.reap(),
                DOCKER => {
                    self.on_docker_events();
                    // The pipe ends with the process.
                    self.reap();
                }
                PROBES.. => self.on_probe((token - PROBES) as usize, found),
                _ => self.link.on_ready(token, found),
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let running = self.running.as_ref().filter(|running| running.pid.is_some());
        let of_task = |r: &Running| earlier(r.complete_by, r.escalation.and_then(|e| e.wake_at()));
        let task = running.and_then(|r| earlier(of_task(r), r.checks.wake_at()));
        earlier(earlier(task, self.exit_at), self.link.wake_at())
    }

    fn on_time(&mut self) {
        let now = clock::now();
        if self.running.as_ref().is_some_and(|r| r.pid.is_some() && r.complete_by.is_some_and(|at| now >= at)) {
            self.on_overdue();
        }
        if let Some(Running { pid: Some(pid), escalation: Some(escalation), .. }) = &mut self.running
            && escalation.is_due(now)
        {
            let pid = *pid;
            self.force(pid);
        }
        if let Some(running) = self.running.as_mut().filter(|running| running.pid.is_some()) {
            running.checks.on_time(now);
            self.send_check_reports();
        }
        self.decide_end(now);
    }

    fn on_probe(&mut self, index: usize, found: PollFlags) {
        if let Some(running) = &mut self.running {
            running.checks.on_ready(index, found, clock::now());
            self.send_check_reports();
        }
    }

    /// Reports the findings of checks, and ends a task that has been unhealthy for too long.
    fn send_check_reports(&mut self) {
        while let Some(running) = &mut self.running
            && let Some(report) = running.checks.next()
        {
            let task_id = running.task.task_id.clone();
            let (reason, kill) = match report {
                CheckReport::Status => (Reason::TaskCheckStatusUpdated, false),
                CheckReport::Health { healthy, kill } => {
                    running.healthy = Some(healthy);
                    running.ill |= kill;
                    (Reason::TaskHealthCheckStatusUpdated, kill)
                }
            };
            let grace = running.grace(None);
            self.tell(&task_id, TaskState::TaskRunning, |status| status.reason = Some(reason as i32));
            if kill {
                self.kill(grace);
            }
        }
    }

    /// Ends the executor when its task has ended and the agent has acknowledged that, or is gone.
    fn decide_end(&mut self, now: Instant) {
        if self.exit_at.is_some_and(|at| now >= at) {
            stdio::err!("Exiting without the agent's acknowledgement");
            self.done = true;
        }
        let task_is_over = self.running.as_ref().is_some_and(|running| running.pid.is_none());
        if !task_is_over {
            return;
        }
        if self.link.updates().is_empty() || self.link.is_ended() {
            self.done = true;
        } else if !self.link.is_subscribed() && !self.shutting_down {
            // The update waits for the agent as long as the executor tries to reconnect.
            self.exit_at = None;
        } else if self.exit_at.is_none() {
            self.exit_at = Some(now + ACKNOWLEDGE_LIMIT);
        }
    }

    fn on_incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Subscribed(subscribed) => {
                self.knows_killing = subscribed.framework_info.knows_killing();
                self.container = subscribed.container_id.map(|id| id.value).unwrap_or_default();
            }
            Incoming::Launch(bytes) => self.on_launch(bytes),
            Incoming::LaunchGroup(_) => {
                stdio::err!("The command executor runs no task groups; shutting down");
                self.on_shutdown();
            }
            Incoming::Kill(task_id, policy) => self.on_kill(&task_id, policy),
            Incoming::Shutdown => self.on_shutdown(),
            Incoming::Acknowledged(_) | Incoming::Disconnected => {}
        }
    }

    fn on_launch(&mut self, bytes: Vec<u8>) {
        let task = match Task::decode(bytes.as_slice()) {
            Ok(task) => task,
            Err(error) => return stdio::err!("A task from the agent cannot be read: {error}"),
        };
        let task_id = task.task_id.clone();
        self.link.launched(task_id.clone(), bytes);
        if self.running.is_some() {
            let words = "Attempted to run multiple tasks using a \"command\" executor";
            return self.tell(&task_id, TaskState::TaskFailed, |status| status.message = Some(words.to_owned()));
        }
        let (docker, started) = match is_docker(task.container.as_deref()) {
            true => self.docker_spec(&task_id),
            false => (None, task_spec(&task, std::env::vars_os()).map_err(|error| base::error_chain(&error))),
        };
        self.running = Some(Running::new(task, docker));
        self.tell(&task_id, TaskState::TaskStarting, |_| {});
        let started = started
            .and_then(|spec| Launcher::posix().spawn_unwatched(&spec).map_err(|error| base::error_chain(&error)));
        match started {
            Ok(pid) => self.on_started(&task_id, pid),
            Err(words) => {
                stdio::err!("{words}");
                self.tell(&task_id, TaskState::TaskFailed, |status| {
                    status.message = Some(words);
                    status.reason = Some(Reason::ContainerLaunchFailed as i32);
                });
            }
        }
    }

    /// Returns the task's Docker container and the process that runs it.
    fn docker_spec(&self, task_id: &Id) -> (Option<DockerTask>, Result<Spec, String>) {
        let bytes = self.link.task(task_id).unwrap_or_default();
        match DockerTask::new(bytes, &self.container) {
            Ok((docker, spec)) => (Some(docker), Ok(spec)),
            Err(error) => (None, Err(base::error_chain(&error))),
        }
    }

    fn on_docker_events(&mut self) {
        let Some(Running { docker: Some(docker), task, checks, .. }) = &mut self.running else { return };
        let (events, task_id) = (docker.events(), task.task_id.clone());
        for report in &events {
            if let ContainerEvent::Started { pid, .. } = report {
                checks.enter_network_of(*pid);
            }
        }
        for report in events {
            if let ContainerEvent::Started { address, description, .. } = report {
                self.on_running(&task_id, address, description);
            }
        }
    }

    fn on_started(&mut self, task_id: &Id, pid: i32) {
        let Some(running) = &mut self.running else { return };
        running.pid = Some(pid);
        // An image may have to be pulled first.
        if running.docker.is_none() {
            self.on_running(task_id, None, None);
        }
    }

    /// Reports that the task runs. `address` is that of a network of its own, and `description` that of Docker's
    /// container.
    fn on_running(&mut self, task_id: &Id, address: Option<String>, description: Option<String>) {
        let now = clock::now();
        if let Some(running) = &mut self.running {
            running.complete_by = running.task.max_completion_time.map(|time| now + time.duration());
            running.checks.start(now);
        }
        self.tell(task_id, TaskState::TaskRunning, |status| {
            status.data = description.map(String::into_bytes);
            // Older clients read the address from this label.
            let label = |address: &String| Label { key: ADDRESS_LABEL.to_owned(), value: Some(address.clone()) };
            status.labels = address.as_ref().map(|address| Labels { labels: vec![label(address)] });
            status.container_status = address.map(|address| ContainerStatus {
                container_id: None,
                network_infos: vec![NetworkInfo { ip_addresses: vec![IpAddress { ip_address: Some(address) }] }],
            });
        });
    }

    fn on_kill(&mut self, task_id: &Id, policy: Option<KillPolicy>) {
        match &self.running {
            // Nothing was launched and nothing will be: the agent sends no task after its kill.
            None => self.done = true,
            Some(running) if running.task.task_id == *task_id => {
                let grace = running.grace(policy);
                self.kill(grace);
            }
            Some(_) => stdio::err!("Ignoring the kill of unknown task '{}'", task_id.value),
        }
    }

    fn on_shutdown(&mut self) {
        if self.shutting_down {
            return;
        }
        self.shutting_down = true;
        if self.running.is_none() {
            self.done = true;
            return;
        }
        let grace = self.link.settings().shutdown_grace;
        // The agent destroys the container then; if it cannot, the executor exits here.
        self.exit_at = Some(clock::now() + grace);
        self.kill(grace.saturating_sub(SHUTDOWN_MARGIN));
    }

    fn on_overdue(&mut self) {
        if let Some(running) = &mut self.running {
            running.complete_by = None;
            // A task that is being killed already is reported as killed.
            running.overdue = running.escalation.is_none();
        }
        self.kill(Duration::ZERO);
    }

    /// Requests the end of the task, and forces it after `grace`. A further call can only shorten that.
    fn kill(&mut self, grace: Duration) {
        let Some(running) = &mut self.running else { return };
        let Some(pid) = running.pid else { return };
        if let Some(escalation) = &mut running.escalation {
            escalation.shorten(grace);
            return;
        }
        running.escalation = Some(Escalation::new(clock::now(), grace));
        running.checks.stop();
        let (task_id, overdue) = (running.task.task_id.clone(), running.overdue);
        if self.knows_killing && !overdue {
            self.tell(&task_id, TaskState::TaskKilling, |_| {});
        }
        if let Some(Running { docker: Some(docker), .. }) = &mut self.running {
            if !docker.stop(grace) {
                self.force(pid);
            }
            return;
        }
        if let Err(error) = containers::signal_tree(pid, SIGTERM) {
            stdio::err!("Failed to send SIGTERM to the process tree at pid {pid}: {error}");
        }
    }

    /// Sends SIGKILL to the task and all processes that it has started.
    fn force(&mut self, pid: i32) {
        if let Some(Running { docker: Some(docker), .. }) = &self.running
            && docker.started
        {
            // The process beside the container ends then.
            return docker.kill();
        }
        if let Err(error) = containers::destroy(pid, None, LEFTOVERS_LIMIT) {
            stdio::err!("{error}");
        }
        self.reap();
    }

    fn reap(&mut self) {
        self.children.clear();
        while let Some((pid, status)) = containers::reap() {
            let Some(running) = &mut self.running else { continue };
            if running.pid == Some(pid) {
                running.pid = None;
                running.checks.stop();
                self.on_end(status);
            } else if running.checks.on_child(pid, status, clock::now()) {
                self.send_check_reports();
            }
        }
    }

    fn on_end(&mut self, ended: WaitStatus) {
        self.on_docker_events();
        let Some(running) = &self.running else { return };
        if let Some(docker) = running.docker.as_ref().filter(|_| ended.signal().is_some()) {
            docker.abandon();
        }
        let docker = running.docker.as_ref();
        let words = docker.and_then(|docker| docker.words.clone());
        let never_ran = docker.is_some_and(|docker| !docker.started);
        let subject = if docker.is_some() { "Container" } else { "Command" };
        let state = match (&running.escalation, running.overdue) {
            (Some(_), false) => TaskState::TaskKilled,
            (None, false) if ended.success() => TaskState::TaskFinished,
            _ => TaskState::TaskFailed,
        };
        let failed_to_start = never_ran && state == TaskState::TaskFailed && !running.overdue;
        let reason = running.overdue.then_some(Reason::MaxCompletionTimeReached as i32);
        let reason = reason.or(failed_to_start.then_some(Reason::ContainerLaunchFailed as i32));
        let task_id = running.task.task_id.clone();
        self.tell(&task_id, state, |status| {
            status.message = Some(match words {
                Some(words) if never_ran => words,
                Some(words) => format!("{subject} {ended}: {words}"),
                None => format!("{subject} {ended}"),
            });
            status.reason = reason;
        });
    }

    fn tell(&mut self, task_id: &Id, state: TaskState, complete: impl FnOnce(&mut TaskStatus)) {
        let mut status = TaskStatus { task_id: task_id.clone(), state: state as i32, ..TaskStatus::default() };
        if let Some(running) = self.running.as_ref().filter(|running| running.task.task_id == *task_id) {
            status.check_status = running.checks.status();
            // A terminal status contains the health only if that has caused the end.
            let ending = matches!(state, TaskState::TaskFinished | TaskState::TaskFailed | TaskState::TaskKilled);
            status.healthy = if ending { running.ill.then_some(false) } else { running.healthy };
        }
        complete(&mut status);
        self.link.update(status);
    }
}

/// Number of SIGTERM, the same on every Linux.
const SIGTERM: i32 = 15;
