//! Routes of Marathon's API. Each function answers one call.

use std::collections::{BTreeMap, BTreeSet};

use jobs::service::Handle as _;
use sdk::driver::api::{self, Call, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::deployments::{Action, Deployment};
use super::problem::Problem;
use super::select::matches_label;
use super::stamp::iso;
use super::view::ListedApp;
use super::{Inner, id, version_now};
use crate::core::Request;
use crate::job::Job;

/// Version of Marathon whose API this is a part of.
const VERSION: &str = "1.4.0";

type Answer = Result<Response, Problem>;

/// Body of a kill request.
#[derive(Debug, Deserialize)]
struct Kill {
    ids: Vec<String>,
}

/// Answers a call. Returns `None` if its path is not one of Marathon's.
pub(super) async fn answer(inner: &Inner, call: &Call) -> Option<Answer> {
    let (method, path) = call.route();
    let (first, rest) = path.split_first()?;
    match (*first, rest) {
        ("ping", []) => Some(Ok(Response::ok_body("text/plain", "pong"))),
        ("metrics", []) if wants_json(call) => Some(Ok(metrics(inner))),
        ("v2", rest) => Some(route(inner, call, method, rest).await),
        _ => None,
    }
}

fn wants_json(call: &Call) -> bool {
    call.request.header("accept").is_some_and(|accept| accept.contains("application/json"))
}

async fn route(inner: &Inner, call: &Call, method: &str, path: &[&str]) -> Answer {
    match (method, path) {
        ("GET", ["apps"]) => list(inner, call).await,
        ("POST", ["apps"]) => create(inner, &body(call)?).await,
        ("PUT", ["apps"]) => update_many(inner, call, &body(call)?).await,
        (_, ["apps", rest @ ..]) => app(inner, call, method, rest).await,
        ("GET", ["tasks"]) => tasks(inner).await,
        ("POST", ["tasks", "delete"]) => kill_given(inner, call).await,
        ("GET", ["deployments"]) => {
            let all: Vec<Value> = inner.under_way().await?.iter().map(|d| d.shown()).collect();
            ok(&all)
        }
        ("DELETE", ["deployments", id]) => cancel(inner, call, id).await,
        ("GET", ["queue"]) => queue(inner).await,
        ("DELETE", ["queue", .., "delay"]) => Ok(Response::empty(StatusCode::NO_CONTENT)),
        ("GET", ["groups"]) => groups(inner).await,
        ("GET", ["info"]) => info(inner, call).await,
        ("GET", ["leader"]) => ok(&json!({ "leader": host(call) })),
        ("DELETE", ["leader"]) => {
            Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "there is one process, and it leads; restart it instead"))
        }
        ("GET", ["events"]) => Ok(inner.bus.follow(call)),
        (_, ["eventSubscriptions"]) => {
            Err(Problem::malformed("http event callback system is not running here; follow GET /v2/events"))
        }
        _ => Err(Problem::new(StatusCode::NOT_FOUND, format!("{method} of this path is not supported here"))),
    }
}

