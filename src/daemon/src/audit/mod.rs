//! The audit log: one line for each change that an operator, a framework or an agent asks for, and for each failed
//! log-in (docs/security.md).
//!
//! `calls.rs` decides what is a change, `request.rs` collects the facts about an HTTP request, `queue.rs` and the
//! thread of this file write. It decides nothing about requests.

mod agent_calls;
mod calls;
mod entry;
mod file;
mod journal;
mod messages;
mod queue;
mod request;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use base::Pid;
use cores::Refusal;
use wire::http::StatusCode;

use crate::flags::{AuditFlags, FlagError, Part};
pub(crate) use agent_calls::agent_call;
pub(crate) use calls::{RequestedChange, master_call, scheduler_call};
pub(crate) use entry::Target;
use entry::{Decision, Entry, bounded, now};
use file::RotatedFile;
use journal::Journal;
pub(crate) use messages::master_message;
use queue::{Item, Queue};
pub(crate) use request::{current, note_call, note_path, note_principal, note_rule, within};

/// Time for which a daemon that ends waits until its lines are written.
const FLUSH: Duration = Duration::from_secs(2);

/// The audit log of a daemon. Cheap to clone; without `--audit_log` it does nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit(Option<Arc<Log>>);

#[derive(Debug)]
struct Log {
    queue: Arc<Queue>,
}

/// The destination of the lines.
enum Destination {
    File(RotatedFile),
    Journal(Journal),
}

