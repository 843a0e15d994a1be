//! Text of events in a script.

use protos::mesos::{self, master, scheduler};

use super::describe::{amounts, status};

/// Formats an offer: its id, agent and resources, and the role if the framework is shown it.
pub(super) fn offer(offer: &mesos::Offer) -> String {
    let role = offer.allocation_info.as_ref().map(|info| format!("@{}", info.role())).unwrap_or_default();
    let executors: Vec<&str> = offer.executor_ids.iter().map(|id| id.value.as_str()).collect();
    let executors = if executors.is_empty() { String::new() } else { format!(" executors={}", executors.join(",")) };
    let window = offer.unavailability.map(|window| format!(" {}", unavailability(&window))).unwrap_or_default();
    format!("{}{role}({} {}{executors}{window})", offer.id.value, offer.slave_id.value, amounts(&offer.resources))
}

fn inverse_offer(offer: &mesos::InverseOffer) -> String {
    let agent = offer.slave_id.clone().unwrap_or_default().value;
    format!("{}({agent} {})", offer.id.value, unavailability(&offer.unavailability))
}

/// Formats a maintenance window: `from=60s for=30s`.
fn unavailability(window: &mesos::Unavailability) -> String {
    let seconds = |nanoseconds: i64| nanoseconds / 1_000_000_000;
    let span = window.duration.map(|span| format!(" for={}s", seconds(span.nanoseconds))).unwrap_or_default();
    format!("from={}s{span}", seconds(window.start.nanoseconds))
}

/// Formats an event of a scheduler.
pub(super) fn scheduler(event: &scheduler::Event) -> String {
    let kind = event.r#type().as_str_name();
    let details = if let Some(body) = &event.subscribed {
        body.framework_id.value.to_string()
    } else if let Some(body) = &event.offers {
        body.offers.iter().map(offer).collect::<Vec<_>>().join(" ")
    } else if let Some(body) = &event.inverse_offers {
        body.inverse_offers.iter().map(inverse_offer).collect::<Vec<_>>().join(" ")
    } else if let Some(body) = &event.rescind_inverse_offer {
        body.inverse_offer_id.value.to_string()
    } else if let Some(body) = &event.rescind {
        body.offer_id.value.to_string()
    } else if let Some(body) = &event.update {
        status(&body.status)
    } else if let Some(body) = &event.update_operation_status {
        operation(&body.status)
    } else if let Some(body) = &event.message {
        format!("{} '{}'", body.executor_id.value, String::from_utf8_lossy(&body.data))
    } else if let Some(body) = &event.failure {
        let agent = body.slave_id.clone().unwrap_or_default().value;
        match &body.executor_id {
            Some(executor) => format!("{agent} executor={} status={}", executor.value, body.status()),
            None => agent.into(),
        }
    } else if let Some(body) = &event.error {
        format!("'{}'", body.message)
    } else {
        String::new()
    };
    format!("{kind} {details}").trim_end().to_owned()
}

fn operation(status: &mesos::OperationStatus) -> String {
    let id = status.operation_id.clone().unwrap_or_default().value;
    let uuid = status.uuid.as_ref().and_then(|uuid| uuid.value.first()).map(|byte| format!(" uuid={byte}"));
    let message = status.message.as_ref().map(|message| format!(" '{message}'"));
    format!("{id} {}{}{}", status.state().as_str_name(), uuid.unwrap_or_default(), message.unwrap_or_default())
}

/// Formats an event of an operator.
pub(super) fn operator(event: &master::Event) -> String {
    let kind = event.r#type().as_str_name();
    let framework = |framework: &master::response::get_frameworks::Framework| {
        let id = framework.framework_info.id.clone().unwrap_or_default().value;
        format!("{id} active={} recovered={}", framework.active, framework.recovered)
    };
    let details = if let Some(body) = &event.task_added {
        format!("{} {}", body.task.task_id.value, body.task.state().as_str_name())
    } else if let Some(body) = &event.task_updated {
        format!("{} state={}", status(&body.status), body.state().as_str_name())
    } else if let Some(body) = &event.framework_added {
        framework(&body.framework)
    } else if let Some(body) = &event.framework_updated {
        framework(&body.framework)
    } else if let Some(body) = &event.framework_removed {
        body.framework_info.id.clone().unwrap_or_default().value.into()
    } else if let Some(body) = &event.agent_added {
        body.agent.agent_info.id.clone().unwrap_or_default().value.into()
    } else if let Some(body) = &event.agent_removed {
        body.agent_id.value.to_string()
    } else {
        String::new()
    };
    format!("{kind} {details}").trim_end().to_owned()
}
