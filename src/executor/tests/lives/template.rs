//! Tests executors that are copies of a template, with a line to their agent.

use containers::{Output, TemplateError};
use protos::mesos::v1::TaskState;
use protos::mesos::v1::TaskState::{TaskFinished, TaskRunning, TaskStarting};

use crate::nursery::{Nursery, ended};
use crate::support::{Directory, FakeAgent, killing, shell};

#[test]
fn copies_live_side_by_side() {
    let mut nursery = Nursery::new();
    let sandboxes: Vec<Directory> = (0..3).map(|n| Directory::new(&format!("copy-{n}"))).collect();
    let script = "echo $WHO $PWD; read line < go; ls -l /proc/self/fd | wc -l";
    let mut copies = Vec::new();
    for (n, sandbox) in sandboxes.iter().enumerate() {
        std::process::Command::new("mkfifo").arg(sandbox.0.join("go")).status().unwrap();
        let (child, mut line) = nursery.start(sandbox, &[("WHO", &format!("copy{n}"))]);
        line.subscribed_and_launched(shell("t", script));
        line.updates(&[TaskStarting, TaskRunning]);
        copies.push((child, line));
    }
    // Copies outlive the template, and are children of no other process.
    drop(nursery);
    for (n, ((child, mut line), sandbox)) in copies.into_iter().zip(&sandboxes).enumerate() {
        std::fs::write(sandbox.0.join("go"), "now\n").unwrap();
        line.updates(&[TaskFinished]);
        assert!(ended(&child).success(), "{}", sandbox.text("stderr"));
        // The list has a line with the total and four open files of `ls`: no descriptor is inherited.
        assert_eq!(sandbox.text("stdout"), format!("copy{n} {}\n5\n", sandbox.0.display()));
    }
}

#[test]
fn orders_of_every_length_are_carried_out() {
    let mut nursery = Nursery::new();
    for length in [1, 1500, 2048, 10_000, 200_000] {
        let sandbox = Directory::new(&format!("copy-long-{length}"));
        let long = "x".repeat(length / 2);
        // Each variable has its limit.
        let (child, mut line) = nursery.start(&sandbox, &[("ONE", &long), ("TWO", &long)]);
        line.subscribed_and_launched(shell("t", "printf '%s' \"$ONE$TWO\" | wc -c"));
        line.updates(&[TaskStarting, TaskRunning, TaskFinished]);
        assert!(ended(&child).success(), "{}", sandbox.text("stderr"));
        assert_eq!(sandbox.text("stdout").trim(), (length / 2 * 2).to_string());
    }
}

#[test]
fn a_lost_line_is_replaced_by_http() {
    let agent = FakeAgent::new();
    let mut nursery = Nursery::new();
    let sandbox = Directory::new("copy-lost");
    let (child, mut line) = nursery.start(
        &sandbox,
        &[
            ("MESOS_CHECKPOINT", "1"),
            ("MESOS_RECOVERY_TIMEOUT", "15mins"),
            ("MESOS_SUBSCRIPTION_BACKOFF_MAX", "10ms"),
            ("MESOS_AGENT_ENDPOINT", &agent.address),
        ],
    );
    line.subscribed_and_launched(shell("t", "exit 0"));
    assert_eq!(line.update().state(), TaskStarting);
    // No update was acknowledged.
    drop(line);
    let (subscribe, mut stream) = agent.subscribed(killing());
    assert_eq!(subscribe.unacknowledged_tasks.len(), 1);
    let mut states: Vec<TaskState> =
        subscribe.unacknowledged_updates.iter().map(|update| update.status.state()).collect();
    subscribe.unacknowledged_updates.iter().for_each(|update| stream.acknowledge(&update.status));
    while states.last() != Some(&TaskFinished) {
        let status = agent.update();
        stream.acknowledge(&status);
        states.push(status.state());
    }
    assert_eq!(states, [TaskStarting, TaskRunning, TaskFinished]);
    assert!(ended(&child).success(), "{}", sandbox.text("stderr"));
}

#[test]
fn without_checkpoints_a_lost_line_is_the_end() {
    let mut nursery = Nursery::new();
    let sandbox = Directory::new("copy-end");
    let (child, mut line) = nursery.start(&sandbox, &[]);
    line.subscribed_and_launched(shell("t", "sleep 1000"));
    line.updates(&[TaskStarting, TaskRunning]);
    drop(line);
    assert!(ended(&child).success());
    assert!(sandbox.text("stderr").contains("Shutting down"), "{}", sandbox.text("stderr"));
}

#[test]
fn failures_name_their_step() {
    let mut nursery = Nursery::new();
    let sandbox = Directory::new("copy-fails");
    let mut spec = nursery.spec(&sandbox, &[]);
    spec.working_dir = Some("/none/such".into());
    let error = nursery.template.spawn(&spec, None).unwrap_err();
    assert!(matches!(&error, TemplateError::Spawn(_)));
    assert_eq!(error.to_string(), "Failed to enter the working directory of 'tepui'");
    spec.working_dir = None;
    spec.stdout = Output::File("/none/such".into());
    assert!(matches!(nursery.template.spawn(&spec, None), Err(TemplateError::Spawn(_))));
    // The template works as before.
    let (child, mut line) = nursery.start(&sandbox, &[]);
    line.subscribed_and_launched(shell("t", "true"));
    line.updates(&[TaskStarting, TaskRunning, TaskFinished]);
    assert!(ended(&child).success());
}
