//! Searches the leader among the masters of a list: asks them until one confirms that it leads.
//!
//! A master that names another one only determines which one to ask next, since its information may be old. The masters
//! are asked one after the other at short intervals, without waiting for answers, so that a search costs the group a
//! request or two, and an address that is silent delays it by one interval. Masters of tepui hold their answers until
//! they know a leader, or for two seconds, so that a round ends as soon as there is one.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use base::Pid;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::client::{Address, Client};

use crate::list::{MasterList, is_same};
use crate::redirect::{self, Answer, PATIENCE, Problem};
use crate::{DetectionState, Leader};

/// Time for one master to answer before the next one is asked, too.
const STAGGER: Duration = Duration::from_millis(150);
/// Time for silent masters to answer when the others have answered, in the first round; it doubles in each later one.
const GRACE: Duration = Duration::from_millis(500);
/// Maximum number of masters that are asked in one round because another one names them.
const NAMED_MAX: usize = 16;

/// An error of a search in which no master of a list confirms that it leads: the problem of each one.
#[derive(Debug)]
pub struct NoLeader(Vec<(Address, Problem)>);

impl NoLeader {
    /// Returns the state that follows: no master leads, or the leader is unknown.
    pub fn known(&self) -> DetectionState {
        match self.0.iter().any(|(_, problem)| matches!(problem, Problem::NoLeader)) {
            true => DetectionState::NoLeader,
            false => DetectionState::Unknown,
        }
    }

    /// Returns the addresses that were asked, and their problems.
    pub fn problems(&self) -> &[(Address, Problem)] {
        &self.0
    }
}

impl fmt::Display for NoLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_master = self.0.iter().any(|(_, problem)| problem.is_of_a_master());
        f.write_str(if has_master { "no master leads" } else { "no master answers" })?;
        for (at, (address, problem)) in self.0.iter().enumerate() {
            let mark = if at == 0 { ":" } else { ";" };
            write!(f, "{mark} {address}: {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for NoLeader {}

/// Finds the leader. Each master of the list is asked once, in order, and again if they name one that does not confirm
/// it: it may have ended a moment ago.
///
/// # Errors
/// No master confirms that it leads.
pub async fn find(list: &MasterList) -> Result<Leader, NoLeader> {
    let mut search = Search::new(list.clone(), 0, None);
    let mut found = search.round(PATIENCE).await;
    if found.is_err() && search.previous.is_some() {
        found = search.round(PATIENCE).await;
    }
    found.map(|(leader, _)| leader)
}

/// A search of any number of rounds, with the same connections.
#[derive(Debug)]
pub(crate) struct Search {
    list: MasterList,
    /// Connections to masters that have answered.
    clients: Vec<Client>,
    /// Index of the master that is asked first.
    first: usize,
    rounds: u32,
    /// Leader that the caller knows, or that was named last, and that has not confirmed it.
    previous: Option<Pid>,
}

/// A master that was asked, and the result.
type Asked = (Client, Result<Answer, Problem>);

/// One round of a search.
#[derive(Default)]
struct Round {
    /// Masters to be asked.
    queue: VecDeque<Address>,
    /// Masters that were asked.
    asked: Vec<Address>,
    questions: JoinSet<Asked>,
    /// Number of masters that were named and are not in the list.
    named: usize,
    problems: Vec<(Address, Problem)>,
    /// Master that was named as the leader and has not confirmed it.
    unconfirmed: Option<Pid>,
}

impl Search {
    /// Creates a search; `seed` decides which master is asked first. `previous` is the former leader.
    pub(crate) fn new(list: MasterList, seed: u64, previous: Option<Pid>) -> Search {
        let first = usize::try_from(seed % list.masters().len().max(1) as u64).unwrap_or_default();
        Search { list, clients: Vec::new(), first, rounds: 0, previous }
    }

    /// Runs the next round. Silent masters get more time in each.
    pub(crate) async fn next(&mut self) -> Result<(Leader, Client), NoLeader> {
        let grace = GRACE.saturating_mul(1_u32.checked_shl(self.rounds).unwrap_or(u32::MAX)).min(PATIENCE);
        self.rounds = self.rounds.saturating_add(1);
        self.round(grace).await
    }

    /// Asks each master once. Returns the first one that confirms that it leads, with the connection to it. When all
    /// others have answered, silent ones are given up after `grace`.
    async fn round(&mut self, grace: Duration) -> Result<(Leader, Client), NoLeader> {
        let mut round = Round::default();
        let masters = self.list.masters();
        round.queue.extend(masters.iter().cycle().skip(self.first).take(masters.len()).cloned());
        let mut last_answer = None;
        loop {
            // Asks one more master after each interval, and after each answer that is not the leader's.
            if let Some(next) = round.queue.pop_front() {
                let client = self.client(&next);
                round.start(next, client, self.previous.clone());
            }
            let is_last = round.queue.is_empty();
            let pause = async {
                match (is_last, last_answer) {
                    (false, _) => tokio::time::sleep(STAGGER).await,
                    (true, Some(at)) => tokio::time::sleep_until(at + grace).await,
                    (true, None) => std::future::pending().await,
                }
            };
            let joined = tokio::select! {
                biased;
                joined = round.questions.join_next() => joined,
                () = pause => match is_last {
                    true => break,
                    false => continue,
                },
            };
            let Some(joined) = joined else { break };
            let Ok((client, result)) = joined else { continue };
            let address = client.address().clone();
            let problem = match result {
                Ok(Answer::Leads(leader)) => return Ok((*leader, client)),
                Ok(Answer::Names(named, pid)) => {
                    round.ask_next(&named);
                    round.unconfirmed = pid.or(round.unconfirmed);
                    Problem::Names(named)
                }
                Err(problem) => problem,
            };
            if problem.is_of_a_master() {
                last_answer = Some(Instant::now());
                self.clients.push(client);
            }
            round.problems.push((address, problem));
        }
        self.previous = round.unconfirmed.take().or(self.previous.take());
        Err(round.end())
    }

    /// Returns the client of an earlier request to this address, or a new one.
    fn client(&mut self, address: &Address) -> Client {
        match self.clients.iter().position(|client| client.address() == address) {
            Some(at) => self.clients.swap_remove(at),
            None => redirect::client(address.clone()),
        }
    }
}

impl Round {
    fn start(&mut self, address: Address, mut client: Client, previous: Option<Pid>) {
        self.asked.push(address);
        self.questions.spawn(async move {
            let result = redirect::wait(&mut client, previous.as_ref()).await;
            (client, result)
        });
    }

    /// Adds a named master to the start of the queue, unless it was asked already.
    fn ask_next(&mut self, named: &Address) {
        if self.asked.iter().any(|asked| is_same(asked, named)) {
            return;
        }
        match self.queue.iter().position(|waiting| is_same(waiting, named)) {
            Some(at) => self.queue.rotate_left(at),
            None if self.named < NAMED_MAX => {
                self.named += 1;
                self.queue.push_front(named.clone());
            }
            None => {}
        }
    }

    fn end(mut self) -> NoLeader {
        let problems = &mut self.problems;
        for address in self.asked {
            if !problems.iter().any(|(known, _)| *known == address) {
                problems.push((address, Problem::Unfinished));
            }
        }
        // The same problems give the same message, whatever their order.
        problems.sort_by(|(one, _), (other, _)| one.cmp(other));
        NoLeader(self.problems)
    }
}
