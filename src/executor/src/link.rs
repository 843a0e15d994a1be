//! An executor's link to its agent: subscribes, sends calls, and reconnects with the agent (docs/mesos/executors.md).
//!
//! An executor that is started with a line (an open socket) to its agent is subscribed from the start: events and calls
//! are sent over it as RecordIO, without HTTP. Otherwise, and when the line is lost, it has two connections, as every
//! Mesos executor has: one for the stream of events, which is the response to SUBSCRIBE, one for the other calls. If
//! either is lost, both are closed. The executors interpret the events.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use prost::Message;
use rustix::event::PollFlags;

use crate::clock;
use crate::environment::Settings;
use crate::http::{AnswerReader, Part, post};
use crate::messages::{Call, CallType, Event, EventType, Id, KillPolicy, Source, Subscribe, Subscribed, TaskStatus};
use crate::poller::{Poller, Token, earlier};
use crate::records::Records;
use crate::socket::Socket;
use crate::updates::Updates;

/// Token of the event stream, the first of the two connections; other descriptors of an executor have other numbers.
pub(crate) const STREAM: Token = 0;
pub(crate) const CALLS: Token = 1;

/// Path of the executor API.
const PATH: &str = "/slave(1)/api/v1/executor";
/// Upper limit of the pause after the first attempt to reconnect.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// Interval at which an idle call connection is used.
const HEARTBEAT: Duration = Duration::from_secs(30 * 60);
/// Maximum length of an error text that is kept.
const TEXT_LIMIT: usize = 4096;

/// An event from the agent, or its loss.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    Subscribed(Subscribed),
    /// The whole message of a task, encoded.
    Launch(Vec<u8>),
    LaunchGroup(Vec<Vec<u8>>),
    Kill(Id, Option<KillPolicy>),
    Acknowledged(Id),
    Shutdown,
    /// The connection is lost; the link reconnects.
    Disconnected,
}

/// A connection with the reader of its responses.
#[derive(Debug)]
struct Connection {
    socket: Socket,
    reader: AnswerReader,
    /// Status of the response that is being read.
    status: u16,
    text: Vec<u8>,
}

impl Connection {
    fn new(socket: Socket) -> Connection {
        Connection { socket, reader: AnswerReader::new(), status: 0, text: Vec::new() }
    }
}

/// The two connections to the agent.
#[derive(Debug)]
struct Open {
    stream: Connection,
    records: Records,
    calls: Connection,
    subscribed: bool,
    heartbeat_at: Instant,
}

/// A socket to the agent that the executor was started with.
#[derive(Debug)]
struct Line {
    socket: Socket,
    records: Records,
    subscribed: bool,
}

#[derive(Debug)]
enum State {
    Closed {
        retry_at: Instant,
    },
    Line(Line),
    Open(Box<Open>),
    /// The link does not reconnect any more.
    Ended,
}

/// An executor's link to its agent.
#[derive(Debug)]
pub(crate) struct Link {
    settings: Settings,
    updates: Updates,
    state: State,
    /// Time since which there has been no subscription.
    lost_at: Instant,
    incoming: VecDeque<Incoming>,
}

