//! Tests the HTTP API of a framework that has found no master yet: valid and refused requests, and reports.
//!
//! The tests of the whole program cover the behaviour on a cluster.
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};

use binpack::Knobs;
use binpack::service::{self, MEASURE_EVERY, Options, Service};
use jobs::service::Handle as _;
use sdk::state::{Change, Memory, State, StateError};
use sdk::v1::FrameworkInfo;
use sdk::{AskError, Ending};
use serde_json::Value;
use wire::client::Client;
use wire::http::Method;

async fn start() -> Service {
    start_with(None).await
}

async fn start_with(state: Option<Box<dyn State>>) -> Service {
    // Nothing listens on this port, so there is no master.
    let framework = FrameworkInfo { user: "u".into(), name: "binpack".into(), ..Default::default() };
    let mut driver = sdk::driver::Options::new("127.0.0.1:1", framework).unwrap();
    driver.state = state;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    service::start(Options { driver, listen, knobs: Knobs::default(), measure_every: MEASURE_EVERY }).await.unwrap()
}

struct Api(Client);

impl Api {
    fn of(service: &Service) -> Api {
        Api(Client::new(&service.address().to_string()).unwrap())
    }

    async fn ask(&mut self, method: Method, path: &str, content_type: &str, body: &str) -> (u16, Value) {
        let headers = [("Content-Type", content_type)];
        let reply = self.0.request(method, path, &headers, body.to_owned().into()).await.unwrap();
        (reply.status.as_u16(), serde_json::from_slice(&reply.body).unwrap())
    }

    async fn get(&mut self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, "application/json", "").await
    }

    async fn post(&mut self, path: &str, body: &str) -> (u16, Value) {
        self.ask(Method::POST, path, "application/json", body).await
    }
}

const TOML: &str = "[[job]]\nname = 'web'\nkind = 'service'\ncount = 2\ncommand = 'x'\n";

