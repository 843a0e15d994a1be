//! Rules for whole lists of resources in tasks, executors and operations, with Mesos's messages.

use std::collections::BTreeSet;

use protos::mesos;

use crate::{Name, Quantities, Resource, Resources, Role, from_proto};

/// The rule that a list of resources breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    /// A resource is invalid.
    #[error("Invalid resources: {0}")]
    Resource(#[from] crate::InvalidResource),
    /// The number of GPUs is not a whole number.
    #[error("Invalid 'gpus' resource: The 'gpus' resource must be an unsigned integer")]
    Gpus,
    /// The disk information is invalid.
    #[error("Invalid DiskInfo: {0}")]
    Disk(DiskFault),
    /// The resource is reserved and revocable.
    #[error("Invalid ReservationInfo: Dynamically reserved resource {0} cannot be created from revocable resources")]
    RevocableReservation(Resource),
}

/// The rule that disk information breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskFault {
    /// The persistent volume is on revocable resources.
    #[error("Persistent volumes cannot be created from revocable resources")]
    Revocable,
    /// The persistent volume is on unreserved resources.
    #[error("Persistent volumes cannot be created from unreserved resources")]
    Unreserved,
    /// The persistent volume has no path in the container.
    #[error("Expecting 'volume' to be set for persistent volume")]
    NoVolume,
    /// The persistent volume has a path on the host.
    #[error("Expecting 'host_path' to be unset for persistent volume")]
    HostPath,
    /// The persistence id cannot be the name of a directory.
    #[error("Invalid persistence ID for persistent volume: {0}")]
    Id(#[from] base::IdError),
    /// The disk has a volume and no persistence.
    #[error("Non-persistent volume not supported")]
    NotPersistent,
    /// The disk has neither source nor persistence.
    #[error("DiskInfo is set but empty")]
    Empty,
}

/// Validates and converts the resources of a task, an executor or an operation.
///
/// # Errors
/// Returns the first rule that the list breaks, in Mesos's order.
pub fn validate_list(messages: &[mesos::Resource]) -> Result<Resources, ListFault> {
    let resources = from_proto(messages)?;
    if !resources.gpus().is_whole() {
        return Err(ListFault::Gpus);
    }
    resources.iter().try_for_each(check_disk).map_err(ListFault::Disk)?;
    match resources.iter().find(|r| r.is_dynamically_reserved() && r.is_revocable()) {
        Some(resource) => Err(ListFault::RevocableReservation(resource.clone())),
        None => Ok(resources),
    }
}

fn check_disk(resource: &Resource) -> Result<(), DiskFault> {
    let Some(disk) = resource.disk() else { return Ok(()) };
    let Some(id) = disk.persistence_id() else {
        return match (disk.volume(), disk.as_proto().source.as_ref()) {
            (Some(_), _) => Err(DiskFault::NotPersistent),
            (None, None) => Err(DiskFault::Empty),
            (None, Some(_)) => Ok(()),
        };
    };
    if resource.is_revocable() {
        return Err(DiskFault::Revocable);
    }
    if resource.is_unreserved() {
        return Err(DiskFault::Unreserved);
    }
    let volume = disk.volume().ok_or(DiskFault::NoVolume)?;
    if volume.host_path.is_some() {
        return Err(DiskFault::HostPath);
    }
    // A persistence id becomes the name of a directory, and follows the rule of all such ids.
    base::TaskId::new(id)?;
    Ok(())
}

/// A persistence id that occurs twice in one role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Persistence ID '{0}' is not unique")]
pub struct DuplicatePersistenceId(pub String);

/// The rule about allocations that a list of resources breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationFault {
    /// A resource is not allocated.
    #[error("The resources are not allocated to a role")]
    Unallocated,
    /// The resources are allocated to two roles.
    #[error(
        "The resources have multiple allocation roles ('{second}' and '{first}') but only one allocation role is allowed"
    )]
    Several {
        /// Role of the first resource.
        first: Role,
        /// Another role in the list.
        second: Role,
    },
}

