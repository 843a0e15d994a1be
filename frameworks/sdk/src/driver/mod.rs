//! Runs a scheduler against a master over HTTP.
//!
//! It carries out the outputs of a [`Session`], and decides only which master to try next. One task reads
//! the event stream, one sends the calls in order, and the scheduler runs where [`run`] is awaited.

pub mod api;
mod clock;
mod cluster;
mod encoding;
pub mod executor;
pub mod link;
mod masters;
mod pipeline;
mod reader;
mod reports;
mod sender;
mod store;

use std::sync::Arc;
use std::time::Duration;

use base::Time;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use wire::client::{Address, Client};

pub use cluster::{AgentsError, Cluster, ContainerUse, Statistics};
pub use encoding::Encoding;
pub use masters::{AddressError, MastersError, address};

use crate::Scheduler;
use crate::session::{Ending, Input, Output, Session, Settings};
use crate::state::{Change, State};
use crate::v1::FrameworkInfo;
use crate::v1::scheduler::{Call, call};
use clock::Clock;
use masters::Masters;
use reader::{PATH, STREAM_ID};
use reports::{ConnectionError, Report, ReportReceiver, Stream};
use sender::Sender;
use store::{Store, StoreError};

/// Maximum number of events that are queued for the scheduler; while it is reached, the master's stream is not read.
const EVENTS_WAITING_MAX: usize = 256;
/// Default time within which a master must answer SUBSCRIBE: one that hangs would delay the attempts at the others.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Maximum time for sending the calls that are still queued at the end.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Options of a run of a scheduler.
#[derive(Debug)]
pub struct Options {
    masters: Masters,
    /// Text from which `masters` was parsed.
    given: String,
    /// Settings of the session: the framework, and its limits.
    pub settings: Settings,
    /// Encoding of calls and events.
    pub encoding: Encoding,
    /// Principal and secret for HTTP Basic authentication.
    pub credential: Option<(String, String)>,
    /// Maximum time in which a master must answer SUBSCRIBE. 10 s by default.
    pub answer_within: Duration,
    /// Time limit of the first subscription; `None` means no limit.
    pub give_up_after: Option<Duration>,
    /// Notification that sends [`Event::Wake`](crate::Event::Wake) to the scheduler.
    pub wake_signal: Option<Arc<Notify>>,
    /// Store of what must survive a restart: the framework's id, the ledger, and what the scheduler saves.
    pub state: Option<Box<dyn State>>,
}

impl Options {
    /// Creates options for a framework and its masters.
    ///
    /// `masters` is `host:port`, or 1 to 16 of them separated by commas, among which the driver finds and follows the
    /// leader. With one address the driver finds the leader too, since a master that does not lead names it; but if
    /// that master fails, so does the connection to the cluster. With the feature `zookeeper`, `masters` can also be
    /// `zk://[user:password@]host:port,.../path`.
    ///
    /// # Errors
    /// The text names no master, or is not a valid list.
    pub fn new(masters: &str, framework: FrameworkInfo) -> Result<Options, MastersError> {
        let settings = Settings { seed: clock::seed(), ..Settings::new(framework) };
        Ok(Options {
            masters: masters.parse()?,
            given: masters.to_owned(),
            settings,
            encoding: Encoding::default(),
            credential: None,
            answer_within: ANSWER_WITHIN,
            give_up_after: None,
            wake_signal: None,
            state: None,
        })
    }

    /// Returns a client of the operator API of the same cluster, with the credential that is set now.
    pub fn cluster(&self) -> Cluster {
        Cluster { masters: self.given.clone(), credential: self.credential.clone() }
    }
}

/// Result of a run of a scheduler.
#[derive(Debug)]
pub struct Finished<S> {
    /// The scheduler in its state after the last event.
    pub scheduler: S,
    /// Reason for the end of the run.
    pub ending: Ending,
}

/// Runs `scheduler` until it stops, or until the master refuses it for good. Lost connections are established again.
///
/// Requires a tokio runtime with time and I/O. Dropping the future closes all connections at once.
pub async fn run<S: Scheduler>(scheduler: S, options: Options) -> Finished<S> {
    let clock = Clock::start();
    let give_up_at = options.give_up_after.map(|after| clock.now() + after);
    let mut driver = Driver {
        session: Session::new(scheduler, options.settings, clock.now()),
        clock,
        masters: options.masters,
        caller: Caller {
            encoding: options.encoding,
            credential: options.credential,
            subscribe_timeout: options.answer_within,
        },
        wake_signal: options.wake_signal.unwrap_or_default(),
        reader_reports: ReportReceiver::new(EVENTS_WAITING_MAX),
        sender_reports: ReportReceiver::new(1),
        reader: None,
        sender: None,
        last_failure: String::new(),
        store: options.state.map(Store::new),
    };
    driver.masters.start(clock::seed());
    let ending = driver.run(give_up_at).await;
    Finished { scheduler: driver.session.into_scheduler(), ending }
}

