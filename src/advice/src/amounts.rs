//! Pairs of processors and memory.

use std::ops::{Add, AddAssign, Sub};

use resources::Amount;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of processors and of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Number of cores.
    pub cpus: Amount,
    /// Memory in megabytes.
    pub mem: Amount,
}

/// The JSON form of [`Amounts`], in whole units.
#[derive(Serialize, Deserialize)]
struct Units {
    cpus: f64,
    mem: f64,
}

impl Amounts {
    /// Creates amounts from cores and megabytes.
    pub fn of(cpus: f64, mem: f64) -> Amounts {
        Amounts { cpus: Amount::from_f64(cpus), mem: Amount::from_f64(mem) }
    }

    /// Returns both amounts times a factor.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Amounts {
        Amounts { cpus: self.cpus.scaled(factor), mem: self.mem.scaled(factor) }
    }
}

impl Add for Amounts {
    type Output = Amounts;
    fn add(self, other: Amounts) -> Amounts {
        Amounts { cpus: self.cpus + other.cpus, mem: self.mem + other.mem }
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Amounts) {
        *self = *self + other;
    }
}

impl Sub for Amounts {
    type Output = Amounts;
    fn sub(self, other: Amounts) -> Amounts {
        Amounts { cpus: self.cpus - other.cpus, mem: self.mem - other.mem }
    }
}

impl Serialize for Amounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Units { cpus: self.cpus.to_f64(), mem: self.mem.to_f64() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amounts, D::Error> {
        Units::deserialize(deserializer).map(|units| Amounts::of(units.cpus, units.mem))
    }
}

/// Serializes an amount in whole units.
pub(crate) fn units<S: Serializer>(amount: &Amount, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(amount.to_f64())
}

/// Serializes an optional amount in whole units.
pub(crate) fn optional_units<S: Serializer>(amount: &Option<Amount>, serializer: S) -> Result<S::Ok, S::Error> {
    amount.map(Amount::to_f64).serialize(serializer)
}
