//! The fixed estimator, which always offers the same amount as revocable (`org_apache_mesos_FixedResourceEstimator`).
//!
//! It ignores the use of non-revocable resources.

use resources::Resources;

use super::{ResourceEstimator, Usage};

/// A resource estimator that offers a fixed amount of revocable resources.
#[derive(Clone, Debug)]
pub struct FixedEstimator {
    total: Resources,
}

impl FixedEstimator {
    /// Creates an estimator of these resources, which become revocable.
    pub fn new(total: &Resources) -> FixedEstimator {
        FixedEstimator { total: total.iter().map(|resource| resource.clone().with_revocable(true)).collect() }
    }
}

impl ResourceEstimator for FixedEstimator {
    fn oversubscribable(&mut self, usage: &Usage) -> Resources {
        let mut left = self.total.clone();
        left -= &usage.revocable();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resources::{Role, parse_text};

    #[test]
    fn what_is_in_use_is_not_offered_again() {
        let resources = |text: &str| parse_text(text, &Role::star()).unwrap();
        let mut estimator = FixedEstimator::new(&resources("cpus:4;mem:64"));
        let none = Usage::default();
        assert_eq!(estimator.oversubscribable(&none), resources("cpus:4;mem:64").map_revocable());
        let used = Usage::of(resources("cpus:1").map_revocable());
        assert_eq!(estimator.oversubscribable(&used), resources("cpus:3;mem:64").map_revocable());
    }

    trait Revocable {
        fn map_revocable(&self) -> Resources;
    }

    impl Revocable for Resources {
        fn map_revocable(&self) -> Resources {
            self.iter().map(|resource| resource.clone().with_revocable(true)).collect()
        }
    }
}
