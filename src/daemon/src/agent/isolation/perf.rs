//! Hardware and kernel events of containers (`cgroups/perf_event` with `--perf_events`, mesos-features.md AGT-93): counted by the
//! program `perf`, for a while in each interval.
//!
//! It counts for containers with a control group of their own; what is inside another one's group is counted there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ContainerName;
use anyhow::{Context, ensure};
use containers::cgroups::{Controller, Hierarchies};
use protos::mesos::PerfStatistics;

use super::super::ask::{self, Ask};
use super::super::containers::Containers;
use super::super::helpers;
use super::Isolators;
use crate::clock::Clock;
use crate::flags::{FlagError, Flags};
use crate::sync::lock;

/// How much longer than it is asked to count `perf` may take.
const GRACE: Duration = Duration::from_secs(30);
/// The most that `perf` may write.
const TEXT_MAX: u64 = 16 << 20;

/// What is counted, and what has been. Clones share it.
#[derive(Clone, Debug, Default)]
pub(in crate::agent) struct Perf(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    events: Vec<String>,
    interval: Duration,
    duration: Duration,
    /// `--cgroups_root`
    root: String,
    /// Where `perf` writes.
    file: PathBuf,
    latest: Mutex<BTreeMap<String, PerfStatistics>>,
}

impl Perf {
    /// Reads the flags. Blocks while `perf` is tried.
    ///
    /// # Errors
    /// Flags that do not fit, an event that cannot be counted, no `perf`.
    pub(in crate::agent) fn read(flags: &Flags, isolators: &Isolators, runtime_dir: &Path) -> Result<Perf, FlagError> {
        let refused = |name, why: String| Err(FlagError::Refused { name, why });
        let events: Vec<String> =
            flags.text("perf_events").split(',').map(str::trim).filter(|e| !e.is_empty()).map(str::to_owned).collect();
        if events.is_empty() {
            return Ok(Perf::default());
        }
        if !isolators.has(Controller::PerfEvent) && !isolators.all_controllers {
            return refused("perf_events", "needs the isolator cgroups/perf_event".to_owned());
        }
        let (interval, duration) = (flags.duration("perf_interval"), flags.duration("perf_duration"));
        let (interval, duration) = (interval.unwrap_or_default(), duration.unwrap_or_default());
        if duration > interval || duration.is_zero() {
            return refused(
                "perf_duration",
                "must be more than nothing, and not longer than --perf_interval".to_owned(),
            );
        }
        if let Some(event) = events.iter().find(|event| !set(&mut PerfStatistics::default(), event, "0")) {
            return refused("perf_events", format!("the statistics have no place for the event '{event}'"));
        }
        let (root, file) = (flags.text("cgroups_root").to_owned(), runtime_dir.join("isolators/perf"));
        let perf = Perf(Arc::new(Inner { events, interval, duration, root, file, latest: Mutex::default() }));
        match perf.run(&[], Duration::ZERO) {
            Ok(_) => Ok(perf),
            Err(error) => refused("perf_events", format!("'perf' cannot count these: {error:#}")),
        }
    }

    /// What was counted last of a container.
    pub(super) fn of(&self, container: &ContainerName) -> Option<PerfStatistics> {
        lock(&self.0.latest).get(container.as_str()).copied()
    }

    /// Counts from now on, if there is something to be counted.
    pub(in crate::agent) fn watch(self, containers: Containers, clock: Clock) -> Option<tokio::task::JoinHandle<()>> {
        if self.0.events.is_empty() {
            return None;
        }
        let pause = self.0.interval - self.0.duration;
        Some(tokio::spawn(async move {
            let mut failures: u32 = 0;
            loop {
                let (perf, containers) = (self.clone(), containers.clone());
                let sampled = tokio::task::spawn_blocking(move || perf.sample(&containers, clock)).await;
                match sampled {
                    Ok(Err(error)) => {
                        failures = failures.saturating_add(1);
                        // A container that ends in the meantime takes the sample with it: once says nothing.
                        if failures == 2 {
                            tracing::warn!("The events of containers are not counted (--perf_events): {error:#}");
                        }
                    }
                    Ok(Ok(())) | Err(_) => failures = 0,
                }
                // Without containers nothing has taken time.
                tokio::time::sleep(pause.max(Duration::from_secs(1))).await;
            }
        }))
    }

