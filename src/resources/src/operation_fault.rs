//! Why an offer operation is not allowed, in Mesos's words.

use crate::{AllocationFault, DuplicatePersistenceId, Fault, ListFault, ProviderFault, Resource, Resources, Role};

/// The rule that an operation breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationFault {
    /// Its resources break a rule.
    #[error("Invalid resources: {0}")]
    Resources(ListFault),
    /// Its `source` breaks a rule.
    #[error("Invalid source: {0}")]
    Source(ListFault),
    /// Its only resource breaks a rule.
    #[error("Invalid resource: {0}")]
    Resource(ListFault),
    /// Resources of several providers.
    #[error("Invalid resources: {0}")]
    Providers(#[from] ProviderFault),
    /// Nothing to work on.
    #[error("Operation contains no resources")]
    Nothing,
    /// Frameworks cannot change reservations yet.
    #[error("Reservation updates are not yet implemented for the scheduler API")]
    SourceByFramework,
    /// Not all resources have the same reservations.
    #[error("Invalid {0}: Mixed reservations are not supported")]
    MixedReservations(&'static str),
    /// Source and target are not the same but for reservations.
    #[error("Source and target resources should refer to identical resource quantities: {from} vs. {to}")]
    Quantities {
        /// The source without reservations.
        from: Resources,
        /// The target without reservations.
        to: Resources,
    },
    /// A reservation that is static, or none.
    #[error("Resource {0} is not dynamically reserved")]
    NotDynamic(Resource),
    /// The agent knows no paths of roles.
    #[error(
        "{what} {resource} with reservation for hierarchical role '{role}' cannot be {done} on an agent without \
         HIERARCHICAL_ROLE capability"
    )]
    NoHierarchy {
        /// `Resource` or `Volume`.
        what: &'static str,
        /// The resource.
        resource: Box<Resource>,
        /// Its role.
        role: Role,
        /// `reserved` or `created`.
        done: &'static str,
    },
    /// The agent knows one level of reservations only.
    #[error(
        "{what} {resource} with reservation refinement cannot be {done} on an agent without RESERVATION_REFINEMENT \
         capability"
    )]
    NoRefinement {
        /// `Resource` or `Volume`.
        what: &'static str,
        /// The resource.
        resource: Box<Resource>,
        /// `reserved` or `created`.
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
        /// The principal of the request.
        principal: String,
        /// The principal in the reservation.
        given: String,
    },
    /// A framework reserves what it was not offered.
    #[error(
        "A reserve operation was attempted on unallocated resource {0}, but frameworks can only perform reservations on \
         allocated resources"
    )]
    ReserveUnallocated(Resource),
    /// A framework reserves for another role than the offer's.
    #[error(
        "A reserve operation was attempted for a resource with role '{role}', but the resource was allocated to role \
         '{allocated}'"
    )]
    ReserveForOther {
        /// The reservation's.
        role: Role,
        /// The offer's.
        allocated: Role,
    },
    /// A framework that is not in the role.
    #[error(
        "A reserve operation was attempted for a resource allocated to role '{role}', but the framework only has roles \
         '{roles}'"
    )]
    ReserveForeignRole {
        /// The role.
        role: Role,
        /// The framework's, as `{ a, b }`.
        roles: String,
    },
    /// An operator reserves what is allocated.
    #[error(
        "A reserve operation was attempted with an allocated resource, but the operator API only allows reservations to \
         be made to unallocated resources"
    )]
    ReserveAllocated,
    /// Allocated to several roles, or to none.
    #[error("Invalid {what} resources: {why}")]
    Allocation {
        /// `reservation` or `volume`.
        what: &'static str,
        /// What is wrong.
        why: AllocationFault,
    },
    /// A volume must be destroyed first.
    #[error(
        "A dynamically reserved persistent volume {0} cannot be unreserved directly. Please destroy the persistent volume \
         first then unreserve the resource"
    )]
    UnreserveVolume(Resource),
    /// Not a volume, or not a complete one.
    #[error("Not a persistent volume: {0}")]
    NotAVolume(VolumeFault),
    /// The id is there already.
    #[error(transparent)]
    Duplicate(#[from] DuplicatePersistenceId),
    /// A framework that cannot share.
    #[error(
        "Create volume operation for '{volume}' has been attempted by framework '{framework}' with no SHARED_RESOURCES \
         capability"
    )]
    CannotShare {
        /// The volume.
        volume: Box<Resource>,
        /// The framework's id.
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
        /// The principal of the request.
        principal: String,
        /// The principal in the volume.
        given: String,
    },
    /// No such volume on the agent.
    #[error("Persistent volumes not found")]
    NoSuchVolume,
    /// A task or executor has the volume.
    #[error("Persistent volumes in use")]
    InUse,
    /// A resource that breaks a rule.
    #[error("Invalid resource in the '{field}' field: {fault}")]
    Field {
        /// The field of the operation.
        field: &'static str,
        /// The rule.
        fault: Fault,
    },
    /// A volume without a size.
    #[error("The size of each volume must be greater than zero")]
    EmptyVolume,
    /// The volume has no size.
    #[error("The size of 'GrowVolume.volume' field must be greater than zero")]
    GrowNothing,
    /// Nothing is added.
    #[error("The size of 'GrowVolume.addition' field must be greater than zero")]
    GrowByNothing,
    /// Nothing is taken away.
    #[error("Value of 'ShrinkVolume.subtract' must be greater than zero")]
    ShrinkByNothing,
    /// Nothing would be left.
    #[error("Value of 'ShrinkVolume.subtract' must be smaller than the size of 'ShrinkVolume.volume'")]
    ShrinkToNothing,
    /// The volume is a resource provider's.
    #[error("{0} a volume from a resource provider is not supported")]
    ResizeOfProvider(&'static str),
    /// The volume is a whole file system.
    #[error("Shrinking a volume on a MOUNT disk is not supported")]
    ShrinkMount,
    /// The volume may be used by others.
    #[error("{0} a shared persistent volume is not supported")]
    ResizeShared(&'static str),
    /// Not a volume.
    #[error("Invalid persistent volume in the '{field}' field: {fault}")]
    ResizeVolume {
        /// The field of the operation.
        field: &'static str,
        /// What is wrong with it.
        fault: VolumeFault,
    },
    /// The addition is other disk.
    #[error("Incompatible resources in the 'GrowVolume.volume' and 'GrowVolume.addition' fields")]
    GrowByOther,
    /// The agent cannot do it.
    #[error("Volume {volume} cannot be {done} on an agent without RESIZE_VOLUME capability")]
    NoResize {
        /// The volume.
        volume: Box<Resource>,
        /// `grown` or `shrunk`.
        done: &'static str,
    },
    /// The agent's own disk.
    #[error("'source' is not managed by a resource provider")]
    NotOfProvider,
    /// Already formatted.
    #[error("'source' is not a RAW disk resource")]
    NotRaw,
    /// No such kind of disk can be made.
    #[error("'target_type' is neither MOUNT or BLOCK")]
    TargetType,
    /// Two profiles.
    #[error("'target_profile' must not be set when 'source' has a profile")]
    TwoProfiles,
    /// No profile.
    #[error("'target_profile' must be set when 'source' has no profile")]
    NoProfile,
    /// A disk that no operation made.
    #[error("'source' is neither a MOUNT, BLOCK or RAW disk resource")]
    NotADisk,
    /// Nothing that the provider could free.
    #[error("'source' is not backed by a CSI volume")]
    NoCsiVolume,
    /// A volume must be destroyed first.
    #[error(
        "A disk resource containing a persistent volume {0} cannot be destroyed directly. Please destroy the persistent \
         volume first then destroy the disk resource"
    )]
    DestroyDiskOfVolume(Resource),
}

/// What a persistent volume lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeFault {
    /// Disk information.
    #[error("Resource {0} does not have DiskInfo")]
    NoDisk(Box<Resource>),
    /// Persistence.
    #[error("'persistence' is not set in DiskInfo")]
    NoPersistence,
    /// A place in the container.
    #[error("Expecting 'volume' to be set for persistent volume")]
    NoVolume,
    /// The right to write.
    #[error("Read-only persistent volume not supported")]
    ReadOnly,
}
