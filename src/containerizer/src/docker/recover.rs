//! Recovery of the Docker containerizer: containers of tasks and of executors that the previous agent process has left.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agent::ContainerName;
use anyhow::Context;
use base::lock;
use executor::docker::{Client, Listed, NAME, PREFIX, SINCE, SOCKET};
use tokio::runtime::Handle;

use super::{Docker, Inner, executor_container, remove};
use crate::reaper::SANDBOX_VARIABLE;

/// Number of times that the daemon is asked for its containers if there are some to recover, and the pause between two
/// requests.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

impl Docker {
    /// Kills and deletes containers that the previous agent process has left, except those of `wanted`. Blocks.
    ///
    /// # Errors
    /// If `wanted` is not empty, and Docker does not list its containers: without their runners they would count as
    /// ended.
    pub(super) async fn recover_containers(&self, wanted: &BTreeSet<String>) -> anyhow::Result<()> {
        let Some(inner) = &self.0 else { return Ok(()) };
        // The kind of the containers that keep running is not known yet.
        lock(&inner.known).extend(wanted.iter().cloned());
        let tries = if wanted.is_empty() { 1 } else { TRIES };
        let found = listed(&inner.client, tries, PAUSE).await;
        for container in needed(found, !wanted.is_empty())? {
            inner.recover_or_kill(container, wanted);
        }
        Ok(())
    }

    /// Returns the variables of a new runner for an executor's container that still exists although its runner does
    /// not; `None` if there is no such container.
    pub(super) fn runner_environment(
        &self,
        container: &ContainerName,
        sandbox: &str,
    ) -> Option<Vec<(OsString, OsString)>> {
        let inner = self.0.as_ref()?;
        let name = lock(&inner.left_containers).remove(container.as_str())?;
        // tepui's executors write their output to the sandbox themselves.
        let is_ours = lock(&inner.executors_in_containers).contains(container.as_str());
        let since = if is_ours { String::new() } else { last_reported(Path::new(sandbox)) };
        let all = [
            (SOCKET, inner.config.socket.clone()),
            (NAME, name),
            (SINCE, since),
            (SANDBOX_VARIABLE, sandbox.to_owned()),
        ];
        Some(all.map(|(name, value)| (name.into(), value.into())).into())
    }
}

impl Inner {
    fn recover_or_kill(self: &Arc<Inner>, container: Listed, wanted: &BTreeSet<String>) {
        let Some(Named { id, has_executor, old }) = Named::parse(&container.name) else { return };
        if let Some(old) = old.filter(|_| wanted.contains(&id)) {
            lock(&self.old_names).insert(id.clone(), old);
        }
        if container.executor && wanted.contains(&id) {
            lock(&self.executors).insert(id.clone());
        }
        if wanted.contains(&id) && (container.executor || has_executor) {
            lock(&self.executors_in_containers).extend(has_executor.then(|| id.clone()));
            lock(&self.left_containers).insert(id.clone(), container.name.clone());
        }
        if wanted.contains(&id) || !self.config.kill_orphans {
            return;
        }
        let created = SystemTime::UNIX_EPOCH + Duration::from_secs(container.created);
        let age = created.elapsed().unwrap_or_default();
        if container.running {
            tracing::info!(container = id, "destroying an orphaned Docker container of an earlier agent");
            if let Err(error) = self.client.kill(&container.name, "SIGKILL") {
                tracing::warn!("{:#}", anyhow::Error::from(error));
            }
        }
        let (inner, left) = (self.clone(), self.config.remove_delay.saturating_sub(age));
        Handle::current().spawn(async move {
            tokio::time::sleep(left).await;
            tokio::task::spawn_blocking(move || remove(&inner.client, &container.name));
        });
    }
}

/// Parts of the name of a Docker container.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    /// Container id.
    id: String,
    /// Whether the container has the executor, and not the task.
    has_executor: bool,
    /// Name of the task's container if it is `mesos-<agent's id>.<container's id>`, the format of Mesos 0.23 to 1.3.
    old: Option<String>,
}