/// Answers a call whose path contains the id of an app.
async fn app(inner: &Inner, call: &Call, method: &str, rest: &[&str]) -> Answer {
    let (id, tail): (&[&str], &[&str]) = match rest {
        [id @ .., "tasks" | "versions" | "restart"] if !id.is_empty() => (id, &rest[id.len()..]),
        [id @ .., "tasks" | "versions", _] if !id.is_empty() => (id, &rest[id.len()..]),
        id => (id, &[]),
    };
    let id = id.join("/");
    let Some(name) = id::job(&id) else { return Err(Problem::no_app(&id)) };
    match (method, tail) {
        ("GET", []) => {
            let shown = inner.show(&name).await?;
            let deployments = inner.deployments_of(&shown);
            ok(&json!({ "app": shown.json(&deployments, true, true) }))
        }
        ("PUT", []) => update(inner, call, &name, &body(call)?).await,
        ("DELETE", []) => delete(inner, call, &name).await,
        ("POST", ["restart"]) => {
            let shown = inner.show(&name).await?;
            unlocked(inner, call, &name)?;
            inner.handle.ask(Request::Restart { name: name.clone() }).await?;
            deployed(inner, Action::Restart, &shown).await
        }
        ("GET", ["tasks"]) => ok(&json!({ "tasks": inner.show(&name).await?.tasks() })),
        ("DELETE", ["tasks"]) => kill_of(inner, call, &name, None).await,
        ("DELETE", ["tasks", task]) => kill_of(inner, call, &name, Some(task)).await,
        ("GET", ["versions"]) => {
            let shown = inner.show(&name).await?;
            let versions: Vec<String> = shown.view.versions.iter().rev().map(|v| iso(v.since)).collect();
            ok(&json!({ "versions": versions }))
        }
        ("GET", ["versions", version]) => {
            let mut fields = App::of(&version_job(&inner.show(&name).await?, version)?).shown();
            fields.insert("version".to_owned(), json!(version));
            ok(&Value::Object(fields))
        }
        _ => Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not for this path"))),
    }
}

async fn list(inner: &Inner, call: &Call) -> Answer {
    let embed = call.query.all("embed");
    let wants = |names: &[&str]| embed.iter().any(|e| names.contains(&e.as_str()));
    let (with_tasks, with_failure) =
        (wants(&["app.tasks", "apps.tasks"]), wants(&["app.lastTaskFailure", "apps.lastTaskFailure", "app.failures"]));
    let filter = |name: &str| call.query.get(name).filter(|v| !v.is_empty()).map(str::to_owned);
    let (cmd, part, label) = (filter("cmd"), filter("id"), filter("label"));
    let mut apps = Vec::new();
    for shown in inner.apps().await? {
        let value = shown.json(&inner.deployments_of(&shown), with_tasks, with_failure);
        let has = |part: &Option<String>, text: &str| part.as_ref().is_none_or(|p| text.contains(p.as_str()));
        let labelled = label.as_ref().is_none_or(|selector| matches_label(selector, &value["labels"]));
        if has(&part, &shown.id) && has(&cmd, value["cmd"].as_str().unwrap_or_default()) && labelled {
            apps.push(value);
        }
    }
    ok(&json!({ "apps": apps }))
}

async fn create(inner: &Inner, given: &Value) -> Answer {
    let name = given_name(given)?;
    if let Ok(shown) = inner.show(&name).await {
        return Err(Problem::new(StatusCode::CONFLICT, format!("An app with id [{}] already exists.", shown.id)));
    }
    let job = App::new(given)?.job(&name)?;
    start(inner, &name, job).await?;
    let shown = inner.show(&name).await?;
    Ok(api::json(StatusCode::CREATED, &shown.json(&inner.deployments_of(&shown), true, false)))
}

/// Starts a new app.
async fn start(inner: &Inner, name: &str, job: Job) -> Result<Deployment, Problem> {
    inner.handle.submit(vec![job]).await?;
    let shown = inner.show(name).await?;
    inner.bus.publish(
        "api_post_event",
        json!({ "clientIp": "", "uri": "/v2/apps", "appDefinition": shown.json(&[], false, false) }),
    );
    Ok(inner.deploy(Action::Start, BTreeMap::from([(name.to_owned(), None)]), &shown.version()).await)
}

async fn update(inner: &Inner, call: &Call, name: &str, given: &Value) -> Answer {
    let Ok(shown) = inner.show(name).await else {
        let job = App::new(given)?.job(name)?;
        let deployment = start(inner, name, job).await?;
        return Ok(api::json(StatusCode::CREATED, &Inner::changed(&deployment)));
    };
    let job = changed_job(&shown, name, given)?;
    unlocked(inner, call, name)?;
    let only_scaled = current(&shown)?.is_same_but_for_count(&job);
    inner.handle.submit(vec![job]).await?;
    deployed(inner, if only_scaled { Action::Scale } else { Action::Restart }, &shown).await
}

