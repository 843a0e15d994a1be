//! Tests what operators provide for tasks: secrets by their names, files from the cache, output that is rotated.

use std::fs;

use serde_json::json;

use crate::one_agent::{OneAgent, end};
use crate::support::{Directory, get, wait_for};

#[test]
fn secrets_files_and_output() {
    let kept = Directory::new("kept");
    fs::create_dir_all(kept.path().join("secrets/db")).unwrap();
    fs::write(kept.path().join("secrets/db/password"), "open sesame").unwrap();
    fs::write(kept.path().join("small"), "12345").unwrap();
    fs::write(kept.path().join("large"), vec![b'x'; 2000]).unwrap();
    let flags = [
        "--launcher=posix".to_owned(),
        format!("--secret_resolver={}", kept.join("secrets")),
        format!("--fetcher_cache_dir={}", kept.join("cache")),
        "--fetcher_cache_size=1000B".to_owned(),
        "--container_logger=org_apache_mesos_LogrotateContainerLogger".to_owned(),
    ];
    let cluster = OneAgent::start("settings", &flags);
    let nothing = json!({"type": "MESOS"});
    let secret = |key: &str| {
        let reference = json!({"name": "/db", "key": key});
        let secret = json!({"type": "REFERENCE", "reference": reference});
        json!({"variables": [{"name": "WORD", "type": "SECRET", "secret": secret}]})
    };
    let say = |key: &str| json!({"value": "echo \"$WORD\"", "environment": secret(key)});
    let (told, written) = cluster.run("told", say("password"), nothing.clone());
    assert_eq!(written, "open sesame\n", "{told}");
    let (told, _) = cluster.run("secret", say("other"), nothing.clone());
    assert!(told.contains("TASK_FAILED") && told.contains("REASON_CONTAINER_LAUNCH_FAILED"), "{told}");
    assert!(told.contains("The secret of the variable 'WORD': the secret '/db' cannot be read"), "{told}");

    // A file that is larger than the cache is fetched all the same, and evicts nothing from it.
    let uris = ["small", "large"].map(|name| json!({"value": kept.join(name), "cache": true}));
    for id in ["first", "second"] {
        let (told, written) =
            cluster.run(id, json!({"value": "wc -c < small; wc -c < large", "uris": uris}), nothing.clone());
        assert_eq!(written, "5\n2000\n", "{told}");
        let used = get(&cluster.agent_address(), "/metrics/snapshot").unwrap();
        assert!(used.contains("\"containerizer/fetcher/cache_size_used_bytes\":5"), "{used}");
    }

    let variables = json!({"variables": [{"name": "CONTAINER_LOGGER_MAX_STDOUT_SIZE", "value": "4KB"},
        {"name": "CONTAINER_LOGGER_LOGROTATE_STDOUT_OPTIONS", "value": "rotate 2"}]});
    let flood = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i + 1)); done; sleep 1000";
    let task = cluster.start_task("flood", json!({"value": flood, "environment": variables}), nothing.clone());
    let sandbox = cluster.sandbox("flood").unwrap();
    wait_for("its output is rotated", || sandbox.join("stdout.1").exists().then_some(()));
    assert!(!sandbox.join("stdout.3").exists());
    end(task);
    let bad = json!({"variables": [{"name": "CONTAINER_LOGGER_MAX_STDOUT_SIZE", "value": "1"}]});
    let (told, _) = cluster.run("bad", json!({"value": "true", "environment": bad}), nothing);
    assert!(told.contains("TASK_FAILED") && told.contains("'max_stdout_size' is not a size"), "{told}");
}
