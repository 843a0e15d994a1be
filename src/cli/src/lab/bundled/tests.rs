//! Tests bundled frameworks in whole runs: the examples of lab/examples, failures of tasks and agents, and scenarios
//! that are rejected.

use std::path::{Path, PathBuf};

use ::lab::measure::{FrameworkOutcome, Outcome};
use ::lab::run::run;
use ::lab::scenario::{Scenario, check_bundled};

use super::CATALOG;

/// Returns the directory of the examples.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/examples")
}

fn example(name: &str) -> String {
    std::fs::read_to_string(directory().join(name)).unwrap()
}

/// Runs a scenario as if it were one of the examples.
fn outcome(text: &str, seed: u64) -> Outcome {
    let file = directory().join("test.toml");
    let scenario = Scenario::read(text, &file).unwrap().with(CATALOG);
    check_bundled(&scenario, text, &file).unwrap();
    run(&scenario, seed, &directory(), &mut |_| true).unwrap()
}

fn refused(text: &str) -> String {
    let file = directory().join("test.toml");
    let scenario = Scenario::read(text, &file).unwrap().with(CATALOG);
    let why = check_bundled(&scenario, text, &file).unwrap_err().to_string();
    why.replace(&format!("{}/", directory().display()), "")
}

fn own(framework: &FrameworkOutcome, name: &str) -> f64 {
    let found = framework.own.iter().find(|(known, _)| known == name);
    found.and_then(|(_, value)| *value).unwrap_or_else(|| panic!("{name}: {:?}", framework.own))
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    for name in ["binpack.toml", "dag.toml", "quality.toml", "video.toml"] {
        let text = example(name).replace("10m", "4m").replace("count = 30", "count = 10");
        let [first, again, other] = [1, 1, 2].map(|seed| outcome(&text, seed));
        assert_eq!(first.digest, again.digest, "{name}");
        assert_eq!(serde_json::to_string(&first).unwrap(), serde_json::to_string(&again).unwrap(), "{name}");
        assert_ne!(first.digest, other.digest, "{name}");
    }
}

/// Reboots of hosts that last long enough for the agents to be considered lost.
const LOSSES: &str = "[master]\nagent_ping_timeout = '1s'\nmax_agent_ping_timeouts = 3\n[[faults]]\nwhat = 'reboot'\nwho = 'agent'\n\
                      from = '30s'\nevery = '1m'\nuntil = '4m'\nfor = '20s'\n";

const PACKED: &str = r#"
name = "packed"
duration = "1h"
until_done = true

[[agents]]
count = 4
resources = "cpus:8;mem:8192"

[[frameworks]]
name = "packer"
bundled = "binpack"
[[frameworks.jobs]]
name = "batch"
every = "10s"
count = 20
tasks = 10
needs = "cpus:1;mem:512"
time = "exponential 20s"
retries = 5
"#;

#[test]
fn packed_tasks_take_their_time_fail_and_are_tried_again() {
    let whole = outcome(PACKED, 1);
    let packer = &whole.frameworks[0];
    assert!(whole.done && packer.submitted == 200 && packer.finished == 200 && packer.failed == 0, "{packer:?}");
    assert!((45.0..70.0).contains(&packer.kinds[0].1.mean), "{:?}", packer.kinds);
    let failing = outcome(&format!("{PACKED}[model]\nfailures = 0.2\n"), 1);
    let packer = &failing.frameworks[0];
    assert!(failing.done && packer.finished == 200 && packer.failed > 20, "{packer:?}");
    // Tasks on an agent that does not answer are given up after a minute, and tried again without end; no task counts
    // twice.
    let losses = LOSSES.replace("20s", "90s").replace("1m", "2m");
    let lossy = outcome(&format!("{}{losses}", PACKED.replace("retries = 5", "")), 1);
    let packer = &lossy.frameworks[0];
    assert!(lossy.done && packer.finished == 200 && packer.left == 0, "{packer:?}");
    let used = lossy.series.tracks[0].share.last().copied().unwrap();
    assert_eq!(used, 0.0, "what has ended uses nothing");
}

