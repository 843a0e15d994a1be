//! Tests the framework of jobs of stages with real processes: a cluster of two agents, `tepui framework dag`, and
//! `tepui dag` as its user.
//!
//! - the examples give the same results as other tools for the same files: word count as `sort | uniq -c`, a log
//!   analysis with a shuffle, a parameter sweep with Python and a step that gathers; through a shared directory and
//!   through sandboxes;
//! - killed with SIGKILL at several steps and restarted, it loses and repeats nothing;
//! - when an agent is lost between two stages, its outputs are made again;
//! - shares of omitted tasks are found from jobs that have ended, and reported;
//! - the job reports files that vanish, missing outputs, and invalid records.
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{Cluster, Daemon, Directory, free_port, tepui, until};

/// A cluster's master, a directory of the test, and the owner of the cluster.
pub struct World {
    pub master: String,
    pub directory: Directory,
    _cluster: Option<Cluster>,
}

impl World {
    /// Starts a cluster of two agents.
    fn start(name: &str) -> World {
        let cluster = Cluster::start(&format!("dag-{name}-cluster"), 2, "cpus:2;mem:1024;disk:1024");
        let directory = Directory::new(&format!("dag-{name}"));
        World { master: cluster.master.clone(), directory, _cluster: Some(cluster) }
    }

    /// Uses a cluster that the caller owns.
    pub fn of(master: &str, name: &str) -> World {
        World { master: master.to_owned(), directory: Directory::new(&format!("dag-{name}")), _cluster: None }
    }

    pub fn path(&self, name: &str) -> String {
        self.directory.join(name)
    }

    /// Starts the framework, with its state in the test's directory, and waits until it has registered.
    pub fn framework(&self, words: &[&str]) -> Process {
        let (master, state) = (format!("--master={}", self.master), format!("--state-dir={}", self.path("state")));
        let mut process = Process::start(tepui().args(["framework", "dag", "--json", &master, &state]).args(words));
        process.until("the framework is known to the master", || self.dag(&["list"]).status.success());
        process
    }

    pub fn dag(&self, words: &[&str]) -> Output {
        tepui().arg("dag").args(words).env("TEPUI_MASTER", &self.master).run()
    }

