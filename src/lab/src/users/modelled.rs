//! The scheduler of a modelled framework, which follows its behaviour and its script.

use std::collections::VecDeque;
use std::time::Duration;

use base::Time;
use rustc_hash::FxHashMap;
use sdk::v1::offer::{Operation, operation};
use sdk::v1::{CommandInfo, Label, Labels, Offer, OfferId, TaskId, TaskInfo, TaskStatus};
use sdk::{Calls, Event, Scheduler, is_terminal};

use super::held::{HeldOffer, choose};
use super::script::{Script, ScriptAction, Step};
use super::{Behaviour, Inbox, Job, Needs, is_tried_again, task_id, task_number};
use crate::seeds::Rng;
use crate::work::Work;

/// The most tasks that fit on no offer and are skipped in one decision.
const MAX_SKIPPED: usize = 16;
/// Hold time of offers that are hoarded.
const HOARD_TIME: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A task that waits for its launch, or runs.
#[derive(Clone, Debug)]
struct Pending {
    number: u64,
    attempt: u32,
    retries: u32,
    needs: Needs,
    span: Duration,
    /// Number of tasks of its gang, from this one on, that must start together; 0 if it is in no gang.
    with: u32,
    /// Number of the task's job.
    job: u64,
}

/// A modelled framework, which follows its behaviour.
#[derive(Debug)]
pub struct ModelledScheduler {
    conduct: Behaviour,
    inbox: Inbox,
    rng: Rng,
    waiting: VecDeque<Pending>,
    running: FxHashMap<u64, Pending>,
    held: Vec<HeldOffer>,
    /// Time at which the current decision takes effect.
    decides: Option<Time>,
    /// Number of tasks that the current decision considers.
    tasks_in_decision: usize,
    /// Whether work has arrived since the last decision.
    more: bool,
    suppressed: bool,
    /// Whether the script has suppressed offers.
    suppressed_by_script: bool,
    script: Script,
    jobs: u64,
}

impl ModelledScheduler {
    /// Creates a framework that takes its jobs from `inbox`.
    pub fn new(conduct: Behaviour, inbox: Inbox, rng: Rng) -> ModelledScheduler {
        ModelledScheduler {
            conduct,
            inbox,
            rng,
            waiting: VecDeque::new(),
            running: FxHashMap::default(),
            held: Vec::new(),
            decides: None,
            tasks_in_decision: 0,
            more: false,
            suppressed: false,
            suppressed_by_script: false,
            script: Script::default(),
            jobs: 0,
        }
    }

    /// Returns the framework with a script.
    #[must_use]
    pub fn with_script(self, script: Script) -> ModelledScheduler {
        ModelledScheduler { script, ..self }
    }

    /// Performs a step of the script.
    fn perform(&mut self, step: Step, calls: &mut Calls) {
        self.conduct = step.conduct;
        // Decides again with the new behaviour.
        (self.decides, self.more) = (None, true);
        match step.action {
            Some(ScriptAction::Suppress) => {
                self.suppressed_by_script = true;
                calls.suppress();
            }
            Some(ScriptAction::Revive) => {
                (self.suppressed_by_script, self.suppressed) = (false, false);
                calls.revive();
            }
            Some(ScriptAction::GiveBack) => {
                let held = std::mem::take(&mut self.held);
                calls.decline(held.into_iter().map(|offer| offer.id).collect(), self.conduct.refuse);
            }
            Some(ScriptAction::Leave) => calls.teardown(),
            None => {}
        }
    }

    /// Moves new jobs from the inbox to the queue. Returns whether there were any.
    fn collect(&mut self) -> bool {
        let jobs: Vec<Job> = self.inbox.borrow_mut().drain(..).collect();
        let any = !jobs.is_empty();
        for job in jobs {
            self.jobs += 1;
            let tasks = job.spans.len() as u64;
            for (n, span) in job.spans.into_iter().enumerate() {
                let with = if job.gang { tasks as u32 - n as u32 } else { 0 };
                self.waiting.push_back(Pending {
                    number: job.first + n as u64,
                    attempt: 0,
                    retries: job.retries,
                    needs: job.needs.clone(),
                    span,
                    with,
                    job: self.jobs,
                });
            }
        }
        any
    }

    fn revive_for_work(&mut self, calls: &mut Calls) {
        if !self.suppressed_by_script && (self.suppressed || self.conduct.revive) {
            self.suppressed = false;
            calls.revive();
        }
    }

