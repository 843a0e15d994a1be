//! The HTTP API of a framework that has found no master yet: what it takes, what it refuses, and what it tells.
//!
//! What happens on a cluster is in the tests of the whole program.
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};

use binpack::Knobs;
use binpack::service::{Options, Service};
use sdk::Ending;
use sdk::v1::FrameworkInfo;
use serde_json::Value;
use wire::client::Client;
use wire::http::Method;

async fn start() -> Service {
    // Nothing listens at this port, so that there is no master.
    let framework = FrameworkInfo { user: "u".into(), name: "binpack".into(), ..Default::default() };
    let driver = sdk::driver::Options::new("127.0.0.1:1", framework).unwrap();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Service::start(Options { driver, listen, knobs: Knobs::default() }).await.unwrap()
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
    assert!(answer["error"].as_str().unwrap().starts_with("a job 'b' is there and has not ended"), "{answer}");
    assert!(api.get("/").await.1["routes"].as_array().unwrap().len() > 5);
    service.stop(true).await;
}

#[tokio::test]
async fn events_are_streamed() {
    let service = start().await;
    let mut follower = service.follow();
    let mut stream = tokio::net::TcpStream::connect(service.address()).await.unwrap();
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut said = String::new();
    let mut buffer = [0; 4096];
    // The head is there before anything happens.
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
