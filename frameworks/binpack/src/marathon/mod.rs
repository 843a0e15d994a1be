//! The part of Marathon's REST API that its clients need for apps, over this framework's services.
//!
//! An app is a service: `/prod/web` is the job `prod_web`, and both APIs show the same. Versions are named by their
//! start times. Groups, pods, volumes and bridged networks are not supported, and are rejected by name.

mod app;
mod deployments;
mod events;
mod id;
mod problem;
mod routes;
mod select;
mod stamp;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use jobs::service::Handle as _;
use sdk::driver::api::{Call, Response};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::core::{JobEvent, Outcome, Request, RequestError};
use crate::job::{Job, Kind};
use crate::service::{Error, Follower, Handle};
use deployments::{Action, Deployment, Deployments};
use events::Bus;
use problem::Problem;
use stamp::iso;
use view::ListedApp;

/// Marathon's API for a running framework.
#[derive(Debug)]
pub struct Marathon {
    inner: Arc<Inner>,
    following: AbortHandle,
}

#[derive(Debug)]
struct Inner {
    handle: Handle,
    deployments: Deployments,
    bus: Bus,
}

impl Drop for Marathon {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl Marathon {
    /// Creates the API for the framework of `handle`. Requires a tokio runtime.
    pub fn new(handle: Handle) -> Marathon {
        let follower = handle.follow();
        let inner = Arc::new(Inner { handle, deployments: Deployments::default(), bus: Bus::default() });
        let following = tokio::spawn(follow(inner.clone(), follower)).abort_handle();
        Marathon { inner, following }
    }

    /// Answers a call. Returns `None` if its path is not one of Marathon's.
    pub async fn answer(&self, call: &Call) -> Option<Response> {
        let answer = routes::answer(&self.inner, call).await?;
        Some(answer.unwrap_or_else(|problem| problem.response()))
    }
}

/// Converts the framework's events to Marathon's, and ends deployments that are complete.
async fn follow(inner: Arc<Inner>, mut follower: Follower) {
    loop {
        match follower.next().await {
            Ok(Some(event)) => inner.handle_event(&event).await,
            Ok(None) => return,
            // A missed event may have completed a deployment.
            Err(_) => inner.end_reached_deployments().await,
        }
    }
}

impl Inner {
    async fn handle_event(&self, event: &JobEvent) {
        match event {
            JobEvent::Task { name, kind: Kind::Service, since, place, state, healthy, message, .. } => {
                if !self.bus.is_followed() {
                    return;
                }
                let Some(app) = id::app(name) else { return };
                let version = iso(*since);
                self.bus.publish(
                    "status_update_event",
                    json!({
                        "slaveId": place.agent_id, "taskId": place.task_id, "taskStatus": state, "appId": app,
                        "host": place.host, "ports": place.ports, "version": version, "message": message,
                        "ipAddresses": [],
                    }),
                );
                if let Some(alive) = healthy {
                    let id = &place.task_id;
                    let body =
                        json!({ "appId": app, "taskId": id, "instanceId": id, "version": version, "alive": alive });
                    self.bus.publish("health_status_changed_event", body);
                }
            }
            JobEvent::Deployed { .. } => self.end_reached_deployments().await,
            JobEvent::Ended { name, outcome } => {
                self.end_reached_deployments().await;
                if let (Outcome::Stopped, Some(app)) = (outcome, id::app(name)) {
                    self.bus.publish("app_terminated_event", json!({ "appId": app }));
                }
            }
            JobEvent::Submitted { .. } | JobEvent::Stopping { .. } | JobEvent::Task { .. } => {}
        }
    }

    /// Ends the deployments that are complete.
    async fn end_reached_deployments(&self) {
        for deployment in self.deployments.all() {
            let mut over = true;
            for name in deployment.jobs.keys() {
                over &= self.is_settled(name, deployment.action).await;
            }
            if over && let Some(deployment) = deployment.number.and_then(|number| self.deployments.take(number)) {
                self.bus.publish("deployment_step_success", json!({ "plan": deployment.plan() }));
                self.bus.publish("deployment_success", json!({ "id": deployment.id, "plan": deployment.plan() }));
            }
        }
    }

    async fn is_settled(&self, name: &str, action: Action) -> bool {
        match self.handle.show(name).await {
            Ok(view) if action == Action::Stop => {
                // With Marathon a name is free again when its tasks are gone, so the ended job is removed here.
                let over = view.summary.ended.is_some();
                if over {
                    let _ = self.handle.ask(Request::Forget { name: name.to_owned() }).await;
                }
                over
            }
            Ok(view) => !view.deploying,
            Err(Error::Refused(RequestError::NoSuchJob(_))) => true,
            Err(_) => false,
        }
    }

    /// Adds a deployment and reports it; one that is complete ends at once.
    async fn deploy(&self, action: Action, jobs: BTreeMap<String, Option<Job>>, version: &str) -> Deployment {
        let deployment = self.deployments.add(action, version, jobs);
        let step = deployment.shown()["steps"][0].clone();
        self.bus.publish("deployment_info", json!({ "plan": deployment.plan(), "currentStep": step }));
        self.end_reached_deployments().await;
        deployment
    }

    /// Returns the app of a job.
    async fn show(&self, name: &str) -> Result<ListedApp, Problem> {
        match self.handle.show(name).await {
            Ok(view) => ListedApp::of(view).ok_or_else(|| Problem::no_app(&id::app(name).unwrap_or_default())),
            Err(Error::Refused(RequestError::NoSuchJob(_))) => Err(Problem::no_app(&id::app(name).unwrap_or_default())),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns all apps, by id.
    async fn apps(&self) -> Result<Vec<ListedApp>, Problem> {
        let mut apps = Vec::new();
        for job in self.handle.status().await?.jobs {
            if job.kind == Kind::Service
                && let Ok(shown) = self.show(&job.name).await
            {
                apps.push(shown);
            }
        }
        apps.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(apps)
    }

    /// Returns the deployments in progress, including those without a note.
    async fn under_way(&self) -> Result<Vec<Deployment>, Problem> {
        self.end_reached_deployments().await;
        let mut all = self.deployments.all();
        for shown in self.apps().await? {
            if shown.view.deploying && self.deployments.of(&shown.name).is_empty() {
                all.push(Deployments::of_unknown_origin(&shown.name, &shown.version()));
            }
        }
        Ok(all)
    }

    /// Returns the ids of the deployments of an app.
    fn deployments_of(&self, shown: &ListedApp) -> Vec<String> {
        let noted = self.deployments.of(&shown.name);
        match shown.view.deploying && noted.is_empty() {
            true => vec![Deployments::of_unknown_origin(&shown.name, &shown.version()).id],
            false => noted,
        }
    }

    /// Returns the body of the response to a change.
    fn changed(deployment: &Deployment) -> Value {
        json!({ "version": deployment.version, "deploymentId": deployment.id })
    }
}

/// Returns the name of a version that starts now.
fn version_now() -> String {
    iso(stamp::now())
}
