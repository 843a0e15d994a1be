//! The load controller, which ends all executors with revocable resources while the machine's load is above a limit
//! (`org_apache_mesos_LoadQoSController`).

use super::{Correction, QosController, Usage};

/// A QoS controller that ends all revocable executors while the load is above one of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadController {
    /// Limit of the load average over five minutes; `None`: no limit.
    pub five_minutes: Option<f64>,
    /// Limit of the load average over fifteen minutes; `None`: no limit.
    pub fifteen_minutes: Option<f64>,
}

impl LoadController {
    fn is_overloaded(&self, usage: &Usage) -> bool {
        let above = |limit: Option<f64>, load: f64| limit.is_some_and(|limit| load > limit);
        above(self.five_minutes, usage.load.five_minutes) || above(self.fifteen_minutes, usage.load.fifteen_minutes)
    }
}

impl QosController for LoadController {
    fn corrections(&mut self, usage: &Usage) -> Vec<Correction> {
        if !self.is_overloaded(usage) {
            return Vec::new();
        }
        let revocable = usage.executors.iter().filter(|executor| !executor.allocated.revocable().is_empty());
        revocable
            .map(|executor| Correction::Kill {
                framework: executor.framework.clone(),
                executor: executor.executor.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oversubscription::Load;
    use resources::{Role, parse_text};

    #[test]
    fn only_revocable_executors_and_only_above_a_limit() {
        let revocable = parse_text("cpus:1", &Role::star()).unwrap();
        let revocable = revocable.iter().map(|resource| resource.clone().with_revocable(true)).collect();
        let mut usage = Usage::of(revocable);
        usage.executors.extend(Usage::of(parse_text("cpus:1", &Role::star()).unwrap()).executors);
        let corrections = |five: Option<f64>, fifteen: Option<f64>, usage: &Usage| {
            LoadController { five_minutes: five, fifteen_minutes: fifteen }.corrections(usage).len()
        };
        usage.load = Load { one_minute: 99.0, five_minutes: 4.0, fifteen_minutes: 8.0 };
        assert_eq!(corrections(None, None, &usage), 0);
        assert_eq!(corrections(Some(4.0), Some(8.0), &usage), 0);
        assert_eq!(corrections(Some(3.9), None, &usage), 1);
        assert_eq!(corrections(Some(9.0), Some(7.5), &usage), 1);
    }
}
