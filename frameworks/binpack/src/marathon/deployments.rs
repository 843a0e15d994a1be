//! Deployments: requested changes that are not complete.
//!
//! Marathon's clients request a change, get a deployment's id, and wait until that id is gone. Here a deployment is a
//! note besides the scheduler's state: it is complete when its services have reached their goals, or are gone. Notes
//! are lost with the process; changes in progress are then listed under an id that is computed from the job.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::id;
use crate::job::Job;

/// Maximum number of deployments that are recorded; the oldest are forgotten first.
const DEPLOYMENTS_MAX: usize = 1_000;

/// Action of a deployment on its apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Start,
    Scale,
    Restart,
    Stop,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Start => "StartApplication",
            Action::Scale => "ScaleApplication",
            Action::Restart => "RestartApplication",
            Action::Stop => "StopApplication",
        }
    }
}

/// A deployment in progress.
#[derive(Clone, Debug)]
pub(super) struct Deployment {
    pub(super) id: String,
    /// Number of the deployment; `None` if this process did not start it. The former version is unknown then.
    pub(super) number: Option<u64>,
    pub(super) version: String,
    pub(super) action: Action,
    /// Jobs of the deployment by name, with their former definition; `None` for new jobs.
    pub(super) jobs: BTreeMap<String, Option<Job>>,
}

impl Deployment {
    /// Returns the deployment as Marathon shows it.
    pub(super) fn shown(&self) -> Value {
        let apps: Vec<String> = self.jobs.keys().filter_map(|name| id::app(name)).collect();
        let action = |app: &String| json!({ "action": self.action.name(), "app": app });
        let actions: Vec<Value> = apps.iter().map(action).collect();
        json!({
            "id": self.id,
            "version": self.version,
            "affectedApps": apps,
            "affectedPods": [],
            "steps": [{ "actions": actions }],
            "currentActions": actions,
            "currentStep": 1,
            "totalSteps": 1,
        })
    }

    /// Returns the deployment as the plan that Marathon's events contain.
    pub(super) fn plan(&self) -> Value {
        let Value::Object(mut plan) = self.shown() else { return Value::Null };
        let group = json!({ "id": "/", "apps": [], "groups": [], "dependencies": [], "version": self.version });
        plan.retain(|name, _| ["id", "version", "steps"].contains(&name.as_str()));
        plan.insert("original".to_owned(), group.clone());
        plan.insert("target".to_owned(), group);
        Value::Object(plan)
    }
}

/// All deployments that this process has started and that are not complete.
#[derive(Debug, Default)]
pub(super) struct Deployments(Mutex<DeploymentTable>);

#[derive(Debug, Default)]
struct DeploymentTable {
    next: u64,
    all: BTreeMap<u64, Deployment>,
}

impl Deployments {
    fn lock(&self) -> MutexGuard<'_, DeploymentTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a deployment of these jobs. It replaces those of the same jobs.
    pub(super) fn add(&self, action: Action, version: &str, jobs: BTreeMap<String, Option<Job>>) -> Deployment {
        let mut table = self.lock();
        let number = table.next;
        table.next += 1;
        let names = jobs.keys().cloned().collect::<Vec<_>>().join(",");
        let id = uuid(&format!("{names} {version} {number} {}", std::process::id()));
        let deployment = Deployment { id, number: Some(number), version: version.to_owned(), action, jobs };
        table.all.retain(|_, other| !other.jobs.keys().any(|name| deployment.jobs.contains_key(name)));
        table.all.insert(number, deployment.clone());
        if table.all.len() > DEPLOYMENTS_MAX {
            table.all.pop_first();
        }
        deployment
    }

    /// Returns the deployment of a service that changes without a note.
    pub(super) fn of_unknown_origin(name: &str, version: &str) -> Deployment {
        let jobs = BTreeMap::from([(name.to_owned(), None)]);
        let id = uuid(&format!("{name} {version}"));
        Deployment { id, number: None, version: version.to_owned(), action: Action::Scale, jobs }
    }

    pub(super) fn all(&self) -> Vec<Deployment> {
        self.lock().all.values().cloned().collect()
    }

    /// Removes a deployment; the caller reports its end.
    pub(super) fn take(&self, number: u64) -> Option<Deployment> {
        self.lock().all.remove(&number)
    }

    /// Returns the ids of a job's deployments.
    pub(super) fn of(&self, name: &str) -> Vec<String> {
        self.lock().all.values().filter(|d| d.jobs.contains_key(name)).map(|d| d.id.clone()).collect()
    }
}

/// Returns the text of a UUID that is computed from `text` (FNV-1a in 128 bits).
fn uuid(text: &str) -> String {
    let hash = text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    base::uuid_text(base::uuid_from(hash.to_be_bytes()))
}
