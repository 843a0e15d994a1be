//! Isolator `linux/resctrl`, which assigns cache ways and memory bandwidth to containers. Mesos has no such isolator.
//!
//! `cache_ways` are exclusive ways of the last-level cache; `membw` is a percentage of the memory bandwidth. A
//! container with one of them is in a group `tepui-<container>` of `/sys/fs/resctrl`, from which an agent recovers the
//! assignments after a restart. All other processes share the remaining ways.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use agent::ContainerName;
use anyhow::{Context, ensure};
use base::lock;
use protos::mesos;

use crate::config::ConfigError;
use crate::mesos::isolators::{Container, Isolator, Launch};

const ROOT: &str = "/sys/fs/resctrl";
const PREFIX: &str = "tepui-";
/// The whole bandwidth in percent.
const ALL: u64 = 100;
/// Limit of the number of ways; no processor has more.
const WAYS_MAX: u32 = 32;

/// Resctrl groups of this host. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Resctrl(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    cache: Option<Cache>,
    bandwidth: Option<Bandwidth>,
    /// Lock that is held while ways are searched and assigned.
    taking: Mutex<()>,
}

/// Properties of the last-level cache.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cache {
    /// Number of ways.
    ways: u32,
    /// Minimum number of ways of a group.
    least: u32,
    /// Number of ways that are a resource; the others are shared.
    given: u32,
    domains: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Bandwidth {
    /// Minimum and step of a group's bandwidth in percent.
    least: u64,
    step: u64,
    domains: Vec<String>,
}

impl Resctrl {
    /// Reads the properties of the host. `resources` are those of the agent.
    ///
    /// # Errors
    /// The host does not support resctrl, or has fewer ways than are resources.
    pub(crate) fn start(resources: &[mesos::Resource]) -> Result<Resctrl, ConfigError> {
        Resctrl::at(Path::new(ROOT), amount(resources, "cache_ways") as u64)
            .map_err(|error| ConfigError::new("isolation", format!("linux/resctrl: {error:#}")))
    }

    fn at(root: &Path, given: u64) -> anyhow::Result<Resctrl> {
        let schemata = fs::read_to_string(root.join("schemata")).with_context(|| {
            format!("'{}' is not mounted: mount -t resctrl resctrl {}", root.display(), root.display())
        })?;
        let number = |path: &str| fs::read_to_string(root.join("info").join(path)).ok()?.trim().parse::<u64>().ok();
        let mut own = Inner { root: root.to_owned(), cache: None, bandwidth: None, taking: Mutex::default() };
        if let Some(domains) = domains(&schemata, "L3") {
            let mask = fs::read_to_string(root.join("info/L3/cbm_mask")).context("info/L3/cbm_mask")?;
            let ways = u32::from_str_radix(mask.trim(), 16).context("info/L3/cbm_mask")?.count_ones();
            let least = number("L3/min_cbm_bits").and_then(|bits| u32::try_from(bits).ok()).unwrap_or(1).max(1);
            let given = u32::try_from(given).unwrap_or(u32::MAX);
            ensure!(
                ways <= WAYS_MAX && u64::from(given) + u64::from(least) <= u64::from(ways),
                "of {ways} ways of the cache at most {} can be 'cache_ways': the others are shared",
                ways.saturating_sub(least)
            );
            own.cache = Some(Cache { ways, least, given, domains });
        }
        ensure!(given == 0 || own.cache.is_some(), "this processor cannot divide its cache");
        if let Some(domains) = domains(&schemata, "MB") {
            let (least, step) = (number("MB/min_bandwidth").unwrap_or(10), number("MB/bandwidth_gran").unwrap_or(10));
            own.bandwidth = Some(Bandwidth { least, step: step.max(1), domains });
        }
        let own = Arc::new(own);
        if given > 0 {
            // A container without ways of its own uses only the shared ones.
            let line = own.line_of_cache(own.shared_ways());
            fs::write(root.join("schemata"), line).context("the cache cannot be divided")?;
        }
        Ok(Resctrl(own))
    }

    /// Creates the group of a container that holds cache ways or bandwidth. Returns the file by which its first process
    /// enters the group; `None` if it holds neither.
    ///
    /// # Errors
    /// The host does not support the resource, or has too little of it left. No group is created then.
    fn give(&self, container: &ContainerName, list: &[mesos::Resource]) -> anyhow::Result<Option<Arc<OwnedFd>>> {
        let (ways, percent) = (amount(list, "cache_ways"), amount(list, "membw"));
        let own = &self.0;
        if ways + percent <= 0.0 {
            return Ok(None);
        }
        let _taking = lock(&own.taking);
        let schemata = own.schemata(ways, percent)?;
        let group = own.group(container.as_str());
        fs::create_dir(&group).context("No further resctrl group can be created")?;
        let entered = fs::write(group.join("schemata"), schemata).context("The cache and bandwidth cannot be set");
        let entered = entered.and_then(|()| {
            let file = OpenOptions::new().write(true).create(cfg!(test)).truncate(false).open(group.join("tasks"));
            Ok(Arc::new(OwnedFd::from(file?)))
        });
        entered.map(Some).inspect_err(|_| own.remove(container.as_str()))
    }
}

