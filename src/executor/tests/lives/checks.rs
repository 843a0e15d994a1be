//! Tests health checks and checks of the command executor's task.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use protos::mesos::v1;
use protos::mesos::v1::TaskState::{TaskKilled, TaskKilling, TaskRunning, TaskStarting};
use protos::mesos::v1::task_status::Reason;
use protos::mesos::v1::{check_info, health_check};

use crate::support::{Executor, FakeAgent, Subscription, killing, shell};

fn health(r#type: health_check::Type) -> v1::HealthCheck {
    v1::HealthCheck {
        r#type: Some(r#type as i32),
        delay_seconds: Some(0.0),
        interval_seconds: Some(0.02),
        grace_period_seconds: Some(0.0),
        ..Default::default()
    }
}

fn command(script: &str) -> v1::CommandInfo {
    v1::CommandInfo { value: Some(script.into()), ..Default::default() }
}

fn check(r#type: check_info::Type) -> v1::CheckInfo {
    v1::CheckInfo {
        r#type: Some(r#type as i32),
        delay_seconds: Some(0.0),
        interval_seconds: Some(0.02),
        ..Default::default()
    }
}

struct Life {
    agent: FakeAgent,
    executor: Executor,
    stream: Subscription,
}

impl Life {
    /// Starts a task with these checks that runs until it is killed.
    fn new(name: &str, complete: impl FnOnce(&mut v1::TaskInfo)) -> Life {
        let agent = FakeAgent::new();
        let executor = Executor::start("command", name, &agent.address, &[]);
        let (_, mut stream) = agent.subscribed(killing());
        let mut task = shell("t", "exec sleep 1000");
        complete(&mut task);
        stream.launch(task);
        agent.updates(&mut stream, &[TaskStarting, TaskRunning]);
        Life { agent, executor, stream }
    }

    fn update(&mut self, state: v1::TaskState) -> v1::TaskStatus {
        self.agent.updates(&mut self.stream, &[state])
    }

    fn healthy(&mut self, healthy: bool) {
        let status = self.update(TaskRunning);
        assert_eq!((status.reason(), status.healthy), (Reason::TaskHealthCheckStatusUpdated, Some(healthy)));
    }

    fn checked(&mut self) -> v1::CheckStatusInfo {
        let status = self.update(TaskRunning);
        assert_eq!(status.reason(), Reason::TaskCheckStatusUpdated);
        status.check_status.unwrap()
    }

    /// Expects the end of a task that its health check has ended.
    fn ends_ill(mut self) {
        assert_eq!(self.update(TaskKilling).healthy, Some(false));
        assert_eq!(self.update(TaskKilled).healthy, Some(false));
        self.executor.ends();
    }

    fn ends(mut self) {
        self.stream.kill("t", None);
        self.update(TaskKilling);
        assert_eq!(self.update(TaskKilled).healthy, None);
        self.executor.ends();
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.executor.sandbox.0.join(name), "").unwrap();
    }
}

/// Starts a web server that answers with the status in `status`, and returns its port.
fn web(status: &Arc<AtomicU16>) -> u32 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let status = Arc::clone(status);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 1024];
            let length = stream.read(&mut buffer).unwrap_or(0);
            // A TCP probe of the port sends no request.
            if length == 0 {
                continue;
            }
            let request = String::from_utf8_lossy(&buffer[..length]);
            assert!(request.starts_with("GET /path HTTP/1.1\r\n"), "{request}");
            let status = status.load(Ordering::SeqCst);
            let _ = stream.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 100\r\n\r\nless").as_bytes());
        }
    });
    port.into()
}

/// A port without a listener, which the system assigns to no other process.
const CLOSED: u32 = 1;

#[test]
fn good_health_is_reported_once() {
    let mut life = Life::new("health-good", |task| {
        let check = health(health_check::Type::Command);
        // The number of failures before the task is healthy again does not matter.
        let consecutive_failures = Some(1_000_000);
        let command = Some(command("echo x >> tries; test ! -e ill"));
        task.health_check = Some(Box::new(v1::HealthCheck { command, consecutive_failures, ..check }));
    });
    life.healthy(true);
    crate::support::until("more probes", || life.executor.sandbox.text("tries").lines().count() > 3);
    life.touch("ill");
    life.healthy(false);
    std::fs::remove_file(life.executor.sandbox.0.join("ill")).unwrap();
    // Each failure is reported before the recovery.
    while life.update(TaskRunning).healthy != Some(true) {}
    life.ends();
}

