//! What the scheduler keeps for its next start: its jobs, and how often it was started.

use std::collections::BTreeMap;

use sdk::Calls;
use sdk::base::Time;
use serde::{Deserialize, Serialize};

use super::Quality;
use super::entry::{Entry, Hand};
use super::status::State;
use super::workers::owner;
use crate::job::Job;

const RUN: &str = "run";
const JOB: &str = "job/";

/// A job, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    job: Job,
    token: String,
    number: u64,
    /// Seconds since the epoch.
    submitted: f64,
    state: State,
    reason: String,
}

impl Quality {
    /// Takes up what an earlier start has kept, with the tasks that it has left.
    pub(super) fn restore(&mut self, entries: &BTreeMap<String, Vec<u8>>, now: Time, calls: &mut Calls) {
        let earlier = entries.get(RUN).and_then(|b| std::str::from_utf8(b).ok()).and_then(|t| t.parse::<u64>().ok());
        self.run = earlier.map_or(0, |r| r + 1);
        calls.save(RUN, self.run.to_string().into_bytes());
        for (key, bytes) in entries.iter().filter(|(k, _)| k.starts_with(JOB)) {
            // A job that cannot be read is of another version; its tasks are ended below.
            let Ok(kept) = serde_json::from_slice::<Kept>(bytes) else {
                calls.forget(key);
                continue;
            };
            let submitted =
                Time::from_epoch(std::time::Duration::try_from_secs_f64(kept.submitted).unwrap_or_default());
            let mut entry = Entry::new(kept.job, kept.token, kept.number, now);
            entry.submitted = submitted;
            entry.state = kept.state;
            entry.reason = kept.reason;
            self.jobs.insert(entry.job.name.clone(), entry);
        }
        let tasks: Vec<(String, sdk::Entry)> = calls.tasks().iter().map(|(id, e)| (id.to_owned(), e.clone())).collect();
        for (id, task) in tasks {
            match owner(&id).and_then(|job| self.jobs.get_mut(job)).filter(|j| j.is_active()) {
                Some(entry) => {
                    let running = task.state == sdk::v1::TaskState::TaskRunning;
                    let hand = Hand { agent: task.agent_id, running, leaving: None, killed: false };
                    entry.workers.insert(id, hand);
                    entry.target = entry.staying();
                }
                None => calls.kill(&id, None),
            }
        }
    }

    /// Keeps a job as it is now.
    pub(super) fn keep(&self, name: &str, calls: &mut Calls) {
        let Some(entry) = self.jobs.get(name) else { return };
        let kept = Kept {
            job: entry.job.clone(),
            token: entry.token.clone(),
            number: entry.number,
            submitted: entry.submitted.as_secs_f64(),
            state: entry.state,
            reason: entry.reason.clone(),
        };
        // Plain data with text as keys can always be written.
        calls.save(&format!("{JOB}{name}"), serde_json::to_vec(&kept).unwrap_or_default());
    }

    /// Forgets a job.
    pub(super) fn drop_job(&mut self, name: &str, calls: &mut Calls) {
        self.jobs.remove(name);
        calls.forget(&format!("{JOB}{name}"));
    }
}
