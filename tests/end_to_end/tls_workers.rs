//! Workers of training jobs and of video queries reach their framework over TLS, where it has TLS.

use std::process::Command;

use crate::process::{Process, ToItsEnd};
use crate::support::tepui;
use crate::tls::Secure;

/// A framework with TLS, for the cluster's master.
fn framework(cluster: &Secure, words: &[&str]) -> Command {
    let mut command = tepui();
    command.arg("framework").args(words).arg(format!("--master=https://{}", cluster.address));
    command.env("LIBPROCESS_SSL_ENABLED", "true");
    for (name, file) in [("CA_FILE", "ca"), ("CERT_FILE", "127.0.0.1"), ("KEY_FILE", "127.0.0.1-key")] {
        command.env(format!("LIBPROCESS_SSL_{name}"), cluster.file(file));
    }
    command
}

/// Whether a worker runs in this cluster that has the address of a framework with TLS.
fn has_worker(cluster: &Secure) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.map(|process| process.path()).any(|process| {
        let is_ours =
            std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(cluster.directory.path()));
        let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        is_ours && words.any(|word| word == b"worker") && words.any(|word| word.starts_with(b"tls://127.0.0.1:"))
    })
}

/// The framework runs to its end, and one of its workers is seen.
fn runs(cluster: &Secure, command: &mut Command) {
    let mut framework = Process::start(command);
    framework.until("a worker has the framework's address", || has_worker(cluster));
    let output = framework.output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const JOB: &str = r#"
[[job]]
name = "convex"
algorithm = { kind = "logistic-regression" }
data = { generator = "halves", rows = 4800, columns = 10, seed = 1 }
iterations = 30
"#;

#[test]
fn a_job_trains_and_a_query_counts_over_tls() {
    let cluster = Secure::start("tls-workers", &["--tls_require_client_cert"]);
    let jobs = cluster.directory.write("jobs.toml", JOB);
    let state = cluster.directory.join("state");
    // So slow that its worker is seen.
    let words = ["quality", "--json", "--epoch=500ms", "--pace=100000", "--jobs", &jobs, "--state-dir", &state];
    runs(&cluster, &mut framework(&cluster, &words));

    let video = cluster.directory.join("short.mp4");
    let words = ["framework", "video", "generate", &video, "--width=320", "--height=180", "--seconds=6", "--seed=4"];
    let made = tepui().args(words).run();
    assert!(made.status.success(), "{made:?}");
    let profile = cluster.directory.join("p.json");
    let made = tepui().args(["framework", "video", "profile", &video, "--seconds=4", "--output", &profile]).run();
    assert!(made.status.success(), "{made:?}");
    let query = "[[query]]\nname = \"short\"\nkind = \"cars\"\nvideo = \"short.mp4\"\nprofile = \"p.json\"\n";
    let queries = cluster.directory.write("queries.toml", query);
    let results = cluster.directory.join("results");
    runs(&cluster, &mut framework(&cluster, &["video", "--json", "--queries", &queries, "--results", &results]));
    let found = std::fs::read_to_string(cluster.directory.join("results/short.jsonl")).unwrap();
    assert!(!found.is_empty());
}
