//! The scheduler state machine of video queries: events in, calls out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Time;
use sdk::v1::{TaskState, TaskStatus};
use sdk::{Calls, Event, RestartPolicy, Restarts, Scheduler, is_terminal};

use super::launch::{WorkerCommand, launch, useful};
use super::moves::{needs_offers_to_move, watch_goals, watch_moves};
use super::query::{Query, SavedQuery, State};
use super::question::{Answer, Question, Report, Start, Submission};
use super::resize::Resizing;
use super::status::Status;
use crate::profile::Point;
use crate::schedule::{AgentView, Horizon, Objective, Policy, QueryView, decide};
use crate::spec::QUERIES_MAX;

/// Prefix of the keys under which queries are persisted.
const KEY: &str = "query/";
/// Key of the number of submissions so far.
const RUNS: &str = "runs";
/// Longest time that a worker may take to start, or may be silent, before its task is killed.
const SILENCE: Duration = Duration::from_secs(20);
/// Number of consecutive starts without progress after which a query fails.
const STARTS_MAX: u32 = 10;
/// Time for which a query waits after a launch that was refused.
const RETRY: Duration = Duration::from_secs(1);
/// Interval at which positions are persisted. A worker that continues knows its own position.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);

/// Options of the scheduler.
#[derive(Clone, Debug)]
pub struct Options {
    /// Policy that divides cores among the queries.
    pub policy: Policy,
    /// Objective that the policy maximizes.
    pub objective: Objective,
    /// Time that decisions look ahead.
    pub horizon: Horizon,
    /// Interval between decisions.
    pub epoch: Duration,
    /// Largest number of cores that tasks hold together; `None` for all that are offered.
    pub cores_max: Option<f64>,
    /// Smallest number of cores of a task.
    pub cores_min: f64,
    /// Memory of a task in MB.
    pub memory: u32,
    /// Time for which workers continue without the scheduler, in seconds.
    pub patience: f64,
    /// Interval between samples of a query's quality; zero for no samples.
    pub sample_every: Duration,
    /// Command with which agents start a worker.
    pub worker: WorkerCommand,
}

impl Options {
    /// Returns the default options for this worker command.
    pub fn new(worker: WorkerCommand) -> Options {
        Options {
            policy: Policy::Videostorm,
            objective: Objective::MaxSum,
            horizon: Horizon::default(),
            epoch: Duration::from_secs(1),
            cores_max: None,
            cores_min: 0.02,
            memory: 128,
            patience: 60.0,
            sample_every: Duration::ZERO,
            worker,
        }
    }
}

/// The scheduler of video queries. It answers the questions that arrive in `requests`; see [`Question`].
#[derive(Debug)]
pub struct VideoScheduler {
    pub(super) options: Options,
    requests: sdk::Requests<Question, Answer>,
    pub(super) queries: BTreeMap<String, Query>,
    restarts: Restarts,
    framework: Option<String>,
    pub(super) connected: bool,
    wants_offers: bool,
    /// Number of queries that waited for offers at the last check.
    waited: usize,
    /// Number of submissions so far.
    runs: u32,
    /// Persisted queries that could not be restored after a restart, with the reason, by name.
    unreadable: BTreeMap<String, String>,
    next_epoch: Time,
    next_save: Time,
    pub(super) resizing: Resizing,
    decisions: u64,
    last_contact: BTreeMap<String, Time>,
}

impl VideoScheduler {
    /// Creates a scheduler without queries.
    pub fn new(options: Options, requests: sdk::Requests<Question, Answer>) -> VideoScheduler {
        let policy = RestartPolicy {
            first: Duration::from_millis(500),
            factor: 2.0,
            longest: Duration::from_secs(30),
            healthy_after: Duration::from_secs(10),
        };
        VideoScheduler {
            options,
            requests,
            queries: BTreeMap::new(),
            restarts: Restarts::new(policy),
            framework: None,
            connected: false,
            wants_offers: true,
            waited: 0,
            runs: 0,
            unreadable: BTreeMap::new(),
            next_epoch: Time::EPOCH,
            next_save: Time::EPOCH,
            resizing: Resizing::default(),
            decisions: 0,
            last_contact: BTreeMap::new(),
        }
    }

