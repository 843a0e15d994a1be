//! Limits of containers beyond the resources that they hold (AGT-44).
//!
//! The shell sets the limits.

use std::collections::BTreeMap;

use protos::mesos as pb;

use super::executor::{Executor, Queued};

/// Upper limits of a container's use. `None`: the limit is what the container holds; infinity: there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Limit of CPUs.
    pub cpus: Option<f64>,
    /// Limit of memory, in MB.
    pub mem: Option<f64>,
}

type Named = BTreeMap<String, pb::value::Scalar>;

impl Limits {
    /// Returns the limits of a single task or container.
    pub(crate) fn of(limits: &Named) -> Limits {
        let of = |name: &str| limits.get(name).map(|scalar| scalar.value);
        Limits { cpus: of("cpus"), mem: of("mem") }
    }
}

fn requested(resources: &[pb::Resource], name: &str) -> f64 {
    let amounts = resources.iter().filter(|resource| resource.name == name);
    amounts.filter_map(|resource| resource.scalar.as_ref()).map(|scalar| scalar.value).sum()
}

impl Executor {
    /// Returns the limits of the executor's container, if any of its tasks has a limit.
    ///
    /// A limit is the sum of the limits of all tasks, of what tasks without a limit hold, and of what the executor
    /// itself holds. Without `quotas`, a task without a CPU limit may use all CPUs, and so may the container.
    pub fn limits(&self, quotas: bool) -> Limits {
        let queued = self.queued.iter().flat_map(Queued::tasks).map(|task| (&task.limits, &task.resources));
        let launched = self.launched.values().map(|task| (&task.limits, &task.resources));
        let tasks: Vec<(&Named, &Vec<pb::Resource>)> = queued.chain(launched).collect();
        let sum = |name: &str, quotas: bool| {
            let limited = tasks.iter().any(|(limits, _)| limits.contains_key(name));
            let all = tasks.iter().all(|(limits, _)| limits.contains_key(name));
            if !limited || (!all && !quotas) {
                return None;
            }
            let of_task = |(limits, held): &(&Named, &Vec<pb::Resource>)| {
                limits.get(name).map_or_else(|| requested(held, name), |scalar| scalar.value)
            };
            Some(requested(&self.info.resources, name) + tasks.iter().map(of_task).sum::<f64>())
        };
        Limits { cpus: sum("cpus", quotas), mem: sum("mem", true) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{ContainerId, ExecutorId, FrameworkId};

    use super::*;
    use crate::ContainerName;

    fn held(cpus: f64, mem: f64) -> Vec<pb::Resource> {
        let scalar = |name: &str, value| pb::Resource {
            name: name.into(),
            scalar: Some(pb::value::Scalar { value }),
            ..pb::Resource::default()
        };
        vec![scalar("cpus", cpus), scalar("mem", mem)]
    }

    fn limits(tasks: &[&[(&str, f64)]], quotas: bool) -> Limits {
        let info = pb::ExecutorInfo { resources: held(0.1, 32.0), ..pb::ExecutorInfo::default() };
        let container = ContainerName::top(&ContainerId::new("c").unwrap());
        let id = (ExecutorId::new("e").unwrap(), FrameworkId::new("f").unwrap());
        let mut executor = Executor::new(id.0, id.1, info, container, ("/w", "s"), None);
        for limits in tasks {
            let limits = limits.iter().map(|(name, value)| ((*name).to_owned(), pb::value::Scalar { value: *value }));
            let task =
                pb::TaskInfo { limits: limits.collect(), resources: held(1.0, 100.0), ..pb::TaskInfo::default() };
            executor.queued.push(Queued::Task(Arc::new(task)));
        }
        executor.limits(quotas)
    }

    #[test]
    fn sums() {
        assert_eq!(limits(&[&[]], true), Limits::default());
        let both: &[(&str, f64)] = &[("cpus", 1.5), ("mem", 400.0)];
        assert_eq!(limits(&[both], false), Limits { cpus: Some(1.6), mem: Some(432.0) });
        assert_eq!(limits(&[both, &[]], false), Limits { cpus: None, mem: Some(532.0) });
        assert_eq!(limits(&[both, &[]], true), Limits { cpus: Some(2.6), mem: Some(532.0) });
        assert_eq!(limits(&[both, &[("mem", f64::INFINITY)]], true).mem, Some(f64::INFINITY));
    }
}
