//! Isolator `cgroups/perf_event`, which runs the program `perf` to count hardware and kernel events of containers for a
//! while in each interval (`--perf_events`, AGT-93).
//!
//! It counts for containers with a control group of their own. What is inside another container's group is counted
//! there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ContainerName;
use anyhow::{Context, ensure};
use base::{Time, lock};
use containers::cgroups::{Controller, Group, Hierarchies};
use protos::mesos::PerfStatistics;
use tokio::task::JoinHandle;

use super::GroupUse;
use crate::composing::{ComposingContainerizer, ListContainerResources};
use crate::config::{Config, ConfigError, Perf};
use crate::credential_helpers;
use crate::external_program::{self, ExternalProgram};
use crate::mesos::isolators::Isolator;

/// Time that `perf` may take beyond the duration of a sample.
const GRACE: Duration = Duration::from_secs(30);
/// Maximum size of the output of `perf` in bytes.
const TEXT_MAX: u64 = 16 << 20;

/// The isolator `cgroups/perf_event` with its last sample. Clones share it.
#[derive(Clone)]
pub(crate) struct PerfEvent(Arc<Inner>);

struct Inner {
    /// Configuration of the samples; `None` if nothing is counted.
    config: Option<Perf>,
    /// Parent of the containers' control groups (`--cgroups_root`).
    root: String,
    /// Output file of `perf`.
    file: PathBuf,
    now: Arc<dyn Fn() -> Time + Send + Sync>,
    latest: Mutex<BTreeMap<String, PerfStatistics>>,
}

/// Returns whether the statistics have a field for an event of `perf`.
pub fn is_perf_event(event: &str) -> bool {
    set(&mut PerfStatistics::default(), event, "0")
}

impl Isolator for PerfEvent {
    fn usage(&self, container: &ContainerName, _: &Group, usage: &mut GroupUse) {
        usage.perf = lock(&self.0.latest).get(container.as_str()).copied();
    }

    /// Starts the task that takes samples, if events are configured.
    fn watch(self: Arc<Self>, running: ComposingContainerizer, _: ListContainerResources) -> Option<JoinHandle<()>> {
        let config = self.0.config.as_ref()?;
        let pause = config.interval - config.duration;
        Some(tokio::spawn(async move {
            let mut failures: u32 = 0;
            loop {
                let (perf, containers) = (self.clone(), running.clone());
                let sampled = tokio::task::spawn_blocking(move || perf.sample(&containers)).await;
                match sampled {
                    Ok(Err(error)) => {
                        failures = failures.saturating_add(1);
                        // A container that ends during a sample makes it fail, so a single failure is not logged.
                        if failures == 2 {
                            tracing::warn!("The events of containers are not counted (--perf_events): {error:#}");
                        }
                    }
                    Ok(Ok(())) | Err(_) => failures = 0,
                }
                // Without containers a sample takes no time.
                tokio::time::sleep(pause.max(Duration::from_secs(1))).await;
            }
        }))
    }
}

impl PerfEvent {
    /// Creates the isolator, and runs `perf` once if events are configured. Blocks meanwhile.
    ///
    /// # Errors
    /// An event cannot be counted, or there is no `perf`.
    pub(crate) fn start(config: &Config, now: Arc<dyn Fn() -> Time + Send + Sync>) -> Result<PerfEvent, ConfigError> {
        let cgroups = &config.isolation.cgroups;
        let (root, file) = (cgroups.root.clone(), config.runtime_dir.join("isolators/perf"));
        let perf =
            PerfEvent(Arc::new(Inner { config: cgroups.perf.clone(), root, file, now, latest: Mutex::default() }));
        let Some(config) = &cgroups.perf else { return Ok(perf) };
        match perf.run(&config.events, &[], Duration::ZERO) {
            Ok(_) => Ok(perf),
            Err(error) => Err(ConfigError::new("perf_events", format!("'perf' cannot count these: {error:#}"))),
        }
    }

    /// Takes one sample of all containers. Blocks for its duration.
    fn sample(&self, containers: &ComposingContainerizer) -> anyhow::Result<()> {
        let Some(Perf { events, duration, .. }) = &self.0.config else { return Ok(()) };
        let running = containers.pids().into_iter().map(|(name, _)| name).filter(|name| name.parent().is_none());
        let counts = self.counting()?;
        let names: Vec<String> = running.map(|name| name.as_str().to_owned()).filter(counts).collect();
        lock(&self.0.latest).retain(|name, _| names.contains(name));
        if names.is_empty() {
            return Ok(());
        }
        let timestamp = (self.0.now)().as_secs_f64();
        let groups: Vec<String> = names.iter().map(|name| format!("{}/{name}", self.0.root)).collect();
        let text = self.run(events, &groups, *duration)?;
        let mut counted = read(&text);
        let mut latest = lock(&self.0.latest);
        for (name, group) in names.into_iter().zip(groups) {
            if let Some(statistics) = counted.remove(&group) {
                let duration = duration.as_secs_f64();
                latest.insert(name, PerfStatistics { timestamp, duration, ..statistics });
            }
        }
        Ok(())
    }

    /// Returns a filter for containers with a control group of `perf_event`: `perf` counts nothing at all if one of the
    /// groups does not exist. Docker's containers have none, and containers that are older than the isolator have none.
    fn counting(&self) -> anyhow::Result<impl Fn(&String) -> bool> {
        let hierarchies = Hierarchies::of_this_host(&self.0.root)?;
        Ok(move |name: &String| hierarchies.group(name).exists_for(Controller::PerfEvent))
    }

