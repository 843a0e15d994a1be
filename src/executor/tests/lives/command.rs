//! Tests the command executor.

use std::time::{Duration, Instant};

use protos::mesos::v1;
use protos::mesos::v1::TaskState::{TaskFailed, TaskFinished, TaskKilled, TaskKilling, TaskRunning, TaskStarting};

use crate::support::{self, Directory, Executor, FakeAgent, duration, kill_policy, killing, shell, until};

const CHECKPOINT: [(&str, &str); 3] =
    [("MESOS_CHECKPOINT", "1"), ("MESOS_RECOVERY_TIMEOUT", "15mins"), ("MESOS_SUBSCRIPTION_BACKOFF_MAX", "10ms")];

/// Runs `task` until it ends by itself, and returns its terminal status and its output.
fn run(name: &str, task: v1::TaskInfo, end: v1::TaskState) -> (v1::TaskStatus, String) {
    let agent = FakeAgent::new();
    let mut executor = Executor::start("command", name, &agent.address, &[("ONLY", "agent"), ("BOTH", "agent")]);
    let (subscribe, mut stream) = agent.subscribed(killing());
    assert!(subscribe.unacknowledged_tasks.is_empty() && subscribe.unacknowledged_updates.is_empty());
    stream.launch(task);
    let last = agent.updates(&mut stream, &[TaskStarting, TaskRunning, end]);
    executor.ends();
    (last, executor.sandbox.text("stdout"))
}

/// Starts a task and waits until it has written `ready`.
fn ready(name: &str, task: v1::TaskInfo, framework: v1::FrameworkInfo) -> (FakeAgent, Executor, support::Subscription) {
    let agent = FakeAgent::new();
    let executor =
        Executor::start("command", name, &agent.address, &[("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", "60secs")]);
    let (_, mut stream) = agent.subscribed(framework);
    stream.launch(task);
    agent.updates(&mut stream, &[TaskStarting, TaskRunning]);
    until("the task to be ready", || executor.sandbox.text("stdout").contains("ready"));
    (agent, executor, stream)
}

const STUBBORN: &str = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done";

#[test]
fn ends_are_reported_in_the_words_of_mesos() {
    for (name, script, state, words) in [
        ("good", "true", TaskFinished, "Command exited with status 0"),
        ("bad", "exit 3", TaskFailed, "Command exited with status 3"),
        ("killed", "kill -9 $$", TaskFailed, "Command terminated with signal Killed"),
    ] {
        let (last, _) = run(name, shell("t", script), state);
        assert_eq!((last.message(), last.reason), (words, None));
    }
}

#[test]
fn what_a_task_sees() {
    let mut task = shell("t", "env; echo CWD=$(pwd); wc -c");
    let variable = |name: &str, value: &str| v1::environment::Variable {
        name: name.into(),
        value: Some(value.into()),
        ..Default::default()
    };
    let variables = vec![variable("BOTH", "task"), variable("ODD", "a 'b' $c")];
    task.command.as_mut().unwrap().environment = Some(v1::Environment { variables });
    let (_, text) = run("sees", task, TaskFinished);
    for line in ["ONLY=agent", "BOTH=task", "ODD=a 'b' $c", "MESOS_ALLOCATION_ROLE=dev", "MESOS_EXECUTOR_ID=E", "0"] {
        assert!(text.lines().any(|l| l == line), "no {line} in {text}");
    }
    assert!(text.contains("CWD=") && text.contains("tepui-executor-sees"), "{text}");
}

#[test]
fn programs_without_a_shell() {
    let mut task = shell("t", "printf");
    let command = task.command.as_mut().unwrap();
    command.shell = Some(false);
    command.arguments = ["printf", "%s|", "a  b", "$HOME"].map(str::to_owned).into();
    assert_eq!(run("argv", task, TaskFinished).1, "a  b|$HOME|");
}