impl Link {
    /// Creates a link over an existing line, or else one that starts to connect at the next [`Link::on_time`].
    pub(crate) fn new(settings: Settings, line: Option<OwnedFd>) -> Link {
        let now = clock::now();
        let state = match line {
            Some(fd) => State::Line(Line { socket: Socket::connected(fd), records: Records::new(), subscribed: false }),
            None => State::Closed { retry_at: now },
        };
        Link { settings, updates: Updates::default(), state, lost_at: now, incoming: VecDeque::new() }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn updates(&self) -> &Updates {
        &self.updates
    }

    pub(crate) fn is_subscribed(&self) -> bool {
        match &self.state {
            State::Open(open) => open.subscribed,
            State::Line(line) => line.subscribed,
            State::Closed { .. } | State::Ended => false,
        }
    }

    /// Returns whether the link has given up the agent: nothing will be acknowledged any more.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Removes the next event and returns it.
    pub(crate) fn next(&mut self) -> Option<Incoming> {
        self.incoming.pop_front()
    }

    /// Records a launched task.
    pub(crate) fn launched(&mut self, task_id: Id, task: Vec<u8>) {
        self.updates.launched(task_id, task);
    }

    /// Returns the whole message of a task whose first update was not acknowledged yet.
    pub(crate) fn task(&self, task_id: &Id) -> Option<&[u8]> {
        self.updates.task(task_id)
    }

    /// Completes a status update and adds it; [`Link::flush`] sends it.
    pub(crate) fn update(&mut self, mut status: TaskStatus) {
        status.source = Some(Source::Executor as i32);
        status.executor_id = Some(Id::new(self.settings.executor_id.as_str()));
        status.timestamp = Some(clock::timestamp());
        status.uuid = Some(clock::uuid().to_vec());
        self.updates.add(status);
    }

    /// Sends the updates that were added, if the agent is connected: several in one write, which costs both sides less.
    /// It must be called before each wait.
    pub(crate) fn flush(&mut self) {
        if !self.is_subscribed() {
            return;
        }
        let mut requests = Vec::new();
        for update in self.updates.unsent() {
            let mut call = self.call(CallType::Update);
            call.update = Some(update);
            match self.state {
                State::Line(_) => record(&call, &mut requests),
                _ => requests.extend_from_slice(&self.request(&call)),
            }
        }
        if !requests.is_empty() {
            self.send(&requests);
        }
    }

    /// Adds the descriptors to wait for.
    pub(crate) fn interests<'a>(&'a self, poller: &mut Poller<'a>) {
        match &self.state {
            State::Open(open) => {
                poller.add(STREAM, open.stream.socket.fd(), open.stream.socket.interest());
                poller.add(CALLS, open.calls.socket.fd(), open.calls.socket.interest());
            }
            State::Line(line) => poller.add(STREAM, line.socket.fd(), line.socket.interest()),
            State::Closed { .. } | State::Ended => {}
        }
    }