/// Settings with which the driver's asynchronous tasks call a master.
#[derive(Clone, Debug)]
struct Caller {
    encoding: Encoding,
    credential: Option<(String, String)>,
    /// Maximum time in which a master must answer SUBSCRIBE.
    subscribe_timeout: Duration,
}

impl Caller {
    fn client(&self, address: Address) -> Client {
        let client = Client::at(address);
        match &self.credential {
            Some((principal, secret)) => client.with_basic(principal, secret),
            None => client,
        }
    }

    /// Returns the head of the requests of a subscription, up to the length of the body.
    fn head(&self, stream: &Stream) -> String {
        let media = self.encoding.media_type();
        let authorization = self.credential.as_ref().map_or_else(String::new, |(principal, secret)| {
            format!("Authorization: {}\r\n", wire::auth::basic_header(principal, secret))
        });
        format!(
            "POST {PATH} HTTP/1.1\r\nHost: {}\r\nContent-Type: {media}\r\nAccept: {media}\r\n{STREAM_ID}: {}\r\n\
             {authorization}Content-Length: ",
            stream.master, stream.id
        )
    }
}

struct Driver<S> {
    session: Session<S>,
    clock: Clock,
    masters: Masters,
    caller: Caller,
    wake_signal: Arc<Notify>,
    /// Reports of the reader; not read while too many calls are queued.
    reader_reports: ReportReceiver,
    /// Reports of the sender.
    sender_reports: ReportReceiver,
    /// The task that subscribes and reads the stream; it ends when this is dropped.
    reader: Option<Task>,
    /// The task that sends calls, while there is a subscription.
    sender: Option<Sender>,
    last_failure: String,
    store: Option<Store>,
}

impl<S: Scheduler> Driver<S> {
    async fn run(&mut self, give_up_at: Option<Time>) -> Ending {
        match self.restore().await {
            Ok(None) => {}
            Ok(Some(ending)) => return ending,
            Err(error) => return state_lost(&error),
        }
        let mut outputs = Vec::new();
        loop {
            let given_up = give_up_at.filter(|_| self.session.framework_id().is_none());
            let wake = self.session.next_wake().into_iter().chain(given_up).min().unwrap_or(Time::NEVER);
            let input = tokio::select! {
                biased;
                report = self.sender_reports.next() => self.handle_report(report),
                report = self.reader_reports.next(), if !Sender::is_full(self.sender.as_ref()) => self.handle_report(report),
                () = Sender::progress(self.sender.as_ref()) => None,
                other = self.masters.changed() => Some(self.leader_changed(other)),
                () = self.wake_signal.notified() => Some(Input::WakeSignal),
                () = self.clock.sleep_until(wake) => Some(Input::Wake),
            };
            let now = self.clock.now();
            if given_up.is_some_and(|at| at <= now) {
                return Ending::Unreachable(std::mem::take(&mut self.last_failure));
            }
            if let Some(input) = input {
                self.session.handle(input, now, &mut outputs);
            }
            self.handle_queued_events(now, &mut outputs);
            if let Some(ending) = self.carry_out_all(std::mem::take(&mut outputs)).await {
                return ending;
            }
        }
    }

    /// Restores the entries of the store. The scheduler may end the session in response.
    async fn restore(&mut self) -> Result<Option<Ending>, StoreError> {
        let Some(store) = &mut self.store else { return Ok(None) };
        let entries = store.load().await?;
        let mut outputs = Vec::new();
        self.session.restore(entries, self.clock.now(), &mut outputs)?;
        Ok(self.carry_out_all(outputs).await)
    }

    /// Handles a change of the detected leader. With `other` the connection to the former leader is closed; otherwise
    /// an attempt to subscribe may be made at once.
    fn leader_changed(&mut self, other: bool) -> Input {
        if !other {
            return Input::MasterFound;
        }
        self.masters.lost();
        self.close();
        Input::Disconnected("another master leads now".to_owned())
    }

