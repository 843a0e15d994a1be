//! The task that subscribes and reads the event stream.

use bytes::Bytes;
use tokio::task::AbortHandle;
use wire::client::{Address, Client, Records, Reply, Subscription};
use wire::http::StatusCode;

use super::reports::{ConnectionError, Report, ReportSender, Stream};
use super::{Caller, Encoding};
use crate::v1::scheduler::{Call, Event, event};

/// Path at which every master accepts scheduler calls.
pub(super) const PATH: &str = "/api/v1/scheduler";
/// Header that assigns calls to their subscription.
pub(super) const STREAM_ID: &str = "Mesos-Stream-Id";
/// Path that only agents serve, without authentication, Mesos's agents included.
const AGENT: &str = "/slave(1)/health";
/// Maximum number of redirects in one attempt. More than one means that the leader is just changing.
const REDIRECTS_MAX: usize = 3;

/// Starts a task that subscribes at the first of `masters` that accepts `call`, and passes all events to `reports`. The
/// second part of `masters` is the reason to report if there are none.
pub(super) fn start(
    masters: (Vec<Address>, ConnectionError),
    caller: Caller,
    call: &Call,
    reports: ReportSender,
) -> AbortHandle {
    let body = caller.encoding.encode(call);
    let task = async move {
        let lost = match open(masters, &caller, &body).await {
            Ok((stream, records)) => match reports.send(Report::Opened(stream)).await {
                Some(()) => read(records, caller.encoding, &reports).await,
                None => return,
            },
            Err(report) => report,
        };
        reports.send(lost).await;
    };
    tokio::spawn(task).abort_handle()
}

/// Returns an ERROR event for an HTTP error of the master.
pub(super) fn error_event(message: String) -> Event {
    Event { r#type: Some(event::Type::Error as i32), error: Some(event::Error { message }), ..Default::default() }
}

/// Tries to subscribe at the masters in turn. The error is that of the last one.
async fn open(
    masters: (Vec<Address>, ConnectionError),
    caller: &Caller,
    body: &Bytes,
) -> Result<(Stream, Records), Report> {
    let mut report = Report::Lost(masters.1);
    for master in masters.0 {
        report = match open_one(&master, caller, body).await {
            Err(lost @ Report::Lost(_)) => lost,
            other => return other,
        };
    }
    Err(report)
}

/// Subscribes at one master, or at the leader that it names.
async fn open_one(master: &Address, caller: &Caller, body: &Bytes) -> Result<(Stream, Records), Report> {
    let mut address = master.clone();
    for _ in 0..=REDIRECTS_MAX {
        let media = caller.encoding.media_type();
        let client = caller.client(address.clone()).with_timeout(caller.subscribe_timeout);
        let answer = client.subscribe(PATH, media, media, &[], body.clone()).await;
        match answer.map_err(|error| Report::Lost(error.into()))? {
            Subscription::Stream(records) => {
                let id = records.header(STREAM_ID).unwrap_or_default().to_owned();
                return Ok((Stream { master: address, id }, records));
            }
            Subscription::Refused(reply) => match reply.redirect() {
                Some((leader, _)) => address = leader,
                None if reply.status.is_client_error() && is_agent(&address, caller).await => {
                    return Err(Report::Rejected(format!(
                        "{address} is an agent: give the address of its master instead"
                    )));
                }
                None => return Err(refused(&address, &reply)),
            },
        }
    }
    Err(Report::Lost(ConnectionError::Redirects(master.clone())))
}

/// Returns whether an agent listens at the address.
async fn is_agent(address: &Address, caller: &Caller) -> bool {
    let mut client = Client::at(address.clone()).with_timeout(caller.subscribe_timeout);
    client.get(AGENT).await.is_ok_and(|reply| reply.status == StatusCode::OK)
}

/// Classifies a response that is not a stream. Errors of proxies and overloaded servers are transient.
fn refused(address: &Address, reply: &Reply) -> Report {
    let status = reply.status;
    let why = ConnectionError::Answer { address: address.clone(), status, text: reply.text() };
    let passes = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    match status {
        StatusCode::NOT_FOUND | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Report::Lost(why),
        _ if passes => Report::Lost(why),
        _ => Report::Rejected(why.to_string()),
    }
}

/// Reads the stream to its end. A record that cannot be decoded is skipped: a newer master may send other kinds of
/// events.
async fn read(mut records: Records, encoding: Encoding, reports: &ReportSender) -> Report {
    loop {
        match records.next().await {
            Ok(Some(record)) => match encoding.decode(&record) {
                Ok(event) => {
                    if reports.send(Report::Event(Box::new(event))).await.is_none() {
                        return Report::Lost(ConnectionError::DriverEnded);
                    }
                }
                Err(why) => tracing::warn!(%why, "a record of the event stream cannot be read"),
            },
            Ok(None) => return Report::Lost(ConnectionError::Ended),
            Err(error) => return Report::Lost(error.into()),
        }
    }
}
