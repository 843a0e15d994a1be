//! The value of a resource: an amount, a set of numbers, or a set of words.

use std::fmt;

use crate::{Amount, ItemSet, Ranges};

/// Kind of a resource's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A scalar: an amount.
    Scalar,
    /// Ranges of whole numbers.
    Ranges,
    /// A set of words.
    Set,
}

/// Value of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A scalar: an amount.
    Scalar(Amount),
    /// Ranges of whole numbers.
    Ranges(Ranges),
    /// A set of words.
    Set(ItemSet),
}

impl Value {
    /// Returns the kind of the value.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Scalar(_) => Kind::Scalar,
            Self::Ranges(_) => Kind::Ranges,
            Self::Set(_) => Kind::Set,
        }
    }

    /// Returns whether the value is an amount of 0, or has no members. Sets of resources drop such entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Scalar(amount) => amount.is_zero(),
            Self::Ranges(ranges) => ranges.is_empty(),
            Self::Set(items) => items.is_empty(),
        }
    }

    /// Returns whether `other` is a part of this value; `false` if the kinds differ.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => b <= a,
            (Self::Ranges(a), Self::Ranges(b)) => a.contains(b),
            (Self::Set(a), Self::Set(b)) => a.contains(b),
            _ => false,
        }
    }

    /// Returns whether the value has a number or word in common with `other`; amounts never have.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ranges(a), Self::Ranges(b)) => a.intersects(b),
            (Self::Set(a), Self::Set(b)) => a.intersects(b),
            _ => false,
        }
    }

    /// Returns the amount, or the number of members; saturates.
    #[must_use]
    pub fn count(&self) -> Amount {
        let members = |count: u64| Amount::from_units(i64::try_from(count).unwrap_or(i64::MAX));
        match self {
            Self::Scalar(amount) => *amount,
            Self::Ranges(ranges) => members(ranges.count()),
            Self::Set(items) => members(items.len() as u64),
        }
    }

    /// Adds `other`. If the kinds differ nothing changes (callers compare kinds first).
    pub(crate) fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => *a += *b,
            (Self::Ranges(a), Self::Ranges(b)) => *a = a.union(b),
            (Self::Set(a), Self::Set(b)) => *a = a.union(b),
            _ => {}
        }
    }

    /// Subtracts `other`. An amount may fall below 0. If the kinds differ nothing changes.
    pub(crate) fn subtract(&mut self, other: &Self) {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => *a -= *b,
            (Self::Ranges(a), Self::Ranges(b)) => *a = a.difference(b),
            (Self::Set(a), Self::Set(b)) => *a = a.difference(b),
            _ => {}
        }
    }
}

/// Formats the value as `2.5`, `[1-2, 7-9]` or `{a, b}`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(amount) => amount.fmt(f),
            Self::Ranges(ranges) => ranges.fmt(f),
            Self::Set(items) => items.fmt(f),
        }
    }
}
