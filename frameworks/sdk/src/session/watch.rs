//! Metrics of a session. docs/framework-guide.md lists their names.

use crate::v1::TaskState;
use crate::v1::scheduler::Call;
use crate::{Event, Metrics};

/// Records whether the framework is subscribed, and counts every new subscription.
pub(super) fn connected(metrics: &Metrics, subscribed: bool) {
    metrics.gauge("tepui_framework_subscribed", &[], f64::from(u8::from(subscribed)));
    if subscribed {
        metrics.count("tepui_framework_subscriptions_total", &[], 1);
    }
}

/// Records the number of tasks that have not ended.
pub(super) fn tasks(metrics: &Metrics, count: usize) {
    metrics.gauge("tepui_framework_tasks", &[], count as f64);
}

/// Counts an update, new or repeated.
pub(super) fn update(metrics: &Metrics, state: TaskState) {
    metrics.count("tepui_framework_updates_total", &[("state", state.as_str_name())], 1);
}

/// Counts an event; [`update`] counts updates.
pub(super) fn event(metrics: &Metrics, event: &Event) {
    match event {
        Event::Offers(offers) => metrics.count("tepui_framework_offers_total", &[], offers.len() as u64),
        Event::Rescinded(_) => metrics.count("tepui_framework_offers_rescinded_total", &[], 1),
        Event::Refused { .. } => metrics.count("tepui_framework_calls_refused_total", &[], 1),
        _ => {}
    }
}

/// Counts a call that is sent.
pub(super) fn call(metrics: &Metrics, call: &Call) {
    metrics.count("tepui_framework_calls_total", &[("type", call.r#type().as_str_name())], 1);
}