/// Returns the definition after an update: the current one with the given fields, or an earlier one.
fn changed_job(shown: &ListedApp, name: &str, given: &Value) -> Result<Job, Problem> {
    let only_version = given.as_object().is_some_and(|fields| {
        fields.iter().all(|(name, value)| ["id", "version"].contains(&name.as_str()) || value.is_null())
    });
    if let (Some(version), true) = (given["version"].as_str(), only_version) {
        return version_job(shown, version);
    }
    let job = current(shown)?;
    // Fields of the job that Marathon does not have keep their values.
    let changed = App::of(&job).with(given)?.job(name)?;
    Ok(Job { policy: job.policy, priority: job.priority, ..changed })
}

fn current(shown: &ListedApp) -> Result<Job, Problem> {
    let version = shown.view.versions.last().ok_or_else(|| Problem::no_app(&shown.id))?;
    Ok((*version.job).clone())
}

fn version_job(shown: &ListedApp, version: &str) -> Result<Job, Problem> {
    let found = shown.view.versions.iter().find(|v| iso(v.since) == version);
    let missing =
        || Problem::new(StatusCode::NOT_FOUND, format!("App '{}' does not have the version '{version}'", shown.id));
    Ok((*found.ok_or_else(missing)?.job).clone())
}

async fn update_many(inner: &Inner, call: &Call, given: &Value) -> Answer {
    let Value::Array(apps) = given else { return Err(Problem::malformed("this takes a list of apps")) };
    let (mut jobs, mut before) = (Vec::new(), BTreeMap::new());
    for given in apps {
        let name = given_name(given)?;
        match inner.show(&name).await {
            Ok(shown) => {
                unlocked(inner, call, &name)?;
                jobs.push(changed_job(&shown, &name, given)?);
                before.insert(name, Some(current(&shown)?));
            }
            Err(_) => {
                jobs.push(App::new(given)?.job(&name)?);
                before.insert(name, None);
            }
        }
    }
    inner.handle.submit(jobs).await?;
    let deployment = inner.deploy(Action::Restart, before, &version_now()).await;
    ok(&Inner::changed(&deployment))
}

async fn delete(inner: &Inner, call: &Call, name: &str) -> Answer {
    let shown = inner.show(name).await?;
    unlocked(inner, call, name)?;
    inner.handle.ask(Request::Stop { name: name.to_owned() }).await?;
    let before = BTreeMap::from([(name.to_owned(), Some(current(&shown)?))]);
    let deployment = inner.deploy(Action::Stop, before, &version_now()).await;
    ok(&Inner::changed(&deployment))
}

/// Adds the deployment of a change, and answers with it.
async fn deployed(inner: &Inner, action: Action, before: &ListedApp) -> Answer {
    let version = inner.show(&before.name).await?.version();
    let jobs = BTreeMap::from([(before.name.clone(), Some(current(before)?))]);
    ok(&Inner::changed(&inner.deploy(action, jobs, &version).await))
}

/// Cancels a deployment: restores the definitions before it. With `force` only the note of the deployment is removed.
async fn cancel(inner: &Inner, call: &Call, wanted: &str) -> Answer {
    let found = inner.under_way().await?.into_iter().find(|d| d.id == wanted);
    let missing = || Problem::new(StatusCode::NOT_FOUND, format!("DeploymentPlan {wanted} does not exist"));
    let deployment = found.ok_or_else(missing)?;
    let drop_note = || deployment.number.and_then(|number| inner.deployments.take(number));
    if flag(call, "force") {
        drop_note();
        return Ok(Response::empty(StatusCode::ACCEPTED));
    }
    if deployment.action == Action::Stop {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "an app that is being stopped cannot be rolled back; create it again",
        ));
    }
    let before = match deployment.number {
        Some(_) => deployment.jobs.clone(),
        None => former_versions(inner, &deployment).await?,
    };
    drop_note();
    let mut back = Vec::new();
    for (name, before) in &before {
        match before {
            Some(job) => back.push(job.clone()),
            None => {
                inner.handle.ask(Request::Stop { name: name.clone() }).await?;
            }
        }
    }
    let action = if back.is_empty() { Action::Stop } else { Action::Restart };
    if !back.is_empty() {
        inner.handle.submit(back).await?;
    }
    let deployment = inner.deploy(action, before, &version_now()).await;
    ok(&Inner::changed(&deployment))
}

