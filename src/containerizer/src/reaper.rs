//! The reaper: waits for the end of containers, destroys them, and cleans up after them and after those of the previous
//! agent process.
//!
//! Each container has a task of the reactor that waits for it. Work that may take long runs on other threads.
//! `launcher.rs` starts containers.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use agent::{ContainerName, Input};
use base::{Time, lock};
use containers::cgroups::{Group, OomWatch};
use containers::{Attached, Guard, WaitStatus};
use protos::mesos;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use crate::composing::RunningContainer;
use crate::container_config::ContainerDescription;
use crate::container_logger::Variables;
use crate::launcher::Launcher;
use crate::mesos::isolators::cgroups::mem::out_of_memory;
use crate::runtime_dir::RecordKind;

/// Time for the processes of one container to end after SIGKILL, before a warning is logged and the signal is sent
/// again.
const DESTROY_LIMIT: Duration = Duration::from_secs(10);
/// Number of times that the kernel is asked for the exit status of a process of the previous agent process, and the
/// pause between them.
const STATUS_TRIES: u32 = 50;
const STATUS_PAUSE: Duration = Duration::from_millis(2);
/// Time that an executor's container has to run until it is recorded in the runtime directory. Most tasks have ended by
/// then, and the files would cost as much as a part of the task.
const RECORDED_AFTER: Duration = Duration::from_secs(1);
/// Name of the variable that holds the sandbox, in the environment of an executor and of all processes that it starts.
pub(crate) const SANDBOX_VARIABLE: &str = "MESOS_DIRECTORY";
/// Number that the init process adds to the signal that has killed its program, for its exit status.
const INIT_SIGNALLED: i32 = 128;

