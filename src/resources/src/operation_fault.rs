//! Rules that an offer operation can break, with Mesos's messages.

use crate::{AllocationFault, DuplicatePersistenceId, Fault, ListFault, ProviderFault, Resource, Resources, Role};

/// The rule that an operation breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationFault {
    /// The resources of the operation break a rule.
    #[error("Invalid resources: {0}")]
    Resources(ListFault),
    /// The `source` of the operation breaks a rule.
    #[error("Invalid source: {0}")]
    Source(ListFault),
    /// The only resource of the operation breaks a rule.
    #[error("Invalid resource: {0}")]
    Resource(ListFault),
    /// The resources are of several providers.
    #[error("Invalid resources: {0}")]
    Providers(#[from] ProviderFault),
    /// The operation has no resources.
    #[error("Operation contains no resources")]
    Nothing,
    /// A framework sets a `source`, which only operators can.
    #[error("Reservation updates are not yet implemented for the scheduler API")]
    SourceByFramework,
    /// The resources do not all have the same reservations.
    #[error("Invalid {0}: Mixed reservations are not supported")]
    MixedReservations(&'static str),
    /// Source and target differ in more than their reservations.
    #[error("Source and target resources should refer to identical resource quantities: {from} vs. {to}")]
    Quantities {
        /// Source without reservations.
        from: Resources,
        /// Target without reservations.
        to: Resources,
    },
    /// The resource is reserved statically, or unreserved.
    #[error("Resource {0} is not dynamically reserved")]
    NotDynamic(Resource),
    /// The agent has no capability for hierarchical roles.
    #[error(
        "{what} {resource} with reservation for hierarchical role '{role}' cannot be {done} on an agent without \
         HIERARCHICAL_ROLE capability"
    )]
    NoHierarchy {
        /// Subject of the message: `Resource` or `Volume`.
        what: &'static str,
        /// Resource of the operation.
        resource: Box<Resource>,
        /// Role of the reservation.
        role: Role,
        /// Participle in the message: `reserved` or `created`.
        done: &'static str,
    },
    /// The agent has no capability for refined reservations, and supports one level only.
    #[error(
        "{what} {resource} with reservation refinement cannot be {done} on an agent without RESERVATION_REFINEMENT \
         capability"
    )]
    NoRefinement {
        /// Subject of the message: `Resource` or `Volume`.
        what: &'static str,
        /// Resource of the operation.
        resource: Box<Resource>,
        /// Participle in the message: `reserved` or `created`.
        done: &'static str,
    },
    /// The reservation has no principal.
    #[error(
        "A reserve operation was attempted by principal '{0}', but there is a reserved resource in the request with no \
         principal set"
    )]
    ReserveWithoutPrincipal(String),
    /// The reservation has another principal.
    #[error(
        "A reserve operation was attempted by authenticated principal '{principal}', which does not match a reserved \
         resource in the request with principal '{given}'"
    )]
    ReservePrincipal {
        /// Principal of the request.
        principal: String,
        /// Principal in the reservation.
        given: String,
    },
    /// A framework reserves a resource that was not offered to it.
    #[error(
        "A reserve operation was attempted on unallocated resource {0}, but frameworks can only perform reservations on \
         allocated resources"
    )]
    ReserveUnallocated(Resource),
    /// A framework reserves for another role than that of the offer.
    #[error(
        "A reserve operation was attempted for a resource with role '{role}', but the resource was allocated to role \
         '{allocated}'"
    )]
    ReserveForOther {
        /// Role of the reservation.
        role: Role,
        /// Role of the offer.
        allocated: Role,
    },
    /// The framework does not have the role of the allocation.
    #[error(
        "A reserve operation was attempted for a resource allocated to role '{role}', but the framework only has roles \
         '{roles}'"
    )]
    ReserveForeignRole {
        /// Role of the allocation.
        role: Role,
        /// Roles of the framework, as `{ a, b }`.
        roles: String,
    },
    /// An operator reserves an allocated resource.
    #[error(
        "A reserve operation was attempted with an allocated resource, but the operator API only allows reservations to \
         be made to unallocated resources"
    )]
    ReserveAllocated,
    /// The resources are allocated to several roles, or to none.
    #[error("Invalid {what} resources: {why}")]
    Allocation {
        /// Subject of the message: `reservation` or `volume`.
        what: &'static str,
        /// Rule that the allocation breaks.
        why: AllocationFault,
    },
    /// A persistent volume must be destroyed before it is unreserved.
    #[error(
        "A dynamically reserved persistent volume {0} cannot be unreserved directly. Please destroy the persistent volume \
         first then unreserve the resource"
    )]
    UnreserveVolume(Resource),
    /// The resource is not a persistent volume, or an incomplete one.
    #[error("Not a persistent volume: {0}")]
    NotAVolume(VolumeFault),
    /// The persistence id exists already.
    #[error(transparent)]
    Duplicate(#[from] DuplicatePersistenceId),
    /// The framework creates a shared volume without the capability SHARED_RESOURCES.
    #[error(
        "Create volume operation for '{volume}' has been attempted by framework '{framework}' with no SHARED_RESOURCES \
         capability"
    )]
    CannotShare {
        /// Volume of the operation.
        volume: Box<Resource>,
        /// Id of the framework.
        framework: String,
    },
    /// The volume has no principal.
    #[error(
        "Create volume operation attempted by principal '{0}', but there is a volume in the operation with no principal \
         set in 'disk.persistence'"
    )]
    CreateWithoutPrincipal(String),
    /// The volume has another principal.
    #[error(
        "Create volume operation attempted by authenticated principal '{principal}', which does not match a volume in the \
         operation with principal '{given}' set in 'disk.persistence'"
    )]
    CreatePrincipal {
        /// Principal of the request.
        principal: String,
        /// Principal in the volume.
        given: String,
    },
    /// The agent has no such volume.
    #[error("Persistent volumes not found")]
    NoSuchVolume,
    /// A task or executor uses the volume.
    #[error("Persistent volumes in use")]
    InUse,
    /// The resource in a field of the operation breaks a rule.
    #[error("Invalid resource in the '{field}' field: {fault}")]
    Field {
        /// Field of the operation.
        field: &'static str,
        /// Rule that the resource breaks.
        fault: Fault,
    },
    /// The volume of the operation has no size.
    #[error("The size of each volume must be greater than zero")]
    EmptyVolume,
    /// The volume to be grown has no size.
    #[error("The size of 'GrowVolume.volume' field must be greater than zero")]
    GrowNothing,
    /// The addition has no size.
    #[error("The size of 'GrowVolume.addition' field must be greater than zero")]
    GrowByNothing,
    /// The subtracted size is 0.
    #[error("Value of 'ShrinkVolume.subtract' must be greater than zero")]
    ShrinkByNothing,
    /// The volume would have no size afterwards.
    #[error("Value of 'ShrinkVolume.subtract' must be smaller than the size of 'ShrinkVolume.volume'")]
    ShrinkToNothing,
    /// The volume is on a disk of a resource provider.
    #[error("{0} a volume from a resource provider is not supported")]
    ResizeOfProvider(&'static str),
    /// The volume is a whole file system, which cannot be shrunk.
    #[error("Shrinking a volume on a MOUNT disk is not supported")]
    ShrinkMount,
    /// The volume is shared, and others may use it.
    #[error("{0} a shared persistent volume is not supported")]
    ResizeShared(&'static str),
    /// The resource in a field of the operation is not a persistent volume.
    #[error("Invalid persistent volume in the '{field}' field: {fault}")]
    ResizeVolume {
        /// Field of the operation.
        field: &'static str,
        /// Rule that the resource breaks.
        fault: VolumeFault,
    },
    /// The addition is of another disk than the volume.
    #[error("Incompatible resources in the 'GrowVolume.volume' and 'GrowVolume.addition' fields")]
    GrowByOther,
    /// The agent has no capability to resize volumes.
    #[error("Volume {volume} cannot be {done} on an agent without RESIZE_VOLUME capability")]
    NoResize {
        /// Volume of the operation.
        volume: Box<Resource>,
        /// Participle in the message: `grown` or `shrunk`.
        done: &'static str,
    },
    /// The disk is the agent's own, not a resource provider's.
    #[error("'source' is not managed by a resource provider")]
    NotOfProvider,
    /// The disk is formatted already: it is not RAW.
    #[error("'source' is not a RAW disk resource")]
    NotRaw,
    /// The target type is neither MOUNT nor BLOCK.
    #[error("'target_type' is neither MOUNT or BLOCK")]
    TargetType,
    /// The operation has a target profile, and the disk has a profile already.
    #[error("'target_profile' must not be set when 'source' has a profile")]
    TwoProfiles,
    /// Neither the operation nor the disk has a profile.
    #[error("'target_profile' must be set when 'source' has no profile")]
    NoProfile,
    /// The disk is neither MOUNT, BLOCK nor RAW.
    #[error("'source' is neither a MOUNT, BLOCK or RAW disk resource")]
    NotADisk,
    /// The disk has no CSI volume that the provider could free.
    #[error("'source' is not backed by a CSI volume")]
    NoCsiVolume,
    /// A persistent volume on the disk must be destroyed first.
    #[error(
        "A disk resource containing a persistent volume {0} cannot be destroyed directly. Please destroy the persistent \
         volume first then destroy the disk resource"
    )]
    DestroyDiskOfVolume(Resource),
}

/// A property that a persistent volume lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeFault {
    /// The resource has no disk information.
    #[error("Resource {0} does not have DiskInfo")]
    NoDisk(Box<Resource>),
    /// The disk has no persistence.
    #[error("'persistence' is not set in DiskInfo")]
    NoPersistence,
    /// The disk has no volume, that is, no path in the container.
    #[error("Expecting 'volume' to be set for persistent volume")]
    NoVolume,
    /// The volume is read-only.
    #[error("Read-only persistent volume not supported")]
    ReadOnly,
}
