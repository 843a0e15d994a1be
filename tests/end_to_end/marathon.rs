//! Tests Marathon's Python client from PyPI, unmodified, against the bin-packing framework on a real cluster of two
//! agents. Its calls are in `tests/python/marathon_client.py`.
//!
//! `cargo xtask test` installs the client and names its Python in `TEPUI_PYTHON`; without that the test does not run.
use std::process::Command;

use binpack::Knobs;
use binpack::service::{self, MEASURE_EVERY, Options, Service};
use tepui_sdk::v1::{FrameworkInfo, framework_info};

use crate::process::ToItsEnd;
use crate::support::Cluster;

/// Starts the framework as `tepui framework binpack` does.
async fn framework(master: &str) -> Service {
    let capability = |kind: framework_info::capability::Type| framework_info::Capability { r#type: Some(kind as i32) };
    let framework = FrameworkInfo {
        user: "root".into(),
        name: "binpack".into(),
        roles: vec!["*".into()],
        capabilities: vec![
            capability(framework_info::capability::Type::MultiRole),
            capability(framework_info::capability::Type::PartitionAware),
        ],
        ..Default::default()
    };
    let driver = tepui_sdk::driver::Options::new(master, framework).unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    service::start(Options { driver, listen, knobs: Knobs::default(), measure_every: MEASURE_EVERY }).await.unwrap()
}

#[test]
fn an_unmodified_client_lives_with_its_apps() {
    let Ok(python) = std::env::var("TEPUI_PYTHON") else {
        println!("not run: TEPUI_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let cluster = Cluster::start("marathon", 2, "cpus:2;mem:512;disk:512;ports:[31000-31100]");
    let script = "tests/python/marathon_client.py";
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let service = runtime.block_on(framework(&cluster.master));
    let url = format!("http://{}", service.address());
    let output = Command::new(python).args(["-W", "ignore", script, &url]).run();
    runtime.block_on(service.stop(true));
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all is well"), "{said}\n{errors}");
}