    fn offers(&mut self, offers: Vec<Offer>, now: Time) {
        for offer in offers {
            let hold = if self.conduct.hoard { HOARD_TIME } else { self.conduct.hold.draw(&mut self.rng) };
            self.held.push(HeldOffer::new(offer, now + hold));
        }
    }

    fn rescinded(&mut self, id: &OfferId) {
        self.held.retain(|offer| offer.id != *id);
    }

    fn updated(&mut self, status: &TaskStatus, calls: &mut Calls) {
        let state = status.state();
        if !is_terminal(state) {
            return;
        }
        let Some(mut task) = task_number(&status.task_id.value).and_then(|(n, _)| self.running.remove(&n)) else {
            return;
        };
        if is_tried_again(state) && task.attempt < task.retries {
            task.attempt += 1;
            task.with = 0;
            self.waiting.push_back(task);
            self.revive_for_work(calls);
        }
    }

    /// Sorts the tasks of jobs with few running tasks to the front. Tasks of the same job that are earlier in the queue
    /// count as running.
    fn by_fairness(&mut self) {
        let mut having: FxHashMap<u64, u64> = FxHashMap::default();
        for task in self.running.values() {
            *having.entry(task.job).or_default() += 1;
        }
        let place = |task: &Pending| {
            let has = having.entry(task.job).or_default();
            let before = *has;
            // The tasks of a gang are kept together.
            *has += u64::from(task.with <= 1);
            before
        };
        let places: Vec<u64> = self.waiting.iter().map(place).collect();
        let mut order: Vec<(u64, Pending)> = places.into_iter().zip(self.waiting.drain(..)).collect();
        order.sort_by_key(|(place, _)| *place);
        self.waiting.extend(order.into_iter().map(|(_, task)| task));
    }

    /// Returns the number of tasks that the next decision considers.
    fn tasks_considered(&self) -> usize {
        let of_job = match (self.conduct.job_at_a_time, self.waiting.front()) {
            (true, Some(first)) => self.waiting.iter().take_while(|task| task.job == first.job).count(),
            _ => self.waiting.len(),
        };
        of_job.min(self.conduct.attempt)
    }

    /// Carries out the decision that is due, and starts the next one.
    fn act(&mut self, now: Time, calls: &mut Calls) {
        if self.decides.is_some_and(|at| at <= now) {
            self.decides = None;
            self.decide(self.tasks_in_decision, calls);
        }
        self.give_back(now, calls);
        if self.decides.is_none() && std::mem::take(&mut self.more) {
            // The offers that are still held did not fit the tasks considered so far, but may fit those that have
            // arrived since.
            self.held.iter_mut().for_each(|offer| offer.seen = false);
        }
        if self.decides.is_none() && !self.held.is_empty() && !self.waiting.is_empty() {
            let tasks_considered = self.tasks_considered();
            let tasks = u32::try_from(tasks_considered).unwrap_or(u32::MAX);
            let think = self.conduct.think + self.conduct.think_per_task.saturating_mul(tasks);
            // Offers that did not fit are examined again only together with a new one.
            let news = self.held.iter().any(|offer| !offer.seen);
            self.held.iter_mut().for_each(|offer| offer.seen = true);
            if think.is_zero() {
                self.decide(tasks_considered, calls);
                self.give_back(now, calls);
            } else if news {
                (self.decides, self.tasks_in_decision) = (Some(now + think), tasks_considered);
            }
        }
        let due = self.held.iter().map(|offer| offer.until).filter(|_| self.decides.is_none()).min();
        if let Some(at) = self.decides.into_iter().chain(due).chain(self.script.next_at()).min() {
            calls.wake_at(at);
        }
        if self.conduct.suppress && self.waiting.is_empty() && !self.suppressed {
            self.suppressed = true;
            calls.suppress();
        }
    }

