//! Marathon's event stream: sends each client the types of events that it has requested.

use sdk::driver::api::{self, Call, Response};
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

use super::stamp::{iso, now};

/// Maximum number of events that are queued for the slowest client; beyond that the client misses some.
const WAITING_MAX: usize = 1_024;

/// Type of an event, and its JSON.
type Event = (String, String);

/// Channel of events to all clients.
#[derive(Clone, Debug)]
pub(super) struct Bus(broadcast::Sender<Event>);

impl Default for Bus {
    fn default() -> Bus {
        Bus(broadcast::Sender::new(WAITING_MAX))
    }
}

impl Bus {
    /// Returns whether there are clients.
    pub(super) fn is_followed(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Sends an event. `body` is an object, to which type and time are added.
    pub(super) fn publish(&self, kind: &str, mut body: Value) {
        if !self.is_followed() {
            return;
        }
        body["eventType"] = json!(kind);
        body["timestamp"] = json!(iso(now()));
        // The last client may have disconnected just now.
        let _ = self.0.send((kind.to_owned(), body.to_string()));
    }

    /// Returns a stream of the events from now on: of the types that the query names as `event_type`, or of all.
    pub(super) fn follow(&self, call: &Call) -> Response {
        let wanted = call.query.all("event_type").to_vec();
        let (events, response) = api::events("text/event-stream");
        let mut receiver = self.0.subscribe();
        self.publish("event_stream_attached", json!({ "remoteAddress": call.request.peer.to_string() }));
        tokio::spawn(async move {
            loop {
                let next = tokio::select! {
                    _ = events.closed() => return,
                    next = receiver.recv() => next,
                };
                let sent = match next {
                    Ok((kind, _)) if !wanted.is_empty() && !wanted.contains(&kind) => Ok(()),
                    Ok((kind, body)) => events.send_event(&kind, &body),
                    Err(RecvError::Lagged(_)) => Ok(()),
                    Err(RecvError::Closed) => return,
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        response
    }
}
