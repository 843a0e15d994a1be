//! Tests workers of training jobs and of video queries, which reach their framework over TLS, where it has TLS; and the
//! viewer of a live view.

use std::process::Command;

use serde_json::Value;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::tepui;
use crate::tls::Secure;

/// Returns the command of a framework with TLS, for the cluster's master.
fn framework(cluster: &Secure, words: &[&str]) -> Command {
    let mut command = tepui();
    command.arg("framework").args(words).arg(format!("--master=https://{}", cluster.address));
    command.env("LIBPROCESS_SSL_ENABLED", "true");
    for (name, file) in [("CA_FILE", "ca"), ("CERT_FILE", "127.0.0.1"), ("KEY_FILE", "127.0.0.1-key")] {
        command.env(format!("LIBPROCESS_SSL_{name}"), cluster.file(file));
    }
    command
}

/// Returns whether a worker runs in this cluster that has the address of a framework with TLS.
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

/// Runs the framework to its end, and asserts that one of its workers was found.
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
    // The job is so slow that its worker is found.
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

#[test]
fn a_live_view_is_watched_over_tls() {
    let cluster = Secure::start("tls-live", &[]);
    let video = cluster.directory.join("street.mp4");
    let words = ["framework", "video", "generate", &video, "--width=320", "--height=180", "--seconds=6", "--seed=4"];
    let made = tepui().args(words).run();
    assert!(made.status.success(), "{made:?}");
    let text =
        format!("[[query]]\nname = \"cars\"\nkind = \"cars\"\nvideo = \"{video}\"\nloop = true\nseconds = 3600\n");
    let queries = cluster.directory.write("queries.toml", &text);
    let mut service = Process::start(&mut framework(&cluster, &["video", "--json", "--queries", &queries]));
    let line = service.line(Stream::Stderr, &["the API is at https://"]);
    let api = line.trim().rsplit(' ').next().unwrap().to_owned();

    let live = |more: &[&str]| {
        let mut command = tepui();
        command.args(["framework", "video", "live", "cars", "--watch=1secs", "--json"]).args(more);
        command.env("LIBPROCESS_SSL_CA_FILE", cluster.file("ca"));
        command
    };
    // The API is found through the master, or is named.
    for place in [format!("--master=https://{}", cluster.address), format!("--service={api}")] {
        let seen = live(&[&place]).run();
        let seen: Value = serde_json::from_slice(&seen.stdout).unwrap_or_else(|_| panic!("{seen:?}"));
        assert!(seen["pictures"].as_u64().unwrap() >= 1 && seen["megabits"].as_f64().unwrap() > 0.0, "{seen}");
    }
    // Without its authority the certificate is rejected, and TLS is not skipped.
    for (place, rule) in [(api.clone(), "invalid peer certificate"), (api.replace("https:", "http:"), "use https://")] {
        let refused = live(&["--service", &place]).env_remove("LIBPROCESS_SSL_CA_FILE").run();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(rule), "{said}");
    }
    service.kill();
}
