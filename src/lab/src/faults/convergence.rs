//! Rules for the end of a run, after all faults: the state converges, and master, agents and schedulers agree.
//!
//! Each check returns what does not hold yet. Rules that hold at every instant are in `invariants.rs` and `checker.rs`.

use std::collections::{BTreeMap, BTreeSet};

use agent::{AgentState, Recovered, UNHEALTHY};
use master::Snapshot;
use protos::mesos::SlaveInfo;
use protos::mesos::internal::status_update_record::Type;

use super::checker::{Checker, is_doubtful, is_over};
use super::volumes::id_of;
use crate::world::World;

type Check = Result<(), String>;

/// Checks that the cluster has converged; with `finished`, also that nothing remains after all frameworks have ended
/// their work.
pub(super) fn check_convergence(world: &mut World<Checker>, agents: usize, finished: bool) -> Check {
    processes(world, agents)?;
    let Some(master) = world.master() else { return Err("no master leads".to_owned()) };
    let snapshot = master.snapshot();
    let connected = snapshot.agents.values().filter(|agent| agent.connected).count();
    if connected != agents {
        return Err(format!("{connected} agents are connected, of {agents}"));
    }
    disks(world, agents, &snapshot)?;
    for scheduler in 0..world.observer().checked_frameworks.len() {
        work(world, scheduler, finished)?;
        tasks(world, scheduler, &snapshot)?;
    }
    agents_and_master(world, agents, &snapshot)?;
    reservations(world, agents, &snapshot)?;
    ended_frameworks(world, &snapshot)?;
    if let Some(tasks) = world.observer().partly_started_group() {
        return Err(format!("of the group {tasks:?} a part was started"));
    }
    acknowledged(world, agents)?;
    confirmed(world)?;
    if finished { empty(world, &snapshot) } else { Ok(()) }
}

/// Checks that all checkpoints are written, and that no agent reports that its disk refuses writes.
fn disks(world: &World<Checker>, agents: usize, snapshot: &Snapshot) -> Check {
    for agent in 0..agents {
        if let Some(trouble) = world.disk_trouble(agent) {
            return Err(format!("agent {agent}: {trouble}"));
        }
    }
    let is_unhealthy = |info: &SlaveInfo| info.attributes.iter().any(|attribute| attribute.name == UNHEALTHY);
    match snapshot.agents.values().find(|agent| is_unhealthy(&agent.info)) {
        Some(agent) => Err(format!("the master lists the disk of agent {} as failing", agent.id)),
        None => Ok(()),
    }
}

fn processes(world: &mut World<Checker>, agents: usize) -> Check {
    for agent in 0..agents {
        match world.agent_view(agent).map(|view| view.state) {
            Some(AgentState::Running) => {}
            other => return Err(format!("agent {agent} is {other:?}")),
        }
    }
    for scheduler in 0..world.observer().checked_frameworks.len() {
        let checked = &world.observer().checked_frameworks[scheduler];
        let (ended, subscribed) = (checked.ended, checked.view.borrow().subscribed);
        let at_work = subscribed && world.scheduler_lives(scheduler);
        if !(ended || at_work) {
            return Err(format!("scheduler {scheduler} is not subscribed"));
        }
    }
    Ok(())
}

/// Checks that a scheduler has done its work.
fn work(world: &mut World<Checker>, scheduler: usize, finished: bool) -> Check {
    let checked = &world.observer().checked_frameworks[scheduler];
    if checked.ended {
        return Ok(());
    }
    let view = checked.view.borrow();
    if view.left > 0 {
        return Err(format!("scheduler {scheduler} has {} unfinished tasks", view.left));
    }
    if !finished && view.down > 0 {
        return Err(format!("{} services of scheduler {scheduler} do not run", view.down));
    }
    if finished && checked.plan.tears_down {
        return Err(format!("scheduler {scheduler} has not ended"));
    }
    Ok(())
}

