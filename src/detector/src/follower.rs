//! Follows the leader among the masters of a list, until it is dropped: finds it, asks it at intervals whether it still
//! leads, and finds the next one.

use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::{Backoff, Pid, lock};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use wire::client::Client;

use crate::detection::{DetectionState, Detector, Leader, tell};
use crate::list::MasterList;
use crate::redirect::{self, Answer, Problem};
use crate::search::Search;

/// Time for which a leader that does not answer stays the leader, while no other master confirms that it leads.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// Maximum time for which an idle connection to the leader is kept: it costs the leader 13 KB, a new one 30
/// microseconds without TLS.
const KEEP: Duration = Duration::from_secs(5);

/// Signs of life of a leader, such as its pings. As long as they arrive, the leader is not asked.
#[derive(Debug, Default)]
pub struct LeaderActivity(Mutex<Option<(SocketAddrV4, Instant)>>);

impl LeaderActivity {
    /// Records a sign of life now: the process at this address, which is a master, treats this client as one of its
    /// own.
    pub fn record(&self, address: SocketAddrV4) {
        *lock(&self.0) = Some((address, Instant::now()));
    }

    /// Returns the time of the last sign of life of the process at this address.
    fn last_of(&self, address: SocketAddrV4) -> Option<Instant> {
        lock(&self.0).filter(|(of, _)| *of == address).map(|(_, at)| at)
    }
}

/// Waits between requests to masters. Each wait is shortened by up to a half at random.
#[derive(Clone, Copy, Debug)]
pub struct RequestIntervals {
    /// First wait after the leader is found, after a doubt, and before a search for the next leader; it doubles.
    pub first: Duration,
    /// Longest wait from one round of a search to the next. A round lasts longer where masters hold their answers.
    pub search: Duration,
    /// Longest wait between two requests to the leader, and from its last sign of life to a request.
    pub leader: Duration,
}

impl RequestIntervals {
    /// Waits of schedulers, of which a cluster has up to hundreds.
    pub const FRAMEWORKS: RequestIntervals = RequestIntervals {
        first: Duration::from_millis(100),
        search: Duration::from_secs(1),
        leader: Duration::from_secs(2),
    };
    /// Waits of agents, of which a cluster has 10,000: their leader pings them every 15 seconds, so they do not ask it.
    /// While no master leads they send about 10,000 requests a second to two others that hold their answers, and 18,000
    /// to two that do not.
    pub const AGENTS: RequestIntervals = RequestIntervals {
        first: Duration::from_millis(300),
        search: Duration::from_millis(1500),
        leader: Duration::from_secs(20),
    };
}

impl Detector {
    /// Starts to follow the leader among the masters of a list; `seed` is for the jitter. The caller records the
    /// leader's signs of life in `leader_activity`. Requires a runtime.
    pub fn follow(
        list: MasterList,
        intervals: RequestIntervals,
        seed: u64,
        leader_activity: Arc<LeaderActivity>,
    ) -> Detector {
        let (sender, known) = watch::channel(DetectionState::Unknown);
        let (recheck_leader, no_leader_reason) = (Arc::<Notify>::default(), Arc::<Mutex<String>>::default());
        let follower = Follower {
            search: Backoff::new(intervals.first, intervals.search, seed),
            leader: Backoff::new(intervals.first, intervals.leader, seed.rotate_left(32)),
            list,
            seed,
            patience: intervals.leader,
            leader_activity,
            sender,
            recheck_leader: recheck_leader.clone(),
            no_leader_reason: no_leader_reason.clone(),
        };
        let task = tokio::spawn(follower.run()).abort_handle();
        Detector {
            known,
            #[cfg(feature = "zookeeper")]
            lease: Arc::new(crate::Lease::new()),
            recheck_leader,
            no_leader_reason,
            task,
        }
    }
}

/// State of a detector's task.
struct Follower {
    list: MasterList,
    seed: u64,
    /// Waits between rounds of a search.
    search: Backoff,
    /// Waits between requests to the leader.
    leader: Backoff,
    /// Time for which a sign of life counts.
    patience: Duration,
    leader_activity: Arc<LeaderActivity>,
    sender: watch::Sender<DetectionState>,
    recheck_leader: Arc<Notify>,
    /// Reason why no leader is known.
    no_leader_reason: Arc<Mutex<String>>,
}

