//! The pieces that several documents of master and agent share: resources, attributes, capabilities, labels, tasks.
//!
//! They know messages and resources, and no core.

use protos::json::{Dialect, Writer};
use protos::mesos;
use resources::{Format, Quantities, Resource, Resources, Value};

/// `{"cpus":4.0,...}`: the four common scalars always, ranges and sets as texts.
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

/// `{"cpus":4.0}`: without absent parts.
pub fn quantities(w: &mut Writer<'_>, quantities: &Quantities) {
    w.object(|w| {
        for (name, amount) in quantities.iter().filter(|(_, amount)| !amount.is_zero()) {
            w.key(name.as_str()).double(amount.to_f64());
        }
    });
}

/// Full resource objects, in the endpoints' form.
pub fn resource_objects(w: &mut Writer<'_>, resources: &Resources) {
    w.array(|w| {
        for resource in resources.to_proto(Format::Endpoint) {
            w.message(&resource, Dialect::V0);
        }
    });
}

/// `{"rack":"r1","level":2.0}`
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

/// `[{"key":"a","value":"b"}]`
pub fn labels(w: &mut Writer<'_>, labels: &mesos::Labels) {
    w.array(|w| {
        for label in &labels.labels {
            w.message(label, Dialect::V0);
        }
    });
}

/// `["MULTI_ROLE"]`; numbers without a name are left out.
pub fn agent_capabilities(w: &mut Writer<'_>, list: &[mesos::slave_info::Capability]) {
    w.array(|w| {
        for capability in list {
            w.string(capability.r#type().as_str_name());
        }
    });
}

/// As above, for frameworks.
pub fn framework_capabilities(w: &mut Writer<'_>, list: &[mesos::framework_info::Capability]) {
    w.array(|w| {
        for capability in list {
            w.string(capability.r#type().as_str_name());
        }
    });
}

/// One task (LEG-63). Its resources are apart from the message, already read.
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

/// The role that a task's resources are allocated to.
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
