//! Takes a round of measurements: the tasks that the master knows, with what their agents measure.

use std::collections::BTreeMap;

use advice::{Amounts, Reading, Sample};
use anyhow::Result;

use crate::connect::MasterArgs;
use crate::read::model::{self, Agent, Agents, Framework, Frameworks, Task};
use crate::read::now;
use crate::task::top::{Measured, Statistics, measure};

/// A sampler of a cluster's tasks.
pub(super) struct Sampler<'a> {
    master: &'a MasterArgs,
    framework: Option<&'a str>,
    /// Agents that did not answer in the last round.
    silent: Vec<String>,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(master: &'a MasterArgs, framework: Option<&'a str>) -> Sampler<'a> {
        Sampler { master, framework, silent: Vec::new() }
    }

    /// Measures all tasks once. Agents that do not answer are left out, and named in the first such round.
    ///
    /// # Errors
    /// No master answers.
    pub(super) async fn round(&mut self) -> Result<Vec<Sample>> {
        let round = u64::try_from(now().as_millis()).unwrap_or(u64::MAX);
        let frameworks: Frameworks = self.master.read("/frameworks").await?;
        let agents: Agents = self.master.read("/slaves").await?;
        let agents: Vec<&Agent> = agents.slaves.iter().collect();
        let (measured, silent) = measure(&agents).await;
        silent.iter().filter(|why| !self.silent.contains(why)).for_each(|why| stdio::err!("skipped: {why}"));
        self.silent = silent;
        let wanted =
            |framework: &&Framework| self.framework.is_none_or(|name| framework.id == name || framework.name == name);
        let hosts = agents.iter().map(|agent| (agent.id.as_str(), agent.hostname.as_str())).collect();
        let samples = |framework: &Framework| samples(round, framework, &hosts, &measured);
        Ok(frameworks.frameworks.iter().filter(wanted).flat_map(samples).collect())
    }
}

/// The ids of an agent and of one of its executors.
type Key<'a> = (&'a str, &'a str);

/// Returns the measurements of a framework's tasks. Tasks of one executor share a container, and are one sample.
fn samples(round: u64, framework: &Framework, hosts: &BTreeMap<&str, &str>, measured: &Measured) -> Vec<Sample> {
    let mut containers: BTreeMap<Key, Vec<&Task>> = BTreeMap::new();
    for task in &framework.tasks {
        let executor = if task.executor_id.is_empty() { &task.id } else { &task.executor_id };
        containers.entry((&task.slave_id, executor)).or_default().push(task);
    }
    let sample = |((agent, executor), tasks): (Key, Vec<&Task>)| {
        let host = (*hosts.get(agent)?).to_owned();
        let statistics = measured.get(&(host, framework.id.clone(), executor.to_owned()))?;
        let own = framework.executors.iter().find(|e| e.slave_id == agent && e.executor_id == executor);
        let requested = tasks.iter().map(|task| &task.resources).chain(own.map(|executor| &executor.resources));
        Some(Sample {
            round,
            framework: framework.name.clone(),
            role: tasks.first().map_or_else(String::new, |task| task.role.clone()),
            name: match tasks.as_slice() {
                [task] if !task.name.is_empty() => task.name.clone(),
                _ => executor.to_owned(),
            },
            task: format!("{agent}/{executor}"),
            requested: requested.map(amounts).fold(Amounts::default(), |sum, one| sum + one),
            reading: reading(statistics),
        })
    };
    containers.into_iter().filter_map(sample).collect()
}

fn amounts(resources: &model::Amounts) -> Amounts {
    Amounts::of(resources.get("cpus"), resources.get("mem"))
}

fn reading(statistics: &Statistics) -> Reading {
    Reading {
        at: statistics.timestamp,
        cpu_seconds: statistics.cpus_user_time_secs + statistics.cpus_system_time_secs,
        throttled_seconds: statistics.cpus_throttled_time_secs,
        rss_bytes: statistics.mem_rss_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_with_their_containers() {
        let framework: Framework = serde_json::from_str(
            r#"{"id":"F","name":"f","tasks":[
            {"id":"web.1","name":"web","slave_id":"S0","role":"prod","resources":{"cpus":1.0,"mem":64.0}},
            {"id":"a","name":"a","executor_id":"pod-1","slave_id":"S0","role":"prod","resources":{"cpus":0.5,"mem":32.0}},
            {"id":"b","name":"b","executor_id":"pod-1","slave_id":"S0","role":"prod","resources":{"cpus":0.5,"mem":32.0}},
            {"id":"staging","name":"new","slave_id":"S0","resources":{"cpus":1.0}}],
            "executors":[{"executor_id":"pod-1","slave_id":"S0","resources":{"cpus":0.1,"mem":32.0}}]}"#,
        )
        .unwrap();
        let key = |executor: &str| ("host".to_owned(), "F".to_owned(), executor.to_owned());
        let statistics = Statistics {
            timestamp: 7.0,
            cpus_user_time_secs: 1.0,
            cpus_system_time_secs: 0.5,
            ..Statistics::default()
        };
        let measured = [(key("web.1"), statistics.clone()), (key("pod-1"), statistics)].into();
        let samples = samples(1, &framework, &[("S0", "host")].into(), &measured);
        let short: Vec<(&str, &str, Amounts)> = samples.iter().map(|s| (&*s.name, &*s.task, s.requested)).collect();
        assert_eq!(short, [("pod-1", "S0/pod-1", Amounts::of(1.1, 96.0)), ("web", "S0/web.1", Amounts::of(1.0, 64.0))]);
        assert_eq!((samples[1].reading.at, samples[1].reading.cpu_seconds), (7.0, 1.5));
        assert_eq!(samples[1].role, "prod");
    }
}