#[test]
fn too_many_failures_end_the_task() {
    let mut life = Life::new("health-bad", |task| {
        let check = health(health_check::Type::Command);
        task.health_check =
            Some(Box::new(v1::HealthCheck { command: Some(command("false")), consecutive_failures: Some(3), ..check }));
    });
    (0..3).for_each(|_| life.healthy(false));
    life.ends_ill();
}

#[test]
fn a_probe_that_takes_too_long_is_a_failure() {
    let mut life = Life::new("health-slow", |task| {
        let check = health(health_check::Type::Command);
        let (command, timeout_seconds) = (Some(command("echo $$ > pid; sleep 1000")), Some(0.05));
        task.health_check =
            Some(Box::new(v1::HealthCheck { command, timeout_seconds, consecutive_failures: Some(1), ..check }));
    });
    life.healthy(false);
    life.ends_ill();
}

#[test]
fn health_over_http() {
    let status = Arc::new(AtomicU16::new(204));
    let port = web(&status);
    let mut life = Life::new("health-http", |task| {
        let http = health_check::HttpCheckInfo { port, path: Some("/path".into()), ..Default::default() };
        let check = health(health_check::Type::Http);
        task.health_check =
            Some(Box::new(v1::HealthCheck { http: Some(http), consecutive_failures: Some(1), ..check }));
    });
    life.healthy(true);
    status.store(500, Ordering::SeqCst);
    life.healthy(false);
    life.ends_ill();
}

#[test]
fn health_over_tcp() {
    for (name, port, good) in
        [("health-tcp", web(&Arc::new(AtomicU16::new(200))), true), ("health-no-tcp", CLOSED, false)]
    {
        let mut life = Life::new(name, |task| {
            let tcp = health_check::TcpCheckInfo { port, ..Default::default() };
            let check = health(health_check::Type::Tcp);
            task.health_check =
                Some(Box::new(v1::HealthCheck { tcp: Some(tcp), consecutive_failures: Some(1), ..check }));
        });
        life.healthy(good);
        if good { life.ends() } else { life.ends_ill() }
    }
}

#[test]
fn a_check_tells_changes_and_never_ends_the_task() {
    let mut life = Life::new("check-command", |task| {
        let command = check_info::Command { command: command("test ! -e three || exit 3") };
        task.check = Some(Box::new(v1::CheckInfo { command: Some(command), ..check(check_info::Type::Command) }));
    });
    assert_eq!(life.checked().command.unwrap().exit_code, Some(0));
    life.touch("three");
    assert_eq!(life.checked().command.unwrap().exit_code, Some(3));
    life.ends();
}

#[test]
fn checks_over_http_and_tcp() {
    let status = Arc::new(AtomicU16::new(202));
    let port = web(&status);
    let mut life = Life::new("check-http", |task| {
        let http = check_info::Http { port, path: Some("/path".into()) };
        task.check = Some(Box::new(v1::CheckInfo { http: Some(http), ..check(check_info::Type::Http) }));
    });
    assert_eq!(life.checked().http.unwrap().status_code, Some(202));
    status.store(404, Ordering::SeqCst);
    assert_eq!(life.checked().http.unwrap().status_code, Some(404));
    life.ends();
    for (name, port, good) in [("check-tcp", port, true), ("check-no-tcp", CLOSED, false)] {
        let mut life = Life::new(name, |task| {
            let tcp = Some(check_info::Tcp { port });
            task.check = Some(Box::new(v1::CheckInfo { tcp, ..check(check_info::Type::Tcp) }));
        });
        assert_eq!(life.checked().tcp.unwrap().succeeded, Some(good));
        life.ends();
    }
}

#[test]
fn before_its_first_result_a_check_is_empty() {
    let agent = FakeAgent::new();
    let mut executor = Executor::start("command", "check-pending", &agent.address, &[]);
    let (_, mut stream) = agent.subscribed(killing());
    let mut task = shell("t", "true");
    let command = Some(check_info::Command { command: command("true") });
    task.check =
        Some(Box::new(v1::CheckInfo { command, delay_seconds: Some(600.0), ..check(check_info::Type::Command) }));
    stream.launch(task);
    for state in [TaskStarting, TaskRunning, v1::TaskState::TaskFinished] {
        let status = agent.updates(&mut stream, &[state]).check_status.unwrap();
        assert_eq!((status.r#type(), status.command.unwrap().exit_code), (check_info::Type::Command, None));
    }
    executor.ends();
}