/// Returns the definitions before a deployment without a note: the versions before the current ones. It is an error if
/// an app has none. Such an app may have run for long with another count, or be new, and is not stopped for that.
async fn former_versions(inner: &Inner, deployment: &Deployment) -> Result<BTreeMap<String, Option<Job>>, Problem> {
    let mut before = BTreeMap::new();
    for name in deployment.jobs.keys() {
        let shown = inner.show(name).await?;
        let Some(version) = shown.view.versions.iter().rev().nth(1) else {
            let why = format!("the previous version of '{}' is not known; change or delete the app instead", shown.id);
            return Err(Problem::new(StatusCode::CONFLICT, why));
        };
        before.insert(name.clone(), Some((*version.job).clone()));
    }
    Ok(before)
}

async fn tasks(inner: &Inner) -> Answer {
    let tasks: Vec<Value> = inner.apps().await?.iter().flat_map(ListedApp::tasks).collect();
    ok(&json!({ "tasks": tasks }))
}

/// Kills tasks of one app: one, those on a host, or all.
async fn kill_of(inner: &Inner, call: &Call, name: &str, task: Option<&str>) -> Answer {
    let shown = inner.show(name).await?;
    let host = call.query.get("host").filter(|h| !h.is_empty());
    let is_meant =
        |place: &crate::core::Place| task.is_none_or(|id| place.task_id == id) && host.is_none_or(|h| place.host == h);
    let meant: Vec<_> = shown.live().filter(|t| t.place.as_ref().is_some_and(is_meant)).collect();
    if let (Some(id), true) = (task, meant.is_empty()) {
        return Err(Problem::new(StatusCode::NOT_FOUND, format!("Task '{id}' does not exist")));
    }
    let killed: Vec<Value> = meant.iter().filter_map(|t| shown.task(t)).collect();
    let numbers: Vec<u32> = meant.iter().map(|t| t.number).collect();
    if let Some(answer) = kill(inner, call, &shown, numbers).await? {
        return Ok(answer);
    }
    match (task, killed.into_iter().next(), shown.tasks()) {
        (Some(_), Some(task), _) => ok(&json!({ "task": task })),
        (_, first, tasks) if first.is_some() => ok(&json!({ "tasks": tasks })),
        _ => ok(&json!({ "tasks": [] })),
    }
}

/// Kills tasks. Returns the deployment that follows if the count of the app is reduced.
async fn kill(inner: &Inner, call: &Call, shown: &ListedApp, numbers: Vec<u32>) -> Result<Option<Response>, Problem> {
    let scale = flag(call, "scale");
    kill_numbers(inner, shown, numbers, scale).await?;
    if scale { deployed(inner, Action::Scale, shown).await.map(Some) } else { Ok(None) }
}

async fn kill_numbers(inner: &Inner, shown: &ListedApp, numbers: Vec<u32>, scale: bool) -> Result<(), Problem> {
    // An empty list of numbers would mean all tasks.
    if !numbers.is_empty() {
        inner.handle.ask(Request::Kill { name: shown.name.clone(), numbers, scale }).await?;
    }
    Ok(())
}

/// Kills tasks of several apps. One deployment covers all apps whose count is reduced.
async fn kill_given(inner: &Inner, call: &Call) -> Answer {
    let Kill { ids } = serde_json::from_value(body(call)?).map_err(|error| Problem::malformed(error.to_string()))?;
    let ids: BTreeSet<String> = ids.into_iter().collect();
    let scale = flag(call, "scale");
    let (mut killed, mut before) = (Vec::new(), BTreeMap::new());
    for shown in inner.apps().await? {
        let is_meant = |t: &&crate::core::TaskView| t.place.as_ref().is_some_and(|p| ids.contains(&p.task_id));
        let meant: Vec<_> = shown.live().filter(is_meant).collect();
        if meant.is_empty() {
            continue;
        }
        killed.extend(meant.iter().filter_map(|t| shown.task(t)));
        kill_numbers(inner, &shown, meant.iter().map(|t| t.number).collect(), scale).await?;
        before.insert(shown.name.clone(), Some(current(&shown)?));
    }
    if !scale || before.is_empty() {
        return ok(&json!({ "tasks": killed }));
    }
    ok(&Inner::changed(&inner.deploy(Action::Scale, before, &version_now()).await))
}