    /// Returns the number of cores that its queries could use beyond those that their tasks hold.
    pub fn wanted(&self, now: Time) -> f64 {
        let live = self.queries.values().filter(|q| !matches!(q.state, State::Done | State::Failed));
        live.map(|q| (useful(q, now) - q.held()).max(0.0)).sum()
    }

    fn save(&self, name: &str, calls: &mut Calls) {
        if let Some(query) = self.queries.get(name)
            && let Ok(bytes) = serde_json::to_vec(&query.to_saved())
        {
            calls.save(&format!("{KEY}{name}"), bytes);
        }
    }

    /// Returns the query that is moving to this task.
    fn query_moving_to(&mut self, task: &str) -> Option<(String, &mut Query)> {
        let moving = |q: &Query| q.moving.as_ref().is_some_and(|m| m.task == task);
        self.queries.iter_mut().find(|(_, q)| moving(q)).map(|(name, q)| (name.clone(), q))
    }

    fn query_of_task(&mut self, task: &str) -> Option<(String, &mut Query)> {
        self.queries.iter_mut().find(|(_, q)| q.task.as_deref() == Some(task)).map(|(name, q)| (name.clone(), q))
    }

    fn restore(&mut self, saved: BTreeMap<String, Vec<u8>>, now: Time) {
        for (key, bytes) in saved {
            if key == RUNS {
                self.runs = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            }
            let Some(name) = key.strip_prefix(KEY) else { continue };
            match serde_json::from_slice::<SavedQuery>(&bytes) {
                Ok(saved) => drop(self.queries.insert(name.to_owned(), Query::restored(saved, now))),
                Err(error) => drop(self.unreadable.insert(name.to_owned(), error.to_string())),
            }
        }
    }

    /// Reconciles queries and tasks after a subscription: a query whose task is not in the ledger starts again, and
    /// tasks without a query are killed.
    fn reconcile_tasks(&mut self, now: Time, calls: &mut Calls) {
        let live: BTreeSet<String> = calls.tasks().iter().map(|(id, _)| id.to_owned()).collect();
        let mut own = BTreeSet::new();
        let mut lost = Vec::new();
        for (name, query) in self.queries.iter_mut().filter(|(_, q)| q.is_live()) {
            match &query.task {
                Some(task) if live.contains(task) => {
                    own.insert(task.clone());
                    self.last_contact.insert(task.clone(), now);
                }
                _ => lost.push(name.clone()),
            }
        }
        own.extend(self.queries.values().filter_map(|q| q.moving.as_ref()).map(|m| m.task.clone()));
        for name in lost {
            self.wait(&name, "its task was gone after a restart", now, now, calls);
        }
        for task in live.difference(&own) {
            calls.kill(task, None);
        }
    }

    /// Returns a query to the waiting state, or lets it wait for the task that it was moving to.
    pub(super) fn wait(&mut self, name: &str, why: &str, until: Time, now: Time, calls: &mut Calls) {
        if let Some(query) = self.queries.get_mut(name) {
            if let Some(task) = query.task.take() {
                self.last_contact.remove(&task);
            }
            if query.moving.is_some() {
                query.switch_to_second_task(State::Starting, now);
                return self.save(name, calls);
            }
            query.state = State::Waiting;
            query.message = why.to_owned();
            query.not_before = until;
            query.waiting_since = Some(now);
            query.worker_changed();
        }
        self.save(name, calls);
    }

    fn end(&mut self, name: &str, state: State, message: &str, calls: &mut Calls) {
        if let Some(query) = self.queries.get_mut(name) {
            query.state = state;
            query.message = message.to_owned();
            self.resizing.record_released(query.reserved);
            if let Some(second) = query.moving.take() {
                calls.kill(&second.task, None);
            }
        }
        self.save(name, calls);
    }

