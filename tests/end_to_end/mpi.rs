//! Tests a real MPI program, with Debian's Open MPI, as a gang across two agents: a ring and a reduction, without ssh;
//! also in containers that are in a network of their own.
//!
//! `cargo xtask test` installs openmpi-bin; without mpicc the tests do not run.
use std::path::{Path, PathBuf};
use std::process::Command;

use binpack::Knobs;
use binpack::core::{JobEvent, JobView, Outcome};
use binpack::job::{self, Syntax};
use binpack::service::{self, MEASURE_EVERY, Options, Service};
use jobs::service::Handle as _;
use tepui_sdk::v1::{FrameworkInfo, framework_info};

use crate::containers::tar;
use crate::docker::Dockerd;
use crate::support::{Cluster, Daemon, Directory, PATIENCE, binary};

/// Returns the output of a rank, from the directory of its cluster.
fn output(directory: &Path, view: &JobView, rank: usize, name: &str) -> String {
    let id = &view.tasks[rank].place.as_ref().unwrap().task_id;
    let found = find(directory, &format!("executors/{id}/runs/latest"));
    found.and_then(|run| std::fs::read_to_string(run.join(name)).ok()).unwrap_or_default()
}

/// Returns the path below a directory that ends with `end`.
fn find(directory: &Path, end: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        if path.join(end).exists() {
            return Some(path.join(end));
        }
        if entry.file_type().is_ok_and(|t| t.is_dir())
            && let Some(found) = find(&path, end)
        {
            return Some(found);
        }
    }
    None
}

async fn framework(master: &str) -> Service {
    let multi_role = framework_info::Capability { r#type: Some(framework_info::capability::Type::MultiRole as i32) };
    let framework = FrameworkInfo {
        user: "root".into(),
        name: "binpack".into(),
        roles: vec!["*".into()],
        capabilities: vec![multi_role],
        ..Default::default()
    };
    let driver = tepui_sdk::driver::Options::new(master, framework).unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    service::start(Options { driver, listen, knobs: Knobs::default(), measure_every: MEASURE_EVERY }).await.unwrap()
}

/// Runs the gang to its end.
async fn run(service: &Service, text: &str) -> (Outcome, JobView) {
    let jobs = job::read("ring.toml", text, Syntax::Toml).unwrap();
    let mut follower = service.handle().follow();
    service.handle().submit(jobs).await.unwrap();
    loop {
        if let JobEvent::Ended { outcome, .. } = &*follower.next().await.unwrap().unwrap() {
            return (*outcome, service.handle().show("ring").await.unwrap());
        }
    }
}

/// Compiles the MPI program into this directory and returns its path; `None` without a compiler.
fn ring(directory: &Path) -> Option<PathBuf> {
    let ring = directory.join("ring");
    match Command::new("mpicc").arg("-o").arg(&ring).arg("tests/end_to_end/ring.c").status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            println!("not run: no mpicc ({error}); `cargo xtask test` installs libopenmpi-dev");
            return None;
        }
    }
    Some(ring)
}

/// Runs the job `ring` on a cluster and checks its output below the cluster's directory.
fn check_ring(master: &str, directory: &Path, job: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (outcome, view) = runtime.block_on(async {
        let service = framework(master).await;
        let ended = tokio::time::timeout(2 * PATIENCE, run(&service, job)).await;
        service.stop(true).await;
        ended.expect("the gang does not end")
    });
    let printed = output(directory, &view, 0, "stdout");
    let errors = [0, 1].map(|rank| output(directory, &view, rank, "stderr")).join("\n");
    assert_eq!(outcome, Outcome::Finished, "{printed}\n{errors}");
    let agents: Vec<_> = view.tasks.iter().map(|t| &t.place.as_ref().unwrap().agent_id).collect();
    assert_ne!(agents[0], agents[1]);
    for line in [
        "process 0 of 2 in the task of rank 0: all ranks are 1",
        "process 1 of 2 in the task of rank 1: all ranks are 1",
        "the ring brought 1",
    ] {
        assert!(printed.lines().any(|l| l == line), "{printed}\n{errors}");
    }
}

