//! Tests video queries on a real cluster: counts in real videos, with a worker that is killed, and a scheduler that is
//! killed and restarted; live views over slow and fast links.
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{self, Cluster, tepui, until};

/// A cluster of two agents with this many cores each, and the test's actions on it.
struct World {
    cluster: Cluster,
}

impl World {
    fn start(name: &str, cores: f64) -> World {
        let resources = format!("cpus:{cores};mem:1024;disk:1024");
        World { cluster: Cluster::start(&format!("video-{name}"), 2, &resources) }
    }

    fn path(&self, name: &str) -> String {
        self.cluster.directory.join(name)
    }

    fn video(&self, arguments: &[&str]) -> Command {
        let mut command = tepui();
        command.args(["framework", "video"]).args(arguments);
        command
    }

    /// Starts a task of another framework that holds this many cores until it is dropped. Returns when it runs.
    fn hold(&self, cores: f64) -> Process {
        let resources = format!("--resources=cpus:{cores};mem:32");
        let arguments = ["execute", "--master", &self.cluster.master, "--command=exec sleep 1000", &resources];
        let mut holder = Process::start(tepui().args(arguments));
        holder.line(Stream::Stdout, &["TASK_RUNNING"]);
        holder
    }

    /// Generates a video.
    fn generate(&self, name: &str, arguments: &[&str]) {
        let made = self.video(&["generate", &self.path(name), "--seed=4", "--vehicles=90"]).args(arguments).run();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Returns the agents on which this query's tasks run or ran, by task.
    fn agents(&self, query: &str) -> Vec<(String, String)> {
        let tasks = support::call(&self.cluster.master, "GET", "/tasks").unwrap_or_default();
        let mine = tasks["tasks"].as_array().into_iter().flatten().filter(|t| t["name"] == query);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        mine.map(|t| (text(&t["id"]), text(&t["slave_id"]))).collect()
    }

    /// Starts the framework and waits for its API's address.
    fn framework(&self, queries: &str) -> Framework {
        self.framework_with(queries, &[])
    }

    fn framework_with(&self, queries: &str, more: &[&str]) -> Framework {
        let mut command = self.video(&["--master", &self.cluster.master, "--queries", queries]);
        command.args(more);
        command.args(["--state-dir", &self.path("state"), "--results", &self.path("results")]);
        let mut process = Process::start(&mut command);
        let line = process.line(Stream::Stderr, &["http://"]);
        let address = line.trim().rsplit("http://").next().unwrap().to_owned();
        Framework { process, api: Api { address } }
    }
}

/// A running scheduler, which is killed when this is dropped.
struct Framework {
    process: Process,
    api: Api,
}

impl Framework {
    /// Polls the scheduler's API until `reached` returns `true`.
    fn until(&mut self, what: &str, reached: impl Fn(&Api) -> bool) {
        let Framework { process, api } = self;
        process.until(what, || reached(api));
    }
}

impl Drop for Framework {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.process.kill();
        }
    }
}

/// Address of a scheduler's API.
struct Api {
    address: String,
}

impl Api {
    fn call(&self, method: &str, path: &str) -> Option<Value> {
        support::call(&self.address, method, path)
    }

    fn query(&self, name: &str) -> Option<Value> {
        self.call("GET", &format!("/queries/{name}"))
    }

    fn is(&self, name: &str, field: &str, value: impl Into<Value>) -> bool {
        self.query(name).is_some_and(|q| q[field] == value.into())
    }

    fn position(&self, name: &str) -> f64 {
        self.query(name).and_then(|q| q["position"].as_f64()).unwrap_or(0.0)
    }
}

/// Returns the process that works on a task of this scheduler.
fn worker(task: &str, state: &str) -> Option<u32> {
    let control = std::fs::read_to_string(Path::new(state).join("video-control.json")).ok()?;
    let control: Value = serde_json::from_str(&control).ok()?;
    let driver = control["address"].as_str()?.to_owned();
    let pids = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().find(|pid| {
        let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
        let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
        words.contains(&b"worker".as_slice()) && words.contains(&task.as_bytes()) && words.contains(&driver.as_bytes())
    })
}

