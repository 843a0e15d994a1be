//! The parts that several documents of master and agent share: resources, attributes, capabilities, labels, tasks.
//!
//! They depend on messages and resources, not on a core.

use protos::json::{Dialect, Writer};
use protos::mesos;
use resources::{Format, Quantities, Resource, Resources, Value};

/// Writes resources as `{"cpus":4.0,...}`: always the four common scalars, ranges and sets as texts.
pub fn resources(w: &mut Writer<'_>, resources: &Resources) {
    w.object(|w| {
        resources.visit_summary(|name, value| {
            match value {
                Value::Scalar(amount) => w.key(name).double(amount.to_f64()),
                other => w.key(name).string(&other.to_string()),
            };
        });
    });
}

/// Writes quantities as `{"cpus":4.0}`, without those that are zero.
pub fn quantities(w: &mut Writer<'_>, quantities: &Quantities) {
    w.object(|w| {
        for (name, amount) in quantities.iter().filter(|(_, amount)| !amount.is_zero()) {
            w.key(name.as_str()).double(amount.to_f64());
        }
    });
}

/// Writes full resource objects, in the endpoints' form.
pub fn resource_objects(w: &mut Writer<'_>, resources: &Resources) {
    w.array(|w| {
        for resource in resources.to_proto(Format::Endpoint) {
            w.message(&resource, Dialect::V0);
        }
    });
}

/// Writes attributes as `{"rack":"r1","level":2.0}`.
pub fn attributes(w: &mut Writer<'_>, attributes: &[mesos::Attribute]) {
    w.object(|w| {
        for attribute in attributes {
            w.key(&attribute.name);
            match &attribute.scalar {
                Some(scalar) => w.double(scalar.value),
                None => w.string(&resources::attribute_value(attribute)),
            };
        }
    });
}

/// Writes labels as `[{"key":"a","value":"b"}]`.
pub fn labels(w: &mut Writer<'_>, labels: &mesos::Labels) {
    w.array(|w| {
        for label in &labels.labels {
            w.message(label, Dialect::V0);
        }
    });
}

/// Writes the capabilities of an agent as `["MULTI_ROLE"]`.
pub fn agent_capabilities(w: &mut Writer<'_>, list: &[mesos::slave_info::Capability]) {
    w.array(|w| {
        for capability in list {
            w.string(capability.r#type().as_str_name());
        }
    });
}

/// Writes the capabilities of a framework as `["MULTI_ROLE"]`.
pub fn framework_capabilities(w: &mut Writer<'_>, list: &[mesos::framework_info::Capability]) {
    w.array(|w| {
        for capability in list {
            w.string(capability.r#type().as_str_name());
        }
    });
}

/// Writes a task (LEG-63). `resources` are those of the message, already parsed.
pub fn task(w: &mut Writer<'_>, proto: &mesos::Task, resources: &Resources) {
    w.object(|w| {
        w.key("id").string(&proto.task_id.value);
        w.key("name").string(&proto.name);
        w.key("framework_id").string(&proto.framework_id.value);
        w.key("executor_id").string(proto.executor_id.as_ref().map_or("", |id| &id.value));
        w.key("slave_id").string(&proto.slave_id.value);
        w.key("state").string(proto.state().as_str_name());
        w.key("resources");
        self::resources(w, resources);
        if !proto.limits.is_empty() {
            w.key("limits").object(|w| {
                for (name, limit) in &proto.limits {
                    w.key(name);
                    if limit.value.is_finite() {
                        w.double(limit.value)
                    } else {
                        w.string("Infinity")
                    };
                }
            });
        }
        w.key("role").string(role(resources));
        w.key("statuses").array(|w| proto.statuses.iter().for_each(|one| status(w, one)));
        if let Some(user) = &proto.user {
            w.key("user").string(user);
        }
        if let Some(labels) = &proto.labels {
            w.key("labels");
            self::labels(w, labels);
        }
        if let Some(discovery) = &proto.discovery {
            w.key("discovery").message(&**discovery, Dialect::V0);
        }
        if let Some(container) = &proto.container {
            w.key("container").message(&**container, Dialect::V0);
        }
        if let Some(check) = &proto.health_check {
            w.key("health_check").message(&**check, Dialect::V0);
        }
    });
}

/// Returns the role to which a task's resources are allocated.
fn role(resources: &Resources) -> &str {
    resources.iter().find_map(Resource::allocation).map_or("*", |role| role.as_str())
}

fn status(w: &mut Writer<'_>, status: &mesos::TaskStatus) {
    w.object(|w| {
        w.key("state").string(status.state().as_str_name());
        w.key("timestamp").double(status.timestamp.unwrap_or(0.0));
        if let Some(labels) = &status.labels {
            w.key("labels");
            self::labels(w, labels);
        }
        if let Some(container) = &status.container_status {
            w.key("container_status").message(container, Dialect::V0);
        }
        if let Some(healthy) = status.healthy {
            w.key("healthy").bool(healthy);
        }
    });
}
