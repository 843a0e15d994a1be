//! Control groups over a tree of plain files: which values are written to which files, and what is read, in version 1
//! and version 2.

use std::path::{Path, PathBuf};
use std::time::Duration;

use containers::cgroups::{Controller, Device, Hierarchies, PidStatistics};

struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let path = std::env::temp_dir().join(format!("tepui-cgroups-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Tree(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.0.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn first(tree: &Tree, controllers: &[&str]) -> Hierarchies {
    let line = |name: &&str| {
        let directory = tree.0.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        format!("30 25 0:26 / {} rw - cgroup cgroup rw,{name}\n", directory.display())
    };
    let text: String = controllers.iter().map(line).collect();
    Hierarchies::detect(&text, "mesos").unwrap()
}

const ALL: [Controller; 5] =
    [Controller::Freezer, Controller::Cpu, Controller::Cpuacct, Controller::Memory, Controller::Pids];

#[test]
fn limits_of_version_1() {
    let tree = Tree::new("v1");
    let host = first(&tree, &["freezer", "cpu", "cpuacct", "memory", "pids", "devices"]);
    host.prepare(&ALL).unwrap();
    let group = host.group("a");
    assert!(!group.exists());
    group.create(&ALL).unwrap();
    assert!(group.exists());
    for (cpus, low, shares) in [(1500, false, "1536"), (1, false, "2"), (2000, true, "20")] {
        group.set_cpu_shares(cpus, low).unwrap();
        assert_eq!(tree.text("cpu/mesos/a/cpu.shares"), shares);
    }
    for (limit, quota) in [(Some(1500), "150000"), (Some(1), "1000"), (None, "-1")] {
        group.set_cpu_limit(limit).unwrap();
        assert_eq!(tree.text("cpu/mesos/a/cpu.cfs_quota_us"), quota);
        assert_eq!(tree.text("cpu/mesos/a/cpu.cfs_period_us"), "100000");
    }
    assert_eq!(group.cpu_limit(), None);
    group.set_memory_soft(64 << 20).unwrap();
    group.set_memory_hard(Some(100 << 20), false).unwrap();
    assert_eq!(tree.text("memory/mesos/a/memory.soft_limit_in_bytes"), "67108864");
    assert_eq!(tree.text("memory/mesos/a/memory.limit_in_bytes"), "104857600");
    group.set_memory_hard(Some(200 << 20), true).unwrap();
    assert_eq!(tree.text("memory/mesos/a/memory.memsw.limit_in_bytes"), "209715200");
    group.set_pids_limit(10).unwrap();
    assert_eq!(tree.text("pids/mesos/a/pids.max"), "10");
    assert!(group.allow_devices(&[Device("c 1:1 r".into())]).is_err(), "there is no group for devices");
}

#[test]
fn controllers_that_only_count() {
    let tree = Tree::new("more");
    let host = first(&tree, &["freezer", "hugetlb", "net_cls", "net_prio", "perf_event"]);
    let more = [Controller::Hugetlb, Controller::NetClass, Controller::NetPriority, Controller::PerfEvent];
    assert_eq!(host.available(), more);
    host.prepare(&more).unwrap();
    let group = host.group("a");
    group.create(&more).unwrap();
    for name in ["hugetlb", "net_cls", "net_prio", "perf_event"] {
        assert!(tree.0.join(name).join("mesos/a").is_dir(), "{name}");
    }
    assert!(group.exists_for(Controller::PerfEvent) && !group.exists_for(Controller::Pids));
    host.group("b").create(&[Controller::Hugetlb]).unwrap();
    assert!(!host.group("b").exists_for(Controller::PerfEvent), "it is older than that isolator");
    assert!(matches!(host.prepare(&[Controller::Pids]), Err(containers::cgroups::CgroupError::Missing("pids"))));
}

#[test]
fn what_version_1_tells() {
    let tree = Tree::new("v1-told");
    let host = first(&tree, &["freezer", "cpu", "cpuacct", "memory", "pids", "blkio"]);
    let group = host.group("a");
    assert_eq!((group.cpu_statistics(), group.memory_statistics(), group.pid_statistics()), (None, None, None));
    tree.put("cpuacct/mesos/a/cpuacct.stat", "user 250\nsystem 50\n");
    tree.put("cpu/mesos/a/cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_time 2000000000\n");
    let cpu = group.cpu_statistics().unwrap();
    assert_eq!((cpu.user, cpu.system), (Duration::from_millis(2500), Duration::from_millis(500)));
    assert_eq!((cpu.periods, cpu.throttled_periods, cpu.throttled), (Some(7), Some(3), Some(Duration::from_secs(2))));
    tree.put("memory/mesos/a/memory.stat", "cache 1\nrss 2\ntotal_cache 30\ntotal_rss 40\ntotal_mapped_file 5\n");
    tree.put("memory/mesos/a/memory.usage_in_bytes", "70\n");
    tree.put("memory/mesos/a/memory.limit_in_bytes", "9223372036854771712\n");
    let memory = group.memory_statistics().unwrap();
    assert_eq!((memory.total, memory.rss, memory.cache, memory.limit), (70, 40, Some(30), None));
    tree.put("memory/mesos/a/memory.oom_control", "oom_kill_disable 1\nunder_oom 0\noom_kill 0\n");
    assert!(!group.is_out_of_memory());
    tree.put("memory/mesos/a/memory.oom_control", "oom_kill_disable 1\nunder_oom 1\noom_kill 0\n");
    assert!(group.is_out_of_memory());
    tree.put("pids/mesos/a/pids.current", "3\n");
    tree.put("pids/mesos/a/pids.max", "max\n");
    assert_eq!(group.pid_statistics(), Some(PidStatistics { current: 3, limit: None }));
    let told = "8:0 Read 10\n8:0 Write 5\n8:0 Sync 1\n8:16 Read 1\nTotal 17\n";
    tree.put("blkio/mesos/a/blkio.throttle.io_service_bytes_recursive", told);
    tree.put("blkio/mesos/a/blkio.throttle.io_serviced_recursive", "8:0 Read 2\nTotal 2\n");
    let io = group.io_statistics().unwrap();
    assert_eq!((io.read_bytes, io.written_bytes), (11, 5));
    let devices: Vec<_> = io.devices.iter().map(|one| (one.device, one.bytes.len(), one.requests.len())).collect();
    assert_eq!(devices, [(Some((8, 0)), 3, 1), (Some((8, 16)), 1, 0), (None, 1, 1)]);
    tree.put("memory/mesos/a/memory.pressure_level", "");
    tree.put("memory/mesos/a/cgroup.event_control", "");
    let mut watch = group.watch_shortages().unwrap().unwrap();
    assert_eq!(watch.counts(), [0; 3]);
    assert!(tree.text("memory/mesos/a/cgroup.event_control").ends_with(" critical"));
}

#[test]
fn groups_inside_groups() {
    let tree = Tree::new("inside");
    let host = first(&tree, &["freezer", "memory"]);
    host.prepare(&[Controller::Freezer, Controller::Memory]).unwrap();
    host.group("a").create(&[Controller::Freezer, Controller::Memory]).unwrap();
    host.group("a.b").create(&[Controller::Freezer]).unwrap();
    assert!(tree.0.join("freezer/mesos/a/mesos/b").is_dir());
    assert!(!tree.0.join("memory/mesos/a/mesos").exists());
    tree.put("freezer/mesos/a/cgroup.procs", "7\n");
    tree.put("freezer/mesos/a/mesos/b/cgroup.procs", "8\n9\n");
    assert_eq!(host.group("a").processes(), [8, 9, 7]);
    assert_eq!(host.group("a.b").processes(), [8, 9]);
    assert_eq!(host.group("c").processes(), [] as [i32; 0]);
    host.group("c").remove().unwrap();
    assert!(!host.group("a").remove_if_empty(), "another group is in it");
    assert!(host.group("c").remove_if_empty());
    assert!(matches!(
        host.group("a").create(&[Controller::Cpu]),
        Err(containers::cgroups::CgroupError::Missing("cpu"))
    ));
}

#[test]
fn packets_are_marked() {
    let tree = Tree::new("net");
    let host = first(&tree, &["freezer", "net_cls"]);
    let group = host.group("a");
    group.create(&[Controller::NetClass]).unwrap();
    assert_eq!(group.net_class(), None);
    group.set_net_class(0x0012_0005).unwrap();
    assert_eq!(tree.text("net_cls/mesos/a/net_cls.classid"), "1179653");
    assert_eq!(group.net_class(), Some(0x0012_0005));
    assert!(Hierarchies::unified(&tree.0, "mesos").group("a").set_net_class(1).is_err());
}

#[test]
fn a_processor_set_has_what_its_parent_has() {
    let tree = Tree::new("cpuset");
    let host = first(&tree, &["freezer", "cpuset"]);
    tree.put("cpuset/cpuset.cpus", "0-3\n");
    tree.put("cpuset/cpuset.mems", "0\n");
    host.prepare(&[Controller::Cpuset]).unwrap();
    host.group("a").create(&[Controller::Cpuset]).unwrap();
    assert_eq!(tree.text("cpuset/mesos/cpuset.cpus"), "0-3");
    assert_eq!(tree.text("cpuset/mesos/a/cpuset.mems"), "0");
}

#[test]
fn limits_of_version_2() {
    let tree = Tree::new("v2");
    let host = Hierarchies::unified(&tree.0, "rack/mesos");
    assert!(host.prepare(&ALL).is_err(), "nothing says which controllers there are");
    for directory in ["", "rack/", "rack/mesos/"] {
        tree.put(&format!("{directory}cgroup.controllers"), "cpuset cpu io memory pids\n");
    }
    host.prepare(&ALL).unwrap();
    assert_eq!(tree.text("rack/mesos/cgroup.subtree_control"), "+pids");
    let group = host.group("a");
    group.create(&ALL).unwrap();
    assert!(tree.0.join("rack/mesos/a/leaf").is_dir());
    for (cpus, weight) in [(1000, "39"), (1, "1"), (1_000_000, "10000")] {
        group.set_cpu_shares(cpus, false).unwrap();
        assert_eq!(tree.text("rack/mesos/a/cpu.weight"), weight);
    }
    group.set_cpu_limit(Some(2500)).unwrap();
    assert_eq!((tree.text("rack/mesos/a/cpu.max"), group.cpu_limit()), ("250000 100000".to_owned(), Some(2500)));
    group.set_cpu_limit(None).unwrap();
    assert_eq!((tree.text("rack/mesos/a/cpu.max"), group.cpu_limit()), ("max 100000".to_owned(), None));
    group.set_memory_soft(1).unwrap();
    group.set_memory_hard(Some(2), true).unwrap();
    let text = |name: &str| tree.text(&format!("rack/mesos/a/{name}"));
    assert_eq!((text("memory.low"), text("memory.max"), text("memory.swap.max")), ("1".into(), "2".into(), "0".into()));
    assert!(group.watch_memory().unwrap().is_none());
    assert!(group.watch_shortages().unwrap().is_none());
    assert_eq!(text("memory.oom.group"), "1");
    tree.put("rack/mesos/a/cpu.stat", "usage_usec 3\nuser_usec 2\nsystem_usec 1\nnr_periods 0\n");
    assert_eq!(group.cpu_statistics().unwrap().user, Duration::from_micros(2));
    tree.put("rack/mesos/a/memory.stat", "anon 5\nfile 6\n");
    tree.put("rack/mesos/a/memory.current", "11\n");
    assert_eq!(group.memory_statistics().map(|memory| (memory.total, memory.rss)), Some((11, 5)));
    tree.put("rack/mesos/a/memory.events", "low 0\noom 1\noom_kill 1\n");
    assert!(group.is_out_of_memory());
    tree.put("rack/mesos/a/io.stat", "8:0 rbytes=3 wbytes=4 rios=1\n8:16 rbytes=1 wbytes=0\n");
    assert_eq!(group.io_statistics().map(|io| (io.read_bytes, io.written_bytes)), Some((4, 4)));
    assert!(group.allow_devices(&[]).is_err());
}

/// The error names a process that does not end; in version 2 the kernel was asked to kill all before.
#[test]
fn what_does_not_end() {
    let tree = Tree::new("stays");
    let group = Hierarchies::unified(&tree.0, "mesos").group("a");
    tree.put("mesos/a/leaf/cgroup.procs", &format!("{}\n", i32::MAX));
    let error = group.end(Duration::from_millis(5)).unwrap_err().to_string();
    assert!(error.contains("2147483647"), "{error}");
    assert_eq!(tree.text("mesos/a/cgroup.kill"), "1");
    assert!(Path::new(&tree.0).exists());
}
