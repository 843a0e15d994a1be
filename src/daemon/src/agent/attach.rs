//! The operator calls with streams: sessions in containers, and attaching to the output and input of containers (OPA-22
//! to OPA-24).
//!
//! The containerizer's I/O switchboard carries the bytes.

use std::sync::Arc;
use std::time::Duration;

use agent::{ContainerName, Done, Input, RequestId};
use containerizer::{Client, ContainerIo};
use protos::mesos::agent::call::Type;
use protos::mesos::agent::{Call, ProcessIo, process_io};
use protos::recordio::Decoder;
use wire::Limits;
use wire::http::stream::{StreamEnd, StreamHandle};
use wire::http::{Body, BodyStream, HeaderName, RECORDIO, Request, Response, StatusCode};
use wire::negotiate::{Encoding, MediaTypes};

use super::handler::Handler;
use super::operator_api::{authorize, respond};
use super::validate::{self, InputRecord};
use crate::acls::Caller;
use crate::audit;
use crate::codec;
use crate::streams::encode_v1;

/// Maximum length of a record of an input, in bytes.
const RECORD_MAX: usize = 1 << 20;
/// Maximum number of bytes that wait for a client; the connection of one that does not read them is closed.
const STREAM_LIMIT: usize = 4 << 20;
/// The header with the encoding of the records of a RecordIO stream.
const MESSAGE_CONTENT_TYPE: HeaderName = HeaderName::from_static("message-content-type");

/// Opens a stream of records, and the response with the headers for the stream and its records
/// (docs/mesos/agent-api.md).
fn open(media: &MediaTypes) -> (Arc<StreamHandle>, Response) {
    let records = media.response.media_type();
    let (client, response) =
        wire::http::stream::open(if media.response_streams { RECORDIO } else { records }, STREAM_LIMIT);
    let response = match media.response_streams {
        true => response.with_header(MESSAGE_CONTENT_TYPE, records),
        false => response,
    };
    (Arc::new(client), response)
}

/// A client that reads the output of a container from a stream.
#[derive(Debug)]
struct Reader {
    stream: Arc<StreamHandle>,
    encoding: Encoding,
}

impl Client for Reader {
    fn is_gone(&self) -> bool {
        self.stream.ended().is_some()
    }

    fn queued(&self) -> usize {
        self.stream.queued()
    }

    fn send(&self, message: &ProcessIo) {
        // A client that has disconnected is ignored.
        let _ = self.stream.send(&encode_v1(self.encoding, message));
    }

    fn finish(&self) {
        self.stream.finish();
    }
}

/// Sends heartbeats until the stream ends.
fn keep_alive(handler: &Handler, client: &Arc<StreamHandle>, encoding: Encoding) {
    let interval = handler.heartbeat_interval.max(Duration::from_millis(100));
    let client = Arc::downgrade(client);
    tokio::spawn(async move {
        let nanoseconds = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
        let heartbeat = process_io::control::Heartbeat { interval: Some(protos::mesos::DurationInfo { nanoseconds }) };
        let control = process_io::Control {
            r#type: Some(process_io::control::Type::Heartbeat as i32),
            heartbeat: Some(heartbeat),
            tty_info: None,
        };
        let message = ProcessIo { r#type: Some(process_io::Type::Control as i32), data: None, control: Some(control) };
        loop {
            tokio::time::sleep(interval).await;
            let Some(client) = client.upgrade() else { return };
            if client.send(&encode_v1(encoding, &message)).is_err() {
                return;
            }
        }
    });
}

/// Answers LAUNCH_NESTED_CONTAINER_SESSION. The session ends when the client disconnects.
pub(super) async fn launch(handler: &Handler, call: Call, media: MediaTypes) -> Response {
    let id = call.launch_nested_container_session.as_ref().map(|launch| &launch.container_id);
    let Some(Ok(container)) = id.map(ContainerName::from_proto) else {
        return Response::bad_request("Invalid container id");
    };
    let (client, response) = open(&media);
    let reader = Reader { stream: client.clone(), encoding: media.response };
    let added = handler.shell.containers.add_session(&container, Arc::new(reader));
    let (number, outcome) = handler.shell.pending_requests.ask();
    handler.driver.handle_now(Input::OperatorCall { request: RequestId(number), call: Box::new(call) });
    let answer = outcome.await;
    match answer {
        Ok(Ok(Done::Complete)) if added => {}
        other => {
            if added {
                handler.shell.containers.forget_session(&container);
            }
            return other.map_or_else(
                |_| Response::error(StatusCode::INTERNAL_SERVER_ERROR),
                |answer| respond(answer, media.response),
            );
        }
    }
    let containers = handler.shell.containers.clone();
    client.on_end(move |end| {
        if end != StreamEnd::Ended {
            containers.destroy(container);
        }
    });
    keep_alive(handler, &client, media.response);
    response
}

fn session(handler: &Handler, id: Option<&protos::mesos::ContainerId>) -> Result<Arc<ContainerIo>, Box<Response>> {
    let Some(Ok(container)) = id.map(ContainerName::from_proto) else {
        return Err(Box::new(Response::bad_request("Invalid container id")));
    };
    if let Some(io) = handler.shell.containers.attach(&container) {
        return Ok(io);
    }
    let runs = handler.shell.containers.pids().iter().any(|(name, _)| *name == container);
    Err(Box::new(match runs {
        true => Response::internal("I/O switchboard server was disabled for this container".to_owned()),
        false => Response::text(StatusCode::NOT_FOUND, format!("Container {container} cannot be found")),
    }))
}

/// Answers ATTACH_CONTAINER_OUTPUT with the later output of a session.
pub(super) fn output(handler: &Handler, call: &Call, media: MediaTypes) -> Response {
    let io = match session(handler, call.attach_container_output.as_ref().map(|attach| &attach.container_id)) {
        Ok(io) => io,
        Err(refusal) => return *refusal,
    };
    let (client, response) = open(&media);
    keep_alive(handler, &client, media.response);
    io.attach(Arc::new(Reader { stream: client, encoding: media.response }));
    response
}

/// A reader of the records of a request's body.
struct Records {
    body: BodyStream,
    decoder: Decoder,
}

impl Records {
    /// Returns the next record; `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Box<Response>> {
        loop {
            let broken = |error: &dyn std::fmt::Display| {
                Box::new(Response::bad_request(format!("Failed to read the request: {error}")))
            };
            if let Some(record) = self.decoder.pull().map_err(|error| broken(&error))? {
                return Ok(Some(record));
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.decoder.push(&bytes),
                Some(Err(error)) => return Err(broken(&error)),
                None => return Ok(None),
            }
        }
    }
}

