//! A real MPI program, with Debian's Open MPI, as a gang across two agents: a ring and a reduction, without ssh.
//!
//! `cargo xtask test` installs openmpi-bin; where there is no mpicc there is nothing to run.
use std::path::{Path, PathBuf};
use std::process::Command;

use binpack::Knobs;
use binpack::core::{Happening, JobView, Outcome};
use binpack::job::{self, Syntax};
use binpack::service::{MEASURE_EVERY, Options, Service};
use tepui_sdk::v1::{FrameworkInfo, framework_info};

use crate::support::{Cluster, PATIENCE, binary};

/// What a task printed.
fn output(cluster: &Cluster, view: &JobView, rank: usize, name: &str) -> String {
    let id = &view.tasks[rank].place.as_ref().unwrap().task_id;
    let found = find(cluster.directory.path(), &format!("executors/{id}/runs/latest"));
    found.and_then(|run| std::fs::read_to_string(run.join(name)).ok()).unwrap_or_default()
}

/// The path below a directory that ends in `end`.
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
    Service::start(Options { driver, listen, knobs: Knobs::default(), measure_every: MEASURE_EVERY }).await.unwrap()
}

/// Runs the gang to its end.
async fn run(service: &Service, text: &str) -> (Outcome, JobView) {
    let jobs = job::read("ring.toml", text, Syntax::Toml).unwrap();
    let mut follower = service.follow();
    service.submit(jobs).await.unwrap();
    loop {
        if let Happening::Ended { outcome, .. } = &*follower.next().await.unwrap().unwrap() {
            return (*outcome, service.handle().show("ring").await.unwrap());
        }
    }
}

#[test]
fn a_ring_and_a_reduction_across_two_agents() {
    // None of the two agents has room for both ranks.
    let cluster = Cluster::start("mpi", 2, "cpus:1;mem:256;disk:256;ports:[31200-31210]");
    let ring = cluster.directory.path().join("ring");
    let source = "tests/end_to_end/ring.c";
    match Command::new("mpicc").arg("-o").arg(&ring).arg(source).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => return println!("not run: no mpicc ({error}); `cargo xtask test` installs libopenmpi-dev"),
    }
    let job = format!(
        "[[job]]\nname = \"ring\"\nkind = \"gang\"\ncount = 2\nends = \"first\"\ncpus = 0.8\nmem = 128\nports = 1\n\
         program = [\"{}\", \"framework\", \"mpi\", \"{}\"]\n",
        binary(),
        ring.display()
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (outcome, view) = runtime.block_on(async {
        let service = framework(&cluster.master).await;
        let ended = tokio::time::timeout(2 * PATIENCE, run(&service, &job)).await;
        service.stop(true).await;
        ended.expect("the gang does not end")
    });
    let said = output(&cluster, &view, 0, "stdout");
    let told = format!("{said}\n{}\n{}", output(&cluster, &view, 0, "stderr"), output(&cluster, &view, 1, "stderr"));
    assert_eq!(outcome, Outcome::Finished, "{told}");
    let agents: Vec<_> = view.tasks.iter().map(|t| &t.place.as_ref().unwrap().agent_id).collect();
    assert_ne!(agents[0], agents[1]);
    for line in [
        "process 0 of 2 in the task of rank 0: all ranks are 1",
        "process 1 of 2 in the task of rank 1: all ranks are 1",
        "the ring brought 1",
    ] {
        assert!(said.lines().any(|l| l == line), "{told}");
    }
}
