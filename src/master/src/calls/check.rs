//! Checks the form of scheduler calls (docs/mesos/scheduler-api.md). It needs no state.

use protos::mesos::scheduler::{Call, OfferConstraints, call::Type};
use protos::mesos::{FrameworkId, FrameworkInfo};

use crate::validate::sizes;

/// Reasons why a scheduler call is invalid. `Display` is the text that follows `Failed to validate scheduler::Call: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCall {
    /// A field that the type of the call requires is not set.
    #[error("Expecting '{0}' to be present")]
    Absent(&'static str),
    /// The UUID of an acknowledgement is invalid.
    #[error(transparent)]
    Uuid(#[from] base::InvalidUuid),
    /// The call and the `FrameworkInfo` in this field name different frameworks.
    #[error("'framework_id' differs from '{0}.framework_info.id'")]
    FrameworkId(&'static str),
    /// A field is larger than the master accepts.
    #[error("{0}")]
    TooLarge(String),
    /// The framework subscribes with another principal than the authenticated one.
    #[error("Authenticated principal '{authenticated}' does not match principal '{claimed}' set in `FrameworkInfo`")]
    Principal {
        /// Authenticated principal of the connection.
        authenticated: String,
        /// Principal in `FrameworkInfo.principal`.
        claimed: String,
    },
}

fn present<T>(field: &Option<T>, name: &'static str) -> Result<(), InvalidCall> {
    field.as_ref().map(drop).ok_or(InvalidCall::Absent(name))
}

fn uuid(bytes: &[u8]) -> Result<(), InvalidCall> {
    Ok(base::valid_uuid(bytes).map(drop)?)
}

/// Checks the sizes of a framework's fields, so that no oversized field reaches the core.
fn sized(
    info: &FrameworkInfo,
    suppressed: &[String],
    constraints: Option<&OfferConstraints>,
) -> Result<(), InvalidCall> {
    let checked = sizes::framework(info).and_then(|()| sizes::suppressed(suppressed));
    checked.and_then(|()| sizes::constraints(constraints)).map_err(InvalidCall::TooLarge)
}

/// Checks that the call and its `FrameworkInfo` have the same framework id. Unset and empty ids are equal.
fn same_id(id: &Option<FrameworkId>, info: &FrameworkInfo, place: &'static str) -> Result<(), InvalidCall> {
    let text = |id: &Option<FrameworkId>| id.as_ref().map(|id| id.value.clone()).unwrap_or_default();
    match text(id) == text(&info.id) {
        true => Ok(()),
        false => Err(InvalidCall::FrameworkId(place)),
    }
}

/// Checks the form of a call. The authenticated principal of a SUBSCRIBE is checked with
/// [`validate_principal`](crate::validate_principal).
///
/// # Errors
/// The first rule that the call breaks.
pub fn validate_call(call: &Call) -> Result<(), InvalidCall> {
    // An unknown number counts as a missing type.
    let kind = call.r#type.and_then(|number| Type::try_from(number).ok());
    let kind = kind.ok_or(InvalidCall::Absent("type"))?;
    if kind == Type::Subscribe {
        present(&call.subscribe, "subscribe")?;
        let Some(subscribe) = &call.subscribe else { return Ok(()) };
        same_id(&call.framework_id, &subscribe.framework_info, "subscribe")?;
        return sized(&subscribe.framework_info, &subscribe.suppressed_roles, subscribe.offer_constraints.as_ref());
    }
    present(&call.framework_id, "framework_id")?;
    match kind {
        Type::Accept => present(&call.accept, "accept"),
        Type::Decline => present(&call.decline, "decline"),
        Type::AcceptInverseOffers => present(&call.accept_inverse_offers, "accept_inverse_offers"),
        Type::DeclineInverseOffers => present(&call.decline_inverse_offers, "decline_inverse_offers"),
        Type::Kill => present(&call.kill, "kill"),
        Type::Shutdown => present(&call.shutdown, "shutdown"),
        Type::Acknowledge => {
            present(&call.acknowledge, "acknowledge")?;
            call.acknowledge.as_ref().map_or(Ok(()), |body| uuid(&body.uuid))
        }
        Type::AcknowledgeOperationStatus => {
            present(&call.acknowledge_operation_status, "acknowledge_operation_status")?;
            let Some(body) = &call.acknowledge_operation_status else { return Ok(()) };
            uuid(&body.uuid)?;
            present(&body.slave_id, "agent_id")
        }
        Type::Reconcile => present(&call.reconcile, "reconcile"),
        Type::ReconcileOperations => present(&call.reconcile_operations, "reconcile_operations"),
        Type::Message => present(&call.message, "message"),
        Type::Request => present(&call.request, "request"),
        Type::UpdateFramework => {
            present(&call.update_framework, "update_framework")?;
            let Some(update) = &call.update_framework else { return Ok(()) };
            same_id(&call.framework_id, &update.framework_info, "update_framework")?;
            sized(&update.framework_info, &update.suppressed_roles, update.offer_constraints.as_ref())
        }
        Type::Teardown | Type::Revive | Type::Suppress | Type::Unknown | Type::Subscribe => Ok(()),
    }
}

/// Checks that an authenticated principal may subscribe as `info.principal`. A missing principal is valid, and filled
/// in later.
///
/// # Errors
/// [`InvalidCall::Principal`].
pub fn validate_principal(info: &FrameworkInfo, principal: Option<&str>) -> Result<(), InvalidCall> {
    match (principal, info.principal.as_deref()) {
        (Some(authenticated), Some(claimed)) if authenticated != claimed => {
            Err(InvalidCall::Principal { authenticated: authenticated.to_owned(), claimed: claimed.to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::scheduler::call;

    fn call(kind: Type) -> Call {
        Call { r#type: Some(kind as i32), framework_id: Some(FrameworkId { value: "f".into() }), ..Call::default() }
    }

    #[test]
    fn words() {
        let other = FrameworkInfo { id: Some(FrameworkId { value: "g".into() }), ..Default::default() };
        let id = Some(FrameworkId { value: "f".into() });
        let large = FrameworkInfo { id, name: "x".repeat(100_000), ..Default::default() };
        let acknowledge = |uuid| Some(call::Acknowledge { uuid, ..Default::default() });
        let status = |uuid| Some(Box::new(call::AcknowledgeOperationStatus { uuid, ..Default::default() }));
        let valid = base::uuid_from([1; 16]).to_vec();
        for (call, words) in [
            (Call::default(), "Expecting 'type' to be present"),
            (Call { r#type: Some(99), ..Call::default() }, "Expecting 'type' to be present"),
            (call(Type::Subscribe), "Expecting 'subscribe' to be present"),
            (Call { framework_id: None, ..call(Type::Kill) }, "Expecting 'framework_id' to be present"),
            (call(Type::Kill), "Expecting 'kill' to be present"),
            (Call { acknowledge: acknowledge(vec![0x44; 15]), ..call(Type::Acknowledge) }, "Not a valid UUID"),
            (Call { acknowledge: acknowledge(vec![0; 16]), ..call(Type::Acknowledge) }, "Not a valid UUID"),
            (
                Call { acknowledge_operation_status: status(vec![0; 16]), ..call(Type::AcknowledgeOperationStatus) },
                "Not a valid UUID",
            ),
            (
                Call { acknowledge_operation_status: status(valid), ..call(Type::AcknowledgeOperationStatus) },
                "Expecting 'agent_id' to be present",
            ),
            (
                Call {
                    subscribe: Some(Box::new(call::Subscribe { framework_info: large, ..Default::default() })),
                    ..call(Type::Subscribe)
                },
                "'FrameworkInfo.name' has 100000 bytes, and the limit is 8192",
            ),
            (
                Call {
                    subscribe: Some(Box::new(call::Subscribe { framework_info: other, ..Default::default() })),
                    ..call(Type::Subscribe)
                },
                "'framework_id' differs from 'subscribe.framework_info.id'",
            ),
        ] {
            assert_eq!(validate_call(&call).unwrap_err().to_string(), words);
        }
        assert_eq!(validate_call(&call(Type::Revive)), Ok(()));
    }
}
