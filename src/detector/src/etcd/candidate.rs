//! A master's candidacy in etcd: it follows the leader, becomes the leader when the leader's key is gone, and renews
//! its lease.
//!
//! The leader counts its lease from before the renewal is sent, and ends before etcd lets another master lead. Its
//! writes depend on its key, so it does no harm where the clocks' speeds differ by more than the margin.

use std::sync::Arc;
use std::time::Duration;

use base::Backoff;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::client::{Connection, EtcdError, Service};
use super::message::{self, KeyValue, Outcome, Transaction};
use crate::detection::{DetectionState, Detector, Leader, tell};
use crate::lease::Lease;

/// Key of the leader, below the prefix.
pub(super) const LEADER: &str = "leader";
/// Number of renewals by the leader within the length of a lease. `QUESTIONS` is the number of requests of a follower
/// for the leader.
const RENEWALS: u32 = 10;
const QUESTIONS: u32 = 20;
/// The shortest and the longest wait between two requests of a follower.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));
/// Divisor of a lease's length that gives the time by which the lease ends earlier here than in etcd.
const MARGIN: u32 = 10;
/// The longest wait between two renewals: a leader whose key an operator has deleted ends soon.
const RENEWAL_MAX: Duration = Duration::from_secs(10);
/// Shortest time limit for an answer of a member.
const PATIENCE_MIN: Duration = Duration::from_millis(500);
/// The first and the longest wait after a failure.
const WAITS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// Maximum time for ending the lease when this master ends.
const RESIGNATION_LIMIT: Duration = Duration::from_millis(500);
/// gRPC codes of errors that a repetition does not resolve: invalid argument, which a wrong password is, too;
/// permission denied; failed precondition, such as a password where there is no authentication.
const FINAL: [i64; 3] = [3, 7, 9];
/// gRPC code for a lease that does not exist.
const NOT_FOUND: i64 = 5;

impl Detector {
    /// Contends for the lead of a group in etcd. `length` is that of the lease, which etcd may extend. `info` is a
    /// MasterInfo in JSON; `seed` decides which member is asked first. Requires a runtime.
    pub fn contend_in_etcd(service: Service, length: Duration, seed: u64, info: String) -> (Detector, Resignation) {
        let (sender, known) = watch::channel(DetectionState::Unknown);
        let (lease, resign) = (Arc::new(Lease::new()), Arc::<Notify>::default());
        let members = u32::try_from(service.url.servers().len()).unwrap_or(u32::MAX);
        let patience = (length / members.saturating_mul(2).max(2)).max(PATIENCE_MIN);
        let connection = Connection::new(service.clone(), patience, seed);
        let candidate = Candidate {
            key: connection.key(LEADER),
            connection,
            service,
            length,
            info,
            sender,
            lease: lease.clone(),
            resign: resign.clone(),
            granted: None,
            last_logged: String::new(),
            waits: Backoff::new(WAITS.0, WAITS.1, seed),
        };
        let task = tokio::spawn(candidate.run()).abort_handle();
        let resignation = Resignation { ask: resign, known: known.clone() };
        (Detector { known, lease, recheck_leader: Arc::default(), no_leader_reason: Arc::default(), task }, resignation)
    }
}

/// Ends the lease of a leader that shuts down, so that another master leads at once.
#[derive(Clone, Debug)]
pub struct Resignation {
    ask: Arc<Notify>,
    known: watch::Receiver<DetectionState>,
}

impl Resignation {
    /// Resigns, if this master leads. Returns whether etcd has confirmed it, or this master did not lead.
    pub async fn resign(&mut self) -> bool {
        let is_own = |known: &DetectionState| known.leader().is_some_and(|leader| leader.is_own);
        if !is_own(&self.known.borrow()) {
            return true;
        }
        self.ask.notify_one();
        let resigned = self.known.wait_for(|known| !is_own(known));
        matches!(tokio::time::timeout(RESIGNATION_LIMIT, resigned).await, Ok(Ok(_)))
    }
}

/// A lease that etcd has granted.
#[derive(Clone, Copy, Debug)]
struct Granted {
    id: i64,
    /// Time of the request.
    asked: Instant,
}