    /// Returns the output of `perf` about these groups; without any, about a program that does nothing.
    fn run(&self, events: &[String], groups: &[String], duration: Duration) -> anyhow::Result<String> {
        let inner = &self.0;
        if let Some(directory) = inner.file.parent() {
            store::create_private(directory).with_context(|| format!("'{}'", directory.display()))?;
        }
        let program = credential_helpers::look_up("perf", &external_program::path())
            .context("there is no such program in PATH")?;
        let mut words: Vec<String> = ["stat", "--field-separator", ",", "--output"].map(str::to_owned).into();
        words.push(inner.file.display().to_string());
        if !groups.is_empty() {
            words.push("--all-cpus".to_owned());
        }
        for event in events {
            if groups.is_empty() {
                words.extend(["--event".to_owned(), event.clone()]);
            }
            for group in groups {
                words.extend(["--event".to_owned(), event.clone(), "--cgroup".to_owned(), group.clone()]);
            }
        }
        words.extend(["--".to_owned(), "sleep".to_owned(), duration.as_secs_f64().to_string()]);
        let environment = vec![("PATH".into(), external_program::path()), ("LC_ALL".into(), "C".into())];
        let words = words.into_iter().map(Into::into).collect();
        let ask = ExternalProgram { file: program.into(), words, environment, input: b"" };
        let (status, _) = ask.run_for(duration + GRACE)?.context("it has not ended in time")?;
        ensure!(status.success(), "{status}");
        let size = std::fs::metadata(&inner.file)?.len();
        ensure!(size <= TEXT_MAX, "it has written {size} bytes");
        Ok(std::fs::read_to_string(&inner.file)?)
    }
}

/// Parses the output of `perf` into statistics by control group. Lines have a value, a unit, the event and the group;
/// old versions have no unit.
fn read(text: &str) -> BTreeMap<String, PerfStatistics> {
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').collect();
        let (value, event, group) = match fields.as_slice() {
            [value, event, group] | [value, _, event, group, ..] => (*value, *event, *group),
            _ => continue,
        };
        let value = match value {
            // The group had no process to count for.
            "<not counted>" => "0",
            "<not supported>" => continue,
            value => value,
        };
        set(all.entry(group.to_owned()).or_default(), event, value);
    }
    all
}

/// Sets the count of an event. Returns `false` if the event is unknown, or the count is not a number.
fn set(statistics: &mut PerfStatistics, event: &str, value: &str) -> bool {
    // The part after a colon states where the event is counted.
    let name = event.split(':').next().unwrap_or_default().to_lowercase().replace('-', "_");
    macro_rules! whole {
        ($($field:ident)*) => {
            match (name.as_str(), value.parse::<f64>(), value.parse::<u64>()) {
                ("cpu_clock", Ok(value), _) => statistics.cpu_clock = Some(value),
                ("task_clock", Ok(value), _) => statistics.task_clock = Some(value),
                $((stringify!($field), _, Ok(value)) => statistics.$field = Some(value),)*
                _ => return false,
            }
        };
    }
    whole! {
        cycles stalled_cycles_frontend stalled_cycles_backend instructions cache_references cache_misses branches
        branch_misses bus_cycles ref_cycles page_faults minor_faults major_faults context_switches cpu_migrations
        alignment_faults emulation_faults l1_dcache_loads l1_dcache_load_misses l1_dcache_stores
        l1_dcache_store_misses l1_dcache_prefetches l1_dcache_prefetch_misses l1_icache_loads
        l1_icache_load_misses l1_icache_prefetches l1_icache_prefetch_misses llc_loads llc_load_misses llc_stores
        llc_store_misses llc_prefetches llc_prefetch_misses dtlb_loads dtlb_load_misses dtlb_stores
        dtlb_store_misses dtlb_prefetches dtlb_prefetch_misses itlb_loads itlb_load_misses branch_loads
        branch_load_misses node_loads node_load_misses node_stores node_store_misses node_prefetches
        node_prefetch_misses
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_writes() {
        let text = "# started on Mon Nov 23\n\n74.22,msec,task-clock,mesos/a,74217981,100.00,0.147,CPUs utilized\n\
            16,,context-switches,mesos/a,74217981,100.00,215.585,/sec\n<not counted>,,L1-dcache-loads,mesos/b,0,100.00,,\n\
            <not supported>,,cycles:u,mesos/b,0,100.00,,\n7,page-faults,mesos/old\nnonsense\nx,,cycles,mesos/b,,\n";
        let all = read(text);
        let one = all["mesos/a"];
        assert_eq!((one.task_clock, one.context_switches, one.cycles), (Some(74.22), Some(16), None));
        assert_eq!((all["mesos/b"].l1_dcache_loads, all["mesos/b"].cycles), (Some(0), None));
        assert_eq!(all["mesos/old"].page_faults, Some(7));
    }

    #[test]
    fn events_have_a_place() {
        let mut statistics = PerfStatistics::default();
        for event in ["cycles", "LLC-loads", "dTLB-load-misses", "iTLB-loads", "cpu-clock", "instructions:u"] {
            assert!(set(&mut statistics, event, "3"), "{event}");
        }
        assert_eq!((statistics.llc_loads, statistics.instructions), (Some(3), Some(3)));
        assert!(!set(&mut statistics, "nonsense", "3") && !set(&mut statistics, "timestamp", "3"));
    }
}
