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
use super::outputs::TimedMaster;
use super::peers::MembershipChange;
use super::scheduler_api::respond_or_fail;
use super::views::visibility::Visibility;
use super::{explain, fairness, masters, views};
use crate::acls::{self, Caller};
use crate::audit::{self, RequestedChange, Target};

/// A call that only tepui has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TepuiCall {
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
const CALLS: [(&str, TepuiCall); 10] = [
    ("GET_POLICIES", TepuiCall::GetPolicies),
    ("UPDATE_POLICIES", TepuiCall::UpdatePolicies),
    ("GET_FAIRNESS", TepuiCall::GetFairness),
    ("GET_OVERVIEW", TepuiCall::GetOverview),
    ("EXPLAIN", TepuiCall::Explain),
    ("KILL_TASK", TepuiCall::KillTask),
    ("GET_MASTERS", TepuiCall::GetMasters),
    ("ADD_MASTER", TepuiCall::AddMaster),
    ("REMOVE_MASTER", TepuiCall::RemoveMaster),
    ("TRANSFER_LEADERSHIP", TepuiCall::TransferLeadership),
];

impl TepuiCall {
    /// Returns the call with this name.
    fn of(name: &str) -> Option<TepuiCall> {
        CALLS.iter().find(|(known, _)| *known == name).map(|(_, own)| *own)
    }
}

/// Returns the names of the calls of a master's operator API that Mesos does not have.
pub fn tepui_calls() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(name, _)| *name)
}

/// Maximum length of the body of such a call, in bytes.
const MOST: usize = 4 << 20;

/// Returns the call of a request and its body; `None` if it is a call of Mesos's API.
pub(super) fn find(request: &Request) -> Option<(TepuiCall, Value)> {
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
    let own = TepuiCall::of(&named.r#type?)?;
    Some((own, serde_json::from_slice(body).ok()?))
}

/// Returns whether a standby master also answers a request.
pub(super) fn is_answered_by_all(request: &Request) -> bool {
    find(request).is_some_and(|(own, _)| own == TepuiCall::GetMasters)
}

pub(super) async fn answer(
    handler: &Handler,
    request: &Request,
    own: TepuiCall,
    mut call: Value,
    caller: Caller,
) -> Response {
    audit::note_call(|| requested_change(own, &call));
    match accepted_encoding(request) {
        Ok(_)
            if request
                .header("accept")
                .is_none_or(|accept| wire::negotiate::accepts(Some(accept), "application/json")) => {}
        Ok(_) => return Response::text(StatusCode::NOT_ACCEPTABLE, "This call is answered as 'application/json' only"),
        Err(refusal) => return *refusal,
    }
    let principal = caller.principal.clone();
    if let Err(refusal) = authorize(own, caller.clone()) {
        return *refusal;
    }
    match own {
        TepuiCall::GetOverview => overview(handler, caller).await,
        TepuiCall::GetPolicies => {
            let policies = handler.driver.read(TimedMaster::policies).await;
            reply("GET_POLICIES", "get_policies", json!({ "policies": policies }))
        }
        TepuiCall::GetFairness => {
            let report = handler.driver.read(TimedMaster::fairness).await;
            reply("GET_FAIRNESS", "get_fairness", fairness::document(&report))
        }
        TepuiCall::Explain => {
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
            match handler
                .driver
                .read(move |live: &mut TimedMaster| live.explain(&framework, role.as_deref(), &need))
                .await
            {
                Ok(explanations) => reply("EXPLAIN", "explain", explain::document(&explanations)),
                Err(why) => Response::bad_request(why.to_string()),
            }
        }
        TepuiCall::GetMasters => masters::show(handler).await,
        TepuiCall::AddMaster => masters::change(handler, &call["add_master"], MembershipChange::Add).await,
        TepuiCall::RemoveMaster => masters::change(handler, &call["remove_master"], MembershipChange::Remove).await,
        TepuiCall::TransferLeadership => masters::transfer(handler, &call["transfer_leadership"]).await,
        TepuiCall::KillTask => match kill(&call["kill_task"]) {
            Ok(kill) => {
                let kill = Box::new(kill);
                respond_or_fail(handler.decide(|request| Input::KillTask { request, kill, principal }).await)
            }
            Err(why) => Response::bad_request(why),
        },
        TepuiCall::UpdatePolicies => {
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
fn requested_change(own: TepuiCall, call: &Value) -> Option<RequestedChange> {
    match own {
        TepuiCall::GetPolicies
        | TepuiCall::GetFairness
        | TepuiCall::GetOverview
        | TepuiCall::Explain
        | TepuiCall::GetMasters => None,
        TepuiCall::AddMaster => Some(change_of_masters("ADD_MASTER", &call["add_master"])),
        TepuiCall::RemoveMaster => Some(change_of_masters("REMOVE_MASTER", &call["remove_master"])),
        TepuiCall::TransferLeadership => Some(change_of_masters("TRANSFER_LEADERSHIP", &call["transfer_leadership"])),
        TepuiCall::UpdatePolicies => Some(RequestedChange::new("UPDATE_POLICIES", Target::default())),
        TepuiCall::KillTask => {
            let id = |field: &str| call["kill_task"][field]["value"].as_str().unwrap_or_default();
            let target = Target::default().with("framework", id("framework_id")).with("task", id("task_id"));
            Some(RequestedChange::new("KILL_TASK", target))
        }
    }
}

fn change_of_masters(name: &'static str, call: &Value) -> RequestedChange {
    RequestedChange::new(name, Target::default().with("master", call["address"].as_str().unwrap_or_default()))
}

/// Authorizes a call. Those that read show all frameworks and roles, and cannot leave some out; policies are authorized
/// like weights.
///
/// # Errors
/// 403.
fn authorize(own: TepuiCall, caller: Caller) -> Result<(), Box<Response>> {
    match own {
        TepuiCall::UpdatePolicies => caller.authorize_all(Action::UpdateWeight),
        TepuiCall::GetMasters => caller.authorize_all(Action::ViewFlags),
        // A change of the masters is maintenance of their machines.
        TepuiCall::AddMaster | TepuiCall::RemoveMaster | TepuiCall::TransferLeadership => {
            caller.authorize_all(Action::StartMaintenance)
        }
        // The answer leaves out what the principal may not view.
        TepuiCall::GetOverview => Ok(()),
        // The core authorizes the call, because it knows the framework.
        TepuiCall::KillTask => Ok(()),
        TepuiCall::GetPolicies | TepuiCall::GetFairness | TepuiCall::Explain => {
            match Visibility::of(caller).is_unrestricted() {
                true => Ok(()),
                false => Err(Box::new(acls::forbidden())),
            }
        }
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
async fn overview(handler: &Handler, caller: Caller) -> Response {
    let write = |context: views::Context| context.document(views::overview::write);
    match handler.document("GET_OVERVIEW".to_owned(), Query::default(), caller, write).await {
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
