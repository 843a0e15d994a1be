//! Resource arithmetic: scalars in thousandths, ranges, sets, reservations, volumes; text and protobuf forms.
//!
//! The central type is [`Resources`]: a normalised set of [`Resource`] entries that adds, subtracts and compares as
//! Mesos does. [`Quantities`] are the plain amounts without reservations, for the allocator's sums. This crate does not
//! depend on agents, frameworks, offers, or time. It writes no JSON: it converts `mesos.Resource` messages to its types
//! and back, and `protos::json` does the rest.
#![forbid(unsafe_code)]

mod amount;
mod attributes;
mod checkpoint;
mod conversion;
mod disk;
mod find;
mod from_proto;
mod item_set;
mod labels;
mod limits;
mod list_rules;
mod name;
mod operation;
mod operation_fault;
mod operation_rules;
mod quantities;
mod quantities_text;
mod query;
mod ranges;
mod reservation;
mod resource;
mod resources;
mod role;
mod summary;
mod text_in;
mod text_out;
mod to_proto;
mod transform;
mod validate;
mod value;
mod value_text;

pub use amount::Amount;
pub use attributes::{AttributeError, attribute_value, attributes_text, parse_attributes};
pub use checkpoint::CheckpointError;
pub use conversion::{Conversion, ConversionError};
pub use disk::{Disk, SourceKind};
pub use from_proto::{from_proto, resource_from_proto};
pub use item_set::ItemSet;
pub use labels::Labels;
pub use limits::Limits;
pub use list_rules::{
    AllocationFault, DiskFault, DuplicatePersistenceId, ListFault, ProviderFault, RevocableMix, sets_overlap,
    validate_list,
};
pub use name::Name;
pub use operation::{OperationError, conversions};
pub use operation_fault::{OperationFault, VolumeFault};
pub use operation_rules::{
    AgentAbilities, Requester, RequestingFramework, check_create, check_create_disk, check_destroy, check_destroy_disk,
    check_grow, check_reserve, check_shrink, check_unreserve,
};
pub use quantities::Quantities;
pub use quantities_text::{QuantitiesError, parse_alternatives, parse_quantities};
pub use ranges::{Range, Ranges};
pub use reservation::{Reservation, ReservationKind};
pub use resource::{ProviderId, Resource};
pub use resources::Resources;
pub use role::{Role, RoleError};
pub use summary::SummaryValue;
pub use text_in::{ResourceTextError, from_flag_messages, parse_flag, parse_text};
pub use to_proto::{Format, resource_to_proto};
pub use validate::{
    Fault, InvalidResource, MAX_MEMBERS, MAX_RESOURCES, rounds_to_nothing, validate, validate_resource,
};
pub use value::{Kind, Value};
pub use value_text::ValueTextError;
