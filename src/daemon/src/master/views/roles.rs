//! The documents `/roles` and GET_ROLES: roles with weights, shares and frameworks (LEG-06, OPM-24).

use std::collections::{BTreeMap, BTreeSet};

use allocator::Quota;
use master::{FrameworkKey, Snapshot};
use protos::json::Writer;
use protos::mesos;
use resources::{Quantities, Resource, Resources, Role, Value};

use super::super::config;
use super::chunk_cache::ChunkCache;
use super::{Context, index::Index};
use crate::parts;

/// Amounts and frameworks of a role; amounts include those of the roles below it.
#[derive(Default)]
pub(in crate::master) struct RoleView {
    pub(in crate::master) weight: Option<f64>,
    pub(in crate::master) allocated: Quantities,
    pub(in crate::master) offered: Quantities,
    pub(in crate::master) reserved: Quantities,
    /// Resources that count for the quota, as the allocator has them.
    consumed: Quantities,
    quota: Quota,
    pub(in crate::master) frameworks: BTreeSet<String>,
}

/// Returns all roles that have a framework, a reservation, a weight or a quota, and those above them.
pub(in crate::master) fn collect(snapshot: &Snapshot, chunk_cache: &ChunkCache) -> BTreeMap<String, RoleView> {
    let mut roles: BTreeMap<String, RoleView> = BTreeMap::new();
    for (role, weight) in &snapshot.weights {
        with_ancestors(&mut roles, role, |_| {});
        roles.entry(role.clone()).or_default().weight = Some(*weight);
    }
    for (role, quota) in &*snapshot.quotas {
        roles.entry(role.as_str().to_owned()).or_default().quota = quota.clone();
    }
    let index = Index::new(snapshot, chunk_cache);
    for (key, framework) in snapshot.frameworks.iter() {
        for role in &framework.roles {
            with_ancestors(&mut roles, role, |_| {});
            roles.entry(role.clone()).or_default().frameworks.insert(framework.id.as_str().to_owned());
        }
        let own = index.of(FrameworkKey(key));
        for (role, used) in own.used.allocations() {
            let amounts = used.quantities();
            with_ancestors(&mut roles, role.as_str(), |view| view.allocated += &amounts);
            roles.entry(role.as_str().to_owned()).or_default().frameworks.insert(framework.id.as_str().to_owned());
        }
        for (role, offered) in own.offered.allocations() {
            let amounts = offered.quantities();
            with_ancestors(&mut roles, role.as_str(), |view| view.offered += &amounts);
        }
    }
    for agent in snapshot.agents.values() {
        for (role, reserved) in agent.total.reservations() {
            let amounts = reserved.quantities();
            with_ancestors(&mut roles, role.as_str(), |view| view.reserved += &amounts);
        }
    }
    for known in &snapshot.roles {
        if let Some(view) = roles.get_mut(known.role.as_str()) {
            view.consumed = known.consumed.clone();
        }
    }
    roles
}

/// Returns the roles to list: those of `--roles` if it is set, otherwise all that [`collect`] finds; only those that
/// the principal may view.
fn listed_roles(context: &Context) -> impl Iterator<Item = (String, RoleView)> {
    let mut roles = collect(&context.snapshot, &context.chunk_cache);
    if let Ok(Some(listed)) = config::roles(&context.flags.allocation) {
        roles =
            listed.into_iter().map(|name| roles.remove_entry(&name).unwrap_or((name, RoleView::default()))).collect();
    }
    roles.into_iter().filter(|(name, _)| context.visibility.role(name))
}

/// Applies `change` to a role and all roles above it.
fn with_ancestors(roles: &mut BTreeMap<String, RoleView>, role: &str, mut change: impl FnMut(&mut RoleView)) {
    change(roles.entry(role.to_owned()).or_default());
    if let Ok(parsed) = Role::parse(role) {
        for ancestor in parsed.ancestors() {
            change(roles.entry(ancestor.as_str().to_owned()).or_default());
        }
    }
}

/// Writes the document `/roles`.
pub(in crate::master) fn write(context: &Context, out: &mut Vec<u8>) {
    Writer::new(out).object(|w| {
        w.key("roles").array(|w| {
            for (name, view) in listed_roles(context) {
                w.object(|w| role(w, &name, &view));
            }
        });
    });
}

fn role(w: &mut Writer<'_>, name: &str, view: &RoleView) {
    let mut together = view.allocated.clone();
    together += &view.offered;
    w.key("name").string(name);
    w.key("weight").double(view.weight.unwrap_or(1.0));
    w.key("quota").object(|w| {
        w.key("role").string(name);
        w.key("guarantee");
        parts::quantities(w, &view.quota.guarantees);
        w.key("limit").object(|w| {
            for (name, limit) in view.quota.limits.iter() {
                w.key(name.as_str()).double(limit.to_f64());
            }
        });
        w.key("consumed");
        parts::quantities(w, &view.consumed);
    });
    for (key, amounts) in [
        ("resources", &together),
        ("allocated", &view.allocated),
        ("offered", &view.offered),
        ("reserved", &view.reserved),
    ] {
        w.key(key);
        parts::quantities(w, amounts);
    }
    w.key("frameworks").array(|w| {
        for framework in &view.frameworks {
            w.string(framework);
        }
    });
}

/// Returns the roles as messages, for GET_ROLES.
pub(super) fn messages(context: &Context) -> Vec<mesos::Role> {
    let message = |(name, view): (String, RoleView)| {
        let mut together = view.allocated;
        together += &view.offered;
        let resources: Resources =
            together.iter().map(|(name, amount)| Resource::new(name, Value::Scalar(amount))).collect();
        let id = |value: String| mesos::FrameworkId { value: value.into() };
        mesos::Role {
            name,
            weight: view.weight.unwrap_or(1.0),
            frameworks: view.frameworks.into_iter().map(id).collect(),
            resources: resources.to_proto(resources::Format::PostRefinement),
        }
    };
    listed_roles(context).map(message).collect()
}
