//! The task that subscribes and reads the event stream.

use bytes::Bytes;
use tokio::task::AbortHandle;
use wire::client::{Address, Client, Records, Reply, Subscription};
use wire::http::StatusCode;

use super::inbox::{Inbox, Lost, News, Stream};
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

/// Starts a task that subscribes at the first of `masters` that accepts `call`, and passes all events to `inbox`. The
/// second part of `masters` is the reason to report if there are none.
pub(super) fn start(masters: (Vec<Address>, Lost), caller: Caller, call: &Call, inbox: Inbox) -> AbortHandle {
    let body = caller.encoding.encode(call);
    let task = async move {
        let lost = match open(masters, &caller, &body).await {
            Ok((stream, records)) => match inbox.tell(News::Opened(stream)).await {
                Some(()) => read(records, caller.encoding, &inbox).await,
                None => return,
            },
            Err(news) => news,
        };
        inbox.tell(lost).await;
    };
    tokio::spawn(task).abort_handle()
}

/// Returns an ERROR event for an HTTP error of the master.
pub(super) fn error_event(message: String) -> Event {
    Event { r#type: Some(event::Type::Error as i32), error: Some(event::Error { message }), ..Default::default() }
}

/// Tries to subscribe at the masters in turn. The error is that of the last one.
async fn open(masters: (Vec<Address>, Lost), caller: &Caller, body: &Bytes) -> Result<(Stream, Records), News> {
    let mut news = News::Lost(masters.1);
    for master in masters.0 {
        news = match open_one(&master, caller, body).await {
            Err(lost @ News::Lost(_)) => lost,
            other => return other,
        };
    }
    Err(news)
}

/// Subscribes at one master, or at the leader that it names.
async fn open_one(master: &Address, caller: &Caller, body: &Bytes) -> Result<(Stream, Records), News> {
    let mut address = master.clone();
    for _ in 0..=REDIRECTS_MAX {
        let media = caller.encoding.media_type();
        let client = caller.client(address.clone()).with_timeout(caller.patience);
        let answer = client.subscribe(PATH, media, media, &[], body.clone()).await;
        match answer.map_err(|error| News::Lost(error.into()))? {
            Subscription::Stream(records) => {
                let id = records.header(STREAM_ID).unwrap_or_default().to_owned();
                return Ok((Stream { master: address, id }, records));
            }
            Subscription::Refused(reply) => match reply.redirect() {
                Some((leader, _)) => address = leader,
                None if reply.status.is_client_error() && is_agent(&address, caller).await => {
                    return Err(News::Rejected(format!(
                        "{address} is an agent: give the address of its master instead"
                    )));
                }
                None => return Err(refused(&address, &reply)),
            },
        }
    }
    Err(News::Lost(Lost::Redirects(master.clone())))
}

/// Returns whether an agent listens at the address.
async fn is_agent(address: &Address, caller: &Caller) -> bool {
    let mut client = Client::at(address.clone()).with_timeout(caller.patience);
    client.get(AGENT).await.is_ok_and(|reply| reply.status == StatusCode::OK)
}

/// Classifies a response that is not a stream. Errors of proxies and overloaded servers are transient.
fn refused(address: &Address, reply: &Reply) -> News {
    let status = reply.status;
    let why = Lost::Answer { address: address.clone(), status, text: reply.text() };
    let passes = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    match status {
        StatusCode::NOT_FOUND | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => News::Lost(why),
        _ if passes => News::Lost(why),
        _ => News::Rejected(why.to_string()),
    }
}

/// Reads the stream to its end. A record that cannot be decoded is skipped: a newer master may send other kinds of
/// events.
async fn read(mut records: Records, encoding: Encoding, inbox: &Inbox) -> News {
    loop {
        match records.next().await {
            Ok(Some(record)) => match encoding.decode(&record) {
                Ok(event) => {
                    if inbox.tell(News::Event(Box::new(event))).await.is_none() {
                        return News::Lost(Lost::Unheard);
                    }
                }
                Err(why) => tracing::warn!(%why, "a record of the event stream cannot be read"),
            },
            Ok(None) => return News::Lost(Lost::Ended),
            Err(error) => return News::Lost(error.into()),
        }
    }
}
