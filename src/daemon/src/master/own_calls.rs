//! Calls of the operator API that Mesos does not have: POST /api/v1 with another `type`.
//!
//! They are similar to Mesos's, without a protobuf form: request and response are JSON. A new call needs an entry in
//! [`CALLS`] and a branch of [`answer`]; docs/operator.md describes each.

use allocator::policies::Policies;
use authorizer::Action;
use base::{FrameworkId, IdError, TaskId};
use master::{Input, KillTask};
use protos::json::{Dialect, FromJson};
use protos::mesos::KillPolicy;
use resources::Quantities;
use serde::Deserialize;
use serde_json::{Value, json};
use wire::http::{Method, Query, Request, Response, StatusCode};
use wire::negotiate::{Encoding, accepted_encoding};

use super::handler::Handler;
use super::outputs::Live;
use super::peers::Wish;
use super::scheduler_api::respond_or_fail;
use super::views::sight::Sight;
use super::{explain, fairness, masters, views};
use crate::acls::{self, Asker};
use crate::audit::{self, Asked, Target};

/// A call that only tepui has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    GetPolicies,
    UpdatePolicies,
    GetFairness,
    GetOverview,
    Explain,
    KillTask,
    GetMasters,
    AddMaster,
    RemoveMaster,
    TransferLeadership,
}

/// All calls that only tepui has, by name.
const CALLS: [(&str, Own); 10] = [
    ("GET_POLICIES", Own::GetPolicies),
    ("UPDATE_POLICIES", Own::UpdatePolicies),
    ("GET_FAIRNESS", Own::GetFairness),
    ("GET_OVERVIEW", Own::GetOverview),
    ("EXPLAIN", Own::Explain),
    ("KILL_TASK", Own::KillTask),
    ("GET_MASTERS", Own::GetMasters),
    ("ADD_MASTER", Own::AddMaster),
    ("REMOVE_MASTER", Own::RemoveMaster),
    ("TRANSFER_LEADERSHIP", Own::TransferLeadership),
];

impl Own {
    /// Returns the call with this name.
    fn of(name: &str) -> Option<Own> {
        CALLS.iter().find(|(known, _)| *known == name).map(|(_, own)| *own)
    }
}

/// Returns the names of the calls of a master's operator API that Mesos does not have.
pub fn own_calls() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(name, _)| *name)
}

/// Maximum length of the body of such a call, in bytes.
const MOST: usize = 4 << 20;