impl Named {
    /// Parses a name. Returns `None` for containers that were not made by an agent, whose names may begin in the same
    /// way.
    fn parse(name: &str) -> Option<Named> {
        let task = name.strip_suffix(executor_container::SUFFIX);
        let whole = task.unwrap_or(name);
        let own = whole.strip_prefix(PREFIX).unwrap_or(whole);
        // Container ids have no dots.
        let (id, old) = match own.rsplit_once('.') {
            Some((_, id)) => (id, Some(whole.to_owned())),
            None => (own, None),
        };
        uuid::Uuid::try_parse(id).ok()?;
        Some(Named { id: id.to_owned(), has_executor: task.is_some(), old })
    }
}

/// Returns the containers that the daemon lists. Asks again if it does not answer. Blocks in between.
async fn listed(client: &Client, tries: u32, pause: Duration) -> anyhow::Result<Vec<Listed>> {
    for _ in 1..tries {
        match client.containers() {
            Ok(listed) => return Ok(listed),
            Err(error) => tracing::warn!("{:#}; trying again", anyhow::Error::from(error)),
        }
        tokio::time::sleep(pause).await;
    }
    client.containers().context("Docker's containers cannot be listed")
}

/// Returns the listed containers. An agent that has nothing to recover ignores an error.
fn needed(found: anyhow::Result<Vec<Listed>>, takes_up: bool) -> anyhow::Result<Vec<Listed>> {
    match found {
        Err(error) if !takes_up => {
            tracing::warn!("orphaned Docker containers of an earlier agent cannot be removed: {error:#}");
            Ok(Vec::new())
        }
        found => found.context(
            "this agent has containers to recover, and would destroy the Docker containers that it does not find: \
             start it again when the Docker daemon answers ('docker ps -a')",
        ),
    }
}

/// Returns when an executor's output was last written to, in seconds since the epoch.
fn last_reported(sandbox: &Path) -> String {
    let written = |name: &str| std::fs::symlink_metadata(sandbox.join(name)).ok()?.modified().ok();
    let last = ["stdout", "stderr"].into_iter().filter_map(written).max().unwrap_or(SystemTime::UNIX_EPOCH);
    let since = last.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:09}", since.as_secs(), since.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Starts a daemon that gives these answers, one for each request.
    fn daemon(socket: &Path, answers: &[(&'static str, &'static str)]) -> std::thread::JoinHandle<()> {
        let (listener, answers) = (UnixListener::bind(socket).unwrap(), answers.to_vec());
        std::thread::spawn(move || {
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                let length = body.len();
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
            }
        })
    }

    #[test]
    fn names_of_containers() {
        let named = |id: &str, has_executor, old: Option<&str>| Named {
            id: id.into(),
            has_executor,
            old: old.map(str::to_owned),
        };
        const ID: &str = "5f3a1b2c-0d4e-4f60-8a7b-9c0d1e2f3a4b";
        let [new, old] = [format!("mesos-{ID}"), format!("mesos-2015-S0.{ID}")];
        assert_eq!(Named::parse(&new), Some(named(ID, false, None)));
        assert_eq!(Named::parse(&format!("{new}.executor")), Some(named(ID, true, None)));
        assert_eq!(Named::parse(&old), Some(named(ID, false, Some(&old))));
        assert_eq!(Named::parse(&format!("{old}.executor")), Some(named(ID, true, Some(&old))));
        for others in ["mesos-dns", "mesos-agent", "mesos-master.executor", "mesos-", "mesos-a.b"] {
            assert_eq!(Named::parse(others), None, "{others}");
        }
    }

    #[tokio::test]
    async fn requests_to_the_daemon_are_repeated() {
        const BAD: (&str, &str) = ("500 Internal Server Error", r#"{"message": "not now"}"#);
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let one = r#"[{"Names": ["/mesos-a.executor"], "State": "running", "Labels": {}, "Created": 7}]"#;
        let served = daemon(&socket, &[BAD, ("200 OK", one), BAD, BAD]);
        let client = Client::new(&socket);
        let found = listed(&client, 2, Duration::ZERO).await.unwrap();
        let expected = Listed { name: "mesos-a.executor".into(), running: true, created: 7, executor: false };
        assert_eq!(found, [expected]);
        let error = listed(&client, 2, Duration::ZERO).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "Docker's containers cannot be listed: not now");
        assert_eq!(needed(Err(anyhow::anyhow!("not now")), false).unwrap(), []);
        let error = format!("{:#}", needed(Err(error), true).unwrap_err());
        assert!(error.contains("start it again") && error.ends_with("not now"), "{error}");
        served.join().unwrap();
    }
}