impl Launcher {
    /// Destroys the container when it has run out of memory.
    #[allow(
        deprecated,
        reason = "the safe constructor is sound here: the descriptor is owned, and closed with the AsyncFd"
    )]
    pub(crate) fn watch_memory(&self, container: &ContainerName, watch: OomWatch) {
        let Some(group) = self.isolators.group(container) else { return };
        let (launcher, container) = (self.clone(), container.clone());
        self.runtime.spawn(async move {
            let watch = match AsyncFd::with_interest(OwnedFd::from(watch), Interest::READABLE) {
                Ok(watch) => watch,
                Err(error) => return tracing::warn!(%container, "cannot watch a container's memory: {error}"),
            };
            // The descriptor is also readable when the group is removed.
            if watch.readable().await.is_ok() && group.is_out_of_memory() {
                (launcher.report)(limited(&container, &group));
                launcher.destroy(&container);
            }
        });
    }

    pub(crate) fn destroy_leftovers(&self, containers: Vec<ContainerName>, ended: oneshot::Sender<()>) {
        let launcher = self.clone();
        self.runtime.spawn_blocking(move || {
            for container in containers {
                tracing::info!(%container, "destroying an orphaned container of an earlier agent");
                launcher.end_group(&container);
                launcher.records.forget(&container);
            }
            drop(ended);
        });
    }

    /// Releases everything that a container held.
    pub(crate) fn clean_up(&self, container: &ContainerName) {
        self.containerizers.iter().for_each(|one| one.cleanup(container));
    }

    /// Kills all processes in a container's control group, if it has one, and removes it.
    fn end_group(&self, container: &ContainerName) {
        let Some(group) = self.isolators.group(container).filter(Group::exists) else { return };
        while let Err(error) = group.end(DESTROY_LIMIT) {
            tracing::warn!(%container, "{error}; trying again");
        }
        remove(container, Some(&group));
    }

    pub(crate) fn reattach(&self, container: ContainerName, pid: i32, recorded: Option<Time>, sandbox: Option<String>) {
        let guard = Guard::StartedBefore(recorded.unwrap_or(Time::NEVER));
        let found = Attached::open(pid, guard);
        let is_gone = match &found {
            Ok(Some(attached)) => attached.is_gone(Duration::ZERO).unwrap_or(false),
            Ok(None) => true,
            Err(_) => false,
        };
        let again =
            sandbox.as_deref().filter(|_| is_gone).and_then(|directory| self.restart_runner(&container, directory));
        let is_child = again.is_some();
        let found = match again {
            Some(child) => Ok(Some((child.started(), child.into_parts()))),
            None => found.map(|found| found.map(|old| (Some(old.started()), old.into_parts()))),
        };
        match found {
            Ok(Some((started, (pid, pidfd)))) => {
                self.resume_memory_watch(&container);
                self.reconnect_terminal(&container);
                let reports = self.containerizers.iter().flat_map(|one| one.status(&container));
                reports.for_each(|report| (self.report)(report));
                // The variables were valid when the container was started.
                let variables: Option<Variables> = self.records.read_record(&container, RecordKind::Logger);
                let rotation = variables.and_then(|variables| self.rotation.rules(&variables).ok().flatten());
                let ports = self.records.read_record(&container, RecordKind::Ports);
                let init = self.records.has_init(&container);
                let live = RunningContainer { pid, started, sandbox, init, rotation, ports };
                self.watch_container(&container, live, pidfd, is_child, None::<std::future::Ready<()>>, None);
            }
            Ok(None) => self.gone(container, sandbox),
            Err(error) => {
                tracing::warn!(%container, "cannot watch a container of an earlier agent: {error}");
                self.gone(container, sandbox);
            }
        }
    }

    /// Watches the memory of a container of the previous agent process. It may have run out of memory meanwhile.
    fn resume_memory_watch(&self, container: &ContainerName) {
        let Some(group) = self.isolators.group(container).filter(Group::exists) else { return };
        if !self.isolators.limits_memory(container) {
            return;
        }
        if group.is_out_of_memory() {
            (self.report)(limited(container, &group));
            self.destroy(container);
        } else if let Ok(Some(watch)) = group.watch_memory() {
            self.watch_memory(container, watch);
        }
    }

    /// Handles a container of the previous agent process whose first process has ended: kills processes that it has
    /// left, and reports its end.
    fn gone(&self, container: ContainerName, sandbox: Option<String>) {
        let status = self.records.status(&container);
        if container.parent().is_none() {
            self.records.forget(&container);
        }
        let launcher = self.clone();
        self.runtime.spawn_blocking(move || {
            launcher.end_group(&container);
            launcher.clean_up(&container);
            kill_marked(&container, sandbox.as_deref());
            (launcher.report)(Input::ContainerExited { container, status });
        });
    }

    /// Reports that a container runs, serves its connection if it has one, and waits for its end. `described` is
    /// recorded if the container runs long enough.
    pub(crate) fn watch_container(
        &self,
        container: &ContainerName,
        live: RunningContainer,
        pidfd: OwnedFd,
        is_child: bool,
        line: Option<impl Future<Output = ()> + Send + 'static>,
        described: Option<ContainerDescription>,
    ) {
        lock(&self.live).insert(container.clone(), live.clone());
        let (launcher, container) = (self.clone(), container.clone());
        // A single task of the reactor does all of this, so that its thread is woken once.
        self.runtime.spawn(async move {
            let pid = u32::try_from(live.pid).unwrap_or(0);
            (launcher.report)(Input::ContainerStarted { container: container.clone(), pid });
            if let Some(line) = line {
                tokio::spawn(line);
            }
            launcher.wait(container, live, pidfd, is_child, described).await;
        });
    }

    #[allow(
        deprecated,
        reason = "the safe constructor is sound here: the descriptor is owned, and closed with the AsyncFd"
    )]
    async fn wait(
        self,
        container: ContainerName,
        live: RunningContainer,
        pidfd: OwnedFd,
        is_child: bool,
        described: Option<ContainerDescription>,
    ) {
        let mut recorded = None;
        match AsyncFd::with_interest(pidfd, Interest::READABLE) {
            Ok(fd) => {
                if let Some(described) = described
                    && tokio::time::timeout(RECORDED_AFTER, fd.readable()).await.is_err()
                {
                    self.record_later(&container, live.pid, described).await;
                }
                if let Err(error) = fd.readable().await {
                    tracing::warn!(%container, "cannot wait for a container: {error}");
                }
                if !is_child {
                    recorded = match self.records.status(&container) {
                        Some(status) => Some(status),
                        None => status_of(live.pid, fd.get_ref()).await,
                    };
                }
            }
            Err(error) => tracing::warn!(%container, "cannot wait for a container: {error}"),
        }
        let status = if is_child { containers::wait(live.pid).ok().map(|status| status.raw()) } else { recorded };
        if !self.containerizers.iter().all(|one| one.wait(&container)) {
            return;
        }
        let status = match live.init {
            true => self.records.status(&container).or_else(|| status.map(program_status)),
            false => status,
        };
        let group = self.isolators.group(&container);
        if let Some(group) = group.as_ref().filter(|_| status.is_none_or(|status| status & 0x7f != 0))
            && self.isolators.limits_memory(&container)
            && group.is_out_of_memory()
        {
            (self.report)(limited(&container, group));
        }
        let nested = lock(&self.live).keys().any(|other| other.is_inside(&container));
        // A program that was killed may have left processes, and a killed init process its program.
        let killed = (live.sandbox.is_some() || live.init) && status.is_none_or(|status| status & 0x7f != 0);
        if self.containerizers.iter().any(|one| one.needs_cleanup(&container))
            || nested
            || killed
            || !containers::group_is_empty(live.pid)
        {
            let launcher = self.clone();
            let name = container.clone();
            // With a control group no process has to be searched for.
            let sandbox = live.sandbox.filter(|_| killed && group.is_none());
            let ended = self.runtime.spawn_blocking(move || {
                if nested || !launcher.isolators.group(&name).is_some_and(|group| group.remove_if_empty()) {
                    launcher.end_all(&name);
                    launcher.end_group(&name);
                }
                launcher.clean_up(&name);
                kill_marked(&name, sandbox.as_deref());
            });
            let ended = ended.await;
            if let Err(error) = ended {
                tracing::warn!(%container, "the thread that ends a container has failed: {error}");
            }
        }
        (self.on_step)("after a container has ended");
        let is_inside = {
            let mut live = lock(&self.live);
            live.remove(&container);
            live.contains_key(&container.root())
        };
        self.sessions.ended(&container).await;
        self.records.ended(&container, status, is_inside);
        (self.report)(Input::ContainerExited { container, status });
    }

    async fn record_later(&self, container: &ContainerName, pid: i32, described: ContainerDescription) {
        let (records, name) = (self.records.clone(), container.clone());
        if let Err(error) = self.runtime.spawn_blocking(move || records.note(&name, pid, &described)).await {
            tracing::warn!(%container, "the thread that records a container has failed: {error}");
        }
    }

    pub(crate) fn destroy(&self, container: &ContainerName) {
        // The container may be fetching, or a container inside it may be.
        self.fetcher.cancel(container);
        if !lock(&self.live).contains_key(container) {
            return;
        }
        self.containerizers.iter().for_each(|one| one.destroy(container));
        // Destroying may take seconds; other containers are started meanwhile.
        let (launcher, container) = (self.clone(), container.clone());
        self.runtime.spawn_blocking(move || launcher.end_all(&container));
    }

    /// Kills the processes of a container and of its nested containers. Their reapers report their ends.
    fn end_all(&self, container: &ContainerName) {
        let all: Vec<(ContainerName, RunningContainer)> = lock(&self.live)
            .iter()
            .filter(|(name, _)| *name == container || name.is_inside(container))
            .map(|(name, live)| (name.clone(), live.clone()))
            .collect();
        for (name, live) in all.into_iter().rev() {
            if let Some(group) = self.isolators.group(&name).filter(Group::exists) {
                while let Err(error) = group.end(DESTROY_LIMIT) {
                    tracing::warn!(container = %name, "{error}; trying again");
                }
                continue;
            }
            while let Err(error) = containers::destroy(live.pid, live.started, DESTROY_LIMIT) {
                tracing::warn!(container = %name, "{error}; trying again");
            }
        }
    }
}

