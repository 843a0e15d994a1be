//! SUBSCRIBE of the operator API: the subscribed operators (docs/mesos/operator-api.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use authorizer::{Action, Verdict};
use cores::{RequestId, StreamId};
use protos::mesos::master::{Event, event};

use crate::HEARTBEAT_INTERVAL;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::timers::Timer;
use crate::views;

/// Event stream of an operator.
#[derive(Debug)]
struct Subscriber {
    stream: StreamId,
    /// Principal of the subscriber, which limits what it may view.
    principal: Option<Arc<str>>,
}

/// Event streams of operators, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    streams: BTreeMap<u64, Subscriber>,
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
        self.streams.retain(|_, other| other.stream != stream);
    }

    fn contains(&self, stream: StreamId) -> bool {
        self.streams.values().any(|other| other.stream == stream)
    }

    fn add(&mut self, stream: StreamId, principal: Option<Arc<str>>) {
        self.streams.insert(self.next, Subscriber { stream, principal });
        self.next += 1;
    }

    fn pop_oldest(&mut self) -> Option<StreamId> {
        self.streams.pop_first().map(|(_, other)| other.stream)
    }
}

impl Master {
    /// Subscribes an operator. If there are too many streams, the oldest one is closed.
    pub(crate) fn operator_subscribe(
        &mut self,
        request: RequestId,
        stream: StreamId,
        principal: Option<Arc<str>>,
        out: &mut Outbox,
    ) {
        while self.subscribers.len() >= self.config.max_operator_event_stream_subscribers.max(1) {
            if let Some(oldest) = self.subscribers.pop_oldest() {
                out.warn("Closing the oldest operator's stream: there are too many");
                out.push(Output::CloseStream { stream: oldest });
            }
        }
        self.subscribers.add(stream, principal.clone());
        out.push(Output::OpenStream { request, stream });
        let snapshot = self.snapshot();
        out.push(Output::OperatorSubscribed { stream, snapshot, principal });
        self.operator_heartbeat(stream, out);
    }

    /// Sends a heartbeat, and sets the timer of the next one.
    pub(crate) fn operator_heartbeat(&mut self, stream: StreamId, out: &mut Outbox) {
        if !self.subscribers.contains(stream) {
            return;
        }
        let event = Event { r#type: Some(event::Type::Heartbeat as i32), ..Event::default() };
        out.push(Output::OperatorEvent { stream, event: Arc::new(event) });
        self.timers.set(self.now + HEARTBEAT_INTERVAL, Timer::OperatorHeartbeat { stream });
    }

    /// Sends an event to all subscribed operators that may view it.
    pub(crate) fn announce(
        &self,
        kind: event::Type,
        may_view: impl Fn(Option<&str>) -> bool,
        fill: impl FnOnce(&mut Event),
        out: &mut Outbox,
    ) {
        let mut event = Event { r#type: Some(kind as i32), ..Event::default() };
        fill(&mut event);
        let event = Arc::new(event);
        for Subscriber { stream, principal } in self.subscribers.streams.values() {
            if may_view(principal.as_deref()) {
                let event = self.visible(&event, principal.as_deref());
                out.push(Output::OperatorEvent { stream: *stream, event });
            }
        }
    }

    /// Returns the event without resources of roles that the subscriber may not view.
    fn visible(&self, event: &Arc<Event>, principal: Option<&str>) -> Arc<Event> {
        let authorizer = &self.config.authorizer;
        if event.agent_added.is_none() || authorizer.verdict(principal, Action::ViewRole) == Verdict::Everything {
            return Arc::clone(event);
        }
        let mut event = Event::clone(event);
        if let Some(added) = &mut event.agent_added {
            views::keep_visible(&mut added.agent, |role| authorizer.approves(principal, Action::ViewRole, Some(role)));
        }
        Arc::new(event)
    }
}
