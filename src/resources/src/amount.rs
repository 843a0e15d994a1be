//! Amounts: scalar values as whole thousandths.
//!
//! Arithmetic saturates at the ends of `i64` (9.2e15 units), it never wraps and never panics.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

/// A scalar amount in thousandths of its unit (cores, megabytes, whatever the name counts).
///
/// Three decimals are all that Mesos compares and adds: `0.1 + 0.2` is `0.3`, and `0.0004` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

impl Amount {
    /// The amount 0.
    pub const ZERO: Self = Self(0);
    /// The largest amount, at which sums saturate.
    pub const MAX: Self = Self(i64::MAX);
    /// One thousandth, the smallest amount above zero.
    pub const MILLI: Self = Self(1);

    /// Creates an amount of this many thousandths.
    #[must_use]
    pub const fn from_thousandths(thousandths: i64) -> Self {
        Self(thousandths)
    }

    /// Creates an amount of whole units.
    #[must_use]
    pub const fn from_units(units: i64) -> Self {
        Self(units.saturating_mul(1000))
    }

    /// Converts to the nearest amount: `value * 1000` rounded, halves away from zero.
    ///
    /// Values past the ends saturate; NaN becomes 0. Incoming lists are checked before ([`fn@crate::validate`]).
    #[must_use]
    pub fn from_f64(value: f64) -> Self {
        #[allow(clippy::cast_possible_truncation)]
        Self((value * 1000.0).round() as i64)
    }

    /// Returns the amount in units, as messages contain it.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Returns the amount in thousandths.
    #[must_use]
    pub const fn thousandths(self) -> i64 {
        self.0
    }

    /// Returns whether the amount is 0.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the amount is below 0.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Returns whether the amount is above 0.
    #[must_use]
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// Returns whether the amount is a whole number of units.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.0 % 1000 == 0
    }

    /// Returns `self - other`, or 0 if that is negative.
    #[must_use]
    pub fn minus_floored(self, other: Self) -> Self {
        (self - other).max(Self::ZERO)
    }

    /// Returns the amount times `factor`, rounded like [`Amount::from_f64`]; saturates.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        #[allow(clippy::cast_possible_truncation)]
        Self((self.0 as f64 * factor).round() as i64)
    }

    /// Returns `self / whole`, or 0 if `whole` is not above 0.
    #[must_use]
    pub fn ratio_of(self, whole: Self) -> f64 {
        if whole.0 > 0 { self.0 as f64 / whole.0 as f64 } else { 0.0 }
    }
}

impl Add for Amount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Amount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Amount {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Formats the amount with at most 3 decimals, without trailing zeros: `4`, `0.1`, `-2.125`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let (units, rest) = (self.0.unsigned_abs() / 1000, self.0.unsigned_abs() % 1000);
        match rest {
            0 => write!(f, "{units}"),
            _ if rest % 100 == 0 => write!(f, "{units}.{}", rest / 100),
            _ if rest % 10 == 0 => write!(f, "{units}.{:02}", rest / 10),
            _ => write!(f, "{units}.{rest:03}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_halves_away_from_zero() {
        for (value, thousandths) in [
            (0.1, 100),
            (0.0004, 0),
            (0.0005, 1),
            (-0.0005, -1),
            (1.0015, 1002),
            (2.5, 2500),
            (f64::NAN, 0),
            (f64::INFINITY, i64::MAX),
            (f64::NEG_INFINITY, i64::MIN),
            (1e300, i64::MAX),
        ] {
            assert_eq!(Amount::from_f64(value).thousandths(), thousandths, "{value}");
        }
        assert_eq!(Amount::from_f64(0.1) + Amount::from_f64(0.2), Amount::from_f64(0.3));
        assert_eq!((Amount::from_f64(0.1) + Amount::from_f64(0.2)).to_f64(), 0.3);
    }

    #[test]
    fn prints_at_most_three_decimals() {
        for (thousandths, text) in [
            (0, "0"),
            (1, "0.001"),
            (10, "0.01"),
            (100, "0.1"),
            (-1500, "-1.5"),
            (4_000, "4"),
            (4_096_125, "4096.125"),
            (i64::MIN, "-9223372036854775.808"),
        ] {
            assert_eq!(Amount::from_thousandths(thousandths).to_string(), text);
        }
    }

    #[test]
    fn saturates() {
        assert_eq!(Amount::MAX + Amount::MILLI, Amount::MAX);
        assert_eq!(-Amount::from_thousandths(i64::MIN), Amount::MAX);
        assert_eq!(Amount::from_units(i64::MAX), Amount::MAX);
        assert_eq!(Amount::MAX.scaled(2.0), Amount::MAX);
        assert_eq!(Amount::from_units(1).minus_floored(Amount::from_units(2)), Amount::ZERO);
    }
}