    fn update(&mut self, status: &TaskStatus, now: Time, calls: &mut Calls) {
        let task = status.task_id.value.clone();
        let state = status.state();
        let away = matches!(state, TaskState::TaskUnreachable | TaskState::TaskUnknown);
        // The kill of a task on a lost agent is answered with TASK_UNREACHABLE; the session repeats the kill.
        if away && calls.tasks().get(&task).is_some_and(|entry| entry.kill.is_none()) {
            calls.kill(&task, None);
        }
        if !is_terminal(state) && !away {
            return;
        }
        if let Some((_, query)) = self.query_moving_to(&task) {
            query.moving = None;
            return;
        }
        let Some((name, query)) = self.query_of_task(&task) else { return };
        if !query.is_live() {
            query.task = None;
            self.save(&name, calls);
            return;
        }
        let ran = now.since(query.launched);
        let said = status.message.clone().unwrap_or_default();
        let why = format!("its task ended: {} {said}", state.as_str_name()).trim_end().to_owned();
        let until = self.restarts.ended(&name, ran, now);
        let starts = self.restarts.failures(&name);
        if starts > STARTS_MAX {
            self.end(&name, State::Failed, &format!("failed after {STARTS_MAX} starts; {why}"), calls);
        } else {
            self.wait(&name, &why, until, now, calls);
        }
    }

    fn answer(&mut self, question: Question, now: Time, calls: &mut Calls) -> Answer {
        match question {
            Question::Submit(submissions) => self.submit(submissions, now, calls),
            Question::Remove(name) => match self.queries.remove(&name) {
                Some(query) => {
                    self.resizing.record_released(if query.is_live() { query.reserved } else { 0.0 });
                    for task in query.task.into_iter().chain(query.moving.map(|m| m.task)) {
                        calls.kill(&task, None);
                    }
                    calls.forget(&format!("{KEY}{name}"));
                    Answer::Done
                }
                None => Answer::NoQuery(name),
            },
            Question::Profile { query, points } => self.profile(&query, points, now, calls),
            Question::Status => Answer::Status(Box::new(self.status(now))),
            Question::Hello { task, position } => self.hello(&task, position, now, calls),
            Question::Report { task, report } => self.report(&task, report, now, calls),
            Question::Stop { teardown } => {
                if teardown {
                    calls.teardown();
                } else {
                    calls.stop();
                }
                Answer::Done
            }
        }
    }

    fn profile(&mut self, name: &str, points: Vec<Point>, now: Time, calls: &mut Calls) -> Answer {
        let Some(query) = self.queries.get_mut(name) else {
            return Answer::NoQuery(name.to_owned());
        };
        if points.is_empty() {
            return Answer::Refused(format!("query {name:?}: its profile has no points"));
        }
        query.profile(points);
        self.decide(now);
        self.save(name, calls);
        Answer::Done
    }

    fn submit(&mut self, submissions: Vec<Submission>, now: Time, calls: &mut Calls) -> Answer {
        let mut names = BTreeSet::new();
        for Submission { spec, points, .. } in &submissions {
            if let Err((_, rule)) = spec.check() {
                return Answer::Refused(rule);
            }
            if points.is_empty() {
                return Answer::Refused(format!("query {:?}: its profile has no points", spec.name));
            }
            if self.queries.contains_key(&spec.name) || !names.insert(&spec.name) {
                return Answer::Refused(format!("name = {:?}: there is a query with this name already", spec.name));
            }
        }
        if self.queries.len() + submissions.len() > QUERIES_MAX {
            return Answer::Refused(format!("more than {QUERIES_MAX} queries"));
        }
        for submission in submissions {
            let name = submission.spec.name.clone();
            self.runs += 1;
            self.queries.insert(name.clone(), Query::new(submission, self.runs, now));
            self.save(&name, calls);
        }
        calls.save(RUNS, self.runs.to_string().into_bytes());
        Answer::Done
    }

