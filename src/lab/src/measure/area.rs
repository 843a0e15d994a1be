//! Exact integrals of step functions over time.

/// A step function of time with its integral. Times are seconds since the beginning, and never go back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Area {
    value: f64,
    since: f64,
    sum: f64,
}

impl Area {
    /// Sets the value of the function from `now` on.
    pub fn set(&mut self, value: f64, now: f64) {
        *self = Area { value, since: now, sum: self.at(now) };
    }

    /// Returns the integral of the function until `now`.
    pub fn at(&self, now: f64) -> f64 {
        self.sum + self.value * (now - self.since)
    }
}

/// The integrals of a run up to one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Areas {
    /// The instant, in seconds since the beginning.
    pub at: f64,
    /// Integral of each framework's dominant share in use.
    pub shares: Vec<f64>,
    /// Integral of each resource in use, in units, in the order of the cluster's resources.
    pub used: Vec<f64>,
    /// Integral of the part of the cluster in unanswered offers.
    pub offered: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_summed_exactly() {
        let mut area = Area::default();
        area.set(2.0, 1.0);
        area.set(0.5, 1.25);
        area.set(0.0, 3.25);
        assert_eq!((area.at(1.0), area.at(100.0)), (1.5, 1.5));
    }
}