#[test]
fn a_ring_and_a_reduction_across_two_agents() {
    // Neither of the two agents has enough resources for both ranks.
    let cluster = Cluster::start("mpi", 2, "cpus:1;mem:256;disk:256;ports:[31200-31210]");
    let Some(ring) = ring(cluster.directory.path()) else { return };
    let job = format!(
        "[[job]]\nname = \"ring\"\nkind = \"gang\"\ncount = 2\nends = \"first\"\ncpus = 0.8\nmem = 128\nports = 1\n\
         program = [\"{}\", \"framework\", \"mpi\", \"{}\"]\n",
        binary(),
        ring.display()
    );
    check_ring(&cluster.master, cluster.directory.path(), &job);
}

/// Creates an image without programs: those of the host are mounted into its containers.
fn empty_image(dockerd: &Dockerd, name: &str) {
    let root = dockerd.path("empty");
    for directory in ["tmp", "usr", "etc", "dev", "proc"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    for link in ["bin", "lib", "lib64"] {
        std::os::unix::fs::symlink(Path::new("usr").join(link), root.join(link)).unwrap();
    }
    tar(&root, &root.with_extension("tar"));
    dockerd.import_root(name, &root, &[]);
}

#[test]
fn ranks_in_containers_of_docker_in_a_network_of_their_own() {
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: dockerd needs root");
    }
    let directory = Directory::new("mpi-docker");
    let Some(ring) = ring(directory.path()) else { return };
    let Some(dockerd) = Dockerd::start("mpi-dockerd") else { return };
    empty_image(&dockerd, "empty:1");
    let created = dockerd.docker(&["network", "create", "tepui-ranks"]);
    if !created.status.success() {
        return println!("not run: Docker has no networks here: {}", String::from_utf8_lossy(&created.stderr));
    }
    // The agents' host name is the address that the host has in the network: ranks find mapped ports there.
    let format = "{{(index .IPAM.Config 0).Gateway}}";
    let inspected = dockerd.docker(&["network", "inspect", "-f", format, "tepui-ranks"]);
    let gateway = String::from_utf8_lossy(&inspected.stdout).trim().to_owned();
    let flags = |words: &[&str]| -> Vec<String> { words.iter().map(|&word| word.to_owned()).collect() };
    let work = |name: &str| format!("--work_dir={}", directory.join(name));
    let log = |name: &str| directory.path().join(name).with_extension("log");
    let mut words = flags(&["master", "--ip=127.0.0.1", "--port=0", "--allocation_interval=50ms"]);
    words.push(work("master"));
    let mut master = Daemon::start(&log("master"), &words, &[]);
    let address = master.address().expect("the master has ended");
    let agents: Vec<Daemon> = ["31200-31209", "31210-31219"]
        .into_iter()
        .enumerate()
        .map(|(number, ports)| {
            let name = format!("agent{number}");
            let mut words = flags(&["agent", "--ip=127.0.0.1", "--port=0", "--launcher=posix"]);
            words.extend(flags(&["--containerizers=mesos,docker", "--docker_remove_delay=1ms"]));
            words.push(format!("--docker_socket={}", dockerd.socket()));
            words.push(format!("--hostname={gateway}"));
            words.push(format!("--master={address}"));
            words.push(format!("--resources=cpus:1;mem:256;disk:256;ports:[{ports}]"));
            words.push(format!("--runtime_dir={}", directory.join(&format!("run{number}"))));
            words.push(work(&name));
            Daemon::start(&log(&name), &words, &[])
        })
        .collect();
    let mount = |path: &str| format!("[\"volume\", \"{path}:{path}:ro\"]");
    let program = binary();
    let mounts = ["/usr", "/etc/alternatives", "/etc/openmpi", "/etc/passwd", &program, &ring.display().to_string()]
        .map(mount)
        .join(", ");
    let job = format!(
        "[[job]]\nname = \"ring\"\nkind = \"gang\"\ncount = 2\nends = \"first\"\ncpus = 0.8\nmem = 128\nports = 1\n\
         image = \"empty:1\"\ncontainerizer = \"docker\"\nnetwork = \"tepui-ranks\"\n\
         docker = {{ parameters = [{mounts}] }}\n\
         program = [\"{program}\", \"framework\", \"mpi\", \"{}\"]\n",
        ring.display()
    );
    check_ring(&address, directory.path(), &job);
    drop(agents);
}