/// Returns the call of a request and its body; `None` if it is a call of Mesos's API.
pub(super) fn find(request: &Request) -> Option<(Own, Value)> {
    #[derive(Deserialize)]
    struct Named {
        r#type: Option<String>,
    }
    let json = request.header("content-type").and_then(Encoding::of_content_type) == Some(Encoding::Json);
    let body = request.body.full();
    if request.method != Method::POST || !json || body.len() > MOST {
        return None;
    }
    let named: Named = serde_json::from_slice(body).ok()?;
    let own = Own::of(&named.r#type?)?;
    Some((own, serde_json::from_slice(body).ok()?))
}

/// Returns whether a standby master also answers a request.
pub(super) fn is_answered_by_all(request: &Request) -> bool {
    find(request).is_some_and(|(own, _)| own == Own::GetMasters)
}

pub(super) async fn answer(handler: &Handler, request: &Request, own: Own, mut call: Value, asker: Asker) -> Response {
    audit::note_call(|| asked(own, &call));
    match accepted_encoding(request) {
        Ok(_)
            if request
                .header("accept")
                .is_none_or(|accept| wire::negotiate::accepts(Some(accept), "application/json")) => {}
        Ok(_) => return Response::text(StatusCode::NOT_ACCEPTABLE, "This call is answered as 'application/json' only"),
        Err(refusal) => return *refusal,
    }
    let principal = asker.principal.clone();
    if let Err(refusal) = must(own, asker.clone()) {
        return *refusal;
    }
    match own {
        Own::GetOverview => overview(handler, asker).await,
        Own::GetPolicies => {
            let policies = handler.driver.read(Live::policies).await;
            reply("GET_POLICIES", "get_policies", json!({ "policies": policies }))
        }
        Own::GetFairness => {
            let report = handler.driver.read(Live::fairness).await;
            reply("GET_FAIRNESS", "get_fairness", fairness::document(&report))
        }
        Own::Explain => {
            let asked = |field: &str| call["explain"][field].as_str().map(str::to_owned);
            let Some(framework) = asked("framework") else {
                return Response::bad_request("Expecting 'explain.framework' to be present");
            };
            let role = asked("role");
            let need = match asked("need").map(|text| resources::parse_quantities(&text)) {
                None => Quantities::default(),
                Some(Ok(need)) => need,
                Some(Err(why)) => return Response::bad_request(format!("Invalid 'explain.need': {why}")),
            };
            match handler.driver.read(move |live: &mut Live| live.explain(&framework, role.as_deref(), &need)).await {
                Ok(explanations) => reply("EXPLAIN", "explain", explain::document(&explanations)),
                Err(why) => Response::bad_request(why.to_string()),
            }
        }
        Own::GetMasters => masters::show(handler).await,
        Own::AddMaster => masters::change(handler, &call["add_master"], Wish::Add).await,
        Own::RemoveMaster => masters::change(handler, &call["remove_master"], Wish::Remove).await,
        Own::TransferLeadership => masters::transfer(handler, &call["transfer_leadership"]).await,
        Own::KillTask => match kill(&call["kill_task"]) {
            Ok(kill) => {
                let kill = Box::new(kill);
                respond_or_fail(handler.decide(|request| Input::KillTask { request, kill, principal }).await)
            }
            Err(why) => Response::bad_request(why),
        },
        Own::UpdatePolicies => {
            let given = call.get_mut("update_policies").and_then(|call| call.get_mut("policies")).map(Value::take);
            match given.map(serde_json::from_value::<Policies>) {
                Some(Ok(policies)) => update(handler, policies).await,
                Some(Err(why)) => Response::bad_request(format!("Invalid policies: {why}")),
                None => Response::bad_request("Expecting 'update_policies.policies' to be present"),
            }
        }
    }
}

/// Returns the change that a call asks for; `None` if it reads.
fn asked(own: Own, call: &Value) -> Option<Asked> {
    match own {
        Own::GetPolicies | Own::GetFairness | Own::GetOverview | Own::Explain | Own::GetMasters => None,
        Own::AddMaster => Some(asked_of_master("ADD_MASTER", &call["add_master"])),
        Own::RemoveMaster => Some(asked_of_master("REMOVE_MASTER", &call["remove_master"])),
        Own::TransferLeadership => Some(asked_of_master("TRANSFER_LEADERSHIP", &call["transfer_leadership"])),
        Own::UpdatePolicies => Some(Asked::new("UPDATE_POLICIES", Target::default())),
        Own::KillTask => {
            let id = |field: &str| call["kill_task"][field]["value"].as_str().unwrap_or_default();
            let target = Target::default().with("framework", id("framework_id")).with("task", id("task_id"));
            Some(Asked::new("KILL_TASK", target))
        }
    }
}

fn asked_of_master(name: &'static str, call: &Value) -> Asked {
    Asked::new(name, Target::default().with("master", call["address"].as_str().unwrap_or_default()))
}

/// Authorizes a call. Those that read show all frameworks and roles, and cannot leave some out; policies are authorized
/// like weights.
///
/// # Errors
/// 403.
fn must(own: Own, asker: Asker) -> Result<(), Box<Response>> {
    match own {
        Own::UpdatePolicies => asker.must_all(Action::UpdateWeight),
        Own::GetMasters => asker.must_all(Action::ViewFlags),
        // A change of the masters is maintenance of their machines.
        Own::AddMaster | Own::RemoveMaster | Own::TransferLeadership => asker.must_all(Action::StartMaintenance),
        // The answer leaves out what the principal may not view.
        Own::GetOverview => Ok(()),
        // The core authorizes the call, because it knows the framework.
        Own::KillTask => Ok(()),
        Own::GetPolicies | Own::GetFairness | Own::Explain => match Sight::of(asker).is_wide() {
            true => Ok(()),
            false => Err(Box::new(acls::forbidden())),
        },
    }
}

/// Parses the body of KILL_TASK.
///
/// # Errors
/// The field that is missing or invalid.
fn kill(call: &Value) -> Result<KillTask, String> {
    let text = |field: &str| {
        let value = call[field]["value"].as_str();
        value.ok_or_else(|| format!("Expecting 'kill_task.{field}' to be present"))
    };
    let invalid = |field: &str, why: IdError| format!("Invalid 'kill_task.{field}': {why}");
    let framework = FrameworkId::new(text("framework_id")?).map_err(|why| invalid("framework_id", why))?;
    let task = TaskId::new(text("task_id")?).map_err(|why| invalid("task_id", why))?;
    let kill_policy = match &call["kill_policy"] {
        Value::Null => None,
        policy => {
            let policy = KillPolicy::from_json(policy.to_string().as_bytes(), Dialect::V1);
            Some(policy.map_err(|why| format!("Invalid 'kill_task.kill_policy': {why}"))?)
        }
    };
    Ok(KillTask { framework, task, kill_policy })
}

/// Answers GET_OVERVIEW, which leaves out what the principal may not view.
async fn overview(handler: &Handler, asker: Asker) -> Response {
    let write = |context: views::Context| context.document(views::overview::write);
    match handler.document("GET_OVERVIEW".to_owned(), Query::default(), asker, write).await {
        Ok(parts) => Response::ok_jsonp_parts(parts.iter().cloned(), None),
        Err(why) => Response::internal(why),
    }
}

async fn update(handler: &Handler, policies: Policies) -> Response {
    let policies = Box::new(policies);
    respond_or_fail(handler.decide(|request| Input::UpdatePolicies { request, policies }).await)
}

pub(super) fn reply(kind: &str, field: &str, value: Value) -> Response {
    Response::ok_json(json!({ "type": kind, field: value }).to_string())
}
