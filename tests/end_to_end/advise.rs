//! Tests right-sizing with real processes: a job requests 1 core and 256 MB and uses little.
//!
//! - `tepui advise` proposes less, records its measurements, and prints the same from the record without a cluster;
//! - with too few measurements it proposes nothing and reports that;
//! - an agent that fails every task fails few of them if the framework avoids failing agents, and many if it does not;
//! - with active sizing the framework launches the job's next task with less, and does not change the running one.

use serde_json::Value;

use crate::process::{Process, ToItsEnd};
use crate::support::{Cluster, call, tepui, until};

struct World {
    cluster: Cluster,
}

impl World {
    /// Returns the output of a command that must succeed.
    fn ok(&self, words: &[&str]) -> String {
        let output = tepui().args(words).env("TEPUI_MASTER", &self.cluster.master).run();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Starts the framework, and waits until it has registered.
    fn framework(&self, words: &[&str]) -> Process {
        let master = format!("--master={}", self.cluster.master);
        let mut framework = Process::start(tepui().args(["framework", "binpack", "--json", &master]).args(words));
        framework.until("the framework is known to the master", || {
            tepui().args(["job", "list"]).env("TEPUI_MASTER", &self.cluster.master).run().status.success()
        });
        framework
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.ok(words)).unwrap()
    }

    /// Returns the tasks that the master knows: state, cores and memory at the launch, in the order of their ids.
    fn tasks(&self) -> Vec<(String, f64, f64)> {
        let document = call(&self.cluster.master, "GET", "/frameworks").unwrap_or_default();
        let mut tasks: Vec<&Value> = document["frameworks"][0]["tasks"].as_array().into_iter().flatten().collect();
        tasks.sort_by_key(|task| task["id"].as_str().unwrap_or_default());
        let amount = |task: &Value, name: &str| task["resources"][name].as_f64().unwrap_or_default();
        let row = |task: &&Value| {
            (task["state"].as_str().unwrap_or_default().to_owned(), amount(task, "cpus"), amount(task, "mem"))
        };
        tasks.iter().map(row).collect()
    }
}

const RUNNING: &str = "TASK_RUNNING";

