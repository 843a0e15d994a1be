//! Refusals for the audit log: refused messages, and parts of calls that are refused after the call was answered.
//!
//! It makes no decisions.

use std::sync::Arc;

use base::Pid;
use cores::Refusal;
use protos::mesos::offer::Operation;
use protos::mesos::{FrameworkInfo, TaskInfo};

use crate::io::Outbox;
use crate::master::Master;
use crate::state::FrameworkKey;

/// Reason of a refusal.
pub(crate) enum Fault {
    /// The sender lacks a permission.
    Denied(String),
    /// The message or call breaks a rule.
    Invalid(String),
}

impl Fault {
    /// Returns `Denied` if `is_denied`, else `Invalid`.
    pub(crate) fn of(is_denied: bool, why: impl Into<String>) -> Fault {
        if is_denied { Fault::Denied(why.into()) } else { Fault::Invalid(why.into()) }
    }
}

impl Master {
    /// Records the refusal of a message.
    pub(crate) fn refuse_message(
        &self,
        from: &Pid,
        call: &'static str,
        target: (&'static str, &str),
        fault: Fault,
        out: &mut Outbox,
    ) {
        let principal = self.principal(from);
        push(principal, Some(from.clone()), call, vec![(target.0, target.1.to_owned())], fault, out);
    }

    /// Records the refusal of a subscription. `from` is the driver's process, or `None` for HTTP.
    pub(crate) fn refuse_subscription(&self, from: Option<&Pid>, info: &FrameworkInfo, why: &str, out: &mut Outbox) {
        let is_denied =
            self.authorize_roles(info).is_err() || from.is_some_and(|pid| self.check_driver(pid, info).is_err());
        let principal = match from {
            Some(pid) => self.principal(pid),
            None => info.principal.as_deref().map(Arc::from),
        };
        let id = info.id.as_ref().map(|id| id.value.to_string()).unwrap_or_default();
        let target = vec![("framework", id), ("name", info.name.clone())];
        push(principal, from.cloned(), "SUBSCRIBE", target, Fault::of(is_denied, why), out);
    }

    /// Records the refusal of an ACCEPT.
    pub(crate) fn refuse_offers(&self, key: FrameworkKey, why: &str, out: &mut Outbox) {
        self.refuse_part(key, "ACCEPT", Vec::new(), Fault::Invalid(why.to_owned()), out);
    }

    /// Records the refusal of a task of an ACCEPT.
    pub(crate) fn refuse_launch(&self, key: FrameworkKey, task: &TaskInfo, fault: Fault, out: &mut Outbox) {
        let target = vec![("task", task.task_id.value.to_string()), ("agent", task.slave_id.value.to_string())];
        self.refuse_part(key, "LAUNCH", target, fault, out);
    }

    /// Records the refusal of an operation of an ACCEPT.
    pub(crate) fn refuse_operation(&self, key: FrameworkKey, operation: &Operation, why: &str, out: &mut Outbox) {
        let principal = self.framework(key).and_then(|framework| framework.info.principal.as_deref());
        let is_denied = self.authorize_operation(principal, operation).is_err();
        self.refuse_part(key, operation.r#type().as_str_name(), Vec::new(), Fault::of(is_denied, why), out);
    }

    fn refuse_part(
        &self,
        key: FrameworkKey,
        call: &'static str,
        mut target: Vec<(&'static str, String)>,
        fault: Fault,
        out: &mut Outbox,
    ) {
        let Some(framework) = self.framework(key) else { return };
        target.push(("framework", framework.id.to_string()));
        let principal = framework.info.principal.as_deref().map(Arc::from);
        push(principal, framework.pid().cloned(), call, target, fault, out);
    }
}

fn push(
    principal: Option<Arc<str>>,
    pid: Option<Pid>,
    call: &'static str,
    target: Vec<(&'static str, String)>,
    fault: Fault,
    out: &mut Outbox,
) {
    let (is_denied, why) = match fault {
        Fault::Denied(why) => (true, why),
        Fault::Invalid(why) => (false, why),
    };
    out.refusals.push(Refusal { principal, pid, call, target, is_denied, why });
}