    /// Counts for a while. Blocks.
    fn sample(&self, containers: &Containers, clock: Clock) -> anyhow::Result<()> {
        let running = containers.pids().into_iter().map(|(name, _)| name).filter(|name| name.parent().is_none());
        let counts = self.counting()?;
        let names: Vec<String> = running.map(|name| name.as_str().to_owned()).filter(counts).collect();
        lock(&self.0.latest).retain(|name, _| names.contains(name));
        if names.is_empty() {
            return Ok(());
        }
        let timestamp = clock.now().as_secs_f64();
        let groups: Vec<String> = names.iter().map(|name| format!("{}/{name}", self.0.root)).collect();
        let text = self.run(&groups, self.0.duration)?;
        let mut counted = read(&text);
        let mut latest = lock(&self.0.latest);
        for (name, group) in names.into_iter().zip(groups) {
            if let Some(statistics) = counted.remove(&group) {
                let duration = self.0.duration.as_secs_f64();
                latest.insert(name, PerfStatistics { timestamp, duration, ..statistics });
            }
        }
        Ok(())
    }

    /// Says of which containers there is something to be counted: `perf` counts nothing at all if one of the groups is not there.
    /// Docker's containers have none, and those have none that are older than the isolator.
    fn counting(&self) -> anyhow::Result<impl Fn(&String) -> bool> {
        let hierarchies = Hierarchies::of_this_host(&self.0.root)?;
        Ok(move |name: &String| hierarchies.group(name).exists_for(Controller::PerfEvent))
    }

    /// What `perf` writes about these groups; without any, about a program that does nothing.
    fn run(&self, groups: &[String], duration: Duration) -> anyhow::Result<String> {
        let inner = &self.0;
        if let Some(folder) = inner.file.parent() {
            store::create_private(folder).with_context(|| format!("'{}'", folder.display()))?;
        }
        let program = helpers::look_up("perf", &ask::path()).context("there is no such program in PATH")?;
        let mut words: Vec<String> = ["stat", "--field-separator", ",", "--output"].map(str::to_owned).into();
        words.push(inner.file.display().to_string());
        if !groups.is_empty() {
            words.push("--all-cpus".to_owned());
        }
        for event in &inner.events {
            if groups.is_empty() {
                words.extend(["--event".to_owned(), event.clone()]);
            }
            for group in groups {
                words.extend(["--event".to_owned(), event.clone(), "--cgroup".to_owned(), group.clone()]);
            }
        }
        words.extend(["--".to_owned(), "sleep".to_owned(), duration.as_secs_f64().to_string()]);
        let environment = vec![("PATH".into(), ask::path()), ("LC_ALL".into(), "C".into())];
        let words = words.into_iter().map(Into::into).collect();
        let ask = Ask { file: program.into(), words, environment, input: b"" };
        let (status, _) = ask.run_for(duration + GRACE)?.context("it takes too long")?;
        ensure!(status.success(), "{status}");
        let size = std::fs::metadata(&inner.file)?.len();
        ensure!(size <= TEXT_MAX, "it has written {size} bytes");
        Ok(std::fs::read_to_string(&inner.file)?)
    }
}

/// What `perf` has counted by control group. Lines have a value, a unit, the event and the group; those of old versions no unit.
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

/// Sets what an event has come to; false if there is no place for it, or it is no number.
fn set(statistics: &mut PerfStatistics, event: &str, value: &str) -> bool {
    // What is behind a colon says where it is counted.
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
    use crate::flags::Part;

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

    #[test]
    fn flags_that_do_not_fit() {
        let read = |words: &[&str], isolation: &str| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let mut flags = Flags::load(Part::Agent, &words, std::iter::empty()).unwrap();
            flags.set("isolation", isolation).unwrap();
            let isolators = Isolators::read(&flags).unwrap();
            Perf::read(&flags, &isolators, Path::new("/nowhere")).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(read(&[], "posix/cpu"), Ok(()));
        let own = "cgroups/perf_event";
        for (words, isolation, said) in [
            (&["--perf_events=cycles"][..], "posix/cpu", "needs the isolator"),
            (&["--perf_events=cycles", "--perf_duration=2mins"], own, "not longer"),
            (&["--perf_events=cycles,nonsense"], own, "'nonsense'"),
        ] {
            let error = read(words, isolation).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
