//! The document `/state`: all agents, frameworks and tasks (LEG-60).

use master::Agent;
use protos::json::{Dialect, Writer};

use super::index::Index;
use super::{Context, frameworks, slaves};
use crate::common::{BUILD, MESOS_VERSION};

/// Writes the document `/state`.
pub(in crate::master) fn write(context: &Context, out: &mut Vec<u8>) {
    let index = Index::new(&context.snapshot, &context.chunk_cache);
    Writer::new(out).object(|w| {
        w.key("version").string(MESOS_VERSION);
        w.key("build_date").string(BUILD.date);
        w.key("build_time").double(BUILD.time);
        w.key("build_user").string(BUILD.user);
        w.key("start_time").double(context.started.as_secs_f64());
        w.key("elected_time").double(context.snapshot.started.as_secs_f64());
        master_fields(w, context);
        log_fields(w, context);
        if context.visibility.flags {
            w.key("flags").object(|w| context.common.write_flags(w));
        }
        w.key("slaves").array(|w| {
            let write = |w: &mut Writer<'_>, agent: &Agent| {
                w.object(|w| slaves::fields(w, agent, &context.visibility));
            };
            let agents = &context.snapshot.agents;
            match context.visibility.all_roles() {
                true => context.chunk_cache.agents.list(w, &mut context.splices.borrow_mut(), agents, write),
                false => agents.values().for_each(|agent| write(w, agent)),
            }
        });
        w.key("recovered_slaves").array(|w| slaves::recovered(w, context, |_| true));
        frameworks::lists(w, context, &index, |_| true);
        w.key("orphan_tasks").array(|_| {});
    });
}

fn master_fields(w: &mut Writer<'_>, context: &Context) {
    let snapshot = &context.snapshot;
    let info = &snapshot.info;
    w.key("id").string(&info.id);
    w.key("pid").string(info.pid.as_deref().unwrap_or_default());
    w.key("hostname").string(info.hostname.as_deref().unwrap_or_default());
    w.key("capabilities").array(|w| {
        for capability in &info.capabilities {
            w.string(capability.r#type().as_str_name());
        }
    });
    let active = snapshot.agents.values().filter(|agent| agent.active()).count();
    w.key("activated_slaves").double(active as f64);
    w.key("deactivated_slaves").double((snapshot.agents.len() - active) as f64);
    w.key("unreachable_slaves").double(snapshot.unreachable as f64);
    if let Some(domain) = &info.domain {
        w.key("domain").message(domain, Dialect::V0);
    }
    w.key("leader").string(info.pid.as_deref().unwrap_or_default());
    w.key("leader_info").object(|w| {
        w.key("id").string(&info.id);
        w.key("pid").string(info.pid.as_deref().unwrap_or_default());
        w.key("port").uint(u64::from(info.port));
        w.key("hostname").string(info.hostname.as_deref().unwrap_or_default());
        if let Some(domain) = &info.domain {
            w.key("domain").message(domain, Dialect::V0);
        }
    });
}

fn log_fields(w: &mut Writer<'_>, context: &Context) {
    if let Some(cluster) = &context.flags.identity.cluster {
        w.key("cluster").string(cluster);
    }
    if context.visibility.flags {
        context.common.write_log_fields(w);
    }
}
