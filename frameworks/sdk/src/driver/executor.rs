//! Runs a custom executor against its agent over HTTP.
//!
//! It carries out the outputs of an [`executor::Session`](crate::executor::Session). Calls are sent one after the
//! other; events are queued meanwhile.

use std::sync::Arc;

use prost::Message;
use tokio::sync::Notify;
use wire::client::{Client, Records, Subscription};
use wire::http::{PROTOBUF, StatusCode};

use super::clock::{self, Clock};
use crate::executor::{Ending, Environment, EnvironmentError, Executor, Input, Output, Session};
use crate::v1::executor::{Call, Event};

/// Path at which every agent accepts executor calls (docs/mesos/executors.md).
const PATH: &str = "/slave(1)/api/v1/executor";

/// An error that prevents an executor from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The environment is not that of an executor: the process was not started by an agent.
    #[error("executors are started by an agent")]
    Environment(#[from] EnvironmentError),
    /// The agent's address is invalid.
    #[error("MESOS_AGENT_ENDPOINT names no agent")]
    Agent(#[from] wire::client::ClientError),
}

/// Result of a run of an executor.
#[derive(Debug)]
pub struct Finished<E> {
    /// The executor in its state after the last event.
    pub executor: E,
    /// Reason for the end of the run.
    pub ending: Ending,
}

/// Runs `executor` until it stops, with the settings in this process's environment. Each notification of `wake_signal`
/// sends [`Event::Wake`](crate::executor::Event::Wake) to the executor. Requires a tokio runtime with time and I/O.
///
/// # Errors
/// The environment is not that of an executor, or the agent's address in it is invalid.
pub async fn run<E: Executor>(executor: E, wake_signal: Arc<Notify>) -> Result<Finished<E>, StartError> {
    let environment = Environment::read(|name| std::env::var(name).ok())?;
    run_in(executor, environment, wake_signal).await
}

/// Runs an executor like [`run`], with another environment than that of the process.
///
/// # Errors
/// The agent's address is invalid.
pub async fn run_in<E: Executor>(
    executor: E,
    environment: Environment,
    wake_signal: Arc<Notify>,
) -> Result<Finished<E>, StartError> {
    let mut client = Client::new(&environment.endpoint)?;
    if let Some(token) = &environment.token {
        client = client.with_authorization(format!("Bearer {token}"));
    }
    let clock = Clock::start();
    let session = Session::new(executor, environment, clock::seed(), clock.now());
    let mut driver = Driver { session, clock, client, records: None, wake_signal };
    let ending = driver.run().await;
    Ok(Finished { executor: driver.session.into_executor(), ending })
}

struct Driver<E> {
    session: Session<E>,
    clock: Clock,
    client: Client,
    /// The event stream; `None` without a subscription.
    records: Option<Records>,
    wake_signal: Arc<Notify>,
}

impl<E: Executor> Driver<E> {
    async fn run(&mut self) -> Ending {
        loop {
            let wake = self.session.next_wake().unwrap_or(base::Time::NEVER);
            let input = tokio::select! {
                biased;
                input = next(&mut self.records) => input,
                () = self.wake_signal.notified() => Some(Input::WakeSignal),
                () = self.clock.sleep_until(wake) => Some(Input::Wake),
            };
            let mut outputs = Vec::new();
            if let Some(input) = input {
                self.handle(input, &mut outputs);
            }
            if let Some(ending) = self.carry_out(outputs).await {
                return ending;
            }
        }
    }

    fn handle(&mut self, input: Input, outputs: &mut Vec<Output>) {
        if let Input::Disconnected(why) = &input {
            tracing::warn!(%why, "no connection to the agent");
            self.records = None;
        }
        self.session.handle(input, self.clock.now(), outputs);
    }

    /// Carries out the outputs in order. After a failed call the remaining calls are not sent: the next subscription
    /// contains what they would have reported.
    async fn carry_out(&mut self, mut outputs: Vec<Output>) -> Option<Ending> {
        while !outputs.is_empty() {
            for output in std::mem::take(&mut outputs) {
                let failed = match output {
                    Output::Subscribe(call) => self.subscribe(&call).await.err(),
                    Output::Send(call) => self.send(&call).await.err(),
                    Output::End(ending) => return Some(ending),
                };
                if let Some(input) = failed {
                    self.handle(input, &mut outputs);
                    break;
                }
            }
        }
        None
    }

    async fn subscribe(&mut self, call: &Call) -> Result<(), Input> {
        let body = call.encode_to_vec().into();
        match self.client.subscribe(PATH, PROTOBUF, PROTOBUF, &[], body).await {
            Ok(Subscription::Stream(records)) => {
                self.records = Some(records);
                Ok(())
            }
            Ok(Subscription::Refused(reply)) => Err(refused(reply.status, &reply.text())),
            Err(error) => Err(Input::Disconnected(base::error_chain(&error))),
        }
    }

    async fn send(&mut self, call: &Call) -> Result<(), Input> {
        let body = call.encode_to_vec().into();
        match self.client.post(PATH, PROTOBUF, PROTOBUF, &[], body).await {
            Ok(reply) if reply.status.is_success() => Ok(()),
            Ok(reply) => Err(refused(reply.status, &reply.text())),
            Err(error) => Err(Input::Disconnected(base::error_chain(&error))),
        }
    }
}

/// Converts a rejected call to an input of the session. The rejections of a recovering agent are transient; others are
/// final.
fn refused(status: StatusCode, text: &str) -> Input {
    let why = format!("{status}: {text}");
    match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::NOT_FOUND => Input::Disconnected(why),
        _ => Input::Refused(why),
    }
}

/// Returns the next event; invalid records are skipped.
async fn next(records: &mut Option<Records>) -> Option<Input> {
    let Some(open) = records else { return std::future::pending().await };
    match open.next().await {
        Ok(Some(record)) => match protos::decode::<Event>(&record) {
            Ok(event) => Some(Input::Event(Box::new(event))),
            Err(why) => {
                tracing::warn!(%why, "a record of the event stream cannot be read");
                None
            }
        },
        Ok(None) => Some(Input::Disconnected("the agent ended the stream".to_owned())),
        Err(error) => Some(Input::Disconnected(base::error_chain(&error))),
    }
}
