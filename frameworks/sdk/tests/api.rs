//! Tests a framework's own API: requests and responses of its clients.
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tepui_sdk::driver::api::{self, Api, Call, Method, Response, StatusCode};
use wire::client::Client;

struct Jobs;

#[derive(Serialize, Deserialize)]
struct Job {
    name: String,
}

impl Api for Jobs {
    async fn answer(&self, call: Call) -> Response {
        match (call.method.as_str(), &call.path.iter().map(String::as_str).collect::<Vec<_>>()[..]) {
            ("POST", ["jobs"]) => match call.json::<Job>() {
                Ok(job) => api::json(StatusCode::CREATED, &job),
                Err(response) => *response,
            },
            ("GET", ["jobs", name]) => {
                api::json(StatusCode::OK, &Job { name: format!("{name}{:?}", call.query.get("q")) })
            }
            ("GET", ["all"]) => api::json(StatusCode::OK, &call.query.all("k y")),
            ("GET", ["events"]) => {
                let (events, response) = api::events("text/event-stream");
                events.send_event("job", "{}\n{}").unwrap();
                response
            }
            _ => api::error(StatusCode::NOT_FOUND, "there is no such thing"),
        }
    }
}

async fn ask(client: &mut Client, method: Method, path: &str, body: &str) -> (u16, String) {
    let reply = client.request(method, path, &[], body.to_owned().into()).await.unwrap();
    (reply.status.as_u16(), reply.text())
}

#[tokio::test]
async fn json_errors_and_streams() {
    let serving = api::serve_with(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::new(Jobs), 100).unwrap();
    let mut client = Client::new(&serving.address().to_string()).unwrap();
    let made = ask(&mut client, Method::POST, "/jobs", r#"{"name":"a"}"#).await;
    assert_eq!(made, (201, r#"{"name":"a"}"#.to_owned()));
    let read = ask(&mut client, Method::GET, "//jobs/a%2Fb/?q=1", "").await;
    assert_eq!(read, (200, r#"{"name":"a/bSome(\"1\")"}"#.to_owned()));
    let (status, text) = ask(&mut client, Method::POST, "/jobs", "{}").await;
    assert!(status == 400 && text.starts_with(r#"{"error":"the body: missing field `name`"#), "{text}");
    let all = ask(&mut client, Method::GET, "/all?k+y=1&x=2&k%20y=a%26b", "").await;
    assert_eq!(all, (200, r#"["1","a&b"]"#.to_owned()));
    assert_eq!(ask(&mut client, Method::DELETE, "/x", "").await.0, 404);
    assert_eq!(ask(&mut client, Method::POST, "/jobs", &"x".repeat(101)).await.0, 413);
    let mut client = Client::new(&serving.address().to_string()).unwrap();
    let (_, stream) = ask(&mut client, Method::GET, "/events", "").await;
    assert_eq!(stream, "event: job\ndata: {}\ndata: {}\n\n");
    serving.stop().await;
}

#[tokio::test]
async fn pages_of_other_origins_change_nothing() {
    let serving = api::serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::new(Jobs)).unwrap();
    let address = serving.address().to_string();
    let own = format!("http://{address}");
    let mut client = Client::new(&address).unwrap();
    let foreign = "http://evil.example";
    for (method, path, origin, expected) in [
        (Method::POST, "/jobs", Some(foreign), 403),
        (Method::POST, "/jobs", Some("null"), 403),
        (Method::DELETE, "/jobs/a", Some(foreign), 403),
        (Method::POST, "/jobs", Some(&*own), 201),
        (Method::POST, "/jobs", None, 201),
        (Method::GET, "/jobs/a", Some(foreign), 200),
    ] {
        // A page can send this content type without a preflight request.
        let mut headers = vec![("content-type", "text/plain")];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let body = r#"{"name":"a"}"#.to_owned().into();
        let reply = client.request(method.clone(), path, &headers, body).await.unwrap();
        let (status, text) = (reply.status.as_u16(), reply.text());
        assert_eq!(status, expected, "{method} {path} {origin:?}: {text}");
        if let (403, Some(origin)) = (status, origin) {
            let error: Value = serde_json::from_str(&text).unwrap();
            let expected = format!("A page of the origin {origin:?} must not send {method} requests to this one");
            assert_eq!(error["error"], expected);
        }
    }
    serving.stop().await;
}
