//! The legacy endpoints that change the cluster, or that answer as a call does (LEG-10 to LEG-17): each request becomes
//! an operator call.
//!
//! The core answers.

use std::sync::Arc;

use protos::json::{Dialect, FromJson, ToJson, Value, Writer};
use protos::mesos::maintenance::Schedule;
use protos::mesos::master::call::{self, Type};
use protos::mesos::quota::QuotaRequest;
use protos::mesos::{self, master::Call};
use wire::http::{Query, Request, Response, StatusCode};

use super::handler::Handler;
use super::operator_api::{change, decide};
use super::scheduler_api::respond;
use super::views::settings;
use super::views::visibility::Visibility;
use crate::acls::Caller;
use crate::audit;
use crate::common;

/// A legacy endpoint, which becomes an operator call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named as its path")]
pub(super) enum Endpoint {
    Teardown,
    Reserve,
    Unreserve,
    CreateVolumes,
    DestroyVolumes,
    Weights,
    Quota,
    MaintenanceSchedule,
    MaintenanceStatus,
    MachineDown,
    MachineUp,
}

/// Maximum number of bytes of a body that a refusal repeats.
const SHOWN: usize = 1024;

impl Endpoint {
    pub(super) const ALL: &[Endpoint] = &[
        Endpoint::Teardown,
        Endpoint::Reserve,
        Endpoint::Unreserve,
        Endpoint::CreateVolumes,
        Endpoint::DestroyVolumes,
        Endpoint::Weights,
        Endpoint::Quota,
        Endpoint::MaintenanceSchedule,
        Endpoint::MaintenanceStatus,
        Endpoint::MachineDown,
        Endpoint::MachineUp,
    ];

    pub(super) fn path(self) -> &'static str {
        match self {
            Endpoint::Teardown => "/teardown",
            Endpoint::Reserve => "/reserve",
            Endpoint::Unreserve => "/unreserve",
            Endpoint::CreateVolumes => "/create-volumes",
            Endpoint::DestroyVolumes => "/destroy-volumes",
            Endpoint::Weights => "/weights",
            Endpoint::Quota => "/quota",
            Endpoint::MaintenanceSchedule => "/maintenance/schedule",
            Endpoint::MaintenanceStatus => "/maintenance/status",
            Endpoint::MachineDown => "/machine/down",
            Endpoint::MachineUp => "/machine/up",
        }
    }

    fn methods(self) -> &'static [&'static str] {
        match self {
            Endpoint::Weights => &["GET", "PUT"],
            Endpoint::Quota => &["GET", "POST", "DELETE"],
            Endpoint::MaintenanceSchedule => &["GET", "POST"],
            Endpoint::MaintenanceStatus => &["GET"],
            _ => &["POST"],
        }
    }
}

pub(super) async fn answer(
    handler: &Handler,
    endpoint: Endpoint,
    rest: &str,
    request: &Request,
    caller: Caller,
) -> Response {
    let method = request.method.as_str();
    if !endpoint.methods().contains(&method) {
        return Response::method_not_allowed(endpoint.methods(), method);
    }
    if method == "GET" {
        return Response::ok_jsonp(document(handler, endpoint, caller).await, request.query.get("jsonp"));
    }
    audit::note_path(method, endpoint.path());
    let principal = caller.principal;
    if endpoint == Endpoint::Quota && method == "DELETE" {
        return remove_quota(handler, rest, principal).await;
    }
    match to_call(endpoint, request) {
        Ok(call) => {
            audit::note_call(|| audit::master_call(&call));
            change(handler, call, principal).await
        }
        Err(text) => Response::bad_request(text),
    }
}

/// Returns the document that answers a GET.
async fn document(handler: &Handler, endpoint: Endpoint, caller: Caller) -> Vec<u8> {
    let visibility = &Visibility::of(caller);
    let snapshot = handler.snapshot().await;
    match endpoint {
        Endpoint::Quota => settings::quota(&snapshot, visibility).json(Dialect::V0),
        Endpoint::MaintenanceSchedule => settings::schedule(&snapshot, visibility).json(Dialect::V0),
        Endpoint::MaintenanceStatus => settings::maintenance_status(&snapshot, visibility).json(Dialect::V0),
        _ => Writer::document(|w| {
            w.array(|w| {
                for (role, weight) in snapshot.weights.iter().filter(|(role, _)| visibility.role(role)) {
                    w.object(|w| {
                        w.key("role").string(role);
                        w.key("weight").double(*weight);
                    });
                }
            });
        }),
    }
}

