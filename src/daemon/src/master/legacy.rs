//! The older endpoints that change something, or that tell what a call tells (LEG-10 to LEG-17): each becomes an
//! operator call.
//!
//! It decides nothing; the core answers.

use protos::json::{Dialect, FromJson, Value, Writer};
use protos::mesos::master::call::{self, Type};
use protos::mesos::{self, master::Call};
use wire::http::{Query, Request, Response};

use super::handler::Handler;
use super::operator_api::change;
use crate::common;

/// An older endpoint.
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

pub(super) async fn answer(handler: &Handler, endpoint: Endpoint, rest: &str, request: &Request) -> Response {
    let method = request.method.as_str();
    if !endpoint.methods().contains(&method) {
        return Response::method_not_allowed(endpoint.methods(), method);
    }
    if method == "GET" {
        return Response::ok_jsonp(document(handler, endpoint).await, request.query.get("jsonp"));
    }
    match to_call(endpoint, rest, request) {
        Ok(call) => change(handler, call).await,
        Err(text) => Response::bad_request(text),
    }
}

/// What a GET tells. Quota and maintenance are empty as long as nobody can set them.
async fn document(handler: &Handler, endpoint: Endpoint) -> Vec<u8> {
    let snapshot = handler.snapshot().await;
    Writer::document(|w| match endpoint {
        Endpoint::Weights => {
            w.array(|w| {
                for (role, weight) in &snapshot.weights {
                    w.object(|w| {
                        w.key("role").string(role);
                        w.key("weight").double(*weight);
                    });
                }
            });
        }
        _ => {
            w.object(|_| {});
        }
    })
}

fn to_call(endpoint: Endpoint, rest: &str, request: &Request) -> Result<Call, String> {
    let body = request.body.full();
    let mut call = Call::default();
    match endpoint {
        Endpoint::Teardown => {
            let form = common::form(body)?;
            let id = form.get("frameworkId").ok_or("Missing 'frameworkId' query parameter in the request body")?;
            call.set_type(Type::Teardown);
            call.teardown = Some(call::Teardown { framework_id: mesos::FrameworkId { value: id.to_owned() } });
        }
        Endpoint::Reserve => {
            let form = common::form(body)?;
            call.set_type(Type::ReserveResources);
            call.reserve_resources = Some(call::ReserveResources {
                slave_id: agent(&form)?,
                resources: resources(&form, "resources")?,
                source: if form.get("source").is_some() { resources(&form, "source")? } else { Vec::new() },
            });
        }
        Endpoint::Unreserve => {
            let form = common::form(body)?;
            call.set_type(Type::UnreserveResources);
            call.unreserve_resources =
                Some(call::UnreserveResources { slave_id: agent(&form)?, resources: resources(&form, "resources")? });
        }
        Endpoint::CreateVolumes => {
            let form = common::form(body)?;
            call.set_type(Type::CreateVolumes);
            call.create_volumes =
                Some(call::CreateVolumes { slave_id: agent(&form)?, volumes: resources(&form, "volumes")? });
        }
        Endpoint::DestroyVolumes => {
            let form = common::form(body)?;
            call.set_type(Type::DestroyVolumes);
            call.destroy_volumes =
                Some(call::DestroyVolumes { slave_id: agent(&form)?, volumes: resources(&form, "volumes")? });
        }
        Endpoint::Weights => {
            call.set_type(Type::UpdateWeights);
            call.update_weights = Some(call::UpdateWeights { weight_infos: list(body)? });
        }
        Endpoint::Quota if request.method.as_str() == "DELETE" => {
            call.set_type(Type::RemoveQuota);
            call.remove_quota = Some(call::RemoveQuota { role: rest.to_owned() });
        }
        Endpoint::Quota => {
            call.set_type(Type::SetQuota);
            call.set_quota = Some(call::SetQuota { quota_request: one(body)? });
        }
        Endpoint::MaintenanceSchedule | Endpoint::MaintenanceStatus => {
            call.set_type(Type::UpdateMaintenanceSchedule);
            call.update_maintenance_schedule = Some(call::UpdateMaintenanceSchedule { schedule: one(body)? });
        }
        Endpoint::MachineDown => {
            call.set_type(Type::StartMaintenance);
            call.start_maintenance = Some(call::StartMaintenance { machines: list(body)? });
        }
        Endpoint::MachineUp => {
            call.set_type(Type::StopMaintenance);
            call.stop_maintenance = Some(call::StopMaintenance { machines: list(body)? });
        }
    }
    Ok(call)
}

fn agent(form: &Query) -> Result<mesos::SlaveId, String> {
    let id = form.get("slaveId").ok_or("Missing 'slaveId' query parameter in the request body")?;
    Ok(mesos::SlaveId { value: id.to_owned() })
}

fn resources(form: &Query, name: &str) -> Result<Vec<mesos::Resource>, String> {
    let text = form.get(name).ok_or_else(|| format!("Missing '{name}' query parameter in the request body"))?;
    list(text.as_bytes()).map_err(|why| format!("Error in parsing '{name}' query parameter: {why}"))
}

fn one<M: FromJson>(body: &[u8]) -> Result<M, String> {
    M::from_json(body, Dialect::V0).map_err(|error| format!("Failed to parse the request's body: {error}"))
}

/// A JSON array of messages.
fn list<M: FromJson>(body: &[u8]) -> Result<Vec<M>, String> {
    let value = Value::parse(body).map_err(|error| error.to_string())?;
    let items = value.as_array().ok_or("Expecting a JSON array")?;
    let read = |item: &Value| {
        let mut text = Vec::new();
        item.write(&mut text);
        M::from_json(&text, Dialect::V0).map_err(|error| error.to_string())
    };
    items.iter().map(read).collect()
}