/// Returns the apps whose tasks wait.
async fn queue(inner: &Inner) -> Answer {
    let waiting = |shown: &ListedApp| {
        let count = shown.view.summary.tasks.waiting;
        (count > 0).then(|| {
            json!({
                "app": shown.json(&[], false, false),
                "count": count,
                "delay": { "timeLeftSeconds": 0, "overdue": true },
                "since": iso(shown.view.summary.submitted),
                "processedOffersSummary": {},
            })
        })
    };
    let queue: Vec<Value> = inner.apps().await?.iter().filter_map(waiting).collect();
    ok(&json!({ "queue": queue }))
}

/// Returns the root group, with all apps in it.
async fn groups(inner: &Inner) -> Answer {
    let apps: Vec<Value> = inner.apps().await?.iter().map(|s| s.json(&[], false, false)).collect();
    ok(&json!({ "id": "/", "apps": apps, "groups": [], "dependencies": [], "version": version_now() }))
}

async fn info(inner: &Inner, call: &Call) -> Answer {
    let status = inner.handle.status().await?;
    ok(&json!({
        "name": "marathon",
        "version": VERSION,
        "frameworkId": status.framework_id,
        "leader": host(call),
        "elected": true,
        "buildref": concat!("tepui-", env!("CARGO_PKG_VERSION")),
        "marathon_config": { "ha": false, "checkpoint": true, "framework_name": "binpack" },
        "zookeeper_config": {},
        "http_config": {},
        "event_subscriber": { "type": "http_event_stream" },
    }))
}

/// Returns counters and gauges, each under its name and labels.
fn metrics(inner: &Inner) -> Response {
    let text = inner.handle.metrics();
    let (mut counters, mut gauges, mut is_counter) = (BTreeMap::new(), BTreeMap::new(), false);
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            is_counter = kind.ends_with(" counter");
        } else if let Some((name, value)) = line.rsplit_once(' ') {
            let value = value.parse::<f64>().unwrap_or_default();
            match is_counter {
                true => counters.insert(name.to_owned(), json!({ "count": value })),
                false => gauges.insert(name.to_owned(), json!({ "value": value })),
            };
        }
    }
    api::json(StatusCode::OK, &json!({ "version": "4.0.0", "counters": counters, "gauges": gauges }))
}

fn ok(value: &impl serde::Serialize) -> Answer {
    Ok(api::json(StatusCode::OK, value))
}

fn body(call: &Call) -> Result<Value, Problem> {
    serde_json::from_slice(&call.body).map_err(|error| Problem::malformed(format!("Invalid JSON: {error}")))
}

fn given_name(given: &Value) -> Result<String, Problem> {
    let id = given["id"].as_str().unwrap_or_default();
    let rule = "an id has parts of lower-case letters, digits, hyphens and dots between slashes";
    id::job(id).ok_or_else(|| Problem::invalid(vec![("/id".to_owned(), format!("'{id}': {rule}"))]))
}

/// Returns whether a flag is set; Python's clients write `True`.
fn flag(call: &Call, name: &str) -> bool {
    call.query.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Refuses a change while another is in progress, unless it is forced.
fn unlocked(inner: &Inner, call: &Call, name: &str) -> Result<(), Problem> {
    let deployments = inner.deployments.of(name);
    if deployments.is_empty() || flag(call, "force") { Ok(()) } else { Err(Problem::locked(deployments)) }
}

/// Returns the host under which the client found this API.
fn host(call: &Call) -> String {
    call.request.header("host").unwrap_or_default().to_owned()
}
