//! Tests jobs of stages on an agent that isolates: images with input files and outputs, and sprints.
//!
//! Requires root and control groups; without them no test runs.
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::containers::{libraries_into, programs_into, tar};
use crate::dag::World;
use crate::docker::Dockerd;
use crate::one_agent::{OneAgent, can_isolate};
use crate::support::{Directory, binary, until};

/// Copies a shell, cat(1), sleep(1), and what the runner needs.
fn root_into(root: &Path) {
    fs::create_dir_all(root.join("etc")).unwrap();
    programs_into(root, &["/bin/sh", "/bin/cat", "/bin/sleep"]);
    libraries_into(root, &[&binary()]);
    fs::write(root.join("etc/version"), "image\n").unwrap();
}

/// Creates `<registry>/work:1.tar`, which starts in a directory of its own.
fn image(registry: &Directory) {
    let (root, saved) = (registry.path().join("root"), registry.path().join("saved"));
    root_into(&root);
    fs::create_dir_all(&saved).unwrap();
    let id = format!("sha256:{}", tar(&root, &saved.join("1.tar")));
    let config = json!({"os": "linux", "config": {"WorkingDir": "/elsewhere"},
        "rootfs": {"type": "layers", "diff_ids": [id]}});
    fs::write(saved.join("config.json"), config.to_string()).unwrap();
    let manifest = json!([{"Config": "config.json", "RepoTags": ["work:1"], "Layers": ["1.tar"]}]);
    fs::write(saved.join("manifest.json"), manifest.to_string()).unwrap();
    tar(&saved, &registry.path().join("work:1.tar"));
}

/// Runs stages in images through a shared directory and through sandboxes.
#[test]
fn stages_in_images_read_files_and_leave_outputs() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    let registry = Directory::new("dag-images-registry");
    image(&registry);
    let flags = [
        "--isolation=cgroups/cpu,cgroups/mem,filesystem/linux,docker/runtime".to_owned(),
        "--image_providers=docker".to_owned(),
        format!("--docker_registry={}", registry.path().display()),
        format!("--docker_store_dir={}", registry.join("store")),
    ];
    let cluster = OneAgent::start("dag-images", &flags);
    run_in_images(&World::of(&cluster.address, "images"), "image = 'work:1'");
}

/// Runs a job whose stages have these fields through a shared directory, and through sandboxes.
fn run_in_images(world: &World, image: &str) {
    for (name, text) in [("a", "1\n"), ("b", "2\n")] {
        world.file(&format!("data/{name}.txt"), text);
    }
    fs::create_dir_all(world.path("shared")).unwrap();
    let data = world.path("data");
    // Reads a file in the image, and a part of the input in arguments and as standard input, on a read-only file
    // system.
    let job = |name: &str| {
        format!(
            "name = '{name}'\n[[stage]]\nname = 'map'\n{image}\ncpus = 0.1\nmem = 128\nstdin = true\noutputs = ['o']\n\
             input = {{ files = '{data}/*.txt' }}\n\
             command = 'cat /etc/version {{input}} - > $TEPUI_OUTPUT/o; echo x > {data}/new || echo read-only >> {{output}}/o'\n\
             [[stage]]\nname = 'sum'\n{image}\ncpus = 0.1\nmem = 128\ninput = {{ stage = 'map' }}\noutputs = ['all']\n\
             command = 'cat {{input}}/* > $TEPUI_OUTPUT/all; cat {{output}}/all'\n"
        )
    };
    let expected = "image\n1\n1\nread-only\nimage\n2\n2\nread-only\n";
    let shared = format!("--shared={}", world.path("shared"));
    let framework = world.framework(&[&shared]);
    let said = world.ok(&["submit", "--wait", &world.file("shared.toml", &job("shared"))]);
    assert!(said.contains("shared: finished"), "{said}");
    assert_eq!(world.ok(&["logs", "shared", "sum"]), expected);
    let directory = |stage: usize| world.job("shared")["stages"][stage]["directory"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(format!("{}/0/all", directory(1))).unwrap(), expected);
    until("what was for the other stage is removed", || !fs::exists(directory(0)).unwrap());
    drop(framework);
    let _framework = world.framework(&[]);
    let said = world.ok(&["submit", "--wait", &world.file("apart.toml", &job("apart"))]);
    assert!(said.contains("apart: finished"), "{said}");
    assert_eq!(world.ok(&["logs", "apart", "sum"]), expected);
}