    fn hello(&mut self, task: &str, position: Option<f64>, now: Time, calls: &mut Calls) -> Answer {
        let (patience, sample_every) = (self.options.patience, self.options.sample_every.as_secs_f64());
        self.last_contact.insert(task.to_owned(), now);
        if let Some((_, query)) = self.query_moving_to(task)
            && let Some(before) = query.switch_to_second_task(State::Starting, now)
        {
            self.last_contact.remove(&before);
            calls.kill(&before, None);
        }
        let Some((name, query)) = self.query_of_task(task).filter(|(_, q)| q.is_live()) else {
            self.last_contact.remove(task);
            return unwanted(task, calls);
        };
        let fresh = query.state == State::Starting;
        query.state = State::Running;
        query.message.clear();
        let began = *query.began.get_or_insert(now.as_secs_f64());
        if let Some(position) = position {
            query.last.position = query.last.position.max(position);
        }
        query.last.lag = (now.as_secs_f64() - began - query.last.position).max(0.0);
        if fresh {
            query.worker_changed();
        }
        self.decide(now);
        self.save(&name, calls);
        let Some((_, query)) = self.query_of_task(task) else { return unwanted(task, calls) };
        Answer::Start(Box::new(Start {
            spec: query.submission.spec.clone(),
            age: (now.as_secs_f64() - began).max(0.0),
            position: query.last.position,
            orders: query.orders(),
            golden: query.submission.golden,
            sample_every,
            patience,
        }))
    }

    fn report(&mut self, task: &str, report: Report, now: Time, calls: &mut Calls) -> Answer {
        let Some((name, query)) = self.query_of_task(task).filter(|(_, q)| q.state == State::Running) else {
            return unwanted(task, calls);
        };
        let progressed = report.position > query.last.position;
        query.used = report.used;
        let (done, failure) = (report.done, report.failure.clone());
        query.report(report);
        let orders = query.orders();
        if progressed {
            self.restarts.forget(&name);
        }
        self.last_contact.insert(task.to_owned(), now);
        match (failure, done) {
            (Some(why), _) => self.end(&name, State::Failed, &why, calls),
            (None, true) => self.end(&name, State::Done, "", calls),
            (None, false) => {}
        }
        Answer::Orders(orders)
    }

    /// Decides the shares of the running queries, on the agents where they are.
    fn decide(&mut self, now: Time) {
        let running: Vec<String> =
            self.queries.iter().filter(|(_, q)| q.state == State::Running).map(|(n, _)| n.clone()).collect();
        let mut agents: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
        for name in &running {
            let query = &self.queries[name];
            let number = agents.len();
            agents.entry(&query.agent).or_insert((number, 0.0)).1 += query.reserved;
        }
        let mut views = vec![AgentView { cores: 0.0 }; agents.len()];
        agents.values().for_each(|(number, cores)| views[*number].cores = *cores);
        let demands: Vec<QueryView<'_>> = running
            .iter()
            .map(|name| &self.queries[name])
            .map(|q| QueryView { demand: q.demand(now), agent: agents.get(q.agent.as_str()).map(|a| a.0) })
            .collect();
        let Options { policy, objective, horizon, .. } = self.options;
        let decided = decide(&views, &demands, policy, objective, horizon);
        for (name, decision) in running.iter().zip(decided) {
            if let Some(query) = self.queries.get_mut(name) {
                query.share = decision.share;
            }
        }
        self.decisions += 1;
    }

    fn epoch(&mut self, now: Time, calls: &mut Calls) {
        self.decide(now);
        for query in self.queries.values_mut().filter(|q| !matches!(q.state, State::Done | State::Failed)) {
            query.sample(now);
            query.record_recent_share();
        }
        self.kill_silent_workers(now, calls);
        self.drop_unknown(now, calls);
        watch_goals(&mut self.queries, now);
        watch_moves(&mut self.queries, SILENCE, now, calls);
        self.shrink_tasks(now, calls);
        self.enlarge_task(now, calls);
        if now >= self.next_save {
            self.next_save = now + SAVE_INTERVAL;
            let running: Vec<String> =
                self.queries.iter().filter(|(_, q)| q.state == State::Running).map(|(n, _)| n.clone()).collect();
            running.iter().for_each(|name| self.save(name, calls));
        }
    }

