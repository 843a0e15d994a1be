//! The document `/slaves`, and the fields of an agent in `/state`, `/state-summary` and `/slaves` (LEG-03, LEG-61).

use master::Agent;
use protos::json::{Dialect, Writer};
use resources::{Resources, Role};

use super::Context;
use super::visibility::Visibility;
use crate::parts;

/// Writes the document `/slaves?slave_id=`.
pub(in crate::master) fn write(context: &Context, out: &mut Vec<u8>) {
    let wanted = context.query.get("slave_id");
    let is_wanted = |id: &str| wanted.is_none_or(|wanted| wanted == id);
    let visibility = &context.visibility;
    Writer::new(out).object(|w| {
        w.key("slaves").array(|w| {
            let all = |w: &mut Writer<'_>, agent: &Agent| {
                w.object(|w| {
                    fields(w, agent, visibility);
                    full_fields(w, agent, visibility);
                });
            };
            let agents = &context.snapshot.agents;
            if wanted.is_some() || !visibility.all_roles() {
                agents.values().filter(|agent| is_wanted(agent.id.as_str())).for_each(|agent| all(w, agent));
            } else {
                context.chunk_cache.full_agents.list(w, &mut context.splices.borrow_mut(), agents, all);
            }
        });
        w.key("recovered_slaves").array(|w| recovered(w, context, is_wanted));
    });
}

/// Writes the agents of the registry that have not reregistered.
pub(super) fn recovered(w: &mut Writer<'_>, context: &Context, is_wanted: impl Fn(&str) -> bool) {
    for (id, info) in context.snapshot.recovered.iter().filter(|(id, _)| is_wanted(id.as_str())) {
        w.object(|w| {
            w.key("id").string(id.as_str());
            w.key("hostname").string(&info.hostname);
            w.key("port").int(i64::from(info.port.unwrap_or(5051)));
            w.key("attributes");
            parts::attributes(w, &info.attributes);
            w.key("resources");
            parts::resources(w, &resources::from_proto(&info.resources).unwrap_or_default());
        });
    }
}

/// Writes the fields of an agent that every list of agents has.
pub(super) fn fields(w: &mut Writer<'_>, agent: &Agent, visibility: &Visibility) {
    w.key("id").string(agent.id.as_str());
    w.key("hostname").string(&agent.info.hostname);
    w.key("port").int(i64::from(agent.info.port.unwrap_or(5051)));
    w.key("attributes");
    parts::attributes(w, &agent.info.attributes);
    if let Some(domain) = &agent.info.domain {
        w.key("domain").message(domain, Dialect::V0);
    }
    w.key("pid").string(&agent.pid.to_string());
    w.key("registered_time").double(agent.registered.as_secs_f64());
    if let Some(time) = agent.reregistered {
        w.key("reregistered_time").double(time.as_secs_f64());
    }
    w.key("resources");
    parts::resources(w, &agent.total);
    w.key("used_resources");
    parts::resources(w, &agent.used);
    w.key("offered_resources");
    parts::resources(w, &agent.offered);
    w.key("reserved_resources").object(|w| {
        for (role, reserved) in reservations(agent, visibility) {
            w.key(role.as_str());
            parts::resources(w, &reserved);
        }
    });
    w.key("unreserved_resources");
    parts::resources(w, &agent.total.unreserved());
    w.key("active").bool(agent.active());
    w.key("deactivated").bool(agent.deactivated);
    w.key("version").string(&agent.version);
    w.key("capabilities");
    parts::agent_capabilities(w, &agent.capabilities.to_proto());
    if let Some(drain) = &agent.drain {
        w.key("drain_info").message(drain, Dialect::V0);
    }
    if let Some(start) = agent.drain_start {
        w.key("estimated_drain_start_time_seconds").double(start.as_secs_f64());
    }
}

fn full_fields(w: &mut Writer<'_>, agent: &Agent, visibility: &Visibility) {
    let list = |w: &mut Writer<'_>, key: &str, resources: &Resources| {
        w.key(key);
        parts::resource_objects(w, resources);
    };
    w.key("reserved_resources_full").object(|w| {
        for (role, reserved) in reservations(agent, visibility) {
            list(w, role.as_str(), &reserved);
        }
    });
    list(w, "unreserved_resources_full", &agent.total.unreserved());
    for (key, resources) in [("used_resources_full", &agent.used), ("offered_resources_full", &agent.offered)] {
        match visibility.all_roles() {
            true => list(w, key, resources),
            false => list(w, key, &visibility.resources(resources)),
        }
    }
}

/// Returns the resources that are reserved to roles that may be viewed, by role.
fn reservations(agent: &Agent, visibility: &Visibility) -> impl Iterator<Item = (Role, Resources)> {
    agent.total.reservations().into_iter().filter(|(role, _)| visibility.role(role.as_str()))
}