#[test]
fn a_program_that_is_not_there() {
    let agent = FakeAgent::new();
    let mut executor = Executor::start("command", "missing", &agent.address, &[]);
    let (_, mut stream) = agent.subscribed(killing());
    let mut task = shell("t", "no-such-program-here");
    task.command.as_mut().unwrap().shell = Some(false);
    stream.launch(task);
    let last = agent.updates(&mut stream, &[TaskStarting, TaskFailed]);
    assert_eq!(last.message(), "Failed to execute 'no-such-program-here': No such file or directory (os error 2)");
    executor.ends();
}

#[test]
fn a_kill_asks_first() {
    let task = shell("t", "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
    let (agent, mut executor, mut stream) = ready("asks", task, killing());
    stream.kill("t", Some(Duration::from_secs(600)));
    let last = agent.updates(&mut stream, &[TaskKilling, TaskKilled]);
    assert_eq!(last.message(), "Command exited with status 0");
    executor.ends();
    assert!(executor.sandbox.text("stdout").contains("asked"));
}

#[test]
fn a_framework_that_does_not_know_killing() {
    let (agent, mut executor, mut stream) =
        ready("unknowing", shell("t", "echo ready; sleep 1000"), v1::FrameworkInfo::default());
    stream.kill("t", None);
    assert_eq!(agent.updates(&mut stream, &[TaskKilled]).message(), "Command terminated with signal Terminated");
    executor.ends();
}

#[test]
fn the_grace_period_is_left_and_then_over() {
    let grace = Duration::from_millis(700);
    let mut task = shell("t", STUBBORN);
    task.kill_policy = Some(kill_policy(grace));
    let (agent, mut executor, mut stream) = ready("grace", task, killing());
    let began = Instant::now();
    stream.kill("t", None);
    let last = agent.updates(&mut stream, &[TaskKilling, TaskKilled]);
    assert!(began.elapsed() >= grace, "forced too early");
    assert_eq!(last.message(), "Command terminated with signal Killed");
    executor.ends();
}

#[test]
fn a_later_kill_can_shorten_the_grace_period() {
    let (agent, mut executor, mut stream) = ready("shorten", shell("t", STUBBORN), killing());
    stream.kill("t", Some(Duration::from_secs(600)));
    agent.updates(&mut stream, &[TaskKilling]);
    until("the task to be asked", || executor.sandbox.text("stdout").contains("asked"));
    stream.kill("t", Some(Duration::ZERO));
    agent.updates(&mut stream, &[TaskKilled]);
    executor.ends();
}

#[test]
fn a_kill_ends_the_whole_tree() {
    let script =
        "sleep 1000 & echo $!; setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' & echo ready; wait";
    let (agent, mut executor, mut stream) = ready("tree", shell("t", script), killing());
    until("both children", || executor.sandbox.text("stdout").lines().count() == 3);
    let text = executor.sandbox.text("stdout");
    let pids: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(pids.len(), 2, "{text}");
    stream.kill("t", None);
    agent.updates(&mut stream, &[TaskKilling, TaskKilled]);
    executor.ends();
    until("the children to be gone", || pids.iter().all(|pid| containers::start_time(*pid).is_none()));
}

#[test]
fn what_a_task_leaves_in_the_background_ends_with_it() {
    // A daemon: it is not in the task's session, is not its child, and has none of its files open.
    let (_, text) = run("daemon", shell("t", "(setsid sleep 1000 >/dev/null 2>&1 & echo $!)"), TaskFinished);
    let pid: i32 = text.trim().parse().unwrap();
    until("the daemon to be gone", || containers::start_time(pid).is_none());
}

#[test]
fn a_task_may_take_only_so_long() {
    let mut task = shell("t", "exec sleep 1000");
    task.max_completion_time = Some(duration(Duration::from_millis(50)));
    let (last, _) = run("overdue", task, TaskFailed);
    assert_eq!(last.reason(), v1::task_status::Reason::MaxCompletionTimeReached);
}

#[test]
fn shutdown_kills_the_task() {
    let (agent, mut executor, mut stream) = ready("shutdown", shell("t", "echo ready; exec sleep 1000"), killing());
    stream.shutdown();
    agent.updates(&mut stream, &[TaskKilling, TaskKilled]);
    executor.ends();
}

#[test]
fn nothing_to_do_is_no_reason_to_stay() {
    for (name, ask) in [
        ("none", (|s| s.shutdown()) as fn(&mut support::Subscription)),
        ("unlaunched", |s| s.kill("t", None)),
        ("group", |s| s.launch_group(vec![shell("t", "true")])),
    ] {
        let agent = FakeAgent::new();
        let mut executor = Executor::start("command", name, &agent.address, &[]);
        let (_, mut stream) = agent.subscribed(killing());
        ask(&mut stream);
        executor.ends();
    }
}

#[test]
fn a_second_task_fails() {
    let (agent, mut executor, mut stream) = ready("second", shell("t", "echo ready; exec sleep 1000"), killing());
    stream.launch(shell("u", "true"));
    let status = agent.updates(&mut stream, &[TaskFailed]);
    assert_eq!(status.task_id.value, "u");
    stream.kill("u", None);
    stream.kill("t", None);
    assert_eq!(agent.updates(&mut stream, &[TaskKilling, TaskKilled]).task_id.value, "t");
    executor.ends();
}

#[test]
fn without_checkpoints_a_lost_agent_is_the_end() {
    let (agent, mut executor, _stream) = ready("lost", shell("t", "echo $$ ready; exec sleep 1000"), killing());
    let text = executor.sandbox.text("stdout");
    let pid: i32 = text.split_whitespace().next().unwrap().parse().unwrap();
    agent.drop_connections();
    executor.ends();
    until("the task to be gone", || containers::start_time(pid).is_none());
}

#[test]
fn an_executor_that_is_killed_takes_its_task_along() {
    let (_agent, executor, _stream) = ready("crash", shell("t", "echo $$ ready; exec sleep 1000"), killing());
    let text = executor.sandbox.text("stdout");
    let pid: i32 = text.split_whitespace().next().unwrap().parse().unwrap();
    drop(executor);
    until("the task to be gone", || containers::start_time(pid).is_none());
}

#[test]
fn an_agent_that_comes_back_receives_all_unacknowledged_updates() {
    let agent = FakeAgent::new();
    let mut executor = Executor::start("command", "back", &agent.address, &CHECKPOINT);
    let (_, mut stream) = agent.subscribed(killing());
    let task = shell("t", "while [ ! -e go ]; do sleep 0.02; done");
    stream.launch(task.clone());
    let starting = agent.update();
    let running = agent.update();
    agent.drop_connections();
    let (subscribe, mut stream) = agent.subscribed(killing());
    assert_eq!(subscribe.unacknowledged_tasks, [task]);
    let statuses: Vec<_> = subscribe.unacknowledged_updates.iter().map(|update| &update.status).collect();
    assert_eq!(statuses, [&starting, &running]);
    stream.acknowledge(&starting);
    agent.drop_connections();
    let (subscribe, mut stream) = agent.subscribed(killing());
    assert!(subscribe.unacknowledged_tasks.is_empty());
    assert_eq!(subscribe.unacknowledged_updates.len(), 1);
    stream.acknowledge(&running);
    std::fs::write(executor.sandbox.0.join("go"), "").unwrap();
    // The final update arrives, is not acknowledged, and waits.
    let finished = agent.update();
    assert_eq!(finished.state(), TaskFinished);
    agent.drop_connections();
    let (subscribe, mut stream) = agent.subscribed(killing());
    assert_eq!(subscribe.unacknowledged_updates[0].status, finished);
    stream.acknowledge(&finished);
    executor.ends();
}

#[test]
fn an_agent_that_never_comes_back_is_given_up() {
    let agent = FakeAgent::new();
    let recovery = [CHECKPOINT[0], ("MESOS_RECOVERY_TIMEOUT", "200ms"), CHECKPOINT[2]];
    let mut executor = Executor::start("command", "gone", &agent.address, &recovery);
    let (_, mut stream) = agent.subscribed(killing());
    stream.launch(shell("t", "exec sleep 1000"));
    agent.updates(&mut stream, &[TaskStarting, TaskRunning]);
    agent.drop_connections();
    // SUBSCRIBE is repeated and not answered.
    executor.ends();
}

#[test]
fn subscription_is_repeated_while_the_agent_is_not_ready() {
    let agent = FakeAgent::new();
    let mut executor = Executor::start("command", "again", &agent.address, &CHECKPOINT);
    for _ in 0..2 {
        agent.request().answer("503 Service Unavailable", b"Agent has not finished recovery");
    }
    agent.request().answer("409 Conflict", b"Its own connection lives");
    let (_, mut stream) = agent.subscribed(killing());
    stream.launch(shell("t", "true"));
    agent.updates(&mut stream, &[TaskStarting, TaskRunning, TaskFinished]);
    executor.ends();
}

#[test]
fn an_update_that_is_too_early_is_sent_again() {
    let agent = FakeAgent::new();
    let mut executor = Executor::start("command", "early", &agent.address, &CHECKPOINT);
    let (_, mut stream) = agent.subscribed(killing());
    stream.launch(shell("t", "while [ ! -e go ]; do sleep 0.02; done"));
    agent.updates(&mut stream, &[TaskStarting, TaskRunning]);
    std::fs::write(executor.sandbox.0.join("go"), "").unwrap();
    // Other executors of the agent are still missing: it accepts only SUBSCRIBE.
    let update = agent.request();
    let status = update.executor_call().update.unwrap().status;
    update.answer("503 Service Unavailable", b"Agent has not finished recovery");
    let (subscribe, mut stream) = agent.subscribed(killing());
    assert_eq!(subscribe.unacknowledged_updates[0].status, status);
    stream.acknowledge(&status);
    executor.ends();
}

#[test]
fn an_agent_that_does_not_know_us_is_the_end() {
    let agent = FakeAgent::new();
    let mut executor = Executor::start("command", "stranger", &agent.address, &CHECKPOINT);
    agent.request().answer("400 Bad Request", b"Executor cannot be found");
    executor.ends();
    assert!(executor.sandbox.text("stderr").contains("Executor cannot be found"));
}

#[test]
fn over_a_unix_socket_with_a_token() {
    let directory = Directory::new("unix");
    let path = directory.0.join("agent.sock");
    let agent = FakeAgent::on_unix_socket(&path);
    let more = [("MESOS_DOMAIN_SOCKET", path.to_str().unwrap()), ("MESOS_EXECUTOR_AUTHENTICATION_TOKEN", "the-token")];
    let mut executor = Executor::start("command", "unix-life", "127.0.0.1:1", &more);
    let request = agent.request();
    assert!(request.head.contains("Authorization: Bearer the-token\r\n"), "{}", request.head);
    request.answer("400 Bad Request", b"");
    executor.ends();
    let mut executor = Executor::start("command", "unix-life", "127.0.0.1:1", &more);
    let (_, mut stream) = agent.subscribed(killing());
    stream.launch(shell("t", "env"));
    agent.updates(&mut stream, &[TaskStarting, TaskRunning, TaskFinished]);
    executor.ends();
    assert!(!executor.sandbox.text("stdout").contains("the-token"));
}

#[test]
fn an_environment_that_is_no_agents() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tepui-executor")).arg("command").env_clear().output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(words, "The executor cannot start: Expecting 'MESOS_FRAMEWORK_ID' to be set in the environment\n");
}