    /// Kills tasks whose workers have been silent for too long.
    fn kill_silent_workers(&mut self, now: Time, calls: &mut Calls) {
        let silent = |q: &&Query| {
            let last_contact =
                q.task.as_ref().and_then(|task| self.last_contact.get(task)).copied().unwrap_or(q.launched);
            q.is_live() && now.since(last_contact.max(q.launched)) > SILENCE
        };
        let tasks: Vec<String> = self.queries.values().filter(silent).filter_map(|q| q.task.clone()).collect();
        for task in tasks {
            if calls.tasks().get(&task).is_some_and(|entry| entry.kill.is_none()) {
                calls.kill(&task, None);
            }
        }
    }

    /// Forgets tasks that were launched and are not in the ledger, since their call was not accepted.
    fn drop_unknown(&mut self, now: Time, calls: &mut Calls) {
        // A task that is launched at this time is not in the ledger yet.
        let gone = |task: &str, launched: Time| launched < now && calls.tasks().get(task).is_none();
        let mut lost = Vec::new();
        for (name, query) in &mut self.queries {
            query.moving.take_if(|second| gone(&second.task, second.launched));
            if query.is_live() && query.task.as_deref().is_some_and(|task| gone(task, query.launched)) {
                lost.push(name.clone());
            }
        }
        for name in lost {
            self.wait(&name, "its launch was refused", now + RETRY, now, calls);
        }
    }

    /// Revives offers while a query waits, should move or could use more cores, and suppresses them otherwise. Another
    /// waiting query revives them too, so that earlier offer filters do not delay it.
    fn ask_for_offers(&mut self, now: Time, calls: &mut Calls) {
        let waiting = self.queries.values().filter(|q| q.is_due(now)).count();
        let wants = waiting > 0 || needs_offers_to_move(&self.queries, now);
        if !self.connected {
            return;
        }
        let more = waiting > std::mem::replace(&mut self.waited, waiting);
        if wants && (more || !self.wants_offers) {
            calls.revive();
        } else if !wants && self.wants_offers {
            calls.suppress();
        }
        self.wants_offers = wants;
    }

    fn status(&self, now: Time) -> Status {
        Status {
            policy: self.options.policy,
            objective: self.options.objective,
            connected: self.connected,
            framework: self.framework.clone(),
            cores: self.queries.values().fold(0.0, |sum, q| sum + q.held()),
            decisions: self.decisions,
            unreadable: self.unreadable.clone(),
            queries: self.queries.values().map(|q| q.status(now)).collect(),
        }
    }
}

/// Returns the answer to a worker without a query. The kill of its task may be under way: a worker that exits before
/// the kill must not count as failed.
fn unwanted(task: &str, calls: &Calls) -> Answer {
    match calls.tasks().get(task) {
        Some(_) => Answer::QueryEnded,
        None => Answer::Unknown,
    }
}

impl Scheduler for VideoScheduler {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        match event {
            Event::Restored(saved) => self.restore(saved, now),
            Event::Subscribed { framework_id, .. } => {
                self.framework = Some(framework_id.value.into());
                self.connected = true;
                self.wants_offers = true;
                self.reconcile_tasks(now, calls);
            }
            Event::Disconnected { .. } => self.connected = false,
            Event::Offers(offers) => {
                for name in launch(offers, &mut self.queries, &self.options, now, calls) {
                    if let Some(second) = self.queries.get(&name).and_then(|q| q.moving.as_ref()) {
                        self.resizing.record_used(second.reserved);
                    }
                    self.save(&name, calls);
                }
            }
            Event::Update(status) => self.update(&status, now, calls),
            _ => {}
        }
        while let Some(mut request) = self.requests.next() {
            let question = std::mem::replace(&mut request.question, Question::Status);
            let answer = self.answer(question, now, calls);
            calls.answer(request, answer);
        }
        if now >= self.next_epoch {
            self.next_epoch = now + self.options.epoch;
            self.epoch(now, calls);
        }
        self.ask_for_offers(now, calls);
        calls.wake_at(self.next_epoch);
    }
}