#[test]
fn gangs_priorities_constraints_and_job_files_are_the_frameworks_own() {
    let gang = PACKED.replace("tasks = 10", "tasks = 32\ngang = true").replace("count = 20", "count = 3");
    let whole = outcome(&gang, 1);
    assert!(whole.done && whole.frameworks[0].finished == 96, "{:?}", whole.frameworks[0]);
    // A gang that needs all cores has them for itself: no two overlap, and the ranks of each are launched at once.
    let mut launches: Vec<f64> = whole.strips.iter().map(|(_, _, from, _)| *from).collect();
    launches.sort_by(f64::total_cmp);
    launches.dedup();
    assert_eq!(launches.len(), 3, "{launches:?}");
    let constrained = PACKED
        .replace("[[agents]]\ncount = 4", "[[agents]]\nattributes = 'disk:ssd'\ncount = 1")
        .replace(
            "[[frameworks]]",
            "[[agents]]\ncount = 3\nname = 'other'\nresources = 'cpus:8;mem:8192'\n[[frameworks]]",
        )
        .replace("retries = 5", "options = { constraints = [['disk', 'equal', 'ssd']] }");
    let whole = outcome(&constrained, 1);
    assert!(whole.done && whole.strips.iter().all(|(agent, ..)| *agent == 0), "{:?}", whole.strips);
    let filed = PACKED.split("[[frameworks.jobs]]").next().unwrap().replace("1h", "5m").to_owned()
        + "[[frameworks.jobs]]\nname = 'file'\nevery = '2m'\ncount = 2\noptions = { file = 'binpack-jobs.toml' }\n";
    let whole = outcome(&filed, 1);
    let packer = &whole.frameworks[0];
    // The gang of six takes a minute, and the three tasks of the service run until the end; there are two of each.
    assert_eq!((packer.submitted, packer.finished, packer.left), (18, 12, 6), "{packer:?}");
    assert!(
        packer.kinds.iter().any(|(name, time)| name == "file-solver" && (60.0..70.0).contains(&time.mean)),
        "{packer:?}"
    );
}

const TRAINED: &str = r#"
name = "trained"
duration = "2h"
until_done = true

[[agents]]
count = 4
resources = "cpus:8;mem:8192"

[[frameworks]]
name = "trainings"
bundled = "quality"
options = { policy = "slaq" }
[[frameworks.jobs]]
poisson = "15s"
count = 20
time = "lognormal 6s 0.5"
options = { curves = "../papers/data/slaq-curves.csv", shards = 32 }
"#;

#[test]
fn trainings_end_with_their_losses_and_the_policy_tells() {
    let slaq = outcome(TRAINED, 1);
    let fair = outcome(&TRAINED.replace("slaq\" }", "fair\" }"), 1);
    for whole in [&slaq, &fair] {
        let trainings = &whole.frameworks[0];
        assert!(whole.done && trainings.finished == 20 && trainings.left == 0, "{trainings:?}");
        assert!(whole.windows[0].shares[0] > 0.5, "workers hold cores: {:?}", whole.windows[0].shares);
        assert!(own(trainings, "t90") < own(trainings, "t95") && own(trainings, "t95") < trainings.job.mean);
    }
    let loss = |whole: &Outcome| own(&whole.frameworks[0], "loss");
    assert!(loss(&slaq) < loss(&fair), "{} {}", loss(&slaq), loss(&fair));
}

#[test]
fn trainings_survive_the_loss_of_agents() {
    let whole = outcome(&format!("{TRAINED}{LOSSES}"), 1);
    let trainings = &whole.frameworks[0];
    assert!(whole.done && trainings.finished == 20, "{trainings:?}");
    assert!(trainings.job.mean > outcome(TRAINED, 1).frameworks[0].job.mean, "losing workers costs time");
    assert_eq!(whole.series.tracks[0].share.last(), Some(&0.0), "what has ended uses nothing");
}

#[test]
fn queries_share_cores_by_quality_and_lag() {
    let text = example("video.toml");
    let storm = outcome(&text, 1);
    let fair = outcome(&text.replace("policy = \"videostorm\"", "policy = \"fair\""), 1);
    for whole in [&storm, &fair] {
        let watch = &whole.frameworks[0];
        assert_eq!((watch.submitted, watch.finished, watch.left), (35, 15, 20), "{watch:?}");
        assert!((120.0..140.0).contains(&watch.kinds[1].1.mean), "a stream of two minutes: {:?}", watch.kinds);
    }
    let [storm, fair] = [&storm, &fair].map(|whole| &whole.frameworks[0]);
    assert!(own(storm, "quality") > own(fair, "quality") && own(storm, "seen") > own(fair, "seen"));
    assert!(
        own(storm, "lag") > own(fair, "lag") && own(storm, "late") < 0.05,
        "a query that can wait lags within its goal"
    );
}

