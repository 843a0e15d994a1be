//! Tests the executor's driver against a fake agent, which follows the test's instructions and loses its connections.
//!
//! The fake agent records calls and sends the events that it is given. It has no containers and no master.
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;
use tepui_sdk::base::Time;
use tepui_sdk::driver::executor::run_in;
use tepui_sdk::executor::{Calls, Ending, Environment, Event, Executor, Recovery};
use tepui_sdk::v1::executor::{self, Call, call, event, event::Type};
use tepui_sdk::v1::{AgentInfo, ExecutorId, ExecutorInfo, FrameworkId, FrameworkInfo, TaskId, TaskInfo, TaskState};
use tokio::sync::mpsc;
use wire::http::stream::{self, StreamHandle};
use wire::http::{Handler, PROTOBUF, Request, Response, Running, Server, StatusCode};
use wire::libprocess::NoMessages;

struct Agent {
    calls: mpsc::UnboundedSender<Call>,
    stream: Mutex<Option<StreamHandle>>,
    /// Number of further calls that are answered as by a recovering agent.
    recovering: Mutex<u32>,
}

impl Handler for Answering {
    async fn handle(&self, request: Request) -> Response {
        let agent = &self.0;
        assert_eq!(request.path, "/slave(1)/api/v1/executor");
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
        let mut recovering = agent.recovering.lock().unwrap();
        if *recovering > 0 {
            *recovering -= 1;
            return Response::text(StatusCode::SERVICE_UNAVAILABLE, "Agent has not finished recovery");
        }
        let call = Call::decode(request.body.full()).unwrap();
        let is_subscribe = call.r#type() == call::Type::Subscribe;
        agent.calls.send(call).unwrap();
        if !is_subscribe {
            return Response::accepted();
        }
        let (handle, response) = stream::open(PROTOBUF, 1 << 20);
        let part = event::Subscribed {
            executor_info: ExecutorInfo::default(),
            framework_info: FrameworkInfo::default(),
            agent_info: AgentInfo::default(),
            container_id: None,
        };
        send(&handle, &executor::Event { subscribed: Some(part), ..wire(Type::Subscribed) });
        *agent.stream.lock().unwrap() = Some(handle);
        response
    }
}

struct Answering(Arc<Agent>);

fn wire(kind: Type) -> executor::Event {
    executor::Event { r#type: Some(kind as i32), ..Default::default() }
}

fn send(handle: &StreamHandle, event: &executor::Event) {
    handle.send(&event.encode_to_vec()).unwrap();
}

fn start() -> (Running, Arc<Agent>, mpsc::UnboundedReceiver<Call>) {
    let (sender, calls) = mpsc::unbounded_channel();
    let agent = Arc::new(Agent { calls: sender, stream: Mutex::default(), recovering: Mutex::new(0) });
    let server = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), wire::Limits::default()).unwrap();
    let running = server.serve(Arc::new(Answering(agent.clone())), Arc::new(NoMessages));
    (running, agent, calls)
}

fn environment(address: SocketAddr) -> Environment {
    Environment {
        framework_id: FrameworkId { value: "F".into() },
        executor_id: ExecutorId { value: "E".into() },
        endpoint: address.to_string(),
        recovery: Some(Recovery { timeout: Duration::from_secs(60), backoff_max: Duration::from_millis(10) }),
        shutdown_grace: Duration::from_secs(5),
        token: Some("secret".into()),
    }
}

/// An executor that reports every task as running, and stops at a shutdown.
struct Runs;

impl Executor for Runs {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        match event {
            Event::Launch(tasks) => tasks.iter().for_each(|t| calls.update(&t.task_id, TaskState::TaskRunning)),
            Event::Shutdown { .. } => calls.stop(),
            _ => {}
        }
    }
}

#[tokio::test]
async fn lives_through_an_agents_restart_and_ends_with_its_shutdown() {
    let (running, agent, mut calls) = start();
    let scenario = async {
        assert_eq!(calls.recv().await.unwrap().r#type(), call::Type::Subscribe);
        let task = TaskInfo { task_id: TaskId { value: "t".into() }, ..Default::default() };
        let launch = executor::Event { launch: Some(event::Launch { task }), ..wire(Type::Launch) };
        send(agent.stream.lock().unwrap().as_ref().unwrap(), &launch);
        let update = calls.recv().await.unwrap().update.unwrap();
        assert_eq!(update.status.state(), TaskState::TaskRunning);
        // The agent disconnects before it acknowledges the update, and recovers for a while.
        *agent.recovering.lock().unwrap() = 3;
        agent.stream.lock().unwrap().take().unwrap().abort();
        let again = calls.recv().await.unwrap().subscribe.unwrap();
        assert_eq!(again.unacknowledged_updates, std::slice::from_ref(&update));
        assert_eq!(again.unacknowledged_tasks[0].task_id.value, "t");
        let part = event::Acknowledged { task_id: update.status.task_id.clone(), uuid: update.status.uuid().to_vec() };
        let stream = agent.stream.lock().unwrap();
        send(stream.as_ref().unwrap(), &executor::Event { acknowledged: Some(part), ..wire(Type::Acknowledged) });
        send(stream.as_ref().unwrap(), &wire(Type::Shutdown));
    };
    let both = async { tokio::join!(run_in(Runs, environment(running.address()), Arc::default()), scenario) };
    let (finished, ()) = tokio::time::timeout(Duration::from_secs(180), both).await.expect("the test hangs");
    assert_eq!(finished.unwrap().ending, Ending::Stopped);
    running.stop().await;
}
