//! Sends HEARTBEAT events to executors that have an event stream, so that proxies keep idle streams open (EXE-07).

use std::sync::Arc;

use base::Time;
use protos::mesos::executor as api;

use crate::agent::Agent;
use crate::output::{Outbox, Output};
use crate::timers::Timer;

impl Agent {
    /// Schedules heartbeats. One timer serves all streams: the first heartbeat of an executor may come sooner than
    /// after a whole interval.
    pub(crate) fn expect_heartbeats(&mut self, now: Time) {
        if let (None, Some(interval)) = (self.heartbeats, self.config.executor_heartbeat) {
            self.heartbeats = Some(self.timers.set(now + interval, Timer::ExecutorHeartbeats));
        }
    }

    /// Sends a heartbeat on each stream, and schedules the next ones.
    pub(crate) fn send_heartbeats(&mut self, now: Time, out: &mut Outbox) {
        self.heartbeats = None;
        let streams = self.frameworks.streams();
        if streams.is_empty() {
            return;
        }
        let heartbeat = api::Event { r#type: Some(api::event::Type::Heartbeat as i32), ..api::Event::default() };
        let heartbeat = Arc::new(heartbeat);
        let event = |stream| Output::ExecutorEvent { stream, event: Arc::clone(&heartbeat) };
        out.outputs.extend(streams.into_iter().map(event));
        self.expect_heartbeats(now);
    }
}