#[test]
fn invalid_values_are_refused_with_their_line() {
    let jobs = "[[frameworks.jobs]]";
    for (text, from, to, start, words) in [
        (
            PACKED,
            "\"binpack\"",
            "\"binpak\"",
            "test.toml:12: frameworks.0.bundled: ",
            "must be one of binpack, dag, quality, video",
        ),
        (
            PACKED,
            jobs,
            "options = { polcy = 'x' }\n[[frameworks.jobs]]",
            "test.toml:13: frameworks.0.options.polcy",
            "`policy`",
        ),
        (
            PACKED,
            jobs,
            "options.policy = 'x'\n[[frameworks.jobs]]",
            "test.toml:13: frameworks.0.options.policy",
            "best-fit",
        ),
        (PACKED, jobs, "options = { tasks_per_offer = 0 }\n[[frameworks.jobs]]", "test.toml:13:", "at least 1"),
        (
            PACKED,
            "retries = 5",
            "options = { cpus = 3 }",
            "test.toml:20: frameworks.0.jobs.0.options.cpus",
            "scenario's own fields",
        ),
        (
            PACKED,
            "retries = 5",
            "options = { prio = 3 }",
            "test.toml:20: frameworks.0.jobs.0.options",
            "did you mean 'priority'",
        ),
        (
            PACKED,
            "cpus:1;mem:512",
            "cpus:1;bananas:2",
            "test.toml:18: frameworks.0.jobs.0.needs",
            "cpus, mem, disk, gpus",
        ),
        (PACKED, "time = \"exponential 20s\"", "", "test.toml:13: frameworks.0.jobs.0.time", "the duration of a task"),
        (PACKED, "retries = 5", "options = { file = 'none.toml' }", "test.toml:17:", "set in the job file"),
        (TRAINED, "policy = \"slaq\"", "policy = \"best\"", "test.toml:13: frameworks.0.options.policy", "slaq"),
        (TRAINED, "time =", "tasks = 3\ntime =", "test.toml:17: frameworks.0.jobs.0.tasks", "a training"),
        (TRAINED, "slaq-curves.csv", "none.csv", "test.toml:18: frameworks.0.jobs.0.options.curves", "cannot be read"),
        (
            TRAINED,
            "slaq-curves.csv",
            "../../examples/quality.toml",
            "test.toml:18: frameworks.0.jobs.0.options.curves",
            "line 2",
        ),
        (TRAINED, "shards = 32", "shards = 0", "test.toml:18: frameworks.0.jobs.0.options.shards", "between 1 and"),
        (TRAINED, "curves =", "curve =", "test.toml:18: frameworks.0.jobs.0.options.curve:", "`curves`"),
        (TRAINED, "time = \"lognormal 6s 0.5\"", "", "test.toml:14: frameworks.0.jobs.0.time", "on one core"),
    ] {
        let why = refused(&text.replacen(from, to, 1));
        assert!(why.starts_with(start) && why.contains(words), "{to}: {why}");
    }
    let text = example("video.toml");
    for (from, to, words) in [
        ("times = 10", "times = 10000", "more than one core"),
        ("[\"cars\", \"people\"]", "[\"birds\"]", "is not a kind of query"),
        ("[0.5, 0.9]", "[0.9, 0.5]", "between 0 and 1"),
        ("papers/data/video", "papers/data/none", "cannot be read"),
        ("uniform 30s 2m", "uniform 30", "max_lag"),
    ] {
        let why = refused(&text.replacen(from, to, 1));
        assert!(why.contains("frameworks.0.jobs.0.options") && why.contains(words), "{to}: {why}");
    }
}

#[test]
fn jobs_of_stages_end_in_their_order_and_say_what_they_cannot_have() {
    let text = example("dag.toml");
    let whole = outcome(&format!("until_done = true\n{text}"), 1);
    let stages = &whole.frameworks[0];
    assert!(whole.done && stages.failed == 0 && stages.left == 0, "{stages:?}");
    assert!(stages.finished > 0 && stages.finished == stages.submitted, "{stages:?}");
    let lossy = outcome(&format!("until_done = true\n{text}{LOSSES}"), 1);
    assert!(lossy.done && lossy.frameworks[0].left == 0, "{:?}", lossy.frameworks[0]);
    let said = refused(&text.replace("file = \"dag-jobs.toml\"", "priority = 3"));
    assert!(said.contains("must be the name of a job file"), "{said}");
    let said = refused(&text.replace("order = \"remaining\"", "order = \"soon\""));
    assert!(said.contains("is not an order"), "{said}");
}