impl Audit {
    /// Opens the log that the flags name, and starts its thread.
    ///
    /// # Errors
    /// The file cannot be opened, or there is no journald.
    pub(crate) fn start(part: Part, flags: &AuditFlags) -> anyhow::Result<Audit> {
        let Some(path) = flags.audit_log.as_deref().filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(Audit::default());
        };
        let refused = |name, why: &str| FlagError::Refused { name, why: why.to_owned() };
        if flags.audit_log_max_files == 0 {
            return Err(refused("audit_log_max_files", "must be at least 1: the current file is included").into());
        }
        let destination = if path == Path::new("journald") {
            let journal = Journal::open(Path::new(journal::SOCKET));
            Destination::Journal(
                journal
                    .with_context(|| format!("--audit_log=journald: no journald receives at '{}'", journal::SOCKET))?,
            )
        } else {
            let file = RotatedFile::open(path, flags.audit_log_max_size.0, flags.audit_log_max_files);
            Destination::File(file.with_context(|| format!("--audit_log: cannot write the file '{}'", path.display()))?)
        };
        let queue = Arc::new(Queue::new());
        let taken = queue.clone();
        let daemon = part.command();
        let writer = move || write_all(daemon, destination, &taken);
        thread::Builder::new().name("audit".to_owned()).spawn(writer).context("cannot start the audit log's thread")?;
        Ok(Audit(Some(Arc::new(Log { queue }))))
    }

    /// Returns whether the daemon has an audit log.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    fn write(&self, entry: Entry) {
        if let Some(log) = &self.0 {
            log.queue.push(entry);
        }
    }

    /// Writes a line about a message that is passed to the core.
    pub(crate) fn message(&self, requested: RequestedChange, from: &Pid, peer: SocketAddr, principal: Option<&str>) {
        self.write(Entry {
            time: now(),
            principal: principal.map(bounded),
            address: Some(peer),
            pid: Some(from.to_string()),
            call: requested.call.into_owned(),
            target: requested.target,
            decision: Decision::Received,
            status: None,
            rule: None,
        });
    }

    /// Writes a line about a refusal of the core, of a message or of a request that was answered before.
    pub(crate) fn refused(&self, refusal: Refusal) {
        if !self.is_on() {
            return;
        }
        let mut target = Target::default();
        for (kind, id) in &refusal.target {
            target.add(kind, id);
        }
        self.write(Entry {
            time: now(),
            principal: refusal.principal.as_deref().map(bounded),
            address: None,
            pid: refusal.pid.map(|pid| pid.to_string()),
            call: refusal.call.to_owned(),
            target,
            decision: if refusal.is_denied { Decision::Denied } else { Decision::Invalid },
            status: None,
            rule: Some(bounded(&refusal.why)),
        });
    }

    /// Writes a line about a failed log-in by HTTP: the user of the `Authorization` header, the realm, and the status
    /// of the response. Requests without the header are not log-ins.
    pub(crate) fn failed_http_login(
        &self,
        authorization: Option<&str>,
        peer: SocketAddr,
        realm: &str,
        status: StatusCode,
    ) {
        let Some(header) = authorization.filter(|_| self.is_on()) else { return };
        // A header without user and password is not repeated: it may be a password.
        let user = wire::auth::basic_credentials(Some(header)).map(|(user, _)| user).unwrap_or_default();
        self.write(Entry {
            time: now(),
            principal: None,
            address: Some(peer),
            pid: None,
            call: "LOGIN".to_owned(),
            target: Target::default().with("user", &user),
            decision: Decision::Denied,
            status: Some(status.as_u16()),
            rule: Some(realm.to_owned()),
        });
    }

    /// Writes a line about a failed log-in of a libprocess client, with the reason.
    pub(crate) fn failed_login(&self, client: &Pid, peer: SocketAddr, user: &str, why: &str) {
        if !self.is_on() {
            return;
        }
        self.write(Entry {
            time: now(),
            principal: None,
            address: Some(peer),
            pid: Some(client.to_string()),
            call: "LOGIN".to_owned(),
            target: Target::default().with("user", user),
            decision: Decision::Denied,
            status: None,
            rule: Some(bounded(&format!("CRAM-MD5: {why}"))),
        });
    }

    /// Waits until all lines are written, for a limited time. Called when the daemon ends.
    pub(crate) async fn flush(&self) {
        let Some(log) = self.0.clone() else { return };
        log.queue.close();
        // If the runtime has ended, there is nothing to wait for.
        let _ = tokio::task::spawn_blocking(move || log.queue.wait_until_written(FLUSH)).await;
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Writes lines until the end of the queue.
fn write_all(daemon: &str, mut destination: Destination, queue: &Queue) {
    let identifier = format!("tepui-{daemon}");
    while let Some(items) = queue.take() {
        if let Destination::File(file) = &mut destination
            && let Err(error) = file.follow()
        {
            tracing::warn!("The audit log cannot be opened again: {error}");
        }
        for item in items {
            let line = match &item {
                Item::Entry(entry) => entry.json(daemon),
                Item::Dropped(count) => entry::missing(daemon, "dropped", *count, None),
                Item::LeftOut(decision, count) => entry::missing(daemon, "left_out", *count, Some(*decision)),
            };
            let written = match &mut destination {
                Destination::File(file) => file.write(&line),
                Destination::Journal(journal) => match &item {
                    Item::Entry(entry) => {
                        let decision = entry.decision.name();
                        let call = bounded(&entry.call);
                        journal.write(&line, &identifier, &[("TEPUI_CALL", &call), ("TEPUI_DECISION", decision)])
                    }
                    _ => journal.write(&line, &identifier, &[]),
                },
            };
            if let Err(error) = written {
                tracing::warn!("A line of the audit log cannot be written: {error}");
                queue.lost(match item {
                    Item::Entry(_) => 1,
                    Item::Dropped(count) | Item::LeftOut(_, count) => count,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MasterFlags;

    fn flags(given: &[(&str, &str)]) -> AuditFlags {
        MasterFlags::with(given).audit
    }

    #[tokio::test]
    async fn lines_are_written_in_their_order_and_before_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let audit = Audit::start(Part::Master, &flags(&[("audit_log", path.to_str().unwrap())])).unwrap();
        (0..500).for_each(|number| audit.write(entry::entry(&number.to_string())));
        for (header, status) in [(Some("Basic YW5uOnMzY3JldA=="), 429), (Some("Bearer s3cret"), 401), (None, 401)] {
            let status = StatusCode::from_u16(status).unwrap();
            audit.failed_http_login(header, SocketAddr::from(([127, 0, 0, 1], 1)), "realm", status);
        }
        audit.flush().await;
        let text = std::fs::read_to_string(&path).unwrap();
        let calls: Vec<_> = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect();
        assert_eq!(calls.len(), 502);
        assert!(calls.iter().take(500).enumerate().all(|(at, line)| line["call"].as_str() == Some(&*at.to_string())));
        assert_eq!(calls[500]["target"]["user"], "ann");
        assert_eq!([500, 501].map(|at: usize| calls[at]["status"].as_u64()), [Some(429), Some(401)]);
        assert!(!text.contains("s3cret") && !text.contains("YW5u"));
    }

    #[test]
    fn invalid_flags_are_rejected() {
        let refused = |given: &[(&str, &str)]| Audit::start(Part::Master, &flags(given)).unwrap_err().to_string();
        assert!(!Audit::start(Part::Master, &flags(&[])).unwrap().is_on());
        assert!(refused(&[("audit_log", "/nowhere/audit.log")]).contains("cannot write the file '/nowhere/audit.log'"));
        assert!(refused(&[("audit_log", "/tmp/x"), ("audit_log_max_files", "0")]).contains("at least 1"));
        if !Path::new(journal::SOCKET).exists() {
            assert!(refused(&[("audit_log", "journald")]).contains("no journald"));
        }
    }
}
