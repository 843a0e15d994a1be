//! The pieces that several documents share: resources, attributes, capabilities, labels.

use protos::json::{Dialect, Writer};
use protos::mesos;
use resources::{Format, Quantities, Resources, SummaryValue};

/// `{"cpus":4.0,...}`: the four common scalars always, ranges and sets as texts.
pub(super) fn resources(w: &mut Writer<'_>, resources: &Resources) {
    w.object(|w| {
        for (name, value) in resources.summary() {
            match value {
                SummaryValue::Number(amount) => w.key(&name).double(amount.to_f64()),
                SummaryValue::Text(text) => w.key(&name).string(&text),
            };
        }
    });
}

/// `{"cpus":4.0}`: only what there is.
pub(super) fn quantities(w: &mut Writer<'_>, quantities: &Quantities) {
    w.object(|w| {
        for (name, amount) in quantities.iter().filter(|(_, amount)| !amount.is_zero()) {
            w.key(name.as_str()).double(amount.to_f64());
        }
    });
}

/// Full resource objects, in the endpoints' form.
pub(super) fn resource_objects(w: &mut Writer<'_>, resources: &Resources) {
    w.array(|w| {
        for resource in resources.to_proto(Format::Endpoint) {
            w.message(&resource, Dialect::V0);
        }
    });
}

/// `{"rack":"r1","level":2.0}`
pub(super) fn attributes(w: &mut Writer<'_>, attributes: &[mesos::Attribute]) {
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
pub(super) fn labels(w: &mut Writer<'_>, labels: &mesos::Labels) {
    w.array(|w| {
        for label in &labels.labels {
            w.message(label, Dialect::V0);
        }
    });
}

/// `["MULTI_ROLE"]`; numbers without a name are left out.
pub(super) fn agent_capabilities(w: &mut Writer<'_>, list: &[mesos::slave_info::Capability]) {
    w.array(|w| {
        for capability in list {
            w.string(capability.r#type().as_str_name());
        }
    });
}

/// As above, for frameworks.
pub(super) fn framework_capabilities(w: &mut Writer<'_>, list: &[mesos::framework_info::Capability]) {
    w.array(|w| {
        for capability in list {
            w.string(capability.r#type().as_str_name());
        }
    });
}