/// Reason why this master no longer leads.
enum Lost {
    /// The master's key or its lease is gone.
    Gone,
    /// The lease may be over.
    Over,
    /// The master has resigned.
    Resigned,
}

struct Candidate {
    service: Service,
    connection: Connection,
    /// The leader's key.
    key: String,
    length: Duration,
    info: String,
    sender: watch::Sender<DetectionState>,
    lease: Arc<Lease>,
    resign: Arc<Notify>,
    granted: Option<Granted>,
    /// Error that was reported last.
    last_logged: String,
    waits: Backoff,
}

impl Candidate {
    async fn run(mut self) {
        let pause = (self.length / QUESTIONS).clamp(PAUSES.0, PAUSES.1);
        let mut answered = Instant::now();
        loop {
            match self.follow().await {
                Ok(own) => {
                    self.waits.reset();
                    if let Some((own, granted)) = own {
                        self.lead(&own, granted).await;
                    }
                    answered = Instant::now();
                    tokio::time::sleep(pause).await;
                }
                Err(error) if error.code().is_some_and(|code| FINAL.contains(&code)) => {
                    let why = format!("etcd at {} denies access to this master: {}", self.service.url, chain(&error));
                    return tell(&self.sender, DetectionState::Refused(why));
                }
                Err(error) => {
                    if answered.elapsed() > self.length {
                        tell(&self.sender, DetectionState::Unknown);
                    }
                    self.once(format!(
                        "cannot read the leading master from etcd at {}: {}; trying again",
                        self.service.url,
                        chain(&error)
                    ));
                    tokio::time::sleep(self.waits.next_wait()).await;
                }
            }
        }
    }

    /// Asks for the leader and reports it. Returns the leader's key and lease if this master leads.
    async fn follow(&mut self) -> Result<Option<(KeyValue, Granted)>, EtcdError> {
        const PATH: &str = "/v3/kv/range";
        let answer = self.connection.ask(PATH, &message::get(&self.key)).await?;
        let found = message::found(&answer).ok_or(EtcdError::Invalid(PATH))?.into_iter().next();
        let leader = match found {
            Some(leader) => leader,
            None => match self.enter().await? {
                Some(leader) => leader,
                // The key existed just now, and is gone again.
                None => return Ok(None),
            },
        };
        if let Some(granted) = self.granted.filter(|granted| granted.id == leader.lease) {
            return Ok(Some((leader, granted)));
        }
        match Leader::of_info(&leader.created.to_string(), &leader.value).filter(|_| leader.lease != 0) {
            Some(leader) => {
                self.last_logged.clear();
                tell(&self.sender, DetectionState::Leader(leader));
            }
            None => {
                tell(&self.sender, DetectionState::Unknown);
                self.once(format!(
                    "the key '{}' in etcd holds no MasterInfo with a lease, as masters write it: no master can lead until it \
                     is deleted",
                    self.key
                ));
            }
        }
        Ok(None)
    }

    /// Tries to become the leader while there is none. Returns the key of the leader.
    async fn enter(&mut self) -> Result<Option<KeyValue>, EtcdError> {
        const PATH: &str = "/v3/kv/txn";
        if self.sender.borrow().leader().is_some() {
            tell(&self.sender, DetectionState::NoLeader);
        }
        let granted = self.grant().await?;
        let transaction = Transaction::default()
            .if_created(&self.key, 0)
            .put(&self.key, self.info.as_bytes(), granted.id)
            .or_get(&self.key);
        let answer = self.connection.ask(PATH, &transaction.request()).await;
        if answer.as_ref().is_err_and(|error| error.code() == Some(NOT_FOUND)) {
            self.granted = None;
        }
        match Outcome::of(&answer?).ok_or(EtcdError::Invalid(PATH))? {
            Outcome::Made(at) => Ok(Some(KeyValue {
                key: self.key.clone().into(),
                value: self.info.clone().into(),
                created: at,
                changed: at,
                lease: granted.id,
            })),
            Outcome::Otherwise(found) => Ok(found.into_iter().next().flatten()),
        }
    }

