//! The value of a resource: an amount, a set of numbers, or a set of words.

use std::fmt;

use crate::{Amount, ItemSet, Ranges};

/// What kind of value a resource has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An amount.
    Scalar,
    /// Whole numbers.
    Ranges,
    /// Words.
    Set,
}

/// A resource's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// An amount.
    Scalar(Amount),
    /// Whole numbers.
    Ranges(Ranges),
    /// Words.
    Set(ItemSet),
}

impl Value {
    /// Which of the three.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Scalar(_) => Kind::Scalar,
            Self::Ranges(_) => Kind::Ranges,
            Self::Set(_) => Kind::Set,
        }
    }

    /// An amount of 0, or no members. Such resources vanish from sets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Scalar(amount) => amount.is_zero(),
            Self::Ranges(ranges) => ranges.is_empty(),
            Self::Set(items) => items.is_empty(),
        }
    }

    /// `other` is a part of this. False if the kinds differ.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => b <= a,
            (Self::Ranges(a), Self::Ranges(b)) => a.contains(b),
            (Self::Set(a), Self::Set(b)) => a.contains(b),
            _ => false,
        }
    }

    /// Has a number or word in common with `other`; amounts never do.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ranges(a), Self::Ranges(b)) => a.intersects(b),
            (Self::Set(a), Self::Set(b)) => a.intersects(b),
            _ => false,
        }
    }

    /// The amount, or the number of members; saturates.
    #[must_use]
    pub fn count(&self) -> Amount {
        let members = |count: u64| Amount::from_units(i64::try_from(count).unwrap_or(i64::MAX));
        match self {
            Self::Scalar(amount) => *amount,
            Self::Ranges(ranges) => members(ranges.count()),
            Self::Set(items) => members(items.len() as u64),
        }
    }

    /// Adds `other`; nothing happens if the kinds differ (callers compare kinds first).
    pub(crate) fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => *a += *b,
            (Self::Ranges(a), Self::Ranges(b)) => *a = a.union(b),
            (Self::Set(a), Self::Set(b)) => *a = a.union(b),
            _ => {}
        }
    }

    /// Takes `other` away; an amount may fall below 0, and nothing happens if the kinds differ.
    pub(crate) fn subtract(&mut self, other: &Self) {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => *a -= *b,
            (Self::Ranges(a), Self::Ranges(b)) => *a = a.difference(b),
            (Self::Set(a), Self::Set(b)) => *a = a.difference(b),
            _ => {}
        }
    }
}

/// `2.5`, `[1-2, 7-9]` or `{a, b}`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(amount) => amount.fmt(f),
            Self::Ranges(ranges) => ranges.fmt(f),
            Self::Set(items) => items.fmt(f),
        }
    }
}