    /// Returns the output of a command that must succeed.
    pub fn ok(&self, words: &[&str]) -> String {
        let output = self.dag(words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Returns the output of a command that must fail.
    fn refused(&self, words: &[&str]) -> String {
        let output = self.dag(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Returns an example with the test's own directory for its files.
    fn example(&self, name: &str) -> String {
        let root = env!("CARGO_MANIFEST_DIR");
        let text = fs::read_to_string(format!("{root}/examples/pipelines/{name}")).unwrap();
        self.file(name, &text.replace("/tmp/pipelines", &self.path("data")))
    }

    pub fn tasks(&self, job: &str, stage: &str) -> Vec<Value> {
        let said: Value = serde_json::from_str(&self.ok(&["show", job, stage, "--json"])).unwrap();
        said["tasks"].as_array().unwrap().clone()
    }

    pub fn job(&self, job: &str) -> Value {
        serde_json::from_str(&self.ok(&["show", job, "--json"])).unwrap()
    }
}

/// Returns the output of a shell command.
fn shell(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).run();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Number of small files among those of [`write_texts`]; none ends with a line end.
const SMALL_FILES: usize = 200;

/// Writes some text files, always the same.
fn write_texts(world: &World) {
    let words = ["apple", "tree", "River", "stone", "of", "the", "and", "cloud", "e", "zebra"];
    let mut number: u64 = 7;
    for file in 0..4 {
        let mut text = String::new();
        for line in 0..3_000 {
            for _ in 0..(line % 9) {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let _ = write!(text, "{}, ", words[(number >> 33) as usize % words.len()]);
            }
            text.push('\n');
        }
        world.file(&format!("data/text/{file}.txt"), &text);
    }
    for file in 0..SMALL_FILES {
        world.file(&format!("data/text/small-{file}.txt"), "cloud of\nstone");
    }
}

/// Compares the word count with that of `sort | uniq -c`, and checks that its tasks ran on both agents.
fn word_count(world: &World) {
    write_texts(world);
    assert!(world.ok(&["submit", "--wait", &world.example("wordcount.toml")]).contains("wordcount: finished"));
    let text = world.path("data/text");
    let expected = shell(&format!(
        "for file in {text}/*.txt; do cat $file; echo; done | tr -cs '[:alpha:]' '\\n' | grep . | LC_ALL=C sort | LC_ALL=C uniq -c | LC_ALL=C sort -k 2"
    ));
    assert_eq!(
        shell(&format!("printf '%s' '{}' | LC_ALL=C sort -k 2", world.ok(&["logs", "wordcount", "reduce"]))),
        expected
    );
    let maps = world.tasks("wordcount", "map");
    assert!(maps.len() < SMALL_FILES, "small files are put together: {}", maps.len());
    let mut agents: Vec<&str> = maps.iter().filter_map(|task| task["place"]["agent_id"].as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    assert_eq!(agents.len(), 2, "through both agents");
}

#[test]
fn words_are_counted_through_sandboxes() {
    let world = World::start("words");
    let _framework = world.framework(&[]);
    word_count(&world);
    let shown = world.ok(&["show", "wordcount"]);
    assert!(shown.contains("finished") && shown.contains("reduce"), "{shown}");
    let graph = world.ok(&["graph", "wordcount"]);
    assert!(graph.contains("reduce (finished, 1/1)  <- map"), "{graph}");
}

#[test]
fn words_are_counted_through_a_shared_directory() {
    let world = World::start("shared");
    let shared = format!("--shared={}", world.path("shared"));
    let _framework = world.framework(&[&shared]);
    word_count(&world);
    let job = world.job("wordcount");
    let directory = job["stages"][0]["directory"].as_str().unwrap().to_owned();
    until("what its stages left for each other is removed", || !Path::new(&directory).parent().unwrap().exists());
    // A missing output is made again: it is removed before a second stage reads it.
    let gate = world.path("gate");
    let job = format!(
        "name = 'again'\n[[stage]]\nname = 'make'\ntasks = 2\ncpus = 0.1\noutputs = ['n']\n\
         command = 'echo {{index}} > $TEPUI_OUTPUT/n; echo made >> {}'\n\
         [[stage]]\nname = 'gate'\nafter = 'make'\ncpus = 0.1\ncommand = 'while ! test -e {gate}; do sleep 0.05; done'\n\
         [[stage]]\nname = 'read'\nafter = 'gate'\ninput = {{ stage = 'make' }}\ncommand = 'cat $TEPUI_INPUT/*'\n",
        world.path("made")
    );
    world.ok(&["submit", &world.file("again.toml", &job)]);
    until("the gate is there", || world.tasks("again", "gate").iter().any(|task| task["state"] == "running"));
    let directory = world.job("again")["stages"][0]["directory"].as_str().unwrap().to_owned();
    fs::remove_file(format!("{directory}/1/n")).unwrap();
    world.file("gate", "");
    until("the job has ended", || !world.job("again")["summary"]["ended"].is_null());
    assert_eq!(world.job("again")["summary"]["state"], "finished");
    assert_eq!(world.ok(&["logs", "again", "read"]), "0\n1\n");
    assert_eq!(fs::read_to_string(world.path("made")).unwrap().lines().count(), 3, "one of two was made again");
}

/// The framework is killed while it cannot remove anything.
#[test]
fn what_a_job_leaves_is_removed_also_by_the_next_start() {
    let world = World::start("leaves");
    let (shared, away, gate) = (world.path("shared"), world.path("away"), world.path("gate"));
    let flag = format!("--shared={shared}");
    let mut framework = world.framework(&[&flag]);
    let job = format!(
        "name = 'job'\n[[stage]]\nname = 'make'\ntasks = 2\ncpus = 0.1\noutputs = ['n']\n\
         command = 'echo {{index}} > $TEPUI_OUTPUT/n; ln -s {gate} $TEPUI_OUTPUT/link'\n\
         [[stage]]\nname = 'sum'\ncpus = 0.1\ninput = {{ stage = 'make' }}\noutputs = ['all']\n\
         command = 'cat $TEPUI_INPUT/* > $TEPUI_OUTPUT/all'\n\
         [[stage]]\nname = 'gate'\nafter = 'sum'\ncpus = 0.1\ncommand = 'while ! test -e {gate}; do sleep 0.05; done'\n"
    );
    world.ok(&["submit", &world.file("job.toml", &job)]);
    framework.until("the gate is there", || world.tasks("job", "gate").iter().any(|task| task["state"] == "running"));
    let directory = |stage: usize| world.job("job")["stages"][stage]["directory"].as_str().unwrap().to_owned();
    let (made, sum) = (directory(0), directory(1));
    let left = fs::read_dir(&made).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut left: Vec<String> = left.collect();
    left.sort_unstable();
    assert_eq!(left, ["0", "1"], "nothing but published outputs");
    world.file("shared/note", "of someone else");
    fs::rename(&shared, &away).unwrap();
    world.file("gate", "");
    framework.line(Stream::Stdout, &["not_removed", "\"name\":\"job\"", "No such file"]);
    framework.kill();
    fs::rename(&away, &shared).unwrap();
    let mut framework = world.framework(&[&flag]);
    framework.until("it is removed", || !Path::new(&made).exists());
    assert_eq!(fs::read_to_string(format!("{sum}/0/all")).unwrap(), "0\n1\n", "the result stays");
    assert!(Path::new(&gate).exists() && Path::new(&format!("{shared}/note")).exists());
    // Another job removes all files of its own.
    let job = job.replace("name = 'job'", "name = 'none'\nkeep = 'none'");
    world.ok(&["submit", "--wait", &world.file("none.toml", &job)]);
    let none = world.job("none")["stages"][1]["directory"].as_str().unwrap().to_owned();
    framework.until("nothing is left of it", || !Path::new(&none).parent().unwrap().exists());
    assert!(Path::new(&sum).exists());
}

#[test]
fn logs_are_summed_through_a_shuffle_and_parameters_swept() {
    let world = World::start("logs");
    let _framework = world.framework(&[]);
    for file in 0..3_u32 {
        let line = |n: u32| format!("10.0.{}.{} GET /p{n} 200 {}\n", n % 3, (n * 7 + file) % 50, n % 977);
        world.file(&format!("data/logs/{file}.log"), &(0..30_000).map(line).collect::<String>());
    }
    assert!(world.ok(&["submit", "--wait", &world.example("logs.toml")]).contains("logs: finished"));
    let logs = world.path("data/logs");
    let expected = shell(&format!(
        "cat {logs}/* | awk '{{ n[$1] += $NF }} END {{ for (ip in n) print n[ip], ip }}' | sort -rn | head -n 10"
    ));
    assert_eq!(world.ok(&["logs", "logs", "top"]), expected);
    assert_eq!(world.tasks("logs", "split").len(), 6, "30,000 lines are two parts of 20,000 at most");
    assert_eq!(world.tasks("logs", "sum").len(), 4);

    for script in ["sweep.py", "gather.py"] {
        let text = fs::read_to_string(format!("{}/examples/pipelines/{script}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        world.file(&format!("data/{script}"), &text);
    }
    assert!(world.ok(&["submit", "--wait", &world.example("sweep.toml")]).contains("sweep: finished"));
    assert_eq!(world.ok(&["logs", "sweep", "gather"]), "40 parameters, unsettled from 3.025 on\n");
}

#[test]
fn killed_at_several_steps_it_loses_and_doubles_nothing() {
    let world = World::start("kill");
    let (made, read) = (world.path("made"), world.path("read"));
    let gate = |name: &str| world.path(&format!("gate-{name}"));
    let wait = |name: &str| format!("while ! test -e {}; do sleep 0.05; done", gate(name));
    let job = format!(
        "name = 'job'\nshared = '{}'\n[[stage]]\nname = 'make'\ntasks = 6\ncpus = 0.3\noutputs = ['n']\n\
         command = 'echo $TEPUI_INDEX >> {made}; {}; echo $TEPUI_INDEX > $TEPUI_OUTPUT/n'\n\
         [[stage]]\nname = 'read'\ncpus = 0.3\ninput = {{ stage = 'make', by = 'task', size = 2 }}\n\
         command = 'cat $TEPUI_INPUT/* >> {read}; {}'\n",
        world.path("shared"),
        wait("make"),
        wait("read")
    );
    let file = world.file("job.toml", &job);
    let running = |stage: &str| world.tasks("job", stage).iter().filter(|task| task["state"] == "running").count();
    let mut framework = world.framework(&[&file]);
    framework.kill();
    let mut framework = world.framework(&[&file]);
    framework.until("all of the first stage run", || running("make") == 6);
    framework.kill();
    world.file("gate-make", "");
    // Tasks end while the framework is down.
    let mut framework = world.framework(&[&file]);
    framework.until("the second stage runs", || running("read") == 3);
    framework.kill();
    let mut framework = world.framework(&[&file]);
    world.file("gate-read", "");
    framework.line(Stream::Stdout, &["\"name\":\"job\"", "ended", "finished"]);
    let numbers = |path: &str| {
        let mut all: Vec<u32> = fs::read_to_string(path).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(numbers(&made), (0..6).collect::<Vec<_>>(), "each task ran once");
    assert_eq!(numbers(&read), (0..6).collect::<Vec<_>>(), "each output was read once");
    drop(framework);
    let mut framework = world.framework(&[&file]);
    assert!(!framework.has_ended());
    assert_eq!(numbers(&made).len(), 6, "what has finished is not run again");
}

#[test]
fn what_is_gone_with_an_agent_is_made_again() {
    let directory = Directory::new("dag-agents");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let mut flags = words(&["master", "--ip=127.0.0.1", "--port=0", "--registry=in_memory"]);
    // With these flags the master soon detects the loss of a killed agent.
    flags.extend(words(&["--agent_ping_timeout=1secs", "--max_agent_ping_timeouts=2"]));
    flags.push(format!("--work_dir={}", directory.join("m")));
    let mut daemon = Daemon::start(&directory.path().join("m.log"), &flags, &[]);
    let master = daemon.address().expect("the master runs");
    let agent = |name: &str| {
        let mut flags = words(&["agent", "--ip=127.0.0.1", "--launcher=posix", "--resources=cpus:2;mem:512;disk:512"]);
        flags.extend([
            format!("--port={}", free_port()),
            format!("--master={master}"),
            format!("--work_dir={}", directory.join(name)),
            format!("--runtime_dir={}", directory.join(&format!("{name}-r"))),
        ]);
        let mut agent = Daemon::start(&directory.path().join(format!("{name}.log")), &flags, &[]);
        let address = agent.address().expect("the agent runs");
        (address, agent)
    };
    let mut agents = vec![agent("a"), agent("b")];
    let world = World { master: master.clone(), directory, _cluster: None };
    let mut framework = world.framework(&["--policy=spread"]);
    let (made, gate, begun) = (world.path("made"), world.path("gate"), world.path("begun"));
    // All four run at once, so both agents have two of them.
    let job = format!(
        "name = 'job'\n[[stage]]\nname = 'make'\ntasks = 4\ncpus = 1\noutputs = ['n']\n\
         command = 'echo x >> {begun}; while test $(wc -l < {begun}) -lt 4; do sleep 0.05; done; \
         echo $TEPUI_INDEX | tee -a {made} > $TEPUI_OUTPUT/n'\n\
         [[stage]]\nname = 'gate'\nafter = 'make'\ncpus = 0.1\ncommand = 'while ! test -e {gate}; do sleep 0.05; done'\n\
         [[stage]]\nname = 'read'\nafter = 'gate'\ninput = {{ stage = 'make' }}\ncommand = 'cat $TEPUI_INPUT/*'\n"
    );
    world.ok(&["submit", &world.file("job.toml", &job)]);
    framework.until("the gate is there", || world.tasks("job", "gate").iter().any(|task| task["state"] == "running"));
    // The agent that does not run the gate, and that has outputs.
    let keeps = world.tasks("job", "gate")[0]["place"]["agent"].as_str().unwrap().to_owned();
    let place = agents.iter().position(|(address, _)| *address != keeps).unwrap();
    let gone = agents[place].0.clone();
    let lost = world.tasks("job", "make").iter().filter(|task| task["place"]["agent"] == *gone).count();
    assert!(lost > 0, "both agents have made something");
    agents.remove(place).1.signal("-KILL");
    framework.until("what it had is to be made again", || {
        world.job("job")["stages"][0]["tasks"]["finished"].as_u64() < Some(4) || {
            let made = fs::read_to_string(&made).unwrap_or_default();
            made.lines().count() == 4 + lost
        }
    });
    world.file("gate", "");
    framework.line(Stream::Stdout, &["\"name\":\"job\"", "ended", "finished"]);
    assert_eq!(world.ok(&["logs", "job", "read"]), "0\n1\n2\n3\n");
    assert_eq!(fs::read_to_string(&made).unwrap().lines().count(), 4 + lost);
}

#[test]
fn faults_of_files_are_reported() {
    let world = World::start("faults");
    let mut framework = world.framework(&[]);
    let submit = |name: &str, stage: &str| {
        let text = format!("name = '{name}'\n[[stage]]\nname = 's'\nretries = 3\ncpus = 0.1\n{stage}\n");
        world.file(&format!("{name}.toml"), &text)
    };
    // Invalid files, with line and rule; patterns without files.
    let said = world.refused(&["submit", &submit("circle", "command = 'x'\nafter = 's'")]);
    assert!(said.contains("circle.toml:2:1: stages wait for each other: s after s"), "{said}");
    let none = format!("command = 'x'\ninput = {{ files = '{}/*' }}", world.path("none"));
    let said = world.refused(&["submit", &submit("none", &none)]);
    assert!(said.contains("none/*' matches no file"), "{said}");
    // Invalid records.
    let data = world.file("data/a.fa", "AC\n>x\n");
    let records = format!("command = 'x'\ninput = {{ files = '{data}', by = 'records', record = '>' }}");
    let said = world.refused(&["submit", "--wait", &submit("records", &records)]);
    assert!(said.contains("holds no valid records"), "{said}");
    // A task with a missing output is repeated, in case it writes the output the next time.
    let flag = world.path("flag");
    let later = format!(
        "outputs = ['o']\nrestart = {{ first = '10ms' }}\n\
         command = 'test -e {flag} && touch $TEPUI_OUTPUT/o; touch {flag}'"
    );
    assert!(world.ok(&["submit", "--wait", &submit("later", &later)]).contains("later: finished"));
    let never = "outputs = ['o']\nretries = 0\ncommand = 'true'".to_owned();
    let text = submit("never", &never).replace("retries = 3\n", "");
    fs::write(&text, fs::read_to_string(&text).unwrap().replace("retries = 3\n", "")).unwrap();
    let said = world.refused(&["submit", "--wait", &text]);
    assert!(said.contains("the output 'o' is missing, although the program succeeded"), "{said}");
    // One file vanishes after it was listed and before its task; another one grows, and only its former length is used.
    let (small, gate) = (world.file("data/small", "one\ntwo\n"), world.path("gate"));
    let waits = format!(
        "command = 'while ! test -e {gate}; do sleep 0.05; done; cat'\nstdin = true\n\
         input = {{ files = '{small}', by = 'lines', size = 1 }}"
    );
    world.ok(&["submit", &submit("grows", &waits)]);
    framework
        .until("its tasks run", || world.tasks("grows", "s").iter().filter(|t| t["state"] == "running").count() == 2);
    fs::write(&small, "one\ntwo\nthree\n").unwrap();
    world.file("gate", "");
    framework.line(Stream::Stdout, &["\"name\":\"grows\"", "ended", "finished"]);
    assert_eq!(world.ok(&["logs", "grows", "s", "1"]), "two\n");
    // Two tasks at once fill the cluster, and remove the file of the third.
    let files: Vec<String> = (1..4).map(|n| world.file(&format!("data/v{n}"), "x\n")).collect();
    let vanishes = format!(
        "name = 'vanishes'\n[[stage]]\nname = 's'\nretries = 3\ncpus = 2\ncommand = 'cat {{input}}; rm -f {}; sleep 0.2'\n\
         input = {{ files = '{}' }}\n",
        files[2],
        world.path("data/v*")
    );
    let said = world.refused(&["submit", "--wait", &world.file("vanishes.toml", &vanishes)]);
    assert!(said.contains("the input file") && said.contains("cannot be read"), "{said}");
    assert_eq!(world.ok(&["list", "--active"]), "no jobs; submit one with `tepui dag submit FILE`\n");
}

/// The target cannot be met, so all that stages allow is omitted once enough jobs have ended.
#[test]
fn shares_are_found_from_jobs_that_have_ended() {
    let world = World::start("tuned");
    let settings = ["--drop=auto", "--drop-always", "--target=low=1ms", "--order=deadline"];
    let framework = world.framework(&settings);
    let job = |class: &str, number: u32| {
        format!(
            "[[job]]\nname = '{class}{number}'\npriority = '{class}'\ndeadline = '{number}h'\n[[job.stage]]\nname = 's'\n\
             tasks = 10\ncommand = 'sleep 0.05'\napproximate = {{ drop = 0.3 }}\n"
        )
    };
    let jobs: Vec<String> = (1..=9).map(|number| job("low", number)).collect();
    world.ok(&["submit", "--wait", &world.file("jobs.toml", &jobs.join(""))]);
    world.ok(&["submit", "--wait", &world.file("late.toml", &job("low", 10))]);
    let late = world.job("low10");
    assert_eq!(late["stages"][0]["tasks"]["dropped"], 3, "{late}");
    let shown = world.ok(&["show", "low10"]);
    assert!(shown.contains("low priority: drops 30.0 % of tasks: the targets cannot be met"), "{shown}");
    drop(framework);
    // The share is saved, and reported by a framework that has run nothing yet.
    let _framework = world.framework(&settings);
    let shown = world.ok(&["show", "low10"]);
    assert!(shown.contains("low priority: drops 30.0 % of tasks"), "{shown}");
}

#[test]
fn until_done_tells_by_its_exit_code() {
    let world = World::start("done");
    let run = |text: &str| {
        let file = world.file("jobs.toml", text);
        let master = format!("--master={}", world.master);
        let output = tepui().args(["framework", "dag", &master, "--until-done", &file]).run();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = run("name = 'a'\n[[stage]]\nname = 's'\ntasks = 3\ncommand = 'true'\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a: finished"), "{said}");
    let (code, said) = run("name = 'a'\n[[stage]]\nname = 's'\ncommand = 'exit 7'\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("a: failed: task 0 of stage 's' has failed") && said.contains("status 7"), "{said}");
}
