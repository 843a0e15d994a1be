//! State that the scheduler persists: its jobs with their results and workers, the time of its first start, and the
//! number of starts.

use std::collections::BTreeMap;
use std::time::Duration;

use sdk::Calls;
use sdk::base::Time;
use serde::{Deserialize, Serialize};

use super::Quality;
use super::entry::{Entry, WorkerTask};
use super::status::State;
use super::workers::{PLACES, WORKER};
use crate::job::Job;

const RUN: &str = "run";
const STARTED: &str = "started";
const JOB: &str = "job/";
const RESULTS: &str = "results/";
/// Minimum interval between two saves of a running job's results, and maximum number of jobs that are saved at once.
const EVERY: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 32;

/// The stored form of a job.
#[derive(Debug, Serialize, Deserialize)]
struct SavedJob {
    job: Job,
    token: String,
    number: u64,
    /// Time of submission, in seconds since the Unix epoch.
    submitted: f64,
    state: State,
    reason: String,
}

fn time(seconds: f64) -> Time {
    Time::from_epoch(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

impl Quality {
    /// Restores the jobs that an earlier process saved, with their running tasks.
    pub(super) fn restore(&mut self, entries: &BTreeMap<String, Vec<u8>>, now: Time, calls: &mut Calls) {
        let text = |key: &str| entries.get(key).and_then(|b| std::str::from_utf8(b).ok());
        self.run = text(RUN).and_then(|t| t.parse::<u64>().ok()).map_or(0, |r| r + 1);
        calls.save(RUN, self.run.to_string().into_bytes());
        let started = text(STARTED).and_then(|t| t.parse().ok()).map(time).filter(|t| *t <= now);
        self.started = started.or(Some(now));
        if started.is_none() {
            calls.save(STARTED, now.as_secs_f64().to_string().into_bytes());
        }
        for (key, bytes) in entries.iter().filter(|(k, _)| k.starts_with(JOB)) {
            // A job that cannot be read is of another version. The loop below kills its tasks.
            let saved = match serde_json::from_slice::<SavedJob>(bytes) {
                Ok(saved) => saved,
                Err(error) => {
                    self.lost
                        .push(format!("'{key}' cannot be read, the job is forgotten and its workers end: {error}"));
                    calls.forget(key);
                    calls.forget(&key.replacen(JOB, RESULTS, 1));
                    continue;
                }
            };
            let mut entry = Entry::new(saved.job, saved.token, saved.number, now);
            entry.submitted = time(saved.submitted);
            entry.state = saved.state;
            entry.reason = saved.reason;
            let results = format!("{RESULTS}{}", entry.job.name);
            match entries.get(&results).map(|b| postcard::from_bytes(b)) {
                Some(Ok(results)) => entry.results = results,
                Some(Err(error)) => self.lost.push(format!("'{results}' cannot be read, it is empty now: {error}")),
                None => {}
            }
            entry.saved = (entry.results.iteration, now);
            entry.forecaster.set_time_model(entry.results.time);
            self.jobs.insert(entry.job.name.clone(), entry);
        }
        let tasks: Vec<(String, sdk::Entry)> = calls.tasks().iter().map(|(id, e)| (id.to_owned(), e.clone())).collect();
        for (id, task) in tasks {
            let job = text(&format!("{WORKER}{id}"));
            match job.and_then(|job| self.jobs.get_mut(job)).filter(|j| j.is_active()) {
                Some(entry) => {
                    let running = task.state == sdk::v1::TaskState::TaskRunning;
                    let places = text(&format!("{PLACES}{id}")).and_then(|t| t.parse().ok()).unwrap_or(1);
                    let worker = WorkerTask { running, ..WorkerTask::new(task.agent_id, places, now) };
                    self.job_of_worker.insert(id.clone(), entry.job.name.clone());
                    entry.workers.insert(id, worker);
                    entry.target = entry.staying();
                }
                None => calls.kill(&id, None),
            }
        }
        let ended =
            entries.keys().filter_map(|k| k.strip_prefix(WORKER)).filter(|id| !self.job_of_worker.contains_key(*id));
        ended.for_each(|id| calls.forget(&format!("{WORKER}{id}")));
        let sized =
            entries.keys().filter_map(|k| k.strip_prefix(PLACES)).filter(|id| !self.job_of_worker.contains_key(*id));
        sized.for_each(|id| calls.forget(&format!("{PLACES}{id}")));
    }

    /// Saves the current state of a job.
    pub(super) fn save(&mut self, name: &str, now: Time, calls: &mut Calls) {
        let Some(entry) = self.jobs.get(name) else { return };
        let saved = SavedJob {
            job: entry.job.clone(),
            token: entry.token.clone(),
            number: entry.number,
            submitted: entry.submitted.as_secs_f64(),
            state: entry.state,
            reason: entry.reason.clone(),
        };
        // Plain data with text as keys can always be serialized.
        calls.save(&format!("{JOB}{name}"), serde_json::to_vec(&saved).unwrap_or_default());
        self.save_results(name, now, calls);
    }

    /// Saves a job's results so far.
    pub(super) fn save_results(&mut self, name: &str, now: Time, calls: &mut Calls) {
        let Some(entry) = self.jobs.get_mut(name) else { return };
        entry.saved = (entry.results.iteration, now);
        // Numbers can always be serialized.
        calls.save(&format!("{RESULTS}{name}"), postcard::to_stdvec(&entry.results.to_save()).unwrap_or_default());
    }

    /// Saves the results of jobs that have made progress, those first that were saved longest ago.
    pub(super) fn save_running(&mut self, now: Time, calls: &mut Calls) {
        let fresh = |e: &&Entry| e.is_active() && e.saved.0 != e.results.iteration && now.since(e.saved.1) >= EVERY;
        let mut entries: Vec<&Entry> = self.jobs.values().filter(fresh).collect();
        entries.sort_by_key(|e| (e.saved.1, e.number));
        let names: Vec<String> = entries.into_iter().take(AT_ONCE).map(|e| e.job.name.clone()).collect();
        names.iter().for_each(|name| self.save_results(name, now, calls));
    }

    /// Removes a job and its saved state.
    pub(super) fn drop_job(&mut self, name: &str, calls: &mut Calls) {
        self.jobs.remove(name);
        calls.forget(&format!("{JOB}{name}"));
        calls.forget(&format!("{RESULTS}{name}"));
    }
}
