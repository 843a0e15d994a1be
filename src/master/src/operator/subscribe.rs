//! SUBSCRIBE of the operator API: who listens (mesos-features.md 3.3).

use std::collections::BTreeMap;
use std::sync::Arc;

use protos::mesos::master::{Event, event};

use crate::HEARTBEAT_INTERVAL;
use crate::io::{Outbox, Output, RequestId, StreamId};
use crate::master::Master;
use crate::timers::Timer;

/// The operators' streams, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    streams: BTreeMap<u64, StreamId>,
    next: u64,
}

impl Subscribers {
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub(crate) fn remove(&mut self, stream: StreamId) {
        self.streams.retain(|_, other| *other != stream);
    }

    fn contains(&self, stream: StreamId) -> bool {
        self.streams.values().any(|other| *other == stream)
    }

    fn add(&mut self, stream: StreamId) {
        self.streams.insert(self.next, stream);
        self.next += 1;
    }

    fn pop_oldest(&mut self) -> Option<StreamId> {
        self.streams.pop_first().map(|(_, stream)| stream)
    }
}

impl Master {
    /// A further stream than may be closes the oldest one.
    pub(crate) fn operator_subscribe(
        &mut self,
        request: RequestId,
        stream: StreamId,
        _principal: Option<Arc<str>>,
        out: &mut Outbox,
    ) {
        self.snapshot = None;
        while self.subscribers.len() >= self.config.max_operator_event_stream_subscribers.max(1) {
            if let Some(oldest) = self.subscribers.pop_oldest() {
                out.info("Closing the oldest operator's stream: there are too many");
                out.push(Output::CloseStream { stream: oldest });
            }
        }
        self.subscribers.add(stream);
        out.push(Output::OpenStream { request, stream });
        let snapshot = self.snapshot();
        out.push(Output::OperatorSubscribed { stream, snapshot });
        self.operator_heartbeat(stream, out);
    }

    /// A heartbeat, and the next one in its time.
    pub(crate) fn operator_heartbeat(&mut self, stream: StreamId, out: &mut Outbox) {
        if !self.subscribers.contains(stream) {
            return;
        }
        let event = Event { r#type: Some(event::Type::Heartbeat as i32), ..Event::default() };
        out.push(Output::OperatorEvent { stream, event: Arc::new(event) });
        self.timers.set(self.now + HEARTBEAT_INTERVAL, Timer::OperatorHeartbeat { stream });
    }

    /// Tells all operators that listen.
    pub(crate) fn announce(&self, kind: event::Type, fill: impl FnOnce(&mut Event), out: &mut Outbox) {
        let mut event = Event { r#type: Some(kind as i32), ..Event::default() };
        fill(&mut event);
        let event = Arc::new(event);
        for stream in self.subscribers.streams.values() {
            out.push(Output::OperatorEvent { stream: *stream, event: Arc::clone(&event) });
        }
    }
}
