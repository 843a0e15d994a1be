//! GET_OVERVIEW: counts of agents, frameworks and tasks, sums of resources, and the allocated share of each agent: the
//! first data that a page shows of a large cluster. It lists no tasks.

use std::collections::BTreeMap;

use master::{Agent, Snapshot};
use protos::json::Writer;
use protos::mesos::TaskState;
use resources::{Quantities, Resources};

use super::Context;
use super::visibility::Visibility;

/// Writes the answer to GET_OVERVIEW, reduced to what the principal may view.
pub(in crate::master) fn write(context: &Context, out: &mut Vec<u8>) {
    let (snapshot, visibility) = (&*context.snapshot, &context.visibility);
    let agents: Vec<(&Agent, Amounts)> =
        snapshot.agents.values().map(|agent| (&**agent, Amounts::of(agent, visibility))).collect();
    let (frameworks, connected) = frameworks(snapshot, visibility);
    Writer::new(out).object(|w| {
        w.key("type").string("GET_OVERVIEW");
        w.key("get_overview").object(|w| {
            w.key("agents").object(|w| {
                w.key("registered").uint(agents.len() as u64);
                w.key("active").uint(agents.iter().filter(|(agent, _)| agent.active()).count() as u64);
            });
            w.key("frameworks").object(|w| {
                w.key("registered").uint(frameworks);
                w.key("connected").uint(connected);
            });
            w.key("tasks").object(|w| {
                for (state, count) in tasks(snapshot, visibility) {
                    w.key(state.as_str_name()).uint(count);
                }
            });
            let sum = agents.iter().fold(Amounts::default(), |sum, (_, amounts)| sum.plus(amounts));
            sum.write(w);
            w.key("agent_shares").array(|w| {
                for (agent, amounts) in &agents {
                    w.object(|w| {
                        w.key("agent_id").object(|w| {
                            w.key("value").string(agent.id.as_str());
                        });
                        w.key("active").bool(agent.active());
                        w.key("share").double(amounts.allocated.ratio(&amounts.total));
                    });
                }
            });
        });
    });
}

/// Amounts of resources of an agent, or sums of several.
#[derive(Default)]
struct Amounts {
    total: Quantities,
    allocated: Quantities,
    offered: Quantities,
}

impl Amounts {
    fn of(agent: &Agent, visibility: &Visibility) -> Amounts {
        let visible = |resources: &Resources| match visibility.all_roles() {
            true => resources.quantities(),
            false => visibility.resources(resources).quantities(),
        };
        Amounts { total: visible(&agent.total), allocated: visible(&agent.used), offered: visible(&agent.offered) }
    }

    fn plus(mut self, other: &Amounts) -> Amounts {
        let add =
            |sum: &mut Quantities, more: &Quantities| more.iter().for_each(|(name, amount)| sum.add(&name, amount));
        add(&mut self.total, &other.total);
        add(&mut self.allocated, &other.allocated);
        add(&mut self.offered, &other.offered);
        self
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.key("resources").object(|w| {
            for (name, amounts) in [("total", &self.total), ("allocated", &self.allocated), ("offered", &self.offered)]
            {
                w.key(name).object(|w| {
                    for (name, amount) in amounts.iter() {
                        w.key(name.as_str()).double(amount.to_f64());
                    }
                });
            }
        });
    }
}

/// Returns the number of frameworks that have not ended, and of those that are connected.
fn frameworks(snapshot: &Snapshot, visibility: &Visibility) -> (u64, u64) {
    let visible = snapshot.frameworks.values().filter(|framework| visibility.framework(&framework.info));
    visible.fold((0, 0), |(all, connected), framework| (all + 1, connected + u64::from(framework.connected())))
}

/// Returns the numbers of tasks by state, of all tasks that GET_TASKS lists.
fn tasks(snapshot: &Snapshot, visibility: &Visibility) -> BTreeMap<TaskState, u64> {
    let mut counts = BTreeMap::new();
    let frameworks = snapshot.frameworks.values().chain(snapshot.completed.values());
    for framework in frameworks.filter(|framework| visibility.framework(&framework.info)) {
        for table in [&framework.tasks, &framework.unreachable_tasks, &framework.completed_tasks] {
            for task in table.values().filter(|task| visibility.all_tasks() || visibility.task(framework, task)) {
                *counts.entry(task.state()).or_default() += 1;
            }
        }
    }
    counts
}
