//! Tests the bin-packing framework with real processes: a cluster, `tepui framework binpack`, and `tepui job` as its
//! user.
//!
//! - killed with SIGKILL in mid-run and restarted, it loses and duplicates no task of an array, and a service keeps
//!   exactly the tasks that it had;
//! - a gang that needs both agents forms, a service is replaced by its next version, a task that fails or is unhealthy
//!   is restarted;
//! - a gang that cannot form delays neither other jobs nor other frameworks, and `submit` and `show` name what is
//!   missing; a task that runs longer than its limit has failed;
//! - invalid job files are refused as a whole, with file, line and rule;
//! - `--until-done` reports by its exit code whether all jobs have finished.
use std::process::Output;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{Cluster, tepui, until};

/// The framework's process, which prints a line for each event.
struct Running(Process);

impl Running {
    /// Waits for the next line with all these parts and returns it.
    fn wait_for(&mut self, parts: &[&str]) -> String {
        self.0.line(Stream::Stdout, parts)
    }
}

/// A cluster of two agents, and its directory.
struct World {
    cluster: Cluster,
}

impl World {
    fn start(name: &str) -> World {
        let resources = "cpus:2;mem:512;disk:512;ports:[31000-31050]";
        World { cluster: Cluster::start(&format!("binpack-{name}"), 2, resources) }
    }

    fn path(&self, name: &str) -> String {
        self.cluster.directory.join(name)
    }

    /// Starts the framework, with its state in the test's directory, and waits until it has registered.
    fn framework(&self) -> Running {
        self.framework_with(&[])
    }

    /// Starts the framework like `framework`, with further arguments.
    fn framework_with(&self, words: &[&str]) -> Running {
        let (master, state) =
            (format!("--master={}", self.cluster.master), format!("--state-dir={}", self.path("state")));
        let mut process = Process::start(tepui().args(["framework", "binpack", "--json", &master, &state]).args(words));
        process.until("the framework is known to the master", || self.job(&["list"]).status.success());
        Running(process)
    }

    fn job(&self, words: &[&str]) -> Output {
        tepui().arg("job").args(words).env("TEPUI_MASTER", &self.cluster.master).run()
    }