#[test]
fn a_job_that_uses_little_is_advised_and_launched_with_less() {
    let world = World { cluster: Cluster::start("advise", 1, "cpus:4;mem:2048;disk:512") };
    let _framework = world.framework(&["--active-sizing=0.1", "--measure-every=200ms"]);
    let job = "name = 'idle'\nkind = 'service'\ncount = 2\ncpus = 1\nmem = 256\ncommand = 'exec sleep 1000'\n\
               restart = { first = '100ms' }\n";
    let file = world.cluster.directory.write("job.toml", job);
    world.ok(&["job", "submit", &file]);
    let full = (RUNNING.to_owned(), 1.0, 256.0);
    until("both tasks run with what the file says", || world.tasks() == [full.clone(), full.clone()]);

    // Two rounds are too few for a percentile.
    let few = world.json(&["advise", "--for=200ms", "--every=200ms", "--json"]);
    let part = &few["jobs"][0]["mem"];
    assert_eq!((few["rounds"].as_u64(), part["verdict"].as_str()), (Some(2), Some("too_few")), "{few}");
    assert!(part["proposed"].is_null() && few["total"]["freed"]["cpus"] == 0.0, "{few}");

    // 30 rounds of two tasks; agents that are slow to measure give fewer measurements, but more than 20.
    let record = world.cluster.directory.join("record");
    let to_record = format!("--record={record}");
    let live = world.json(&["advise", "--for=12s", "--every=400ms", "--risk=0.1", &to_record, "--json"]);
    let job = &live["jobs"][0];
    assert_eq!(
        (job["job"].as_str(), job["role"].as_str(), job["tasks"].as_f64()),
        (Some("idle"), Some("*"), Some(2.0))
    );
    let (cpus, mem) = (job["cpus"]["proposed"].as_f64().unwrap(), job["mem"]["proposed"].as_f64().unwrap());
    assert!((0.01..1.0).contains(&cpus) && (32.0..256.0).contains(&mem), "{live}");
    assert!(mem >= job["mem"]["used"]["max"].as_f64().unwrap(), "{live}");
    let freed = live["roles"][0]["freed"]["mem"].as_f64().unwrap();
    assert!((freed - 2.0 * (256.0 - mem)).abs() < 0.01, "{live}");
    let from = format!("--from={record}");
    let nowhere = tepui().args(["advise", &from, "--risk=0.1", "--json"]).env("TEPUI_MASTER", "127.0.0.1:1").run();
    assert_eq!(serde_json::from_slice::<Value>(&nowhere.stdout).unwrap(), live);
    let table = world.ok(&["advise", &from]);
    assert!(table.contains("requests too much") && table.contains("RESOURCE"), "{table}");

    // The framework has measured meanwhile.
    let shown = || world.json(&["job", "show", "idle", "--json"]);
    until("the job is sized", || shown()["sizing"]["applied"]["mem"].as_f64().is_some_and(|mem| mem < 256.0));
    assert_eq!(world.tasks(), [full.clone(), full.clone()], "running tasks stay as they are");
    world.ok(&["task", "kill", "idle.1.0.0"]);
    until("the next task runs with less, beside one with what the file says", || {
        let tasks = world.tasks();
        let has_less = |(state, cpus, mem): &(String, f64, f64)| state == RUNNING && *cpus < 1.0 && *mem < 256.0;
        tasks.len() == 2 && tasks.contains(&full) && tasks.iter().any(has_less)
    });
    let text = world.ok(&["job", "show", "idle"]);
    assert!(text.contains("requested: cpus:1 mem:256; launched with: cpus:0."), "{text}");
    assert!(text.contains("sizing: mem: the largest of ") && text.contains("RESOURCES"), "{text}");
}

/// Runs an array whose tasks fail on the first agent, until it has finished or this many have failed. Returns the
/// number of failures, and the framework's final state of the job.
fn failures(name: &str, words: &[&str], most: usize) -> (usize, String) {
    let world = World { cluster: Cluster::start(name, 2, "cpus:2;mem:512;disk:512") };
    let _framework = world.framework(words);
    // The path of a sandbox contains the agent's id.
    let job = "name = 'a'\nkind = 'array'\ncount = 60\ncpus = 0.5\nmem = 32\nretries = 1000\n\
               restart = { first = '100ms', factor = 1 }\n\
               command = 'case \"$PWD\" in *-S0/*) exit 1;; esac'\n";
    world.ok(&["job", "submit", &world.cluster.directory.write("job.toml", job)]);
    let state = || {
        let view = world.json(&["job", "show", "a", "--json"]);
        let tasks = view["tasks"].as_array().unwrap();
        // Each attempt but the last has failed, and a task that waits has failed as often as it was launched.
        let failed = tasks.iter().map(|task| {
            let attempts = task["attempts"].as_u64().unwrap_or_default();
            attempts
                - u64::from(
                    attempts > 0 && ["finished", "running", "staging"].contains(&task["state"].as_str().unwrap()),
                )
        });
        (usize::try_from(failed.sum::<u64>()).unwrap(), view["summary"]["state"] == "finished")
    };
    let mut failed = 0;
    until("the job ends, or enough tasks fail", || {
        let (now, has_finished) = state();
        failed = now;
        has_finished || failed >= most
    });
    (failed, world.ok(&["job", "show", "a"]))
}

#[test]
fn an_agent_that_fails_every_task_is_avoided() {
    const MANY: usize = 40;
    let (without, _) = failures("failing", &[], MANY);
    let (with, shown) = failures("avoided", &["--avoid-failing-agents"], MANY);
    println!("an agent that fails every task: {with} failures with avoidance, {without} without");
    assert!(shown.contains("finished"), "{shown}");
    assert!(with < MANY && without >= MANY, "{with} with, {without} without");
}
