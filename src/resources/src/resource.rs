//! One entry of a resource set.

use std::fmt;
use std::sync::Arc;

use crate::{Amount, Disk, ItemSet, Kind, Name, Ranges, Reservation, Role, Value};

/// The id of a resource provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId(Arc<str>);

impl ProviderId {
    /// Takes any text; ids are made by masters.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A named value with its reservation, allocation, disk and other properties.
///
/// Equality is Mesos's: everything but the disk's volume, including the number of copies if shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    pub(crate) name: Name,
    pub(crate) value: Value,
    pub(crate) allocation: Option<Role>,
    pub(crate) reservations: Option<Arc<[Reservation]>>,
    pub(crate) disk: Option<Disk>,
    pub(crate) provider: Option<ProviderId>,
    /// How many copies of a shared resource; 0 if it is not shared.
    pub(crate) copies: u32,
    pub(crate) revocable: bool,
}

impl Resource {
    /// An unreserved, unallocated resource.
    #[must_use]
    pub fn new(name: impl Into<Name>, value: Value) -> Self {
        Self {
            name: name.into(),
            value,
            allocation: None,
            reservations: None,
            disk: None,
            provider: None,
            copies: 0,
            revocable: false,
        }
    }

    /// An amount.
    #[must_use]
    pub fn scalar(name: impl Into<Name>, amount: Amount) -> Self {
        Self::new(name, Value::Scalar(amount))
    }

    /// Whole numbers.
    #[must_use]
    pub fn ranges(name: impl Into<Name>, ranges: Ranges) -> Self {
        Self::new(name, Value::Ranges(ranges))
    }

    /// Words.
    #[must_use]
    pub fn set(name: impl Into<Name>, items: ItemSet) -> Self {
        Self::new(name, Value::Set(items))
    }

    /// With this value.
    #[must_use]
    pub fn with_value(mut self, value: Value) -> Self {
        self.value = value;
        self
    }

    /// Allocated to a role, or to none.
    #[must_use]
    pub fn with_allocation(mut self, role: Option<Role>) -> Self {
        self.allocation = role;
        self
    }

    /// With exactly these reservations, outermost first.
    #[must_use]
    pub fn with_reservations(mut self, stack: &[Reservation]) -> Self {
        self.reservations = if stack.is_empty() { None } else { Some(stack.into()) };
        self
    }

    /// With this disk information.
    #[must_use]
    pub fn with_disk(mut self, disk: Option<Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Of this resource provider.
    #[must_use]
    pub fn with_provider(mut self, provider: Option<ProviderId>) -> Self {
        self.provider = provider;
        self
    }

    /// May be taken away at any time, or not.
    #[must_use]
    pub fn with_revocable(mut self, revocable: bool) -> Self {
        self.revocable = revocable;
        self
    }

    /// With this many shared copies; 0 makes it not shared.
    #[must_use]
    pub fn with_copies(mut self, copies: u32) -> Self {
        self.copies = copies;
        self
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// The value.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// The amount; none for ranges and sets.
    #[must_use]
    pub const fn amount(&self) -> Option<Amount> {
        match self.value {
            Value::Scalar(amount) => Some(amount),
            _ => None,
        }
    }

    /// Scalar, ranges or set.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.value.kind()
    }

    /// The role that it is allocated to.
    #[must_use]
    pub const fn allocation(&self) -> Option<&Role> {
        self.allocation.as_ref()
    }

    /// The reservations, outermost first; empty if unreserved.
    #[must_use]
    pub fn reservations(&self) -> &[Reservation] {
        self.reservations.as_deref().unwrap_or_default()
    }

    /// The innermost reservation.
    #[must_use]
    pub fn reservation(&self) -> Option<&Reservation> {
        self.reservations().last()
    }

    /// The role that may use it: the innermost reservation's, none if unreserved.
    #[must_use]
    pub fn reservation_role(&self) -> Option<&Role> {
        self.reservation().map(|reservation| &reservation.role)
    }

    /// The disk information.
    #[must_use]
    pub const fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// The resource provider that it comes from; none for the agent itself.
    #[must_use]
    pub const fn provider(&self) -> Option<&ProviderId> {
        self.provider.as_ref()
    }

    /// How many copies of a shared resource; 0 if it is not shared.
    #[must_use]
    pub const fn copies(&self) -> u32 {
        self.copies
    }

    /// May be taken away at any time.
    #[must_use]
    pub const fn is_revocable(&self) -> bool {
        self.revocable
    }

    /// Can be used by several tasks at once.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.copies > 0
    }

    /// Whether it is unreserved.
    #[must_use]
    pub const fn is_unreserved(&self) -> bool {
        self.reservations.is_none()
    }

    /// Whether it is reserved.
    #[must_use]
    pub const fn is_reserved(&self) -> bool {
        self.reservations.is_some()
    }

    /// Reserved for exactly this role.
    #[must_use]
    pub fn is_reserved_to(&self, role: &Role) -> bool {
        self.reservation_role() == Some(role)
    }

    /// The innermost reservation was made by a call.
    #[must_use]
    pub fn is_dynamically_reserved(&self) -> bool {
        self.reservation().is_some_and(Reservation::is_dynamic)
    }

    /// Whether it has more than one reservation, which the older format cannot express.
    #[must_use]
    pub fn has_refined_reservations(&self) -> bool {
        self.reservations().len() > 1
    }

    /// May be offered to this role: unreserved, or reserved for it or an ancestor of it.
    #[must_use]
    pub fn is_allocatable_to(&self, role: &Role) -> bool {
        self.reservation_role().is_none_or(|owner| role.is_same_or_subrole_of(owner))
    }

    /// A disk with a persistence id.
    #[must_use]
    pub fn is_persistent_volume(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.persistence_id().is_some())
    }

    /// Can be had only as a whole: a persistent volume, a MOUNT, a BLOCK, a RAW with an id.
    #[must_use]
    pub fn is_indivisible(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.persistence_id().is_some() || disk.is_exclusive())
    }

    /// An amount of 0, or no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// The same but for value and copies.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        self.name == other.name
            && self.value.kind() == other.value.kind()
            && self.is_shared() == other.is_shared()
            && self.revocable == other.revocable
            && self.allocation == other.allocation
            && self.reservations == other.reservations
            && self.disk == other.disk
            && self.provider == other.provider
    }

    /// Both become one entry when added: the same but for the value, and not something that exists only as a whole.
    pub(crate) fn merges_with(&self, other: &Self) -> bool {
        self.same_kind(other) && if self.is_shared() { self.value == other.value } else { !self.is_indivisible() }
    }

    /// `other` can be taken out of this entry. What exists only as a whole must be equal.
    pub(crate) fn yields(&self, other: &Self) -> bool {
        self.same_kind(other) && (!(self.is_shared() || self.is_indivisible()) || self.value == other.value)
    }

    /// `other` is a part of this entry.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.yields(other)
            && if self.is_shared() { other.copies <= self.copies } else { self.value.contains(&other.value) }
    }
}