    /// Returns the output of a command that must succeed.
    fn ok(&self, words: &[&str]) -> String {
        let output = self.job(words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Returns the message of a command that must be refused.
    fn refused(&self, words: &[&str]) -> String {
        let output = self.job(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        self.cluster.directory.write(name, text)
    }

    /// Returns the values of a text field in a job's tasks, in their order.
    fn fields(&self, job: &str, field: &str) -> Vec<String> {
        let said = self.ok(&["show", job, "--json"]);
        let tasks = said.split("\"tasks\": [").last().unwrap_or_default().to_owned();
        let key = format!("\"{field}\": ");
        tasks.lines().filter_map(|l| Some(l.trim().strip_prefix(&key)?.trim_matches([',', '"']).to_owned())).collect()
    }
}

#[test]
fn killed_in_mid_run_it_loses_and_doubles_nothing() {
    let world = World::start("kill");
    let mut framework = world.framework();
    // A task records that it ran, and waits for a file of the test.
    let (done, gate) = (world.path("done"), world.path("gate"));
    let jobs = format!(
        "[[job]]\nname = 'sweep'\nkind = 'array'\ncount = 10\ncpus = 0.5\n\
         command = 'echo $TEPUI_INDEX >> {done}; while ! test -e {gate}; do sleep 0.05; done'\n\
         [[job]]\nname = 'keep'\nkind = 'service'\ncount = 2\npriority = 1\ncommand = 'exec sleep 1000'\n"
    );
    world.ok(&["submit", &world.file("jobs.toml", &jobs)]);
    let states = |job: &str| world.fields(job, "state");
    framework.0.until("both jobs have running tasks", || {
        states("keep") == ["running", "running"] && states("sweep").iter().any(|state| state == "running")
    });
    let before = world.fields("keep", "task_id");
    framework.0.kill();

    let mut framework = world.framework();
    world.file("gate", "");
    framework.wait_for(&["\"name\":\"sweep\"", "ended", "finished"]);
    let mut parts: Vec<u32> =
        std::fs::read_to_string(&done).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    parts.sort_unstable();
    assert_eq!(parts, (0..10).collect::<Vec<_>>());
    assert_eq!(world.fields("keep", "task_id"), before, "the service has the tasks that it had");
    assert_eq!(world.fields("keep", "state"), ["running", "running"]);
    world.ok(&["stop", "keep"]);
    framework.wait_for(&["\"name\":\"keep\"", "ended", "stopped"]);
    assert!(world.ok(&["list"]).contains("stopped"));
}

#[test]
fn killed_and_started_again_with_the_same_words_it_goes_on() {
    let world = World::start("words");
    let done = world.path("done");
    let jobs = format!(
        "[[job]]\nname = 'once'\ncommand = 'echo once >> {done}'\n\
         [[job]]\nname = 'runs'\nkind = 'array'\ncount = 2\ncpus = 0.1\ncommand = 'exec sleep 1000'\n\
         [[job]]\nname = 'ring'\nkind = 'gang'\ncount = 2\ncpus = 0.1\ncommand = 'exec sleep 1000'\n"
    );
    let file = world.file("jobs.toml", &jobs);
    let mut framework = world.framework_with(&[&file]);
    framework.wait_for(&["\"name\":\"once\"", "ended", "finished"]);
    let running = |job: &str| world.fields(job, "state") == ["running", "running"];
    framework.0.until("all run", || running("runs") && running("ring"));
    let before = (world.fields("runs", "task_id"), world.fields("ring", "task_id"));
    framework.0.kill();

    let mut framework = world.framework_with(&[&file]);
    framework.0.until("it has its tasks again", || running("runs") && running("ring"));
    assert_eq!((world.fields("runs", "task_id"), world.fields("ring", "task_id")), before);
    assert!(!framework.0.has_ended(), "it goes on");
    assert_eq!(std::fs::read_to_string(&done).unwrap(), "once\n", "what has finished is not run again");
    world.ok(&["stop", "runs", "ring"]);
}

#[test]
fn state_that_cannot_be_read_ends_nothing_but_the_framework() {
    let world = World::start("damaged");
    let mut framework = world.framework();
    let file = world.file("keep.toml", "[[job]]\nname = 'keep'\nkind = 'service'\ncommand = 'exec sleep 1000'\n");
    world.ok(&["submit", "--wait", &file]);
    framework.0.kill();
    {
        use tepui_sdk::state::State as _;
        let mut store = tepui_sdk::state::File::open(world.path("state").as_ref()).unwrap();
        let head = store.load().unwrap().into_keys().find(|key| key.starts_with("own/job/")).unwrap();
        store.commit(&[tepui_sdk::state::Change::set(head, b"{}".to_vec())]).unwrap();
    }
    let (master, state) =
        (format!("--master={}", world.cluster.master), format!("--state-dir={}", world.path("state")));
    for words in [&[][..], &[file.as_str()][..]] {
        let output = tepui().args(["framework", "binpack", &master, &state]).args(words).run();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot be read") && said.contains("the tasks continue"), "{said}");
    }
    let tasks = tepui().args(["tasks", &master]).run();
    let said = String::from_utf8_lossy(&tasks.stdout).into_owned();
    assert!(said.contains("keep.1.0.0") && said.contains("running"), "{said}");
}

#[test]
fn gangs_services_and_their_versions() {
    let world = World::start("kinds");
    let mut framework = world.framework();

    // Four ranks of one CPU each need both agents.
    let gang = "[[job]]\nname = 'ring'\nkind = 'gang'\ncount = 4\ncpus = 1\nports = 1\n\
                command = 'echo rank $TEPUI_RANK of $TEPUI_SIZE at $TEPUI_ADDRESSES'\n";
    assert!(world.ok(&["submit", "--wait", &world.file("gang.toml", gang)]).contains("ring: finished"));
    let said = world.ok(&["logs", "ring", "3"]);
    assert!(said.starts_with("rank 3 of 4 at "), "{said}");
    assert_eq!(said.matches(":31").count(), 4, "{said}");

    // This service fails at its first start, and is replaced by its next version. It is healthy when it has written its
    // word.
    let (flag, sick) = (world.path("flag"), world.path("sick"));
    let service = |word: &str| {
        format!(
            "[[job]]\nname = 'web'\nkind = 'service'\ncount = 1\nrestart = {{ first = '100ms' }}\n\
             command = 'test -e {flag} || {{ touch {flag}; exit 3; }}; echo {word}; touch up; exec sleep 1000'\n\
             health = {{ command = 'test -e up -a ! -e {sick}', interval = '100ms', grace = 600, failures = 2 }}\n"
        )
    };
    let file = world.file("web.toml", &service("one"));
    assert!(world.ok(&["submit", "--wait", &file]).contains("web: running"));
    assert_eq!(world.fields("web", "attempts"), ["2"]);
    let file = world.file("web.toml", &service("two"));
    let said = world.ok(&["submit", "--wait", &file]);
    assert!(said.contains("web: updated to version 2") && said.contains("web: running"), "{said}");
    assert_eq!(world.fields("web", "version"), ["2"]);
    assert_eq!(world.ok(&["logs", "web"]), "two\n");
    // The address of a service is sufficient: no master is asked.
    let list = tepui().args(["frameworks", "--json", "--master", &world.cluster.master]).run();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let service = list[0]["webui_url"].as_str().unwrap();
    assert_eq!(world.ok(&["logs", "web", "--service", service, "--master=127.0.0.1:1"]), "two\n");

    // The task is unhealthy: the executor ends it, and the framework restarts it.
    world.file("sick", "");
    framework.wait_for(&["\"name\":\"web\"", "\"healthy\":false"]);
    std::fs::remove_file(&sick).unwrap();
    framework.wait_for(&["\"name\":\"web\"", "TASK_RUNNING", "\"healthy\":true"]);
    // The command shows output while it is written, of either stream; and all of it again on request.
    let before = world.fields("web", "task_id");
    world.ok(&["restart", "web"]);
    framework.wait_for(&["\"name\":\"web\"", "deployed", "\"version\":3"]);
    assert!(world.fields("web", "task_id").iter().all(|id| !before.contains(id)));
    let talk = "[[job]]\nname = 'talk'\ncommand = 'echo first; echo aside >&2; sleep 1; echo last'\n";
    let mut list = tepui();
    list.args(["job", "list", "--watch"]).env("TEPUI_MASTER", &world.cluster.master);
    let mut list = Process::start(&mut list);
    list.line(Stream::Stdout, &["web", "service"]);
    world.ok(&["submit", &world.file("talk.toml", talk)]);
    list.line(Stream::Stdout, &["talk", "batch"]);
    list.signal("-INT");
    assert!(list.end().success());
    framework.wait_for(&["\"name\":\"talk\"", "TASK_RUNNING"]);
    until("it has begun to talk", || world.job(&["logs", "talk"]).stdout.starts_with(b"first\n"));
    assert_eq!(world.ok(&["logs", "--follow", "talk", "0"]), "first\nlast\n");
    assert!(world.ok(&["logs", "--error", "talk"]).contains("aside\n"));
    world.ok(&["scale", "web", "3"]);
    let run = |number| world.fields("web", "state") == vec!["running"; number];
    framework.0.until("three run", || run(3));
    assert!(world.ok(&["submit", &file]).contains("number of tasks changed"));
    framework.0.until("one is left", || run(1));
}

#[test]
fn a_gang_that_cannot_form_holds_nothing_up() {
    let world = World::start("too-large");
    let _framework = world.framework();
    // 20 ranks on 4 CPUs would hold offers for longer than this test waits.
    let gang = "[[job]]\nname = 'ring'\nkind = 'gang'\ncount = 20\ncpus = 1\ngather = '1h'\ncommand = 'true'\n";
    let submitted = world.job(&["submit", &world.file("gang.toml", gang)]);
    let said = String::from_utf8_lossy(&submitted.stderr);
    assert!(submitted.status.success() && said.contains("ring: warning: the gang cannot form"), "{submitted:?}");
    let said = world.refused(&["submit", "--wait", &world.file("second.toml", &gang.replace("ring", "second"))]);
    assert!(said.contains("second cannot run: the gang cannot form: all agents together have room for 4 of"), "{said}");
    assert!(world.ok(&["submit", "--wait", "--name=small", "--cpus=0.1", "--command=true"]).contains("finished"));
    let mut other = tepui();
    other.args(["execute", "--master", &world.cluster.master, "--name=other", "--command=true"]);
    let ran = other.args(["--resources=cpus:2;mem:32"]).run();
    assert!(ran.status.success(), "{ran:?}");
    let shown = world.ok(&["show", "ring"]);
    let missing = "the gang cannot form: all agents together have room for 4 of 20 ranks (cpus 4, mem 128), cpus 16";
    assert!(shown.contains(missing), "{shown}");

    let limited = "name = 'limited'\ncommand = 'sleep 1000'\ntime_limit = '1s'\n";
    let said = world.job(&["submit", "--wait", &world.file("limited.toml", limited)]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(world.ok(&["show", "limited"]).contains("failed"));
}

#[test]
fn wrong_jobs_are_refused_and_waiting_ones_explained() {
    let world = World::start("wrong");
    let _framework = world.framework();
    let good = world.file("good.toml", "[[job]]\nname = 'good'\ncommand = 'true'\n");
    let bad = world.file("bad.toml", "[[job]]\nname = 'bad'\ncomand = 'true'\ncommand = 'true'\nmem = nan\n");
    let said = world.refused(&["submit", &good, &bad]);
    assert!(said.contains("bad.toml:3:1: there is no field 'comand'; did you mean 'command'?"), "{said}");
    assert!(said.contains("bad.toml:5:7: mem must be a number, and this is NaN"), "{said}");
    assert!(world.ok(&["list"]).contains("no jobs"), "the good file was not submitted either");
    let json = world.file("bad.json", "{\n  \"name\": \"bad\",\n  \"command\": \"true\",\n  \"cpus\": -1\n}\n");
    assert!(world.refused(&["submit", &json]).contains("bad.json:4:11: cpus must be above 0"));
    assert!(world.refused(&["submit", "--name=n", "--cpus=0", "--command=x"]).contains("cpus must be above 0"));
    assert!(world.refused(&["show", "nobody"]).contains("there is no job 'nobody'"));
    assert!(world.refused(&["logs", "nobody"]).contains("there is no job 'nobody'"));

    world.ok(&["submit", "--name=huge", "--cpus=64", "--command=x"]);
    let told = || world.ok(&["show", "huge"]).contains("no agent has offered more than 2 so far");
    until("the job says why it waits", told);
    let shown = world.ok(&["show", "huge"]);
    assert!(shown.contains("master: No agent can offer cpus:64; mem:32, however long the framework waits."), "{shown}");
    let said = world.refused(&["submit", "--name=larger", "--cpus=65", "--command=x", "--wait"]);
    assert!(said.contains("larger cannot run: no agent can offer cpus:65;mem:32"), "{said}");
    let docker = "name = 'docker'\nimage = 'none'\ncontainerizer = 'docker'\n";
    let said = world.refused(&["submit", "--wait", &world.file("docker.toml", docker)]);
    assert!(said.contains("docker cannot run: no agent has a Docker containerizer"), "{said}");
    let told = || world.ok(&["show", "docker"]).contains("2 agents: no Docker containerizer; start agents with");
    until("the job says that no agent has the containerizer", told);
    // A number of tasks means the same in a file and as a flag.
    let several = world.file("several.toml", "name = 'several'\ncommand = 'true'\ncount = 3\ncpus = 0.1\n");
    world.ok(&["submit", "--wait", &several]);
    world.ok(&["submit", "--wait", "--name=flagged", "--command=true", "--count=3", "--cpus=0.1"]);
    assert_eq!(world.fields("flagged", "state"), world.fields("several", "state"));
    assert_eq!(world.fields("flagged", "state").len(), 3);
    let kinds = world.ok(&["list", "--json"]);
    assert_eq!(kinds.matches("\"kind\": \"array\"").count(), 2, "{kinds}");
    assert!(world.refused(&["scale", "huge", "2"]).contains("only a service can do this"));
    assert!(world.refused(&["submit", "--name=huge", "--command=y"]).contains("stop it first"));
}

#[test]
fn until_done_tells_by_its_exit_code() {
    let world = World::start("done");
    let run = |text: &str| {
        let file = world.file("jobs.toml", text);
        let master = format!("--master={}", world.cluster.master);
        let output = tepui().args(["framework", "binpack", &master, "--until-done", &file]).run();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = run("[[job]]\nname = 'a'\nkind = 'array'\ncount = 3\ncommand = 'true'\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a: finished"), "{said}");
    let (code, said) = run("[[job]]\nname = 'a'\ncommand = 'exit 7'\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("a: failed") && said.contains("exited with status 7"), "{said}");
}
