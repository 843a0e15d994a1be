//! Needs of tasks and free amounts of offers: five amounts side by side, so that a comparison takes a few instructions.
//!
//! Reservations and port numbers are resolved when a task is launched.

use std::fmt;

use resources::Amount;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};

/// Number of kinds of amounts in a [`Need`].
pub const KINDS: usize = 5;

/// Names of the kinds, in their order: cores, megabytes of memory and of disk, graphics processors, number of ports.
pub const NAMES: [&str; KINDS] = ["cpus", "mem", "disk", "gpus", "ports"];

/// An amount of each kind, in thousandths; see [`NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need(pub [i64; KINDS]);

impl Need {
    /// Creates a need of cores and megabytes of memory, in whole units.
    pub fn of(cpus: f64, mem: f64) -> Need {
        Need([Amount::from_f64(cpus).thousandths(), Amount::from_f64(mem).thousandths(), 0, 0, 0])
    }

    /// Returns the amount of the kind at `place` of [`NAMES`]; 0 past their end.
    pub fn amount(&self, place: usize) -> Amount {
        Amount::from_thousandths(self.0.get(place).copied().unwrap_or_default())
    }

    /// Returns the number of ports.
    pub fn ports(&self) -> usize {
        usize::try_from(self.0[4] / 1_000).unwrap_or_default()
    }

    /// Returns whether every amount is at most that of `room`.
    pub fn fits(&self, room: &Need) -> bool {
        // A chain of comparisons without branches: this is the innermost loop of every policy.
        let [a, b, c, d, e] = self.0;
        let [v, w, x, y, z] = room.0;
        (a <= v) & (b <= w) & (c <= x) & (d <= y) & (e <= z)
    }

    /// Returns the index in [`NAMES`] of the first kind that `room` has too little of.
    pub fn lacks(&self, room: &Need) -> Option<usize> {
        (0..KINDS).find(|&k| self.0[k] > room.0[k])
    }

    /// Returns how many times the amounts fit into those of `room`; `u32::MAX` if all of them are 0.
    pub fn times_in(&self, room: &Need) -> u32 {
        let times = (0..KINDS).filter(|&k| self.0[k] > 0).map(|k| (room.0[k] / self.0[k]).max(0)).min();
        times.map_or(u32::MAX, |times| u32::try_from(times).unwrap_or(u32::MAX))
    }

    /// Returns the amounts minus those of `other`, which may be negative.
    #[must_use]
    pub fn minus(&self, other: &Need) -> Need {
        Need(std::array::from_fn(|k| self.0[k].saturating_sub(other.0[k])))
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(&self, other: &Need) -> Need {
        Need(std::array::from_fn(|k| self.0[k].saturating_add(other.0[k])))
    }

    /// Returns the amounts multiplied by `count`.
    #[must_use]
    pub fn times(&self, count: u32) -> Need {
        Need(std::array::from_fn(|k| self.0[k].saturating_mul(i64::from(count))))
    }

    /// Returns the maximum of each amount.
    #[must_use]
    pub fn upper(&self, other: &Need) -> Need {
        Need(std::array::from_fn(|k| self.0[k].max(other.0[k])))
    }

    /// Returns the amounts, each multiplied by the weight of its kind.
    pub fn shares(&self, weights: &[f64; KINDS]) -> [f64; KINDS] {
        std::array::from_fn(|k| self.0[k] as f64 * weights[k])
    }
}

/// Writes the positive amounts: `cpus 0.5, mem 64`; `nothing` if there are none.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some: Vec<String> =
            (0..KINDS).filter(|&k| self.0[k] != 0).map(|k| format!("{} {}", NAMES[k], self.amount(k))).collect();
        f.write_str(if some.is_empty() { "nothing" } else { "" })?;
        f.write_str(&some.join(", "))
    }
}

/// Serializes the need as an object with all kinds, in whole units.
impl Serialize for Need {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(KINDS))?;
        for (place, name) in NAMES.iter().enumerate() {
            map.serialize_entry(name, &self.amount(place).to_f64())?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Need {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Need, D::Error> {
        let units = std::collections::BTreeMap::<String, f64>::deserialize(deserializer)?;
        let thousandths = |name: &str| Amount::from_f64(units.get(name).copied().unwrap_or_default()).thousandths();
        Ok(Need(NAMES.map(thousandths)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_and_lacks_agree() {
        let small = Need::of(0.5, 64.0);
        let large = Need::of(1.0, 32.0);
        assert!(!small.fits(&large));
        assert_eq!(small.lacks(&large), Some(1));
        assert!(small.fits(&small));
        assert_eq!(small.lacks(&small), None);
    }

    #[test]
    fn times_in_a_room() {
        let need = Need::of(0.5, 64.0);
        assert_eq!(need.times_in(&Need::of(4.0, 200.0)), 3);
        assert_eq!(need.times_in(&Need::of(0.4, 200.0)), 0);
        assert_eq!(need.times_in(&Need([-1; KINDS])), 0);
        assert_eq!(Need::default().times_in(&need), u32::MAX);
    }

    #[test]
    fn text_and_json() {
        let need = Need([500, 64_000, 0, 0, 2_000]);
        assert_eq!(need.to_string(), "cpus 0.5, mem 64, ports 2");
        assert_eq!(Need::default().to_string(), "nothing");
        assert_eq!(need.ports(), 2);
        let json = serde_json::to_string(&need).unwrap();
        assert_eq!(json, r#"{"cpus":0.5,"mem":64.0,"disk":0.0,"gpus":0.0,"ports":2.0}"#);
        assert_eq!(serde_json::from_str::<Need>(&json).unwrap(), need);
    }
}
