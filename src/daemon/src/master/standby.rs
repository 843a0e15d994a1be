//! A master that does not lead, or not yet: what it knows of the leader, and how it answers requests and messages.
//!
//! `election` finds out which master leads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use base::Pid;
use detector::{LEADER_HEADER, MASTER_HEADER, PREVIOUS_HEADER, WAIT_HEADER};
use tokio::sync::watch;
use wire::http::{HeaderName, Request, Response, StatusCode};

/// Maximum time for which an answer is delayed, whatever a caller asks for.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Interval between delayed answers when a leader is known: a leader needs about this time for each of 10,000 agents
/// that register at once.
const SPREAD: Duration = Duration::from_micros(80);
/// Maximum further delay of an answer by earlier ones. A caller waits a second more than the time for which it asks.
const SPREAD_MAX: Duration = Duration::from_millis(800);

/// Names of messages by which v0 drivers and agents register.
const REGISTRATIONS: [&str; 6] = [
    "mesos.scheduler.Call",
    "mesos.internal.SubmitSchedulerRequest",
    "mesos.internal.RegisterFrameworkMessage",
    "mesos.internal.ReregisterFrameworkMessage",
    "mesos.internal.RegisterSlaveMessage",
    "mesos.internal.ReregisterSlaveMessage",
];

/// The state of a standby master: what it knows of the leader.
#[derive(Debug)]
pub(super) struct Standby {
    /// Pid of this master.
    own: Pid,
    leader: watch::Sender<Seen>,
    dropped: AtomicU64,
}

/// The known leader, and the number of delayed answers that were sent since it became known.
#[derive(Clone, Debug, Default)]
struct Seen {
    leader_state: LeaderState,
    released: Arc<AtomicU32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum LeaderState {
    /// No leader is known.
    #[default]
    Unknown,
    /// Another master leads; its pid, host and port.
    Other(Pid, String, u16),
    /// This master is elected, but has not read the registry yet; its host and port.
    OwnRecovering(String, u16),
    /// This master leads; its host and port.
    OwnReady(String, u16),
}

impl LeaderState {
    /// Returns whether a leader accepts registrations that is not `previous`, the one that the caller knows.
    fn is_news(&self, previous: Option<&str>) -> bool {
        match self {
            LeaderState::Unknown | LeaderState::OwnRecovering(..) => false,
            LeaderState::Other(pid, ..) => previous.is_none_or(|previous| pid.to_string() != previous),
            LeaderState::OwnReady(..) => true,
        }
    }
}

impl Standby {
    pub(super) fn new(own: Pid) -> Standby {
        Standby { own, leader: watch::Sender::default(), dropped: AtomicU64::new(0) }
    }

    pub(super) fn set(&self, leader_state: LeaderState) {
        self.leader.send_if_modified(|seen| {
            let is_new = seen.leader_state != leader_state;
            if is_new {
                *seen = Seen { leader_state, released: Arc::default() };
            }
            is_new
        });
    }

    /// Redirects a request to the leader.
    pub(super) fn redirect(&self, request: &Request) -> Response {
        match &self.leader.borrow().leader_state {
            LeaderState::Unknown => no_leader(),
            LeaderState::OwnRecovering(..) | LeaderState::OwnReady(..) => {
                Response::text(StatusCode::SERVICE_UNAVAILABLE, "Master has not finished recovery")
            }
            LeaderState::Other(_, host, port) => Response::redirect(host, *port, &full_path(request)),
        }
    }

    /// Answers with the leader. If the caller asks to wait, the answer is sent when there is another leader than the
    /// caller's previous one, or when the time is over.
    pub(super) async fn name(&self, request: &Request) -> Response {
        let wait = request.header(WAIT_HEADER).and_then(|text| text.parse().ok()).map(Duration::from_millis);
        match wait {
            Some(wait) => self.name_within(wait.min(WAIT_MAX), request.header(PREVIOUS_HEADER)).await,
            None => self.named(&self.leader.borrow().leader_state),
        }
    }

    async fn name_within(&self, wait: Duration, previous: Option<&str>) -> Response {
        let mut leader = self.leader.subscribe();
        let now = leader.borrow_and_update().leader_state.clone();
        if now.is_news(previous) {
            return self.named(&now);
        }
        let news = tokio::time::timeout(wait, leader.wait_for(|seen| seen.leader_state.is_news(previous))).await;
        let Some(seen) = news.ok().and_then(|seen| seen.ok().map(|seen| seen.clone())) else {
            return match &self.leader.borrow().leader_state {
                // A caller that waits would register, and this master would drop the message.
                LeaderState::OwnRecovering(..) => no_leader(),
                leader_state => self.named(leader_state),
            };
        };
        let turn = seen.released.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(SPREAD.saturating_mul(turn).min(SPREAD_MAX)).await;
        self.named(&seen.leader_state)
    }

    fn named(&self, leader_state: &LeaderState) -> Response {
        let own = self.own.to_string();
        match leader_state {
            LeaderState::Unknown => no_leader(),
            LeaderState::OwnRecovering(host, port) | LeaderState::OwnReady(host, port) => {
                named(&own, &own, host, *port)
            }
            LeaderState::Other(pid, host, port) => named(&own, &pid.to_string(), host, *port),
        }
    }