/// Returns the wait status of a program from that of its init process.
fn program_status(status: i32) -> i32 {
    let code = WaitStatus::from_raw(status).code();
    match code.filter(|code| *code > INIT_SIGNALLED).map(|code| code - INIT_SIGNALLED) {
        Some(signal) if signal <= 64 => signal,
        _ => status,
    }
}

pub(crate) fn remove(container: &ContainerName, group: Option<&Group>) {
    if let Some(Err(error)) = group.map(Group::remove) {
        tracing::warn!(%container, "{:#}", anyhow::Error::from(error));
    }
}

/// Returns the report that a container has run out of memory.
fn limited(container: &ContainerName, group: &Group) -> Input {
    let (message, megabytes) = out_of_memory(group);
    let exceeded = mesos::Resource {
        name: "mem".into(),
        r#type: mesos::value::Type::Scalar as i32,
        scalar: Some(mesos::value::Scalar { value: megabytes as f64 }),
        ..mesos::Resource::default()
    };
    Input::ContainerLimited {
        container: container.clone(),
        reason: mesos::task_status::Reason::ContainerLimitationMemory,
        message,
        resources: vec![exceeded],
    }
}

/// Kills processes that an executor has left and that are not its descendants any more.
fn kill_marked(container: &ContainerName, sandbox: Option<&str>) {
    if let Some(sandbox) = sandbox
        && let Err(error) = containers::destroy_marked(SANDBOX_VARIABLE, sandbox.as_ref(), DESTROY_LIMIT)
    {
        tracing::warn!(%container, "{error}");
    }
}

/// Returns the exit status of a process of the previous agent process, if the kernel has it.
async fn status_of(pid: i32, pidfd: &OwnedFd) -> Option<i32> {
    for _ in 0..STATUS_TRIES {
        if let Some(status) = containers::exit_status(pid, pidfd.as_fd()) {
            return Some(status.raw());
        }
        tokio::time::sleep(STATUS_PAUSE).await;
    }
    None
}