/// Returns the findings so far; the last line of the file may be incomplete.
fn findings(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn queries_outlive_their_worker_and_their_scheduler() {
    let world = World::start("outlive", 1.0);
    world.generate("street.mp4", &["--width=320", "--height=180", "--seconds=8"]);
    let queries = world.path("queries.toml");
    let query = |name: &str, kind: &str| {
        let ends = "loop = true\nmax_lag = 3.0\ntruth = \"street.json\"";
        format!("[[query]]\nname = \"{name}\"\nkind = \"{kind}\"\nvideo = \"street.mp4\"\n{ends}\n")
    };
    std::fs::write(&queries, query("gate", "cars") + &query("yard", "people")).unwrap();
    let mut first = world.framework(&queries);
    first.until("both run", |api| api.position("gate") > 1.0 && api.position("yard") > 1.0);
    // A worker is killed: its query continues in another one, later in the stream.
    let victim = worker("video-gate-1.1", &world.path("state")).expect("a worker");
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
    first.until("it is started again", |api| api.is("gate", "starts", 2) && api.is("gate", "state", "running"));
    let before = first.api.position("gate");
    assert!(before > 1.0, "{before}");
    // The scheduler is killed: the workers continue, and the next one adopts them.
    first.process.kill();
    let mut second = world.framework(&queries);
    // No worker is duplicated. On a busy machine a query that lags moves later.
    let taken_over = ["gate is running (video-gate-1.2)", "yard is running (video-yard-2.1)"];
    until("tasks are taken over", || {
        let told = second.process.told();
        taken_over.iter().all(|line| told.contains(line))
    });
    let enough = |api: &Api, name: &str| api.query(name).is_some_and(|q| q["found"].as_u64() >= Some(6));
    second.until("both go on", |api| enough(api, "gate") && enough(api, "yard") && api.position("gate") > before);
    // The quality is measured only over what was shown some seconds ago, and since the first finding.
    let quality = |api: &Api| api.query("yard").and_then(|q| q["measured_quality"].as_f64()).unwrap_or(0.0);
    second.until("most is found", |api| quality(api) > 0.5);
    // Without queries there is nothing left to do.
    second.api.call("DELETE", "/queries/gate").unwrap();
    second.api.call("DELETE", "/queries/yard").unwrap();
    assert!(second.process.end().success(), "{}", second.process.told());
    for name in ["gate", "yard"] {
        let found = findings(&world.path(&format!("results/{name}.jsonl")));
        assert!(found.len() >= 5, "{name}: {}", found.len());
        let mut seen: Vec<(i64, String)> = Vec::new();
        for finding in &found {
            let key = ((finding["at"].as_f64().unwrap() * 1000.0) as i64, finding["track"].to_string());
            assert!(!seen.contains(&key), "{name}: twice: {finding}");
            seen.push(key);
        }
    }
}

#[test]
fn a_query_without_enough_moves_to_the_agent_where_there_is_more() {
    let world = World::start("moves", 0.2);
    world.generate("street.mp4", &["--seconds=6"]);
    let queries = world.path("queries.toml");
    // Every frame must be examined for this quality, and the rest of the first agent is too small for that.
    let query =
        "[[query]]\nname = \"gate\"\nkind = \"tracks\"\nvideo = \"street.mp4\"\nloop = true\nmin_quality = 1.0\n";
    std::fs::write(&queries, query).unwrap();
    let _stays = world.hold(0.18);
    let leaves = world.hold(0.2);
    let mut framework = world.framework(&queries);
    framework.until("it runs", |api| api.position("gate") > 1.0);
    assert!(framework.api.is("gate", "starts", 1));
    drop(leaves);
    framework.until("it runs on the other agent", |api| {
        api.query("gate").is_some_and(|q| q["task"] == "video-gate-1.2" && q["state"] == "running")
    });
    let moved = framework.api.position("gate");
    assert!(moved > 1.0, "it went on where it was: {moved}");
    framework.until("it goes on", |api| api.position("gate") > moved + 3.0);
    let agents = world.agents("gate");
    let on = |task: &str| agents.iter().find(|(id, _)| id == task).map(|(_, agent)| agent.clone()).unwrap();
    assert_ne!(on("video-gate-1.1"), on("video-gate-1.2"));
    until("the first worker has ended", || worker("video-gate-1.1", &world.path("state")).is_none());
    // Each full second of the stream was examined once, by one of the two workers.
    let mut seen: Vec<(i64, String)> = Vec::new();
    for finding in findings(&world.path("results/gate.jsonl")) {
        let key = ((finding["at"].as_f64().unwrap() * 1000.0) as i64, finding["place"].to_string());
        assert!(!seen.contains(&key), "twice: {finding}");
        seen.push(key);
    }
    assert!(!seen.is_empty());
}

#[test]
fn a_query_gives_cores_back_to_those_that_wait() {
    let world = World::start("give-back", 1.0);
    world.generate("street.mp4", &["--width=320", "--height=180", "--seconds=8"]);
    let (queries, video, file) = (world.path("queries.toml"), world.path("street.mp4"), world.path("p.json"));
    let made = world.video(&["profile", &video, "--kind=cars", "--output", &file]).run();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // On any machine the best configuration can use more than is available.
    let mut profile: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for point in profile["frontier"].as_array_mut().unwrap() {
        point["cores"] = (point["cores"].as_f64().unwrap().max(0.002) * 100.0).into();
    }
    std::fs::write(&file, profile.to_string()).unwrap();
    let query = |name: &str| {
        let goals = "loop = true\nmin_quality = 0.1\nmax_lag = 600.0";
        format!("[[query]]\nname = \"{name}\"\nkind = \"cars\"\nvideo = \"{video}\"\nprofile = \"{file}\"\n{goals}\n")
    };
    std::fs::write(&queries, query("calm")).unwrap();
    // This is as much as three of the smallest tasks.
    let mut framework = world.framework_with(&queries, &["--cores=0.06"]);
    framework.until("it runs", |api| api.position("calm") > 1.0);
    let (before, held) = (framework.api.position("calm"), framework.api.query("calm").unwrap()["reserved"].clone());
    assert!(framework.api.is("calm", "starts", 1) && held.as_f64() > Some(0.059), "{held}");
    let answer = support::request(&framework.api.address, "POST", "/queries", &(query("first") + &query("second")));
    assert!(answer.as_ref().is_some_and(|answer| answer.starts_with("HTTP/1.1 2")), "{answer:?}");
    framework.until("all run", |api| {
        ["first", "second"].iter().all(|name| api.position(name) > 1.0) && api.is("calm", "state", "running")
    });
    framework.until("it goes on where it was", |api| api.position("calm") > before + 1.0);
    let all = framework.api.call("GET", "/status").unwrap();
    let held: f64 = all["queries"].as_array().unwrap().iter().map(|q| q["reserved"].as_f64().unwrap()).sum();
    assert!(held < 0.06 + 1e-6, "{all}");
    let calm = framework.api.query("calm").unwrap();
    assert!(calm["starts"].as_u64() >= Some(2) && calm["reserved"].as_f64() < Some(0.04), "{calm}");
    let mut seen: Vec<(i64, String)> = Vec::new();
    for finding in findings(&world.path("results/calm.jsonl")) {
        let key = ((finding["at"].as_f64().unwrap() * 1000.0) as i64, finding["place"].to_string());
        assert!(!seen.contains(&key), "twice: {finding}");
        seen.push(key);
    }
}

#[test]
fn a_profile_that_samples_of_the_stream_disprove_is_made_again() {
    let world = World::start("drift", 1.0);
    world.generate("street.mp4", &["--width=320", "--height=180", "--seconds=20"]);
    let video = world.path("street.mp4");
    let made =
        world.video(&["profile", &video, "--kind=cars", "--seconds=12", "--output", &world.path("p.json")]).run();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // The stored profile promises the full quality for the cheapest configuration.
    let mut profile: Value = serde_json::from_slice(&std::fs::read(world.path("p.json")).unwrap()).unwrap();
    let mut cheapest = profile["frontier"][0].clone();
    assert!(cheapest["quality"].as_f64() < Some(0.8), "{cheapest}");
    cheapest["quality"] = 1.0.into();
    profile["frontier"] = vec![cheapest].into();
    let profiles = world.path("profiles");
    std::fs::create_dir(&profiles).unwrap();
    let bytes = std::fs::metadata(&video).unwrap().len();
    std::fs::write(format!("{profiles}/street-cars-{bytes}.json"), profile.to_string()).unwrap();
    let queries = world.path("queries.toml");
    let query = "[[query]]\nname = \"gate\"\nkind = \"cars\"\nvideo = \"street.mp4\"\nloop = true\nmax_lag = 60\n";
    std::fs::write(&queries, query).unwrap();
    let mut framework = world.framework_with(&queries, &["--profiles", &profiles, "--sample-every=1secs"]);
    framework.until("it is sampled", |api| {
        api.query("gate").is_some_and(|q| {
            q["sampled"]["promised"] == 1.0 && q["sampled"]["quality"].as_f64().is_some_and(|quality| quality < 0.9)
        })
    });
    framework.until("it has another profile", |api| api.is("gate", "profiled_again", 1));
    framework.until("it runs better", |api| {
        let query = api.query("gate").unwrap_or_default();
        query["config"]["every"].as_u64().is_some_and(|every| every < 25) && query["quality"].as_f64() > Some(0.8)
    });
}

#[test]
fn videos_that_cannot_be_read_fail_their_query_with_what_was_found_before() {
    let world = World::start("broken", 1.0);
    let whole = world.path("whole.mp4");
    world.generate("whole.mp4", &["--width=320", "--height=180", "--seconds=6"]);
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(world.path("cut.mp4"), &bytes[..bytes.len() * 3 / 4]).unwrap();
    let run = |name: &str| world.video(&["run", &world.path(name)]).run();
    let output = run("cut.mp4");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("cut short") && said.contains("frames decoded before"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("vehicle"), "what was found before is told");
    // A file that is not a video is named; a query on it is refused.
    std::fs::write(world.path("text.mp4"), "no pictures here").unwrap();
    let refused = |output: Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("text.mp4: "), "{said}");
    };
    refused(run("text.mp4"));
    let queries = world.path("queries.toml");
    std::fs::write(&queries, "[[query]]\nname = \"none\"\nkind = \"cars\"\nvideo = \"text.mp4\"\n").unwrap();
    refused(world.video(&["--master", &world.cluster.master, "--queries", &queries]).run());
    // The profile is of the whole video, and the file that the agents read is cut short.
    let profile = world.video(&["profile", &whole, "--seconds=4", "--output", &world.path("p.json")]).run();
    assert!(profile.status.success(), "{}", String::from_utf8_lossy(&profile.stderr));
    let text = "[[query]]\nname = \"cut\"\nkind = \"cars\"\nvideo = \"cut.mp4\"\nprofile = \"p.json\"\nmax_lag = 3\n";
    std::fs::write(&queries, text).unwrap();
    let mut command = world.video(&["--master", &world.cluster.master, "--queries", &queries, "--json"]);
    let output = command.args(["--results", &world.path("results")]).run();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("failed: cut") && said.contains("cut short"), "{said}");
    assert!(!findings(&world.path("results/cut.jsonl")).is_empty());
    // A file of queries with a mistake is refused as a whole, with the line of the mistake.
    std::fs::write(&queries, text.replace("max_lag = 3", "max_lag = -3")).unwrap();
    let output = world.video(&["--master", &world.cluster.master, "--queries", &queries]).run();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("queries.toml:6") && said.contains("max_lag"), "{said}");
}