    /// Launches as many of the first `tasks` tasks as fit on the offers of the decision.
    fn decide(&mut self, tasks: usize, calls: &mut Calls) {
        if self.conduct.fair_jobs {
            self.by_fairness();
        }
        let mut used = vec![0; self.held.len()];
        let mut launches: Vec<Vec<TaskInfo>> = vec![Vec::new(); self.held.len()];
        let (mut left, mut at, mut passed) = (self.tasks_considered().min(tasks), 0, 0);
        while left > 0 && at < self.waiting.len() && passed <= MAX_SKIPPED {
            let group = self.waiting[at].with.max(1) as usize;
            let places = self.place(at, group, &mut used);
            left -= group.min(left);
            if places.is_empty() {
                (at, passed) = (at + group, passed + 1);
                continue;
            }
            for place in places {
                let Some(task) = self.waiting.remove(at) else { break };
                launches[place].push(self.info(&task, place));
                self.running.insert(task.number, task);
            }
        }
        let refuse = if self.waiting.is_empty() { self.conduct.refuse_idle } else { self.conduct.refuse };
        let held = std::mem::take(&mut self.held);
        for (offer, tasks) in held.into_iter().zip(launches) {
            if tasks.is_empty() {
                self.held.push(offer);
            } else {
                let launch = Operation {
                    r#type: Some(operation::Type::Launch as i32),
                    launch: Some(operation::Launch { task_infos: tasks }),
                    ..Operation::default()
                };
                calls.accept(vec![offer.id], vec![launch], refuse);
            }
        }
    }

    /// Places the tasks from `at` on, all of them or none, and returns the offers. Their needs are subtracted from the
    /// offers.
    fn place(&mut self, at: usize, tasks: usize, used: &mut [usize]) -> Vec<usize> {
        let mut places = Vec::new();
        for task in self.waiting.range(at..(at + tasks).min(self.waiting.len())) {
            let most = self.conduct.tasks_per_offer;
            let Some(place) = choose(&self.held, used, most, &task.needs, self.conduct.place) else {
                // All or none: returns what the first tasks have taken to the offers.
                for (place, task) in places.iter().zip(self.waiting.range(at..)) {
                    let held: &mut HeldOffer = &mut self.held[*place];
                    task.needs.iter().for_each(|(name, amount)| held.left.add(&name, amount));
                    used[*place] -= 1;
                }
                return Vec::new();
            };
            self.held[place].left = self.held[place].left.saturating_sub(&task.needs);
            used[place] += 1;
            places.push(place);
        }
        places
    }

    fn info(&mut self, task: &Pending, place: usize) -> TaskInfo {
        let offer = &mut self.held[place];
        let id = task_id(task.number, task.attempt);
        let work = Work { span: Some(task.span), exit: 0 };
        let label = |(key, value): (&str, String)| Label { key: key.to_owned(), value: Some(value) };
        // The label has the duration. On a real cluster the command is replaced by one that takes this time.
        let command = CommandInfo { shell: Some(false), value: Some("sleep".to_owned()), ..CommandInfo::default() };
        TaskInfo {
            name: id.clone(),
            task_id: TaskId { value: id.into() },
            agent_id: offer.agent_id.clone(),
            resources: offer.messages(&task.needs),
            command: Some(command),
            labels: Some(Labels { labels: work.labels().into_iter().map(label).collect() }),
            ..TaskInfo::default()
        }
    }

    /// Declines offers that have been held long enough, unless they are part of the current decision.
    fn give_back(&mut self, now: Time, calls: &mut Calls) {
        if self.decides.is_some() {
            return;
        }
        let waits = !self.waiting.is_empty();
        let mut gone = Vec::new();
        self.held.retain(|offer| {
            // If tasks wait, an offer is considered in a decision before it is declined.
            let goes = offer.until <= now && (offer.seen || !waits);
            if goes {
                gone.push(offer.id.clone());
            }
            !goes
        });
        let refuse = if waits { self.conduct.refuse } else { self.conduct.refuse_idle };
        calls.decline(gone, refuse);
    }
}

impl Scheduler for ModelledScheduler {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        while let Some(step) = self.script.due(now) {
            self.perform(step, calls);
        }
        match event {
            Event::Subscribed { .. } | Event::Disconnected { .. } => {
                if self.suppressed_by_script && matches!(event, Event::Subscribed { .. }) {
                    calls.suppress();
                }
                self.held.clear();
                self.decides = None;
                self.suppressed = false;
                self.collect();
            }
            Event::Offers(offers) => self.offers(offers, now),
            Event::Rescinded(id) => self.rescinded(&id),
            Event::Update(status) => self.updated(&status, calls),
            Event::Wake => {
                if self.collect() {
                    self.revive_for_work(calls);
                    self.more = true;
                }
            }
            _ => return,
        }
        self.act(now, calls);
    }
}
