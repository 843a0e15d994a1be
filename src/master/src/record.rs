//! Recordings of a master: its start, and then every batch of inputs with its time and a hash of its results.
//!
//! With a recording and the same code the same master can run again, step by step. A recording is a series of frames.
//! This module encodes and decodes their contents; the caller stores them, and defines the text form of policies.
//! Repeated values (pids, names) are stored once.

use cores::{CallError, ErrorKind};
use std::sync::Arc;

use allocator::policies::Policies;
use base::{FrameworkId, IdError, Pid, TaskId, Time};
use cores::{RequestId, StreamId};
use prost::Message as _;
use protos::mesos::MasterInfo;
use protos::mesos::internal::Registry;
use rustc_hash::FxHashMap;

use crate::io::{Done, Input, KillTask, Outbox, Output};
use crate::message::Message;
use bytes::{Reader, Writer};

mod bytes;

/// First bytes of a recording.
pub const MAGIC: &[u8; 16] = b"tepui-record 1\r\n";

/// Length of the longest frame, in bytes. A longer one is damaged.
pub const FRAME_MAX: usize = 256 << 20;

/// Error of decoding a frame.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The frame ends within a value.
    #[error("it ends too early")]
    Short,
    /// The frame has a number or a tag that is not valid in a recording.
    #[error("{0} cannot be in a recording")]
    Invalid(String),
    /// The text of policies is invalid.
    #[error("invalid policies")]
    Policies(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Parses the text form in which the caller has stored policies.
pub type ParsePolicies = dyn Fn(&str) -> Result<Policies, Box<dyn std::error::Error + Send + Sync>>;

/// First frame of a recording: the start of the recorded master.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Flags of the master, as they were given.
    pub flags: Vec<(String, String)>,
    /// `MasterInfo` of the master.
    pub info: MasterInfo,
    /// Registry that the master recovered from.
    pub registry: Registry,
    /// Seed of everything that is random in the master.
    pub seed: u64,
    /// Time at which the recording starts.
    pub start: Time,
}

impl Head {
    /// Encodes the head as a frame.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.flags.len() as u64);
        for (name, value) in &self.flags {
            out.bytes(name.as_bytes());
            out.bytes(value.as_bytes());
        }
        out.bytes(&self.info.encode_to_vec());
        out.bytes(&self.registry.encode_to_vec());
        out.number(self.seed);
        out.number(nanos(self.start));
        out.0
    }

    /// Decodes the head from a frame.
    ///
    /// # Errors
    /// The frame is not a head.
    pub fn read(frame: &[u8]) -> Result<Head, RecordError> {
        let mut from = Reader::new(frame);
        let count = from.number()?;
        let flags = (0..count).map(|_| Ok((from.text()?, from.text()?))).collect::<Result<_, RecordError>>()?;
        Ok(Head {
            flags,
            info: from.message()?,
            registry: from.message()?,
            seed: from.number()?,
            start: time(from.number()?),
        })
    }
}

/// Encoder of the frames of batches.
#[derive(Debug, Default)]
pub struct RecordEncoder {
    names: FxHashMap<String, u64>,
    last: u64,
    /// Inputs of the batch that is being handled; `count` is their number.
    inputs: Writer,
    count: u64,
}

/// A decoded batch of inputs.
#[derive(Debug)]
pub struct Batch {
    /// Time at which the batch was handled.
    pub at: Time,
    /// Inputs of the batch, in order.
    pub inputs: Vec<Input>,
    /// Hash of the batch's results; see [`result_hash`].
    pub result_hash: u64,
}

/// Decoder of the frames of batches, in their order.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    names: Vec<String>,
    last: u64,
}

impl RecordEncoder {
    /// Adds an input to the batch. `text` converts policies to a text that [`RecordDecoder::batch`] receives when it
    /// reads them.
    pub fn input(&mut self, input: &Input, text: &dyn Fn(&Policies) -> String) {
        let mut out = std::mem::take(&mut self.inputs);
        self.write(input, text, &mut out);
        self.inputs = out;
        self.count += 1;
    }

    /// Ends the batch with the hash of its results, and returns its frame.
    pub fn end(&mut self, now: Time, result_hash: u64) -> Vec<u8> {
        let mut out = Writer::default();
        let at = nanos(now);
        out.number(at.saturating_sub(self.last));
        self.last = self.last.max(at);
        out.number(std::mem::take(&mut self.count));
        let mut frame = out.0;
        frame.append(&mut self.inputs.0);
        frame.extend(result_hash.to_le_bytes());
        frame
    }

    /// Writes a text that may be repeated: its number, and the text itself the first time.
    fn name(&mut self, name: &str, out: &mut Writer) {
        if let Some(known) = self.names.get(name) {
            return out.number(*known);
        }
        out.number(self.names.len() as u64);
        out.bytes(name.as_bytes());
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        self.names.insert(name.to_owned(), self.names.len() as u64);
    }