/// Checks that the scheduler, the master and the running processes have the same tasks.
fn tasks(world: &mut World<Checker>, scheduler: usize, snapshot: &Snapshot) -> Check {
    let checked = &world.observer().checked_frameworks[scheduler];
    if checked.ended {
        return Ok(());
    }
    let (id, believed) = {
        let view = checked.view.borrow();
        (view.id.clone().unwrap_or_default(), view.tasks.clone())
    };
    let of_framework = world.running_executors().filter(|executor| executor.framework == id);
    let running: BTreeSet<String> = of_framework.flat_map(|e| e.tasks).map(str::to_owned).collect();
    let framework = snapshot.frameworks.values().find(|framework| framework.id.as_str() == id);
    let Some(framework) = framework else { return Err(format!("the master does not know framework {id}")) };
    let booked = framework.tasks.values().filter(|task| !is_over(task.state()));
    let booked: BTreeSet<String> = booked.map(|task| task.id.as_str().to_owned()).collect();
    let certain = believed.iter().filter(|(_, state)| !is_doubtful(**state)).map(|(task, _)| task.clone());
    let certain: BTreeSet<String> = certain.collect();
    if certain != running || booked != running {
        return Err(format!(
            "framework {id}: {running:?} run; the master has {booked:?}, scheduler {scheduler} has {certain:?}"
        ));
    }
    Ok(())
}

/// Checks that agents and the master have the same tasks.
///
/// An ended task in the master's history stays unacknowledged at its agent forever if its framework has left without a
/// connection. Such tasks are ignored.
fn agents_and_master(world: &mut World<Checker>, agents: usize, snapshot: &Snapshot) -> Check {
    let mut booked: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    let mut waiting: BTreeSet<(String, String)> = BTreeSet::new();
    for framework in snapshot.frameworks.values() {
        let over = framework.completed_tasks.values().filter(|_| !framework.connected());
        waiting.extend(over.map(|task| (framework.id.to_string(), task.id.to_string())));
        for task in framework.tasks.values() {
            let Some(agent) = snapshot.agent(task.agent) else { continue };
            let name = (framework.id.to_string(), task.id.to_string());
            booked.entry(agent.id.to_string()).or_default().insert(name);
        }
    }
    for n in 0..agents {
        let Some(view) = world.agent_view(n) else { continue };
        let Some(id) = view.id.as_ref() else { return Err(format!("agent {n} has no id")) };
        let mut known = BTreeSet::new();
        for executor in view.frameworks.values().flat_map(|framework| framework.executors.values()) {
            let queued =
                executor.queued.iter().flat_map(agent::Queued::tasks).map(|task| task.task_id.value.to_string());
            let others = executor.launched.keys().map(ToString::to_string);
            let framework = executor.framework_id.to_string();
            known.extend(queued.chain(others).map(|task| (framework.clone(), task)));
            let ended = executor.terminated.keys().map(|task| (framework.clone(), task.to_string()));
            known.extend(ended.filter(|name| !waiting.contains(name)));
        }
        let booked = booked.remove(id.as_str()).unwrap_or_default();
        if known != booked {
            return Err(format!("agent {n} has {known:?}, the master has {booked:?}"));
        }
    }
    Ok(())
}

/// Checks that the disks, the agents and the master have the same reservations and volumes.
fn reservations(world: &mut World<Checker>, agents: usize, snapshot: &Snapshot) -> Check {
    for n in 0..agents {
        let directories: BTreeSet<String> =
            world.agent_volumes(n).map(|directory| id_of(directory).to_owned()).collect();
        let Some(view) = world.agent_view(n) else { continue };
        let known = view.id.as_ref().and_then(|id| snapshot.agents.values().find(|agent| agent.id == *id));
        let Some(known) = known else { return Err(format!("the master does not know agent {n}")) };
        let (own, booked) = (view.resources.to_checkpoint(), known.total.to_checkpoint());
        if own != booked {
            return Err(format!("agent {n} has the reservations {own}, the master has {booked}"));
        }
        let ids = own.iter().filter_map(|volume| volume.disk()?.persistence_id());
        let ids: BTreeSet<String> = ids.map(str::to_owned).collect();
        if ids != directories {
            return Err(format!("agent {n} reports the volumes {ids:?}, its disk has {directories:?}"));
        }
    }
    Ok(())
}