    /// Handles the events that are already queued if the outputs have changes to write, so that one write serves them
    /// all.
    fn handle_queued_events(&mut self, now: Time, outputs: &mut Vec<Output>) {
        for _ in 0..EVENTS_WAITING_MAX {
            let wanted = outputs.iter().any(|o| matches!(o, Output::Save(_)));
            if !wanted || Sender::is_full(self.sender.as_ref()) {
                return;
            }
            let Some(report) = self.reader_reports.try_next() else { return };
            if let Some(input) = self.handle_report(report) {
                self.session.handle(input, now, outputs);
            }
        }
    }

    /// Carries out outputs: first makes the saved changes durable, then does the rest.
    async fn carry_out_all(&mut self, outputs: Vec<Output>) -> Option<Ending> {
        let (mut changes, mut rest) = (Vec::new(), Vec::with_capacity(outputs.len()));
        // State saved after a teardown records that the framework is gone, and must not be written before it.
        let mut late = Vec::new();
        for output in outputs {
            match output {
                Output::Save(more) if is_teardown(rest.last()) => late = more,
                Output::Save(more) => changes.extend(more),
                other => rest.push(other),
            }
        }
        if let Err(error) = self.write(changes).await {
            self.close();
            return Some(state_lost(&error));
        }
        for output in rest {
            if let Some(ending) = self.carry_out(output).await {
                let written = self.write(late).await;
                return Some(written.err().map_or(ending, |error| state_lost(&error)));
            }
        }
        self.write(late).await.err().map(|error| state_lost(&error))
    }

    async fn write(&mut self, changes: Vec<Change>) -> Result<(), StoreError> {
        match &mut self.store {
            Some(store) if !changes.is_empty() => store.commit(changes).await,
            _ => Ok(()),
        }
    }

    /// Converts a report to an input of the session.
    fn handle_report(&mut self, report: Report) -> Option<Input> {
        match report {
            Report::Opened(stream) => {
                tracing::debug!(master = %stream.master, "subscribed");
                self.masters.found(stream.master.clone());
                self.sender = Some(Sender::start(stream, &self.caller, self.sender_reports.sender()));
                None
            }
            Report::Event(event) => Some(Input::Event(event)),
            Report::Lost(lost) => {
                let why = base::error_chain(&lost);
                match lost {
                    ConnectionError::NoMaster => tracing::debug!("searching for the leading master"),
                    _ => tracing::warn!(%why, "no connection to the master"),
                }
                self.masters.lost();
                self.last_failure.clone_from(&why);
                self.close();
                Some(Input::Disconnected(why))
            }
            Report::Rejected(why) => Some(Input::Event(Box::new(reader::error_event(why)))),
            Report::Refused(call, why) => Some(Input::Refused(call, why)),
        }
    }

    async fn carry_out(&mut self, output: Output) -> Option<Ending> {
        match output {
            Output::Save(_) => {}
            Output::Subscribe(call) => self.subscribe(&call),
            Output::Send(call) => {
                if let Some(sender) = &self.sender {
                    sender.send(*call);
                }
            }
            Output::Answer(answer) => answer.deliver(),
            // A silent master may be gone for long: the next attempt starts with another one.
            Output::Disconnect => {
                self.masters.lost();
                self.close();
            }
            Output::End(ending) => {
                self.sender_reports.close();
                if let Some(sender) = self.sender.take() {
                    sender.finish(END_LIMIT).await;
                }
                self.close();
                return Some(ending);
            }
        }
        None
    }

    fn subscribe(&mut self, call: &Call) {
        self.close();
        let masters = (self.masters.in_order(), self.masters.error());
        self.reader = Some(Task(reader::start(masters, self.caller.clone(), call, self.reader_reports.sender())));
    }

    /// Closes all connections and drops the reports that their tasks have sent.
    fn close(&mut self) {
        self.reader = None;
        self.sender = None;
        self.reader_reports.renew();
        self.sender_reports.renew();
    }
}

/// Returns the ending of a session whose state cannot be read or written.
fn state_lost(error: &StoreError) -> Ending {
    Ending::State(base::error_chain(error))
}

fn is_teardown(output: Option<&Output>) -> bool {
    matches!(output, Some(Output::Send(call)) if call.r#type() == call::Type::Teardown)
}

/// An asynchronous task that ends with its owner.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
