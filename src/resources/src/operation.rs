//! Converts offer operations to conversions of resources.
//!
//! This is only their effect. `operation_rules.rs` checks whether an operation is allowed.

use protos::mesos;
use protos::mesos::offer::operation::{GrowVolume, Reserve, ShrinkVolume, Type};

use crate::validate::name_it;
use crate::{Amount, Conversion, InvalidResource, Resource, Resources, Value, from_proto, resource_from_proto};

/// An error of converting an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// The operation has no type, or an unknown one.
    #[error("Unknown operation")]
    Unknown,
    /// The operation converts no resources of the agent: LAUNCH and LAUNCH_GROUP convert nothing; CREATE_DISK and
    /// DESTROY_DISK are done by resource providers.
    #[error("Operation not supported")]
    NotSupported,
    /// The message of the operation's type is missing.
    #[error("Expecting '{0}' to be present")]
    Missing(&'static str),
    /// The operation is GROW_VOLUME or SHRINK_VOLUME of a resource provider's disk.
    #[error("Operation not supported for resource provider")]
    Provider,
    /// A resource of the operation is invalid.
    #[error(transparent)]
    Resource(#[from] InvalidResource),
}

/// Returns the conversions of RESERVE, UNRESERVE, CREATE, DESTROY, GROW_VOLUME and SHRINK_VOLUME, to be applied in
/// order.
///
/// # Errors
/// The operation is another one, or a resource breaks a rule.
pub fn conversions(operation: &mesos::offer::Operation) -> Result<Vec<Conversion>, OperationError> {
    match operation.r#type() {
        Type::Unknown => Err(OperationError::Unknown),
        Type::Launch | Type::LaunchGroup | Type::CreateDisk | Type::DestroyDisk => Err(OperationError::NotSupported),
        Type::Reserve => reserve(operation.reserve.as_ref().ok_or(OperationError::Missing("reserve"))?),
        Type::Unreserve => {
            let message = operation.unreserve.as_ref().ok_or(OperationError::Missing("unreserve"))?;
            each(&message.resources, |reserved| {
                Conversion::new(reserved.clone().into(), reserved.pop_reservation().into())
            })
        }
        Type::Create => {
            let message = operation.create.as_ref().ok_or(OperationError::Missing("create"))?;
            each(&message.volumes, |volume| Conversion::new(volume.without_volume().into(), volume.clone().into()))
        }
        Type::Destroy => {
            let message = operation.destroy.as_ref().ok_or(OperationError::Missing("destroy"))?;
            each(&message.volumes, destroy)
        }
        Type::GrowVolume => grow(operation.grow_volume.as_ref().ok_or(OperationError::Missing("grow_volume"))?),
        Type::ShrinkVolume => shrink(operation.shrink_volume.as_ref().ok_or(OperationError::Missing("shrink_volume"))?),
    }
}

fn each(
    messages: &[mesos::Resource],
    conversion: impl Fn(&Resource) -> Conversion,
) -> Result<Vec<Conversion>, OperationError> {
    messages.iter().map(|message| Ok(conversion(&take(message)?))).collect()
}

fn take(message: &mesos::Resource) -> Result<Resource, InvalidResource> {
    resource_from_proto(message).map_err(|fault| name_it(message, fault))
}

/// Returns the conversions of RESERVE. One reservation is pushed. With a `source` (operators only) the reservations of
/// the source are replaced.
fn reserve(message: &Reserve) -> Result<Vec<Conversion>, OperationError> {
    if !message.source.is_empty() {
        return Ok(vec![Conversion::new(from_proto(&message.source)?, from_proto(&message.resources)?)]);
    }
    each(&message.resources, |reserved| Conversion::new(reserved.pop_reservation().into(), reserved.clone().into()))
}

fn destroy(volume: &Resource) -> Conversion {
    let plain = volume.without_volume();
    Conversion { must_be_gone: Some(volume.clone()), ..Conversion::new(volume.clone().into(), plain.into()) }
}

fn grow(message: &GrowVolume) -> Result<Vec<Conversion>, OperationError> {
    let (volume, addition) = (take(&message.volume)?, take(&message.addition)?);
    if volume.provider().is_some() {
        return Err(OperationError::Provider);
    }
    let size = volume.amount().unwrap_or_default() + addition.amount().unwrap_or_default();
    let grown = volume.clone().with_value(Value::Scalar(size));
    let consumed: Resources = [volume, addition].into_iter().collect();
    Ok(vec![Conversion::new(consumed, grown.into())])
}

fn shrink(message: &ShrinkVolume) -> Result<Vec<Conversion>, OperationError> {
    let volume = take(&message.volume)?;
    if volume.provider().is_some() {
        return Err(OperationError::Provider);
    }
    let size = volume.amount().unwrap_or_default();
    let less = Amount::from_f64(message.subtract.value);
    let freed = volume.without_volume().with_value(Value::Scalar(less));
    let shrunk = volume.clone().with_value(Value::Scalar(size - less));
    let converted: Resources = [shrunk, freed].into_iter().collect();
    Ok(vec![Conversion::new(volume.into(), converted)])
}