/// Runs the stages in Docker containers, as with the agent's own containerizer. An entry point of the image is not
/// prepended to programs, and a cancelled task is asked to end.
#[test]
fn stages_in_containers_of_docker_read_files_and_leave_outputs() {
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: dockerd needs root");
    }
    let Some(dockerd) = Dockerd::start("dag-dockerd") else { return };
    let root = dockerd.path("work-root");
    root_into(&root);
    let changes = ["ENTRYPOINT [\"/bin/cat\"]", "WORKDIR /elsewhere"];
    dockerd.import_root("work:1", &root, &changes);
    let flags = [
        "--launcher=posix".to_owned(),
        "--containerizers=mesos,docker".to_owned(),
        format!("--docker_socket={}", dockerd.socket()),
        "--docker_remove_delay=1ms".to_owned(),
    ];
    let cluster = OneAgent::start("dag-docker", &flags);
    let world = World::of(&cluster.address, "docker");
    let image = "image = 'work:1'\ncontainerizer = 'docker'";
    run_in_images(&world, image);

    let _framework = world.framework(&[]);
    let list = format!(
        "name = 'list'\n[[stage]]\nname = 's'\n{image}\nargv = ['/bin/sh', '-c', 'echo $0 {{index}}', 'said']\n"
    );
    assert!(world.ok(&["submit", "--wait", &world.file("list.toml", &list)]).contains("list: finished"));
    assert_eq!(world.ok(&["logs", "list", "s"]), "said 0\n");
    let missing = world.path("missing");
    let missing = format!(
        "name = 'missing'\nshared = '{missing}'\n[[stage]]\nname = 's'\n{image}\ncommand = 'true'\noutputs = ['o']\n"
    );
    world.dag(&["submit", "--wait", &world.file("missing.toml", &missing)]);
    let shown = world.ok(&["show", "missing", "s", "--json"]);
    assert!(
        shown.contains("bind source path does not exist") && !Path::new(&world.path("missing")).exists(),
        "{shown}"
    );

    let long = format!(
        "name = 'long'\n[[stage]]\nname = 's'\n{image}\nmem = 128\noutputs = ['o']\n\
         command = 'trap \"echo asked > ended; exit\" TERM; echo up; while true; do sleep 0.05; done'\n"
    );
    world.ok(&["submit", &world.file("long.toml", &long)]);
    until("the program has set its trap", || world.dag(&["logs", "long", "s"]).stdout == b"up\n");
    world.ok(&["cancel", "long"]);
    let tasks = world.tasks("long", "s");
    let ended = cluster.sandbox(tasks[0]["place"]["task_id"].as_str().unwrap()).unwrap().join("ended");
    until("the program was asked to end", || fs::read_to_string(&ended).is_ok_and(|text| text == "asked\n"));
}

/// Command that prints a task's CPU quota in each period, from its control group.
const QUOTA: &str = "cat /sys/fs/cgroup/cpu$(grep -E \":(cpu|cpu,cpuacct|cpuacct,cpu):\" /proc/self/cgroup | cut -d: -f3)/cpu.cfs_quota_us";

/// The age at which jobs sprint is found from jobs that have ended, and saved.
#[test]
fn ages_of_sprints_are_found_from_jobs_that_have_ended() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    let flags = ["--isolation=cgroups/cpu,cgroups/mem".to_owned(), "--cgroups_enable_cfs".to_owned()];
    let cluster = OneAgent::start("dag-sprints", &flags);
    let world = World::of(&cluster.address, "sprints");
    let settings = ["--sprint=1", "--sprint-after=auto", "--sprint-budget=100000"];
    let framework = world.framework(&settings);
    // Eight tasks, so that one of each job is without a sprint until there are enough of them.
    let job = |number: u32| {
        format!(
            "[[job]]\nname = 'high{number}'\npriority = 'high'\n[[job.stage]]\nname = 's'\ntasks = 8\ncpus = 0.2\n\
             command = '{QUOTA}; i=0; while test $i -lt 20000; do i=$((i+1)); done'\n"
        )
    };
    let first = world.file("first.toml", &job(0));
    world.ok(&["submit", "--wait", &first]);
    let quota = |task: u32| -> i64 { world.ok(&["logs", "high0", "s", &task.to_string()]).trim().parse().unwrap() };
    let plain = quota(7);
    assert!(plain > 0 && (0..7).all(|task| quota(task) > plain), "the last one does not sprint: {plain}");
    let shown = world.ok(&["show", "high0"]);
    assert!(shown.contains("nothing is chosen yet: 1 jobs"), "{shown}");
    let jobs: Vec<String> = (1..9).map(job).collect();
    world.ok(&["submit", "--wait", &world.file("jobs.toml", &jobs.join(""))]);
    let explained = |job: &str| {
        let shown: Value = world.job(job);
        shown["tuned"][0].as_str().unwrap_or_default().to_owned()
    };
    let why = explained("high8");
    assert!(why.contains("tasks that sprint are"), "by what was measured: {why}");
    drop(framework);
    let _framework = world.framework(&settings);
    assert_eq!(explained("high8"), why, "it is kept");
}