/// Answers ATTACH_CONTAINER_INPUT, the only call whose request is a stream.
pub(super) async fn input(handler: &Handler, request: Request, caller: &Caller) -> Response {
    match attach(handler, request, caller).await {
        Ok(()) => Response::empty(StatusCode::OK),
        Err(refusal) => *refusal,
    }
}

async fn attach(handler: &Handler, request: Request, caller: &Caller) -> Result<(), Box<Response>> {
    let media = MediaTypes::negotiate(&request.method, &request.headers)?;
    let Body::Stream(body) = request.body else { return Err(Box::new(MediaTypes::refuse_no_record())) };
    let mut records = Records { body, decoder: Decoder::new(RECORD_MAX) };
    // The first record has the same time limit as a whole body of other requests.
    let first = tokio::time::timeout(Limits::default().stalled, records.next()).await;
    let first = first.map_err(|_| Box::new(MediaTypes::refuse_no_record().closing()))??;
    let first = first.ok_or_else(|| Box::new(MediaTypes::refuse_no_record()))?;
    let call = check(&media, &first)?;
    authorize(handler, &call, caller).await?;
    let first = call.attach_container_input.unwrap_or_default();
    let io = session(handler, first.container_id.as_ref())?;
    // This request is dropped if its client disconnects while the program does not read: that releases the input, too.
    let Some(_input) = io.take_input() else {
        let text = "Multiple input connections are not allowed";
        return Err(Box::new(Response::text(StatusCode::CONFLICT, text)));
    };
    write_input(&media, &mut records, &io).await
}

fn check(media: &MediaTypes, record: &[u8]) -> Result<Call, Box<Response>> {
    let call: Call = media.decode(record, codec::agent_call)?;
    audit::note_call(|| audit::agent_call(&call));
    if let Err(why) = validate::operator_call(&call) {
        return Err(Box::new(Response::bad_request(format!("Failed to validate agent::Call: {why}"))));
    }
    let kind = call.r#type();
    media.check_streams(kind.as_str_name(), kind == Type::AttachContainerInput, false)?;
    Ok(call)
}

async fn write_input(media: &MediaTypes, records: &mut Records, io: &ContainerIo) -> Result<(), Box<Response>> {
    while let Some(record) = records.next().await? {
        let call: Call = media.decode(&record, codec::agent_call)?;
        let input = call.attach_container_input.unwrap_or_default();
        let bytes = match validate::later_input(input) {
            Ok(InputRecord::Data(bytes)) => bytes,
            Ok(InputRecord::Size(rows, columns)) if io.resize(rows, columns).await => continue,
            Ok(InputRecord::Size(..)) => return Err(Box::new(Response::bad_request("The container has no terminal"))),
            Ok(InputRecord::Nothing) => continue,
            Err(why) => return Err(Box::new(Response::bad_request(why))),
        };
        if io.write(&bytes).await.is_err() {
            // The program has ended, or closed its input: further input is dropped.
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the headers of a response to a client that accepts `response`, directly or in RecordIO.
    fn headers(response: Encoding, response_streams: bool) -> [Option<String>; 2] {
        let media = MediaTypes { request: Encoding::Json, request_streams: false, response, response_streams };
        let answer = open(&media).1;
        ["content-type", "message-content-type"]
            .map(|name| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned()))
    }

    #[test]
    fn a_stream_in_recordio_names_the_encoding_of_its_records() {
        let some = |text: &str| Some(text.to_owned());
        let (json, protobuf, recordio) =
            (some("application/json"), some("application/x-protobuf"), some("application/recordio"));
        assert_eq!(headers(Encoding::Json, true), [recordio.clone(), json.clone()]);
        assert_eq!(headers(Encoding::Protobuf, true), [recordio, protobuf.clone()]);
        assert_eq!(headers(Encoding::Json, false), [json, None]);
        assert_eq!(headers(Encoding::Protobuf, false), [protobuf, None]);
    }
}