/// Reason why the leader is no longer followed.
enum Lost {
    /// The leader does not answer. It stays the leader until this time.
    Silent(Instant),
    /// The master reports that another one leads.
    Follows,
    /// The master reports that no master leads.
    Resigned,
}

impl Follower {
    async fn run(mut self) {
        let (mut lost, mut previous) = (None, None);
        loop {
            let (leader, client) = self.find(lost, previous).await;
            previous = Some(leader.pid.clone());
            lost = Some(self.watch(leader, client).await);
        }
    }

    /// Searches until a master confirms that it leads, and reports it. A failure is reported once, until it is over or
    /// another one occurs.
    async fn find(&mut self, lost: Option<Lost>, previous: Option<Pid>) -> (Leader, Client) {
        let mut search = Search::new(self.list.clone(), self.seed, previous);
        self.search.reset();
        let until = match lost {
            None | Some(Lost::Follows) => None,
            Some(Lost::Silent(until)) => {
                self.pause(Instant::now()).await;
                Some(until)
            }
            Some(Lost::Resigned) => {
                tell(&self.sender, DetectionState::NoLeader);
                self.pause(Instant::now()).await;
                None
            }
        };
        loop {
            let began = Instant::now();
            match search.next().await {
                Ok((leader, client)) => {
                    lock(&self.no_leader_reason).clear();
                    let leader = self.known_as(leader);
                    tell(&self.sender, DetectionState::Leader(leader.clone()));
                    return (leader, client);
                }
                Err(none) => {
                    if until.is_none_or(|until| until <= Instant::now()) {
                        tell(&self.sender, none.known());
                    }
                    self.report(none.to_string());
                }
            }
            self.pause(began).await;
        }
    }

    /// Waits for the next round, which starts some time after the start of the last one. All clients of a leader lose
    /// it at once, and must not search at once.
    async fn pause(&mut self, began: Instant) {
        let wait = self.search.next_wait();
        tokio::time::sleep_until(began + wait).await;
    }

    /// Returns the known leader if it is the one that was found, whatever the address at which it was found this time.
    fn known_as(&self, found: Leader) -> Leader {
        let known = self.sender.borrow();
        known.leader().filter(|leader| leader.pid == found.pid).cloned().unwrap_or(found)
    }

    /// Asks the leader at intervals, and when it is in doubt, until it does not confirm that it leads.
    async fn watch(&mut self, leader: Leader, mut client: Client) -> Lost {
        self.leader.reset();
        let mut confirmed = Instant::now();
        let mut wait = self.leader.next_wait();
        loop {
            let is_in_doubt = tokio::select! {
                () = tokio::time::sleep(wait) => false,
                () = self.recheck_leader.notified() => true,
            };
            let asked = Instant::now();
            if is_in_doubt {
                self.leader.reset();
            } else if let Some(sign) = self.leader_activity.last_of(leader.pid.address())
                && sign + self.patience > asked
            {
                confirmed = confirmed.max(sign);
                wait = sign + self.patience - asked;
                continue;
            }
            match redirect::ask(&mut client).await {
                Ok(Answer::Leads(now)) if now.pid == leader.pid => confirmed = asked,
                // Another master is at its address.
                Ok(Answer::Leads(_) | Answer::Names(..)) => return Lost::Follows,
                Err(Problem::NoLeader) => return Lost::Resigned,
                // An overloaded master may answer with any error.
                Err(_) => return Lost::Silent(confirmed + SILENCE_LIMIT),
            }
            wait = self.leader.next_wait();
            if wait > KEEP {
                client = redirect::client(client.address().clone());
            }
        }
    }

    /// Logs a failure unless it was the last one.
    fn report(&self, words: String) {
        let mut no_leader_reason = lock(&self.no_leader_reason);
        if *no_leader_reason != words {
            tracing::warn!("{words}; trying again");
            *no_leader_reason = words;
        }
    }
}
