//! Tests the default executor.

use std::time::Duration;

use prost::Message;
use protos::mesos::v1;
use protos::mesos::v1::TaskState::{TaskFailed, TaskFinished, TaskKilled, TaskKilling, TaskRunning, TaskStarting};
use protos::mesos::v1::agent::{call, response};

use crate::support::{Executor, FakeAgent, Request, Subscription, duration, kill_policy, killing, shell};

const CHECKPOINT: [(&str, &str); 3] =
    [("MESOS_CHECKPOINT", "1"), ("MESOS_RECOVERY_TIMEOUT", "15mins"), ("MESOS_SUBSCRIPTION_BACKOFF_MAX", "10ms")];

/// Returns the response to WAIT for a process that ended with this status of `wait(2)`.
fn waited(exit_status: i32) -> Vec<u8> {
    let waited = response::WaitNestedContainer { exit_status: Some(exit_status), ..Default::default() };
    let r#type = Some(response::Type::WaitNestedContainer as i32);
    v1::agent::Response { r#type, wait_nested_container: Some(waited), ..Default::default() }.encode_to_vec()
}

/// A pod and its fake agent.
struct Pod {
    agent: FakeAgent,
    executor: Executor,
    stream: Subscription,
}

/// A running task of a pod: its container, and the WAIT call that must be answered.
struct Running {
    container: v1::ContainerId,
    wait: Request,
}

impl Pod {
    fn new(name: &str, more: &[(&str, &str)]) -> Pod {
        let agent = FakeAgent::new();
        let executor = Executor::start("default", name, &agent.address, more);
        let (_, stream) = agent.subscribed(killing());
        Pod { agent, executor, stream }
    }

    fn update(&mut self, task: &str, state: v1::TaskState) -> v1::TaskStatus {
        let status = self.agent.updates(&mut self.stream, &[state]);
        assert_eq!(status.task_id.value, task, "{status:?}");
        status
    }

    /// Launches a group of tasks; every launch succeeds.
    fn runs(&mut self, tasks: &[v1::TaskInfo]) -> Vec<Running> {
        self.stream.launch_group(tasks.to_vec());
        for task in tasks {
            self.update(&task.task_id.value, TaskStarting);
        }
        let mut launches: Vec<Request> = tasks.iter().map(|_| self.agent.agent_request()).collect();
        // The order of connections is arbitrary; names identify the launches.
        launches.sort_by_key(|launch| name_of(&launch.agent_call().launch_container.unwrap()));
        launches.into_iter().zip(tasks).map(|(launch, task)| self.run(launch, task)).collect()
    }

    fn run(&mut self, launch: Request, task: &v1::TaskInfo) -> Running {
        let call = launch.agent_call();
        assert_eq!(call.r#type(), call::Type::LaunchContainer);
        let container = call.launch_container.unwrap().container_id;
        assert_eq!(container.parent.as_ref().unwrap().value, "own");
        launch.answer("200 OK", b"");
        let status = self.update(&task.task_id.value, TaskRunning);
        assert_eq!(status.container_status.as_ref().unwrap().container_id.as_ref(), Some(&container));
        let wait = self.agent.agent_request();
        assert_eq!(wait.agent_call().wait_nested_container.unwrap().container_id, container);
        Running { container, wait }
    }

    /// Receives the request for a signal to `task`.
    fn signalled(&mut self, task: &Running, signal: i32) -> Request {
        let request = self.agent.agent_request();
        let kill = request.agent_call().kill_nested_container.unwrap();
        assert_eq!((&kill.container_id, kill.signal), (&task.container, Some(signal)));
        request
    }

    /// Receives requests for signals to `task` and returns the signals. Their order is arbitrary, as each has a
    /// connection of its own.
    fn signals(&mut self, task: &Running, number: usize) -> Vec<i32> {
        let mut signals: Vec<i32> = (0..number)
            .map(|_| {
                let request = self.agent.agent_request();
                let kill = request.agent_call().kill_nested_container.unwrap();
                assert_eq!(kill.container_id, task.container);
                request.answer("200 OK", b"");
                kill.signal.unwrap()
            })
            .collect();
        signals.sort_unstable();
        signals
    }

    /// Receives the update that `task` is being killed, and the request for its SIGTERM.
    fn is_killed(&mut self, name: &str, task: &Running) {
        self.update(name, TaskKilling);
        self.signalled(task, 15).answer("200 OK", b"");
    }
}

/// Returns the script of a launched command, in which the tests' tasks differ.
fn name_of(launch: &call::LaunchContainer) -> String {
    launch.command.as_ref().unwrap().value.clone().unwrap()
}

#[test]
fn a_pod_that_finishes() {
    let mut pod = Pod::new("pod-good", &[]);
    let mut tasks = pod.runs(&[shell("t1", "1"), shell("t2", "2")]);
    for (name, task) in [("t1", &tasks[0]), ("t2", &tasks[1])] {
        let link = pod.executor.sandbox.0.join("tasks").join(name);
        let target = std::fs::read_link(link).unwrap();
        assert_eq!(target.to_str().unwrap(), format!("../containers/{}", task.container.value));
    }
    tasks.pop().unwrap().wait.answer("200 OK", &waited(0));
    assert_eq!(pod.update("t2", TaskFinished).message(), "Command exited with status 0");
    tasks.pop().unwrap().wait.answer("200 OK", &waited(0));
    pod.update("t1", TaskFinished);
    pod.executor.ends();
}

#[test]
fn what_fails_takes_its_group_along() {
    let mut pod = Pod::new("pod-fails", &[]);
    let mut other = pod.runs(&[shell("t0", "0")]);
    let mut tasks = pod.runs(&[shell("t1", "1"), shell("t2", "2")]);
    let second = tasks.pop().unwrap();
    tasks.pop().unwrap().wait.answer("200 OK", &waited(0x400));
    assert_eq!(pod.update("t1", TaskFailed).message(), "Command exited with status 4");
    pod.is_killed("t2", &second);
    second.wait.answer("200 OK", &waited(15));
    assert_eq!(pod.update("t2", TaskKilled).message(), "Command terminated with signal Terminated");
    // The other group keeps running.
    other.pop().unwrap().wait.answer("200 OK", &waited(0));
    pod.update("t0", TaskFinished);
    pod.executor.ends();
}

#[test]
fn a_kill_is_forced_after_the_grace_period() {
    let mut pod = Pod::new("pod-kill", &[]);
    let mut task = shell("t1", "1");
    task.kill_policy = Some(kill_policy(Duration::from_secs(600)));
    let running = pod.runs(&[task]).pop().unwrap();
    pod.stream.kill("t1", Some(Duration::from_millis(20)));
    // A further kill changes nothing.
    pod.stream.kill("t1", Some(Duration::ZERO));
    pod.update("t1", TaskKilling);
    assert_eq!(pod.signals(&running, 2), [9, 15]);
    running.wait.answer("200 OK", &waited(9));
    pod.update("t1", TaskKilled);
    pod.executor.ends();
}

#[test]
fn a_launch_that_is_refused() {
    let mut pod = Pod::new("pod-refused", &[]);
    pod.stream.launch_group(vec![shell("t1", "1")]);
    pod.update("t1", TaskStarting);
    pod.agent.agent_request().answer("400 Bad Request", b"The provided ContainerInfo is not supported");
    let status = pod.update("t1", TaskFailed);
    assert_eq!(status.message(), "The provided ContainerInfo is not supported");
    pod.executor.ends();
}

#[test]
fn shutdown_kills_every_task() {
    let mut pod = Pod::new("pod-shutdown", &[("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", "60secs")]);
    let running = pod.runs(&[shell("t1", "1")]).pop().unwrap();
    pod.stream.shutdown();
    pod.is_killed("t1", &running);
    running.wait.answer("200 OK", &waited(0));
    pod.update("t1", TaskKilled);
    pod.executor.ends();
}

#[test]
fn a_task_may_take_only_so_long() {
    let mut pod = Pod::new("pod-overdue", &[]);
    let mut task = shell("t1", "1");
    task.max_completion_time = Some(duration(Duration::from_millis(20)));
    pod.stream.launch_group(vec![task]);
    pod.update("t1", TaskStarting);
    pod.agent.agent_request().answer("200 OK", b"");
    pod.update("t1", TaskRunning);
    // The wait and both signals arrive in quick succession, over connections of their own.
    let (mut wait, mut signals) = (None, Vec::new());
    for _ in 0..3 {
        let request = pod.agent.agent_request();
        match request.agent_call().kill_nested_container {
            Some(kill) => {
                signals.extend(kill.signal);
                request.answer("200 OK", b"");
            }
            None => wait = Some(request),
        }
    }
    signals.sort_unstable();
    assert_eq!(signals, [9, 15]);
    wait.unwrap().answer("200 OK", &waited(9));
    let status = pod.update("t1", TaskFailed);
    assert_eq!(status.reason(), v1::task_status::Reason::MaxCompletionTimeReached);
    pod.executor.ends();
}

#[test]
fn what_the_agent_knows_better_is_reported() {
    let mut pod = Pod::new("pod-limit", &[]);
    let running = pod.runs(&[shell("t1", "1")]).pop().unwrap();
    let limitation =
        v1::TaskResourceLimitation { resources: vec![v1::Resource { name: "mem".into(), ..Default::default() }] };
    let waited = response::WaitNestedContainer {
        exit_status: Some(9),
        state: Some(TaskFailed as i32),
        reason: Some(v1::task_status::Reason::ContainerLimitationMemory as i32),
        limitation: Some(limitation.clone()),
        message: Some("too much".into()),
    };
    let answer = v1::agent::Response { wait_nested_container: Some(waited), ..Default::default() };
    running.wait.answer("200 OK", &answer.encode_to_vec());
    let status = pod.update("t1", TaskFailed);
    assert_eq!(status.message(), "Command terminated with signal Killed: too much");
    assert_eq!(status.reason(), v1::task_status::Reason::ContainerLimitationMemory);
    assert_eq!(status.limitation, Some(limitation));
    pod.executor.ends();
}

#[test]
fn after_an_agents_restart_its_containers_are_waited_for_again() {
    let mut pod = Pod::new("pod-restart", &CHECKPOINT);
    let tasks = pod.runs(&[shell("t1", "1"), shell("t2", "2")]);
    pod.agent.drop_connections();
    pod.stream = pod.agent.subscribed(killing()).1;
    // Requests are answered one after the other; the agent still recovers for the first.
    let first = pod.agent.agent_request();
    let second = pod.agent.agent_request();
    first.answer("503 Service Unavailable", b"Agent has not finished recovery");
    let first = pod.agent.agent_request();
    let mut waits = [first, second];
    waits.sort_by_key(|wait| wait.agent_call().wait_nested_container.unwrap().container_id != tasks[0].container);
    let [first, second] = waits;
    assert_eq!(second.agent_call().wait_nested_container.unwrap().container_id, tasks[1].container);
    first.answer("200 OK", &waited(0));
    pod.update("t1", TaskFinished);
    second.answer("404 Not Found", b"Container cannot be found");
    assert_eq!(pod.update("t2", TaskFailed).message(), "Unable to retrieve exit status of child container");
    pod.executor.ends();
}

#[test]
fn a_single_task_is_not_for_a_pod() {
    let mut pod = Pod::new("pod-single", &[]);
    pod.stream.launch(shell("t1", "1"));
    pod.executor.ends();
}

#[test]
fn without_an_agent_there_is_no_pod() {
    let mut pod = Pod::new("pod-alone", &[]);
    let _running = pod.runs(&[shell("t1", "1")]);
    pod.agent.drop_connections();
    pod.executor.ends();
}

/// Returns the next request to the agent, which must be about the session of a check.
fn of_session(pod: &Pod, kind: call::Type) -> (Request, v1::agent::Call) {
    let request = pod.agent.agent_request();
    let call = request.agent_call();
    assert_eq!(call.r#type(), kind);
    (request, call)
}

/// Returns the next request of this kind. Launches of sessions that come before it are kept, unanswered.
fn past_launches(pod: &Pod, kind: call::Type, launches: &mut Vec<Request>) -> (Request, v1::agent::Call) {
    loop {
        let request = pod.agent.agent_request();
        let call = request.agent_call();
        if call.r#type() == kind {
            return (request, call);
        }
        assert_eq!(call.r#type(), call::Type::LaunchNestedContainerSession);
        launches.push(request);
    }
}

#[test]
fn checks_of_tasks_with_containers_are_sessions() {
    let mut pod = Pod::new("pod-session", &[]);
    let mut task = shell("t1", "1");
    task.container = Some(Box::new(v1::ContainerInfo { r#type: 2, ..Default::default() }));
    let command = v1::CommandInfo { value: Some("probe".into()), ..Default::default() };
    task.check = Some(Box::new(v1::CheckInfo {
        r#type: Some(v1::check_info::Type::Command as i32),
        command: Some(v1::check_info::Command { command }),
        // The delay lets the call that waits for the task arrive first.
        delay_seconds: Some(1.0),
        interval_seconds: Some(0.02),
        timeout_seconds: Some(5.0),
        ..Default::default()
    }));
    let running = pod.runs(&[task]).pop().unwrap();
    let (request, launch) = of_session(&pod, call::Type::LaunchNestedContainerSession);
    let launch = launch.launch_nested_container_session.unwrap();
    assert_eq!(launch.container_id.parent.as_deref(), Some(&running.container));
    assert_eq!(launch.command.unwrap().value(), "probe");
    request.answer("200 OK", b"");
    let (request, wait) = of_session(&pod, call::Type::WaitNestedContainer);
    assert_eq!(wait.wait_nested_container.unwrap().container_id, launch.container_id);
    request.answer("200 OK", &waited(5 << 8));
    let (request, remove) = of_session(&pod, call::Type::RemoveNestedContainer);
    assert_eq!(remove.remove_nested_container.unwrap().container_id, launch.container_id);
    request.answer("200 OK", b"");
    let status = pod.update("t1", TaskRunning);
    assert_eq!(status.check_status.unwrap().command.unwrap().exit_code, Some(5));
    // The next probe hangs, and is ended. Meanwhile the probe after it may start.
    let (hanging, launch) = of_session(&pod, call::Type::LaunchNestedContainerSession);
    let id = launch.launch_nested_container_session.unwrap().container_id;
    let mut launches = vec![hanging];
    let (request, kill) = past_launches(&pod, call::Type::KillNestedContainer, &mut launches);
    let kill = kill.kill_nested_container.unwrap();
    assert_eq!((kill.container_id, kill.signal), (id.clone(), Some(9)));
    request.answer("200 OK", b"");
    let (request, wait) = past_launches(&pod, call::Type::WaitNestedContainer, &mut launches);
    assert_eq!(wait.wait_nested_container.unwrap().container_id, id);
    request.answer("200 OK", &waited(9));
    let (request, remove) = past_launches(&pod, call::Type::RemoveNestedContainer, &mut launches);
    assert_eq!(remove.remove_nested_container.unwrap().container_id, id);
    request.answer("200 OK", b"");
    drop(launches);
    let status = pod.update("t1", TaskRunning);
    assert_eq!(status.check_status.unwrap().command.unwrap().exit_code, None);
    running.wait.answer("200 OK", &waited(0));
    pod.update("t1", TaskFinished);
    pod.executor.ends();
}