    /// Drops a message. It cannot be forwarded: v0 drivers and Mesos's agents ignore answers of any other master than
    /// the one that they have detected, and the leader binds a sender to its connection. Agents with a token follow the
    /// leader by themselves; the log names the other senders, which may wait here without end.
    pub(super) fn drop_message(&self, message: &wire::libprocess::Message) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        if message.origin.sender_token.is_some() || !REGISTRATIONS.contains(&message.name.as_str()) {
            return;
        }
        let leader = match &self.leader.borrow().leader_state {
            LeaderState::Unknown => ": no leading master is known".to_owned(),
            LeaderState::Other(pid, ..) => format!(": the leader is {pid}"),
            LeaderState::OwnRecovering(..) | LeaderState::OwnReady(..) => " or has not finished recovery".to_owned(),
        };
        tracing::warn!(
            "{} of {} dropped: this master does not lead{leader}; v0 drivers and Mesos's agents find the leader \
             through ZooKeeper only",
            message.name,
            message.from
        );
    }

    /// Returns the number of messages that were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Returns the answer of `/redirect` of the master `own`: the leader, with its pid for clients that have a list of
/// masters.
pub(super) fn named(own: &str, leader: &str, host: &str, port: u16) -> Response {
    Response::redirect(host, port, "")
        .with_header(HeaderName::from_static(MASTER_HEADER), own)
        .with_header(HeaderName::from_static(LEADER_HEADER), leader)
}

fn no_leader() -> Response {
    Response::text(StatusCode::SERVICE_UNAVAILABLE, "No leader elected")
}

/// Returns the path and query, with the name of the process if the path leaves it out.
fn full_path(request: &Request) -> String {
    let given = request.path_and_query();
    match given.starts_with("/master/") || request.path == "/master" {
        true => given,
        false => format!("/master{given}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "master@10.0.0.3:5050";
    const OLD: &str = "master@10.0.0.1:5050";
    const NEW: &str = "master@10.0.0.2:5050";

    fn elsewhere(pid: &str) -> LeaderState {
        LeaderState::Other(pid.parse().unwrap(), "h".to_owned(), 5050)
    }

    fn standby(leader_state: LeaderState) -> Arc<Standby> {
        let standby = Standby::new(OWN.parse().unwrap());
        standby.set(leader_state);
        Arc::new(standby)
    }

    /// Asks for the leader with a wait of 2 s. Returns the leader, and the time after which the answer came.
    async fn answer(standby: &Standby, previous: Option<&str>) -> (String, Duration) {
        let began = tokio::time::Instant::now();
        let response = standby.name_within(Duration::from_secs(2), previous).await;
        let leader = response.headers().get(LEADER_HEADER).map(|pid| pid.to_str().unwrap().to_owned());
        (leader.unwrap_or_else(|| response.status().as_u16().to_string()), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_new_to_a_caller_is_answered_at_once() {
        let at_once = |leader: &str| (leader.to_owned(), Duration::ZERO);
        assert_eq!(answer(&standby(elsewhere(OLD)), None).await, at_once(OLD));
        assert_eq!(answer(&standby(elsewhere(NEW)), Some(OLD)).await, at_once(NEW));
        // This master leads, whatever the caller has known before.
        let ready = standby(LeaderState::OwnReady("h".to_owned(), 5050));
        assert_eq!(answer(&ready, Some(OWN)).await, at_once(OWN));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_is_answered_after_the_wait() {
        let late = |said: &str| (said.to_owned(), Duration::from_secs(2));
        assert_eq!(answer(&standby(LeaderState::Unknown), None).await, late("503"));
        assert_eq!(answer(&standby(elsewhere(OLD)), Some(OLD)).await, late(OLD));
        // This master would drop a registration.
        assert_eq!(answer(&standby(LeaderState::OwnRecovering("h".to_owned(), 5050)), None).await, late("503"));
    }

    #[tokio::test(start_paused = true)]
    async fn held_answers_go_out_one_after_the_other_when_there_is_a_leader() {
        for (callers, last) in [(1, Duration::ZERO), (1_000, SPREAD * 999), (20_000, SPREAD_MAX)] {
            let standby = standby(elsewhere(OLD));
            let mut held = tokio::task::JoinSet::new();
            for _ in 0..callers {
                let standby = standby.clone();
                held.spawn(async move { answer(&standby, Some(OLD)).await });
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            standby.set(LeaderState::Unknown);
            tokio::time::sleep(Duration::from_millis(300)).await;
            standby.set(LeaderState::OwnRecovering("h".to_owned(), 5050));
            tokio::time::sleep(Duration::from_millis(300)).await;
            standby.set(LeaderState::OwnReady("h".to_owned(), 5050));
            let answers = held.join_all().await;
            assert!(answers.iter().all(|(leader, _)| leader == OWN));
            let times = || answers.iter().map(|(_, after)| after.saturating_sub(Duration::from_millis(900)));
            // Timers have a resolution of a millisecond.
            assert!(times().min().unwrap() <= Duration::from_millis(2), "{callers}");
            let longest = times().max().unwrap();
            assert!(longest >= last && longest <= last + Duration::from_millis(3), "{callers}: {longest:?}");
        }
    }
}