/// Tests two viewers of one query, over a fast link and a slow one: each receives as much as its link allows, and the
/// query continues.
#[test]
fn viewers_see_what_their_links_carry() {
    let world = World::start("live", 1.0);
    world.generate("street.mp4", &["--width=640", "--height=360", "--seconds=8"]);
    let queries = world.path("queries.toml");
    let video = world.path("street.mp4");
    let text =
        format!("[[query]]\nname = \"cars\"\nkind = \"cars\"\nvideo = \"{video}\"\nloop = true\nseconds = 3600\n");
    std::fs::write(&queries, text).unwrap();
    let mut framework = world.framework(&queries);
    framework.until("the query is on its way", |api| api.position("cars") > 1.0);
    let address = framework.api.address.clone();
    let live = |more: &[&str]| world.video(&["live", "--service", &address]).args(more).run();

    let said = live(&["cars"]);
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), format!("http://{address}/queries/cars/live"));
    let refused = live(&["nobody"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no query"), "{refused:?}");
    let wrong = live(&["cars", "--watch=1secs", "--choose=dearest"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("400"), "{wrong:?}");

    let watch = |link: &str| -> Value {
        let output = live(&["cars", "--watch=8secs", "--json", "--link", link]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    framework.until("the viewer of the slow link gets smaller pictures", |api| {
        let before = api.position("cars");
        let (slow, fast) = std::thread::scope(|scope| {
            let slow = scope.spawn(|| watch("0.15"));
            let fast = watch("50");
            (slow.join().unwrap(), fast)
        });
        // The rate of the link, and the data that were in it before the first picture was complete.
        assert!(slow["megabits"].as_f64().unwrap() < 0.4, "{slow}");
        assert!(api.position("cars") > before, "the query goes on");
        slow["rung"].as_f64() < fast["rung"].as_f64()
    });
}