impl Isolator for Resctrl {
    fn recover(&self, kept: &BTreeSet<String>) {
        let gone = self.0.groups().into_iter().filter(|name| !kept.contains(name));
        gone.for_each(|name| self.0.remove(&name));
    }

    /// Prepares a top-level container. Nested containers are in its group.
    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        if container.name.parent().is_none() {
            launch.isolation.tasks = self.give(container.name, &container.spec.resources)?;
        }
        Ok(())
    }

    fn cleanup(&self, container: &ContainerName) {
        self.0.remove(container.as_str());
    }
}

impl Inner {
    fn group(&self, container: &str) -> PathBuf {
        self.root.join(format!("{PREFIX}{container}"))
    }

    fn groups(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix(PREFIX)?.to_owned())).collect()
    }

    /// Removes the group of a container. Its remaining processes, if any, return to the default group.
    fn remove(&self, container: &str) {
        let group = self.group(container);
        // In tests the group is a plain directory with files.
        let removed = if cfg!(test) { fs::remove_dir_all(&group) } else { fs::remove_dir(&group) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove '{}': {error}", group.display());
            }
            _ => {}
        }
    }

    /// Returns the mask of the lowest ways of the cache, which are not a resource.
    fn shared_ways(&self) -> u32 {
        self.cache.as_ref().map_or(0, |cache| ones(cache.ways - cache.given, 0))
    }

    fn line_of_cache(&self, mask: u32) -> String {
        let Some(cache) = &self.cache else { return String::new() };
        let all: Vec<String> = cache.domains.iter().map(|domain| format!("{domain}={mask:x}")).collect();
        format!("L3:{}\n", all.join(";"))
    }

    fn schemata(&self, ways: f64, percent: f64) -> anyhow::Result<String> {
        ensure!(ways.fract() == 0.0, "'cache_ways' must be a whole number");
        let ways = ways as u32;
        ensure!(ways == 0 || self.cache.is_some(), "This processor cannot divide its cache");
        let mask = if ways == 0 { self.shared_ways() } else { self.free_ways(ways)? };
        let mut text = self.line_of_cache(mask);
        ensure!(percent == 0.0 || self.bandwidth.is_some(), "This processor cannot divide its memory bandwidth");
        if let Some(bandwidth) = self.bandwidth.as_ref().filter(|_| percent > 0.0) {
            let steps = (percent / bandwidth.step as f64).ceil() as u64 * bandwidth.step;
            let percent = steps.max(bandwidth.least).min(ALL);
            let all: Vec<String> = bandwidth.domains.iter().map(|domain| format!("{domain}={percent}")).collect();
            text += &format!("MB:{}\n", all.join(";"));
        }
        Ok(text)
    }

    /// Returns the mask of adjacent ways that no other group has, in the smallest sufficient gap.
    fn free_ways(&self, wanted: u32) -> anyhow::Result<u32> {
        let cache = self.cache.as_ref().context("This processor cannot divide its cache")?;
        ensure!(wanted >= cache.least, "A container needs at least {} 'cache_ways'", cache.least);
        let mut used = self.shared_ways();
        for name in self.groups() {
            let text = fs::read_to_string(self.group(&name).join("schemata")).unwrap_or_default();
            used |= mask_of(&text).filter(|mask| *mask != self.shared_ways()).unwrap_or(0);
        }
        let mut gaps = Vec::new();
        let mut at = 0;
        while at < cache.ways {
            let length = (at..cache.ways).take_while(|way| used >> way & 1 == 0).count() as u32;
            if length >= wanted {
                gaps.push((length, at));
            }
            at += length + 1;
        }
        let (_, at) = gaps
            .into_iter()
            .min()
            .with_context(|| format!("No {wanted} contiguous ways of the cache are available"))?;
        Ok(ones(wanted, at))
    }
}

/// Returns a mask of `count` ones from bit `at` on.
fn ones(count: u32, at: u32) -> u32 {
    (((1_u64 << count) - 1) << at) as u32
}