#[tokio::test]
async fn jobs_are_taken_shown_changed_and_stopped() {
    let service = start().await;
    let mut api = Api::of(&service);
    let (status, answer) = api.ask(Method::POST, "/v1/jobs", "application/toml", TOML).await;
    assert_eq!((status, &answer["submitted"][0]["taken"]), (200, &Value::from("new")), "{answer}");
    let (_, view) = api.get("/v1/jobs/web").await;
    assert_eq!(view["summary"]["tasks"]["waiting"], 2);
    assert_eq!(view["why"][0], "there is no connection to a master");
    assert_eq!(view["versions"][0]["job"]["need"]["cpus"], 0.1);
    assert_eq!(api.post("/v1/jobs/web/scale", r#"{"count": 5}"#).await.0, 200);
    assert_eq!(api.get("/v1/jobs").await.1["jobs"][0]["count"], 5);
    assert_eq!(api.post("/v1/jobs/web/kill", r#"{"tasks": [0], "scale": true}"#).await.0, 200);
    assert_eq!(api.get("/v1/status").await.1["tasks"]["waiting"], 4);
    assert_eq!(api.post("/v1/jobs/web/restart", "").await.0, 200);
    assert_eq!(api.get("/v1/jobs/web").await.1["summary"]["version"], 2);
    assert_eq!(api.ask(Method::DELETE, "/v1/jobs/web", "", "").await.0, 200);
    assert_eq!(api.get("/v1/jobs/web").await.1["summary"]["state"], "stopped");
    assert_eq!(api.ask(Method::DELETE, "/v1/jobs/web?forget=true", "", "").await.0, 200);
    assert_eq!(api.get("/v1/jobs/web").await.0, 404);
    assert_eq!(service.stop(true).await, Ending::Stopped);
}

#[tokio::test]
async fn the_secret_of_a_gang_is_not_shown() {
    let service = start().await;
    let mut api = Api::of(&service);
    let gang = r#"{"name": "g", "kind": "gang", "count": 2, "command": "x", "env": {"A": "b"}}"#;
    assert_eq!(api.post("/v1/jobs", gang).await.0, 200);
    let (_, view) = api.get("/v1/jobs/g").await;
    assert_eq!(view["versions"][0]["job"]["env"], serde_json::json!({"A": "b"}));
    assert!(!view.to_string().contains("TEPUI_TOKEN"), "{view}");
    service.stop(true).await;
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let service = start().await;
    let mut api = Api::of(&service);
    let wrong = "{\n \"name\": \"a\",\n \"command\": \"x\",\n \"cpus\": 0\n}";
    let (status, answer) = api.post("/v1/jobs?file=jobs.json", wrong).await;
    assert_eq!(status, 400);
    let fault = &answer["faults"][0];
    assert_eq!((&fault["file"], &fault["line"], &fault["column"]), (&"jobs.json".into(), &4.into(), &10.into()));
    assert_eq!(answer["error"], "jobs.json:4:10: cpus must be above 0, 0.001 at least, and this is 0");
    assert_eq!(api.get("/v1/jobs").await.1["jobs"], Value::Array(Vec::new()), "nothing was taken");
    assert_eq!(api.ask(Method::POST, "/v1/jobs", "text/yaml", "a: b").await.0, 415);
    assert_eq!(api.post("/v1/jobs/nobody/restart", "").await.0, 404);
    assert_eq!(api.post("/v1/jobs/nobody/scale", r#"{"number": 1}"#).await.0, 400);
    assert_eq!(api.post("/v1/status", "").await.0, 405);
    assert_eq!(api.get("/v2/jobs").await.0, 404);
    let batch = r#"{"name": "b", "command": "x"}"#;
    assert_eq!(api.post("/v1/jobs", batch).await.0, 200);
    let (status, answer) = api.post("/v1/jobs", batch).await;
    assert_eq!(status, 409);
    assert!(answer["error"].as_str().unwrap().starts_with("a job 'b' exists and has not ended"), "{answer}");
    assert!(api.get("/").await.1["routes"].as_array().unwrap().len() > 5);
    service.stop(true).await;
}

#[tokio::test]
async fn events_are_streamed() {
    let service = start().await;
    let mut follower = service.handle().follow();
    let mut stream = tokio::net::TcpStream::connect(service.address()).await.unwrap();
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut said = String::new();
    let mut buffer = [0; 4096];
    // The head of the response arrives before any event.
    while !said.contains("\r\n\r\n") {
        let read = stream.read(&mut buffer).await.unwrap();
        said.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    assert!(said.contains("text/event-stream"), "{said}");
    Api::of(&service).ask(Method::POST, "/v1/jobs", "application/toml", TOML).await;
    while !said.contains("event: submitted\ndata: {") {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "{said}");
        said.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    assert!(follower.next().await.unwrap().is_some());
}

/// A store that writes when the test permits it, and fails when the test requests it.
#[derive(Debug)]
struct Slow {
    memory: Memory,
    writing: std::sync::mpsc::Sender<()>,
    may_write: std::sync::mpsc::Receiver<bool>,
}

impl State for Slow {
    fn load(&mut self) -> Result<std::collections::BTreeMap<String, Vec<u8>>, StateError> {
        self.memory.load()
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StateError> {
        self.writing.send(()).unwrap();
        match self.may_write.recv().unwrap_or(true) {
            true => self.memory.commit(changes),
            false => Err(StateError { action: "write", place: "disk".into(), source: "it is full".into() }),
        }
    }
}

#[tokio::test]
async fn a_job_is_acknowledged_when_it_is_on_disk() {
    let (writing, is_writing) = std::sync::mpsc::channel();
    let (write, may_write) = std::sync::mpsc::channel();
    let memory = Memory::default();
    let service = start_with(Some(Box::new(Slow { memory: memory.clone(), writing, may_write }))).await;
    let submit = |name: &'static str| {
        let handle = service.handle().clone();
        let jobs = binpack::job::read("j", &format!("name = '{name}'\ncommand = 'x'"), binpack::job::Syntax::Toml);
        tokio::spawn(async move { handle.submit(jobs.unwrap()).await })
    };
    let first = submit("first");
    let is_writing =
        tokio::task::spawn_blocking(move || is_writing.recv().map(|()| is_writing)).await.unwrap().unwrap();
    assert!(!first.is_finished(), "it is not written yet");
    write.send(true).unwrap();
    assert_eq!(first.await.unwrap().unwrap()[0].name, "first");
    let kept = memory.clone().load().unwrap();
    assert!(kept.values().any(|value| String::from_utf8_lossy(value).contains("\"name\":\"first\"")), "{kept:?}");
    // A request whose state cannot be written is not fulfilled, and not reported as fulfilled.
    let second = submit("second");
    tokio::task::spawn_blocking(move || is_writing.recv()).await.unwrap().unwrap();
    write.send(false).unwrap();
    let refused = second.await.unwrap().unwrap_err();
    assert!(matches!(refused, binpack::service::Error::Ask(AskError::Gone)), "{refused:?}");
}

#[tokio::test]
async fn damaged_state_ends_it_with_what_to_do() {
    let mut memory = Memory::default();
    memory.commit(&[Change::set("own/job/00000000000000000001", b"{".to_vec())]).unwrap();
    let mut service = start_with(Some(Box::new(memory))).await;
    let ending = service.wait().await;
    let Ending::State(why) = ending else { panic!("{ending:?}") };
    assert!(why.contains("cannot be read") && why.contains("restore a copy"), "{why}");
}

#[tokio::test]
async fn a_deployment_that_was_not_recorded_is_rolled_back_or_refused() {
    let memory = Memory::default();
    let service = start_with(Some(Box::new(memory.clone()))).await;
    let mut api = Api::of(&service);
    for (id, cmd) in [("/old", "one"), ("/old", "two"), ("/new", "x")] {
        let app = format!(r#"{{"id": "{id}", "cmd": "{cmd}"}}"#);
        assert!(api.ask(Method::PUT, &format!("/v2/apps{id}?force=true"), "application/json", &app).await.0 < 300);
    }
    assert_eq!(service.stop(false).await, Ending::Stopped);
    // The restarted process has no notes of deployments, and yet both continue.
    let service = start_with(Some(Box::new(memory))).await;
    let mut api = Api::of(&service);
    let app = r#"{"id": "/noted", "cmd": "x"}"#;
    assert_eq!(api.post("/v2/apps", app).await.0, 201);
    let (_, all) = api.get("/v2/deployments").await;
    let id_of = |app: &str| {
        let of = |d: &&Value| d["affectedApps"][0] == app;
        all.as_array().unwrap().iter().find(of).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (status, answer) = api.ask(Method::DELETE, &format!("/v2/deployments/{}", id_of("/new")), "", "").await;
    assert_eq!(status, 409, "{answer}");
    let (status, answer) = api.ask(Method::DELETE, &format!("/v2/deployments/{}", id_of("/old")), "", "").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(api.get("/v2/apps//old").await.1["app"]["cmd"], "one");
    assert_eq!(api.get("/v2/apps//new").await.1["app"]["cmd"], "x", "it goes on");
    let (_, left) = api.get("/v2/deployments").await;
    let noted = |d: &Value| d["affectedApps"][0] == "/noted" && d["id"] == id_of("/noted");
    assert!(left.as_array().unwrap().iter().any(noted), "another one's note stays: {left}");
    service.stop(true).await;
}

#[tokio::test]
async fn marathons_answers() {
    let service = start().await;
    let mut api = Api::of(&service);
    let put = async |api: &mut Api, path: &str, body: &str| api.ask(Method::PUT, path, "application/json", body).await;
    let (status, new) = put(&mut api, "/v2/apps/a", r#"{"cmd": "one", "instances": 1}"#).await;
    assert_eq!(status, 201);
    assert!(new["deploymentId"].is_string() && new["version"].is_string(), "{new}");
    let (status, answer) = api.ask(Method::DELETE, "/v2/apps/a", "", "").await;
    assert_eq!((status, &answer["deployments"][0]["id"]), (409, &new["deploymentId"]), "it is locked: {answer}");
    // Another count is another version, which can be restored; the configuration is unchanged.
    let (_, scaled) = put(&mut api, "/v2/apps/a?force=true", r#"{"instances": 5}"#).await;
    assert!(scaled["version"].as_str() > new["version"].as_str(), "{scaled}");
    let info = api.get("/v2/apps/a").await.1["app"]["versionInfo"].clone();
    assert_eq!((&info["lastScalingAt"], &info["lastConfigChangeAt"]), (&scaled["version"], &new["version"]));
    put(&mut api, "/v2/apps/a?force=true", r#"{"cmd": "two"}"#).await;
    let back = format!(r#"{{"id": "/a", "version": {}}}"#, scaled["version"]);
    assert_eq!(put(&mut api, "/v2/apps/a?force=true", &back).await.0, 200);
    let app = api.get("/v2/apps/a").await.1["app"].clone();
    assert_eq!((&app["cmd"], &app["instances"]), (&"one".into(), &5.into()));
    let (status, answer) = api.post("/v2/apps", r#"{"id": "/b", "cmd": "x", "colour": "red"}"#).await;
    assert_eq!((status, &answer["details"][0]["path"]), (422, &"/colour".into()), "{answer}");
    assert_eq!(api.ask(Method::DELETE, "/v2/apps/a?force=true", "", "").await.0, 200);
    service.stop(true).await;
}