    /// Returns the time at which [`Link::on_time`] must be called.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        match &self.state {
            State::Closed { retry_at } => {
                earlier(Some(*retry_at), self.settings.recovery.map(|recovery| self.lost_at + recovery.timeout))
            }
            State::Line(line) => {
                let unsubscribed = self.settings.recovery.filter(|_| !line.subscribed);
                unsubscribed.map(|recovery| self.lost_at + recovery.timeout)
            }
            State::Open(open) => {
                let unsubscribed = self.settings.recovery.filter(|_| !open.subscribed);
                earlier(Some(open.heartbeat_at), unsubscribed.map(|recovery| self.lost_at + recovery.timeout))
            }
            State::Ended => None,
        }
    }

    /// Does what is due: reconnects, or sends a heartbeat.
    pub(crate) fn on_time(&mut self) {
        let now = clock::now();
        let overdue = self.settings.recovery.is_some_and(|recovery| now >= self.lost_at + recovery.timeout);
        if overdue && !self.is_subscribed() && !self.is_ended() {
            self.end("No agent for the recovery timeout");
            return;
        }
        match &mut self.state {
            State::Closed { retry_at } if now >= *retry_at => self.connect(now),
            State::Open(open) if now >= open.heartbeat_at => {
                open.heartbeat_at = now + HEARTBEAT;
                if open.subscribed {
                    let request = self.request(&self.call(CallType::Heartbeat));
                    self.send(&request);
                }
            }
            _ => {}
        }
    }

    fn connect(&mut self, now: Instant) {
        let open = |settings: &Settings| {
            Ok::<_, std::io::Error>((Socket::open(&settings.endpoint)?, Socket::open(&settings.endpoint)?))
        };
        let (stream, calls) = match open(&self.settings) {
            Ok(sockets) => sockets,
            Err(error) => return self.disconnect(&format!("Failed to connect: {error}")),
        };
        let mut open = Box::new(Open {
            stream: Connection::new(stream),
            records: Records::new(),
            calls: Connection::new(calls),
            subscribed: false,
            heartbeat_at: now + HEARTBEAT,
        });
        let (unacknowledged_tasks, unacknowledged_updates) = self.updates.for_subscribe();
        let mut call = self.call(CallType::Subscribe);
        call.subscribe = Some(Subscribe { unacknowledged_tasks, unacknowledged_updates });
        let sent = open.stream.socket.send(&self.request(&call));
        self.state = State::Open(open);
        if let Err(error) = sent {
            self.disconnect(&format!("Failed to send SUBSCRIBE: {error}"));
        }
    }

    fn call(&self, r#type: CallType) -> Call {
        Call {
            executor_id: Id::new(self.settings.executor_id.as_str()),
            framework_id: Id::new(self.settings.framework_id.as_str()),
            r#type: Some(r#type as i32),
            subscribe: None,
            update: None,
        }
    }

    fn request(&self, call: &Call) -> Vec<u8> {
        post(PATH, &self.settings.host, self.settings.token.as_deref(), &call.encode_to_vec())
    }

    fn send(&mut self, requests: &[u8]) {
        let socket = match &mut self.state {
            State::Open(open) => &mut open.calls.socket,
            State::Line(line) => &mut line.socket,
            State::Closed { .. } | State::Ended => return,
        };
        if let Err(error) = socket.send(requests) {
            self.disconnect(&format!("Failed to send a call: {error}"));
        }
    }

    /// Handles the result of a wait for one of the connections.
    pub(crate) fn on_ready(&mut self, token: Token, found: PollFlags) {
        let socket = match &mut self.state {
            State::Open(open) if token == STREAM => &mut open.stream.socket,
            State::Open(open) => &mut open.calls.socket,
            State::Line(line) => &mut line.socket,
            State::Closed { .. } | State::Ended => return,
        };
        let mut bytes = Vec::new();
        let result = socket.ready(found, &mut |received| bytes.extend_from_slice(received));
        // Data before an end or an error counts.
        match &self.state {
            _ if bytes.is_empty() => {}
            State::Line(_) => self.read_line(&bytes),
            _ if token == STREAM => self.read_stream(&bytes),
            _ => self.read_calls(&bytes),
        }
        match result {
            Ok(true) => {}
            Ok(false) => self.disconnect("The agent has closed the connection"),
            Err(error) => self.disconnect(&format!("The connection is lost: {error}")),
        }
    }

    fn read_line(&mut self, bytes: &[u8]) {
        let State::Line(line) = &mut self.state else { return };
        let mut events = Vec::new();
        let fed = line.records.feed(bytes, &mut |record| events.push(Event::decode(record)));
        self.on_events(events);
        if let Err(error) = fed {
            self.disconnect(&error.to_string());
        }
    }

    fn on_events(&mut self, events: Vec<Result<Event, prost::DecodeError>>) {
        for event in events {
            match event {
                Ok(event) => self.on_event(event),
                Err(error) => stdio::err!("An event from the agent cannot be read: {error}"),
            }
        }
    }

    fn read_stream(&mut self, bytes: &[u8]) {
        let State::Open(open) = &mut self.state else { return };
        let Open { stream: Connection { reader, status, text, .. }, records, .. } = &mut **open;
        let mut events = Vec::new();
        let mut ended = false;
        let mut broken = None;
        let fed = reader.feed(bytes, &mut |part| match part {
            Part::Head(code) => *status = code,
            Part::Data(data) if *status == 200 => {
                let fed = records.feed(data, &mut |record| events.push(Event::decode(record)));
                broken = broken.or(fed.err());
            }
            Part::Data(data) => keep(text, data),
            Part::End => ended = true,
        });
        let (status, text) = (*status, String::from_utf8_lossy(text).into_owned());
        self.on_events(events);
        match (fed, broken) {
            (Err(error), _) => self.disconnect(&error.to_string()),
            (_, Some(error)) => self.disconnect(&error.to_string()),
            _ if ended => self.on_stream_end(status, &text),
            _ => {}
        }
    }

    /// Handles the end of the response to SUBSCRIBE: the stream has ended, or SUBSCRIBE was refused.
    fn on_stream_end(&mut self, status: u16, text: &str) {
        match status {
            200 => self.disconnect("The agent has ended the stream"),
            // The agent is recovering, has not set up its routes yet, or has not detected the end of the line.
            503 | 404 | 409 => self.disconnect(&format!("The agent does not accept SUBSCRIBE yet: {status} {text}")),
            _ => self.end(&format!("The agent refuses SUBSCRIBE: {status} {text}")),
        }
    }

    fn read_calls(&mut self, bytes: &[u8]) {
        let State::Open(open) = &mut self.state else { return };
        let Connection { reader, status, text, .. } = &mut open.calls;
        let mut not_ready = false;
        let fed = reader.feed(bytes, &mut |part| match part {
            Part::Head(code) => *status = code,
            Part::Data(data) => keep(text, data),
            Part::End => {
                if *status != 202 {
                    stdio::err!("The agent refuses a call: {status} {}", String::from_utf8_lossy(text));
                }
                not_ready |= *status == 503;
                text.clear();
            }
        });
        match fed {
            Err(error) => self.disconnect(&error.to_string()),
            // The call may have been an update: the next SUBSCRIBE contains it again.
            Ok(()) if not_ready => self.disconnect("The agent does not accept calls yet"),
            Ok(()) => {}
        }
    }

    fn on_event(&mut self, event: Event) {
        match event.r#type() {
            EventType::Subscribed => {
                match &mut self.state {
                    State::Open(open) => open.subscribed = true,
                    State::Line(line) => line.subscribed = true,
                    State::Closed { .. } | State::Ended => {}
                }
                self.incoming.push_back(Incoming::Subscribed(event.subscribed.unwrap_or_default()));
            }
            EventType::Launch => self.incoming.extend(event.launch.map(|launch| Incoming::Launch(launch.task))),
            EventType::LaunchGroup => {
                self.incoming.extend(event.launch_group.map(|group| Incoming::LaunchGroup(group.task_group.tasks)));
            }
            EventType::Kill => {
                self.incoming.extend(event.kill.map(|kill| Incoming::Kill(kill.task_id, kill.kill_policy)))
            }
            EventType::Acknowledged => {
                if let Some(acknowledged) = event.acknowledged {
                    self.updates.acknowledged(&acknowledged.task_id, &acknowledged.uuid);
                    self.incoming.push_back(Incoming::Acknowledged(acknowledged.task_id));
                }
            }
            EventType::Shutdown => self.incoming.push_back(Incoming::Shutdown),
            EventType::Error => {
                stdio::err!("Error from the agent: {}", event.error.unwrap_or_default().message);
            }
            EventType::Message | EventType::Heartbeat | EventType::Unknown => {}
        }
    }

    /// Closes the connections. Then reconnects if the framework checkpoints; otherwise gives up the agent.
    fn disconnect(&mut self, why: &str) {
        if self.is_ended() {
            return;
        }
        let Some(recovery) = self.settings.recovery else { return self.end(why) };
        let now = clock::now();
        if self.is_subscribed() {
            stdio::err!("Disconnected from the agent: {why}");
            self.lost_at = now;
            self.incoming.push_back(Incoming::Disconnected);
        }
        // A restarted agent returns soon, and the pause is never longer than its absence; an agent that is gone for
        // longer is tried less often.
        let pause = now.saturating_duration_since(self.lost_at).max(PAUSE_MIN).min(recovery.backoff_max);
        self.state = State::Closed { retry_at: now + clock::up_to(pause) };
    }

    fn end(&mut self, why: &str) {
        if !self.is_ended() {
            stdio::err!("Shutting down: {why}");
            self.state = State::Ended;
            self.incoming.push_back(Incoming::Shutdown);
        }
    }
}

/// Appends a call as a record.
fn record(call: &Call, out: &mut Vec<u8>) {
    let body = call.encode_to_vec();
    out.extend_from_slice(format!("{}\n", body.len()).as_bytes());
    out.extend_from_slice(&body);
}

fn keep(text: &mut Vec<u8>, data: &[u8]) {
    let room = TEXT_LIMIT.saturating_sub(text.len());
    text.extend_from_slice(&data[..data.len().min(room)]);
}