/// A name with both revocable and other resources.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Cannot use both revocable and non-revocable '{0}' at the same time")]
pub struct RevocableMix(pub Name);

/// The rule about resource providers that a list of resources breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFault {
    /// Some resources are the agent's own, others a provider's.
    #[error("Some resources have a resource provider and some do not")]
    Mixed,
    /// The resources are of two or more providers.
    #[error("The resources have multiple resource providers: {0}")]
    Several(String),
}

impl Resources {
    /// Checks that no persistence id occurs twice in one role.
    ///
    /// # Errors
    /// Returns an id that occurs twice.
    pub fn check_unique_persistence_ids(&self) -> Result<(), DuplicatePersistenceId> {
        let mut seen = BTreeSet::new();
        for volume in self.iter().filter(|r| r.is_persistent_volume()) {
            let id = volume.disk().and_then(crate::Disk::persistence_id).unwrap_or_default();
            if !seen.insert((volume.reservation_role(), id)) {
                return Err(DuplicatePersistenceId(id.to_owned()));
            }
        }
        Ok(())
    }

    /// Checks that everything is allocated to one role, and returns the role; `None` for no resources.
    ///
    /// # Errors
    /// A resource is not allocated, or there are two roles.
    pub fn single_allocation_role(&self) -> Result<Option<&Role>, AllocationFault> {
        let mut found: Option<&Role> = None;
        for resource in self {
            let role = resource.allocation().ok_or(AllocationFault::Unallocated)?;
            match found {
                Some(first) if first != role => {
                    return Err(AllocationFault::Several { first: first.clone(), second: role.clone() });
                }
                _ => found = Some(role),
            }
        }
        Ok(found)
    }

    /// Checks that no name has both revocable and other resources.
    ///
    /// # Errors
    /// Returns the name.
    pub fn check_revocable_mix(&self) -> Result<(), RevocableMix> {
        let revocable: BTreeSet<_> = self.iter().filter(|r| r.is_revocable()).map(Resource::name).collect();
        match self.iter().find(|r| !r.is_revocable() && revocable.contains(r.name())) {
            Some(resource) => Err(RevocableMix(resource.name().clone())),
            None => Ok(()),
        }
    }

    /// Checks that all resources are of one resource provider, or all of the agent.
    ///
    /// # Errors
    /// Returns the providers.
    pub fn check_single_provider(&self) -> Result<(), ProviderFault> {
        let providers: BTreeSet<_> = self.iter().map(Resource::provider).collect();
        if providers.len() <= 1 {
            return Ok(());
        }
        if providers.contains(&None) {
            return Err(ProviderFault::Mixed);
        }
        let ids: Vec<&str> = providers.into_iter().flatten().map(crate::ProviderId::as_str).collect();
        Err(ProviderFault::Several(ids.join(", ")))
    }

    /// Returns the amounts by name, where the members of ranges and sets are counted.
    fn counts(&self) -> Quantities {
        let mut sums = Quantities::new();
        for resource in self {
            sums.add(resource.name(), resource.value().count());
        }
        sums
    }

    /// Returns whether at least these amounts are available; the members of ranges and sets are counted.
    #[must_use]
    pub fn contains_quantities(&self, wanted: &Quantities) -> bool {
        let counts = self.counts();
        wanted.iter().all(|(name, amount)| counts.get(&name) >= amount)
    }
}

/// Returns whether two of the sets have a member of ranges or of a set of the same name in common.
#[must_use]
pub fn sets_overlap(sets: &[Resources]) -> bool {
    let mut all = Resources::new();
    for resource in sets.iter().flatten().filter(|r| r.amount().is_none()) {
        let value = resource.value();
        if all.iter().any(|seen: &Resource| seen.name() == resource.name() && seen.value().intersects(value)) {
            return true;
        }
        all.add_ref(resource);
    }
    false
}