/// Returns the domains in a line of `schemata`, such as `L3:0=fff;1=fff`.
fn domains(schemata: &str, kind: &str) -> Option<Vec<String>> {
    let line = schemata.lines().find_map(|line| line.trim().strip_prefix(kind)?.strip_prefix(':'))?;
    Some(line.split(';').filter_map(|part| Some(part.split_once('=')?.0.trim().to_owned())).collect())
}

fn mask_of(schemata: &str) -> Option<u32> {
    let line = schemata.lines().find_map(|line| line.trim().strip_prefix("L3:"))?;
    u32::from_str_radix(line.split(';').next()?.split_once('=')?.1.trim(), 16).ok()
}

fn amount(list: &[mesos::Resource], name: &str) -> f64 {
    let scalars = list.iter().filter(|resource| resource.name == name).filter_map(|resource| resource.scalar.as_ref());
    scalars.map(|scalar| scalar.value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a directory with the files of a processor with two caches of 12 ways.
    fn tree(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("tepui-resctrl-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (file, text) in [
            ("schemata", "    MB:0=100;1=100\n    L3:0=fff;1=fff\n"),
            ("info/L3/cbm_mask", "fff\n"),
            ("info/L3/min_cbm_bits", "1\n"),
            ("info/MB/min_bandwidth", "10\n"),
            ("info/MB/bandwidth_gran", "10\n"),
        ] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        root
    }

    fn held(ways: f64, percent: f64) -> Vec<mesos::Resource> {
        let one = |(name, value): (&str, f64)| mesos::Resource {
            name: name.into(),
            scalar: Some(mesos::value::Scalar { value }),
            ..mesos::Resource::default()
        };
        [("cache_ways", ways), ("membw", percent), ("cpus", 1.0)].map(one).into()
    }

    fn container(id: &str) -> ContainerName {
        ContainerName::top(&base::ContainerId::new(id).unwrap())
    }

    #[test]
    fn ways_are_for_one_alone() {
        let root = tree("ways");
        let own = Resctrl::at(&root, 8).unwrap();
        assert_eq!(fs::read_to_string(root.join("schemata")).unwrap(), "L3:0=f;1=f\n");
        let give = |own: &Resctrl, id: &str, ways, percent| {
            own.give(&container(id), &held(ways, percent)).map(|file| file.is_some()).map_err(|error| error.to_string())
        };
        let text = |id: &str| fs::read_to_string(root.join(format!("tepui-{id}/schemata"))).unwrap();
        assert_eq!(give(&own, "a", 3.0, 0.0), Ok(true));
        assert_eq!(text("a"), "L3:0=70;1=70\n");
        assert_eq!(give(&own, "b", 2.0, 25.0), Ok(true));
        assert_eq!(text("b"), "L3:0=180;1=180\nMB:0=30;1=30\n");
        assert_eq!(give(&own, "c", 0.0, 3.0), Ok(true));
        assert_eq!(text("c"), "L3:0=f;1=f\nMB:0=10;1=10\n");
        assert_eq!(give(&own, "d", 0.0, 0.0), Ok(false));
        assert_eq!(give(&own, "d", 4.0, 0.0), Err("No 4 contiguous ways of the cache are available".into()));
        assert_eq!(give(&own, "d", 1.5, 0.0), Err("'cache_ways' must be a whole number".into()));
        assert!(!root.join("tepui-d").exists());
        // The next agent process recovers the assignments, and removes unused ones.
        let next = Resctrl::at(&root, 8).unwrap();
        next.recover(&["b".to_owned(), "c".to_owned()].into());
        assert_eq!(give(&next, "e", 3.0, 0.0), Ok(true));
        assert_eq!(text("e"), "L3:0=70;1=70\n", "the smallest gap");
        next.cleanup(&container("b"));
        assert_eq!(give(&next, "f", 5.0, 0.0), Ok(true));
        assert_eq!(text("f"), "L3:0=f80;1=f80\n");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_the_host_lacks() {
        let root = tree("lacks");
        assert!(Resctrl::at(&root, 12).unwrap_err().to_string().contains("at most 11"));
        fs::write(root.join("schemata"), "MB:0=100\n").unwrap();
        assert!(Resctrl::at(&root, 1).unwrap_err().to_string().contains("cannot divide its cache"));
        let own = Resctrl::at(&root, 0).unwrap();
        assert!(
            own.give(&container("a"), &held(1.0, 0.0)).unwrap_err().to_string().contains("cannot divide its cache")
        );
        let error = Resctrl::at(&root.join("none"), 0).unwrap_err();
        assert!(error.to_string().contains("mount -t resctrl"), "{error}");
        fs::remove_dir_all(root).unwrap();
    }
}