/// Answers `DELETE /quota/<role>`; the role may contain slashes. Each refusal has the path.
async fn remove_quota(handler: &Handler, role: &str, principal: Option<Arc<str>>) -> Response {
    let role = role.trim_matches('/');
    if role.is_empty() {
        let why = "Failed to parse remove quota request for path '/master/quota': expected 3 tokens, found 2 tokens";
        return Response::bad_request(why);
    }
    let mut call = Call::default();
    call.set_type(Type::RemoveQuota);
    call.remove_quota = Some(call::RemoveQuota { role: role.to_owned() });
    audit::note_call(|| audit::master_call(&call));
    match decide(handler, call, principal).await {
        Some(mut answer) => {
            if let Err(error) = &mut answer
                && let Some(attempt) = error.attempt.take()
            {
                error.text = format!("{attempt} for path '/master/quota/{role}': {}", error.text);
            }
            respond(answer)
        }
        None => Response::error(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn to_call(endpoint: Endpoint, request: &Request) -> Result<Call, String> {
    let body = request.body.full();
    let mut call = Call::default();
    match endpoint {
        Endpoint::Teardown => {
            let form = decoded(body)?;
            let id = form.get("frameworkId").ok_or("Missing 'frameworkId' query parameter in the request body")?;
            call.set_type(Type::Teardown);
            call.teardown = Some(call::Teardown { framework_id: mesos::FrameworkId { value: id.into() } });
        }
        Endpoint::Reserve => {
            let form = decoded(body)?;
            let source = form.get("source").is_some();
            call.set_type(Type::ReserveResources);
            call.reserve_resources = Some(call::ReserveResources {
                slave_id: agent(&form)?,
                resources: resources(&form, "resources", "Error parsing")?,
                source: if source { resources(&form, "source", "Error parsing")? } else { Vec::new() },
            });
        }
        Endpoint::Unreserve => {
            let form = decoded(body)?;
            let (slave_id, resources) = (agent(&form)?, resources(&form, "resources", "Error in parsing")?);
            call.set_type(Type::UnreserveResources);
            call.unreserve_resources = Some(call::UnreserveResources { slave_id, resources });
        }
        Endpoint::CreateVolumes => {
            let form = decoded(body)?;
            let (slave_id, volumes) = (agent(&form)?, resources(&form, "volumes", "Error in parsing")?);
            call.set_type(Type::CreateVolumes);
            call.create_volumes = Some(call::CreateVolumes { slave_id, volumes });
        }
        Endpoint::DestroyVolumes => {
            let form = decoded(body)?;
            let (slave_id, volumes) = (agent(&form)?, resources(&form, "volumes", "Error in parsing")?);
            call.set_type(Type::DestroyVolumes);
            call.destroy_volumes = Some(call::DestroyVolumes { slave_id, volumes });
        }
        Endpoint::Weights => {
            call.set_type(Type::UpdateWeights);
            call.update_weights = Some(call::UpdateWeights { weight_infos: weights(body)? });
        }
        Endpoint::Quota => {
            call.set_type(Type::SetQuota);
            call.set_quota = Some(call::SetQuota { quota_request: quota(body)? });
        }
        Endpoint::MaintenanceSchedule | Endpoint::MaintenanceStatus => {
            let schedule = Schedule::from_json(body, Dialect::V0).map_err(|error| error.to_string())?;
            call.set_type(Type::UpdateMaintenanceSchedule);
            call.update_maintenance_schedule = Some(call::UpdateMaintenanceSchedule { schedule });
        }
        Endpoint::MachineDown => {
            call.set_type(Type::StartMaintenance);
            call.start_maintenance = Some(call::StartMaintenance { machines: list(&array(body)?)? });
        }
        Endpoint::MachineUp => {
            call.set_type(Type::StopMaintenance);
            call.stop_maintenance = Some(call::StopMaintenance { machines: list(&array(body)?)? });
        }
    }
    Ok(call)
}

fn decoded(body: &[u8]) -> Result<Query, String> {
    common::form(body)
}

fn agent(form: &Query) -> Result<mesos::SlaveId, String> {
    let id = form.get("slaveId").ok_or("Missing 'slaveId' query parameter in the request body")?;
    Ok(mesos::SlaveId { value: id.into() })
}

fn resources(form: &Query, name: &str, failed: &str) -> Result<Vec<mesos::Resource>, String> {
    let text = form.get(name).ok_or_else(|| format!("Missing '{name}' query parameter in the request body"))?;
    let read = array(text.as_bytes()).and_then(|items| list(&items));
    read.map_err(|why| format!("{failed} '{name}' query parameter in the request body: {why}"))
}

fn quota(body: &[u8]) -> Result<QuotaRequest, String> {
    let shown = || shown(body);
    let value = Value::parse(body);
    if let Err(why) = value {
        return Err(format!("Failed to parse set quota request JSON '{}': {why}", shown()));
    }
    QuotaRequest::from_json(body, Dialect::V0)
        .map_err(|why| format!("Failed to validate set quota request JSON '{}': {why}", shown()))
}

fn weights(body: &[u8]) -> Result<Vec<mesos::WeightInfo>, String> {
    let shown = || shown(body);
    let items =
        array(body).map_err(|why| format!("Failed to parse update weights request JSON '{}': {why}", shown()))?;
    list(&items).map_err(|why| format!("Failed to convert weights JSON array to protobuf '{}': {why}", shown()))
}

/// Returns a body as text for a refusal; only the beginning, if it is long.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
    if body.len() > SHOWN { text + "..." } else { text }
}

fn array(body: &[u8]) -> Result<Vec<Value>, String> {
    let value = Value::parse(body).map_err(|error| error.to_string())?;
    Ok(value.as_array().ok_or("Expecting a JSON array")?.to_vec())
}

fn list<M: FromJson>(items: &[Value]) -> Result<Vec<M>, String> {
    let read = |item: &Value| {
        let mut text = Vec::new();
        item.write(&mut text);
        M::from_json(&text, Dialect::V0).map_err(|error| error.to_string())
    };
    items.iter().map(read).collect()
}
