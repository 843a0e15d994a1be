//! Writes the answer to EXPLAIN as JSON: the text of an explanation, and its result for each agent.

use allocator::{Explanation, Held, HeldBy, Inactivity, Obstacle, OfferState};
use base::AgentId;
use master::ExcludedAgents;
use serde_json::{Map, Value, json};

/// Returns the document `/allocator/offer_constraints_debug` (SCH-114).
pub(super) fn constraints(frameworks: &[ExcludedAgents]) -> Value {
    let excluded = |kept: &ExcludedAgents| -> Map<String, Value> {
        let ids = |agents: &[AgentId]| agents.iter().map(|agent| json!(agent.as_str())).collect::<Vec<Value>>();
        kept.excluded.iter().map(|(role, agents)| (role.to_string(), Value::from(ids(agents)))).collect()
    };
    let entry = |kept: &ExcludedAgents| {
        let value = json!({
            "suppressed_roles": kept.suppressed,
            "excluded_by_attribute_constraints": excluded(kept),
        });
        (kept.framework.to_string(), value)
    };
    json!({ "frameworks": frameworks.iter().map(entry).collect::<Map<String, Value>>() })
}

/// Returns the document with all explanations of a framework, one for each role.
pub(super) fn document(explanations: &[Explanation]) -> Value {
    json!({ "explanations": explanations.iter().map(explanation).collect::<Vec<Value>>() })
}

fn explanation(explanation: &Explanation) -> Value {
    let levels = explanation.levels.iter().map(|level| {
        json!({ "name": level.name, "among": level.among, "share": level.share, "before": level.before, "of": level.of })
    });
    let agents = explanation.agents.iter().map(|verdict| {
        let mut entry = reason(&verdict.obstacle);
        entry["free"] = json!(verdict.free.to_string());
        entry["agent_id"] = json!({ "value": verdict.agent.as_str() });
        entry["hostname"] = json!(verdict.hostname);
        if let Some(window) = verdict.maintenance {
            let duration = window.duration.map(|length| length.as_secs_f64());
            entry["maintenance"] = json!({ "start": window.start.as_secs_f64(), "duration": duration });
        }
        entry
    });
    json!({
        "framework_id": { "value": explanation.framework.as_str() },
        "name": explanation.name,
        "role": explanation.role.as_str(),
        "wants_offers": explanation.offer_state == OfferState::Wants,
        "need": explanation.need.to_string(),
        "possible_agents": explanation.possible_agents(),
        "order": levels.collect::<Vec<Value>>(),
        "agents": agents.collect::<Vec<Value>>(),
        "machines_down": explanation.down,
        "text": explanation.to_string(),
    })
}

/// Returns the reason of an agent's result. Times are in seconds since the epoch.
fn reason(obstacle: &Obstacle) -> Value {
    match obstacle {
        Obstacle::Nothing(offer) => json!({ "reason": "NOTHING", "would_be_offered": offer.to_string() }),
        Obstacle::Offered(since) => json!({ "reason": "OFFERED", "since": since.as_secs_f64() }),
        Obstacle::Inactive(why) => {
            let why = match why {
                Inactivity::Any => Value::Null,
                Inactivity::Disconnected => json!("DISCONNECTED"),
                Inactivity::Draining => json!("DRAINING"),
                Inactivity::Drained => json!("DRAINED"),
                Inactivity::Deactivated => json!("DEACTIVATED"),
            };
            json!({ "reason": "INACTIVE", "why": why })
        }
        Obstacle::Unhealthy(why) => json!({ "reason": "UNHEALTHY", "why": why }),
        Obstacle::NotWhitelisted => json!({ "reason": "NOT_WHITELISTED" }),
        Obstacle::Constraints => json!({ "reason": "CONSTRAINTS" }),
        Obstacle::OldAgent(lacks) => json!({ "reason": "OLD_AGENT", "lacks": lacks }),
        Obstacle::Capability(lacks) => json!({ "reason": "CAPABILITY", "lacks": lacks }),
        Obstacle::TooSmall(total) => json!({ "reason": "TOO_SMALL", "has": total.to_string() }),
        Obstacle::Held(by) => json!({ "reason": "HELD", "by": by.iter().map(holder).collect::<Vec<Value>>() }),
        Obstacle::Reserved(roles) => {
            json!({ "reason": "RESERVED", "roles": roles.iter().map(|role| role.as_str()).collect::<Vec<_>>() })
        }
        Obstacle::Stripped(lacks) => json!({ "reason": "STRIPPED", "lacks": lacks }),
        Obstacle::Limit(role) => json!({ "reason": "LIMIT", "role": role.as_str() }),
        Obstacle::Withheld => json!({ "reason": "SET_ASIDE" }),
        Obstacle::Refused(until) => json!({ "reason": "REFUSED", "until": until.map(base::Time::as_secs_f64) }),
        Obstacle::HoldsTooMuch => json!({ "reason": "HOLDS_TOO_MUCH" }),
    }
}

fn holder(by: &HeldBy) -> Value {
    json!({
        "framework_id": { "value": by.framework.as_str() },
        "name": by.name,
        "role": by.role.as_str(),
        "in": if by.held == Held::Offered { "OFFER" } else { "USE" },
        "resources": by.amounts.to_string(),
        "since": by.since.as_secs_f64(),
    })
}