    fn write(&mut self, input: &Input, text: &dyn Fn(&Policies) -> String, out: &mut Writer) {
        match input {
            Input::Message { from, message } => {
                out.tag(0);
                self.name(from.id(), out);
                out.bytes(from.address().to_string().as_bytes());
                self.name(message.name(), out);
                match message {
                    Message::PongSlave { observer } => out.number(*observer),
                    message => out.bytes(&message.encode()),
                }
            }
            Input::Exited { pid } => {
                out.tag(1);
                out.bytes(pid.to_string().as_bytes());
            }
            Input::Subscribe { request, stream, stream_text, call, principal } => {
                out.tag(2);
                out.number(request.0);
                out.number(stream.0);
                out.bytes(stream_text.as_bytes());
                out.bytes(&call.encode_to_vec());
                out.maybe(principal.as_deref());
            }
            Input::SchedulerCall { request, stream_id, call, principal } => {
                out.tag(3);
                out.number(request.0);
                out.tag(u8::from(stream_id.is_some()));
                if let Some(stream) = stream_id {
                    self.name(stream, out);
                }
                out.bytes(&call.encode_to_vec());
                out.maybe(principal.as_deref());
            }
            Input::StreamClosed { stream } => {
                out.tag(4);
                out.number(stream.0);
            }
            Input::OperatorCall { request, call, principal } => {
                out.tag(5);
                out.number(request.0);
                out.bytes(&call.encode_to_vec());
                out.maybe(principal.as_deref());
            }
            Input::UpdatePolicies { request, policies } => {
                out.tag(6);
                out.number(request.0);
                out.bytes(text(policies).as_bytes());
            }
            Input::KillTask { request, kill, principal } => {
                out.tag(12);
                out.number(request.0);
                out.bytes(kill.framework.as_str().as_bytes());
                out.bytes(kill.task.as_str().as_bytes());
                out.tag(u8::from(kill.kill_policy.is_some()));
                if let Some(policy) = &kill.kill_policy {
                    out.bytes(&policy.encode_to_vec());
                }
                out.maybe(principal.as_deref());
            }
            Input::OperatorSubscribe { request, stream, principal } => {
                out.tag(7);
                out.number(request.0);
                out.number(stream.0);
                out.maybe(principal.as_deref());
            }
            Input::Whitelist { hostnames } => {
                out.tag(8);
                out.tag(u8::from(hostnames.is_some()));
                let hosts = hostnames.iter().flatten();
                out.number(hosts.clone().count() as u64);
                hosts.for_each(|host| out.bytes(host.as_bytes()));
            }
            Input::Wake => out.tag(9),
            Input::Authenticating { pid, attempt } => {
                out.tag(10);
                out.bytes(pid.to_string().as_bytes());
                out.number(*attempt);
            }
            Input::Authenticated { pid, attempt, principal } => {
                out.tag(11);
                out.bytes(pid.to_string().as_bytes());
                out.number(*attempt);
                out.maybe(principal.as_deref());
            }
        }
    }
}

/// Number of names that are remembered.
const NAMES_MAX: usize = 4096;

impl RecordDecoder {
    /// Decodes the next frame.
    ///
    /// # Errors
    /// The frame is not a batch.
    pub fn batch(&mut self, frame: &[u8], policies: &ParsePolicies) -> Result<Batch, RecordError> {
        let mut from = Reader::new(frame);
        self.last = self.last.saturating_add(from.number()?);
        let count = from.number()?;
        let inputs = (0..count).map(|_| self.input(&mut from, policies)).collect::<Result<_, _>>()?;
        Ok(Batch { at: time(self.last), inputs, result_hash: from.word()? })
    }

    fn name(&mut self, from: &mut Reader<'_>) -> Result<String, RecordError> {
        let number = usize::try_from(from.number()?).unwrap_or(usize::MAX);
        if let Some(name) = self.names.get(number) {
            return Ok(name.clone());
        }
        if number != self.names.len() {
            return Err(RecordError::Invalid(format!("the name number {number}")));
        }
        let name = from.text()?;
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        self.names.push(name.clone());
        Ok(name)
    }