/// Checks that no executor runs of a framework that has ended according to the master.
fn ended_frameworks(world: &World<Checker>, snapshot: &Snapshot) -> Check {
    let ended: BTreeSet<&str> = snapshot.completed.values().map(|framework| framework.id.as_str()).collect();
    match world.running_executors().find(|executor| ended.contains(executor.framework)) {
        Some(executor) => {
            Err(format!("framework {} has ended, executor {} still runs", executor.framework, executor.id))
        }
        None => Ok(()),
    }
}

/// Checks that all updates in the agents' checkpoints are acknowledged.
///
/// Exceptions are frameworks that have left, and tasks that an agent dropped because a master had removed their
/// framework: later masters may not know of that, and admit the framework again.
fn acknowledged(world: &mut World<Checker>, agents: usize) -> Check {
    let checked_frameworks = world.observer().checked_frameworks.iter();
    let present =
        checked_frameworks.filter(|checked| !checked.ended).filter_map(|checked| checked.view.borrow().id.clone());
    let present: BTreeSet<String> = present.collect();
    for agent in 0..agents {
        let Ok(found) = Recovered::read(world.agent_disk(agent), true) else {
            return Err(format!("agent {agent} could not read what it wrote"));
        };
        for framework in found.agent.into_iter().flat_map(|agent| agent.frameworks) {
            if !present.contains(framework.id.as_str()) {
                continue;
            }
            let runs = framework.executors.into_iter().filter_map(|executor| executor.latest);
            for task in runs.flat_map(|run| run.tasks) {
                let of = |kind: Type| task.records.iter().filter(|record| record.r#type == kind as i32).count();
                let (updates, acks) = (of(Type::Update), of(Type::Ack));
                let name = (framework.id.to_string(), task.id.to_string());
                if updates != acks && !world.observer().dropped.contains(&name) {
                    return Err(format!("agent {agent}: {acks} of {updates} updates of {} are acknowledged", task.id));
                }
            }
        }
    }
    Ok(())
}

/// Checks that updates which agents have confirmed have reached the schedulers, with the exceptions of
/// [`acknowledged`].
fn confirmed(world: &mut World<Checker>) -> Check {
    let checker = world.observer();
    for uuid in &checker.confirmed {
        let Some(created) = checker.created.get(uuid).filter(|created| !checker.dropped.contains(&created.task)) else {
            continue;
        };
        let owner = checker
            .checked_frameworks
            .iter()
            .find(|checked| checked.view.borrow().id.as_ref() == Some(&created.task.0));
        let Some(checked) = owner.filter(|checked| !checked.ended && checked.plan.checkpoint) else { continue };
        let seen = checker.expected.get(&created.task).copied().unwrap_or_default();
        if seen <= created.number {
            let name = &checked.plan.role;
            return Err(format!(
                "update {} of {:?} (role {name}) was durable, and is not delivered",
                created.number, created.task
            ));
        }
    }
    Ok(())
}

/// Checks that nothing is left of frameworks that have finished.
fn empty(world: &World<Checker>, snapshot: &Snapshot) -> Check {
    let left: BTreeSet<&str> = snapshot.frameworks.values().map(|framework| framework.id.as_str()).collect();
    let mut present = BTreeSet::new();
    for framework in snapshot.frameworks.values().filter(|framework| framework.connected()) {
        present.insert(framework.id.as_str());
    }
    for executor in world.running_executors() {
        if present.contains(executor.framework) || !left.contains(executor.framework) {
            return Err(format!("executor {} of {} lives", executor.id, executor.framework));
        }
    }
    for agent in snapshot.agents.values() {
        // The tasks of a framework that has left without a connection are kept for its next scheduler.
        let theirs = snapshot.frameworks.values().filter(|framework| !framework.connected());
        if theirs.map(|framework| framework.tasks.len()).sum::<usize>() > 0 {
            continue;
        }
        if !agent.used.is_empty() {
            return Err(format!("{} of agent {} is in use", agent.used, agent.id));
        }
        let reserved = agent.total.to_checkpoint();
        if !reserved.is_empty() {
            return Err(format!("{reserved} of agent {} is reserved", agent.id));
        }
    }
    Ok(())
}