    /// Returns a lease: the last one that was granted if it is new, otherwise another one.
    async fn grant(&mut self) -> Result<Granted, EtcdError> {
        const PATH: &str = "/v3/lease/grant";
        if let Some(granted) = self.granted.filter(|granted| granted.asked.elapsed() < self.length / 2) {
            return Ok(granted);
        }
        let asked = Instant::now();
        let seconds = self.length.as_secs().max(1);
        let answer = self.connection.ask(PATH, &json!({ "TTL": seconds.to_string() })).await?;
        let id = message::number(&answer["ID"]).filter(|id| *id != 0).ok_or(EtcdError::Invalid(PATH))?;
        let granted = Granted { id, asked };
        self.granted = Some(granted);
        Ok(granted)
    }

    /// Leads until the master may no longer assume that it does.
    async fn lead(&mut self, own: &KeyValue, granted: Granted) {
        let lost = self.renew_all(own, granted).await;
        self.lease.end_at(Instant::now().into_std());
        self.granted = None;
        if matches!(lost, Lost::Resigned) {
            // Otherwise the lease ends by itself.
            let revoked = self.connection.ask("/v3/lease/revoke", &json!({ "ID": granted.id.to_string() })).await;
            if let Err(error) = revoked {
                self.once(format!("the lease in etcd cannot be revoked: {}", chain(&error)));
            }
        }
        tell(&self.sender, DetectionState::Unknown);
        if matches!(lost, Lost::Resigned) {
            // A master that has resigned must not contend again.
            std::future::pending().await
        }
    }

    async fn renew_all(&mut self, own: &KeyValue, granted: Granted) -> Lost {
        let (lease, resign) = (self.lease.clone(), self.resign.clone());
        let limit = granted.asked + self.length;
        let mut leads = false;
        let over = async |leads| match leads {
            true => lease.over().await,
            false => tokio::time::sleep_until(limit).await,
        };
        loop {
            let asked = Instant::now();
            let renewed = tokio::select! {
                renewed = self.renew(own, granted.id) => renewed,
                () = over(leads) => return Lost::Over,
                () = resign.notified() => return Lost::Resigned,
            };
            let wait = match renewed {
                Ok(Some(length)) => {
                    lease.extend(asked, length - length / MARGIN);
                    leads = true;
                    self.last_logged.clear();
                    self.waits.reset();
                    let leader = Leader::of_info(&own.created.to_string(), self.info.as_bytes());
                    tell(
                        &self.sender,
                        leader.map_or(DetectionState::Unknown, |leader| {
                            DetectionState::Leader(Leader { is_own: true, ..leader })
                        }),
                    );
                    (length / RENEWALS).min(RENEWAL_MAX)
                }
                Ok(None) => return Lost::Gone,
                Err(error) => {
                    self.once(format!(
                        "the lease in etcd at {} cannot be renewed: {}; trying again",
                        self.service.url,
                        chain(&error)
                    ));
                    self.waits.next_wait()
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = over(leads) => return Lost::Over,
                () = resign.notified() => return Lost::Resigned,
            }
        }
    }

    /// Renews the lease. Returns its length; `None` if it is over, or the key is no longer this master's.
    async fn renew(&mut self, own: &KeyValue, id: i64) -> Result<Option<Duration>, EtcdError> {
        const PATHS: (&str, &str) = ("/v3/lease/keepalive", "/v3/kv/range");
        let answer: Value = self.connection.ask(PATHS.0, &json!({ "ID": id.to_string() })).await?;
        let seconds = message::number(&answer["result"]["TTL"]).ok_or(EtcdError::Invalid(PATHS.0))?;
        let Some(seconds) = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0) else { return Ok(None) };
        // The key may have been deleted, and a member that has not detected another leader of etcd renews leases that
        // are over: the answer to this request needs more than half of the members.
        let answer = self.connection.ask(PATHS.1, &message::get(&self.key)).await?;
        let found = message::found(&answer).ok_or(EtcdError::Invalid(PATHS.1))?;
        let is_own = found.first().is_some_and(|found| found.created == own.created && found.lease == id);
        Ok(is_own.then(|| Duration::from_secs(seconds)))
    }

    /// Reports a problem unless it was the last one reported.
    fn once(&mut self, words: String) {
        if self.last_logged != words {
            tracing::warn!("{words}");
            self.last_logged = words;
        }
    }
}

fn chain(error: &EtcdError) -> String {
    base::error_chain(error)
}