    fn input(&mut self, from: &mut Reader<'_>, policies: &ParsePolicies) -> Result<Input, RecordError> {
        let principal = |from: &mut Reader<'_>| Ok(from.maybe()?.map(Arc::from));
        let invalid = |why: IdError| RecordError::Invalid(why.to_string());
        Ok(match from.tag()? {
            0 => {
                let id = self.name(from)?;
                let pid = Pid::parse_lenient(&format!("{id}@{}", from.text()?));
                let name = self.name(from)?;
                let message = match name.as_str() {
                    "PongSlaveMessage" => Message::PongSlave { observer: from.number()? },
                    name => Message::read(name, from.slice()?)
                        .ok_or_else(|| RecordError::Invalid(format!("a message {name} like this")))?,
                };
                Input::Message { from: pid, message }
            }
            1 => Input::Exited { pid: Pid::parse_lenient(&from.text()?) },
            2 => Input::Subscribe {
                request: RequestId(from.number()?),
                stream: StreamId(from.number()?),
                stream_text: from.text()?.into(),
                call: Box::new(from.message()?),
                principal: principal(from)?,
            },
            3 => Input::SchedulerCall {
                request: RequestId(from.number()?),
                stream_id: if from.tag()? == 1 { Some(self.name(from)?.into()) } else { None },
                call: Box::new(from.message()?),
                principal: principal(from)?,
            },
            4 => Input::StreamClosed { stream: StreamId(from.number()?) },
            5 => Input::OperatorCall {
                request: RequestId(from.number()?),
                call: Box::new(from.message()?),
                principal: principal(from)?,
            },
            6 => Input::UpdatePolicies {
                request: RequestId(from.number()?),
                policies: Box::new(policies(&from.text()?).map_err(RecordError::Policies)?),
            },
            7 => Input::OperatorSubscribe {
                request: RequestId(from.number()?),
                stream: StreamId(from.number()?),
                principal: principal(from)?,
            },
            8 => {
                let named = from.tag()? == 1;
                let count = from.number()?;
                let hosts = (0..count).map(|_| from.text()).collect::<Result<_, _>>()?;
                Input::Whitelist { hostnames: named.then_some(hosts) }
            }
            9 => Input::Wake,
            10 => Input::Authenticating { pid: Pid::parse_lenient(&from.text()?), attempt: from.number()? },
            11 => Input::Authenticated {
                pid: Pid::parse_lenient(&from.text()?),
                attempt: from.number()?,
                principal: principal(from)?,
            },
            12 => Input::KillTask {
                request: RequestId(from.number()?),
                kill: Box::new(KillTask {
                    framework: FrameworkId::new(&from.text()?).map_err(invalid)?,
                    task: TaskId::new(&from.text()?).map_err(invalid)?,
                    kill_policy: if from.tag()? == 1 { Some(from.message()?) } else { None },
                }),
                principal: principal(from)?,
            },
            tag => return Err(RecordError::Invalid(format!("an input of the kind {tag}"))),
        })
    }
}

/// Returns a hash of the results of a batch. Equal masters with equal inputs have equal hashes. Log lines are not
/// hashed.
#[must_use]
pub fn result_hash(out: &Outbox) -> u64 {
    let mut hash = bytes::Hash::default();
    hash.number(out.persist.len() as u64);
    for output in &out.outputs {
        match output {
            Output::Send { to, from, message } => {
                hash.bytes(to.to_string().as_bytes());
                hash.bytes(from.to_string().as_bytes());
                hash.bytes(&message.encode());
            }
            Output::SchedulerEvent { stream, event } => {
                hash.number(stream.0);
                hash.bytes(&event.encode_to_vec());
            }
            Output::Respond { request, answer } => {
                hash.number(request.0);
                hash.number(code(answer.as_ref()));
                hash.bytes(answer.as_ref().err().map(ToString::to_string).unwrap_or_default().as_bytes());
            }
            Output::Refuse { request, error, .. } => {
                hash.number(request.0);
                hash.number(code(Err(error)));
                hash.bytes(error.to_string().as_bytes());
            }
            Output::OpenStream { stream, .. } | Output::CloseStream { stream } => hash.number(stream.0),
            Output::Link { pid } | Output::Unlink { pid } => hash.bytes(pid.to_string().as_bytes()),
            Output::Exit { reason } => hash.bytes(reason.as_bytes()),
            Output::OperatorSubscribed { .. } | Output::OperatorEvent { .. } => {}
        }
    }
    hash.0
}

/// Returns the number by which a hash includes an answer: its HTTP status.
pub(crate) fn code(answer: Result<&Done, &CallError>) -> u64 {
    match answer {
        Ok(Done::Complete) => 200,
        Ok(Done::Accepted) => 202,
        Err(error) => match error.kind {
            ErrorKind::Invalid => 400,
            ErrorKind::Forbidden => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::Conflict => 409,
            ErrorKind::Failed => 500,
            ErrorKind::Unimplemented => 501,
            ErrorKind::Unavailable => 503,
        },
    }
}

fn nanos(at: Time) -> u64 {
    u64::try_from(at.since_epoch().as_nanos()).unwrap_or(u64::MAX)
}

fn time(nanos: u64) -> Time {
    Time::from_epoch(std::time::Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests;
