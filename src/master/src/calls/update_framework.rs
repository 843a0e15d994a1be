//! UPDATE_FRAMEWORK: a framework changes its info, suppressed roles or offer constraints (SCH-66).

use cores::{CallError, ErrorKind};
use protos::mesos::FrameworkInfo;
use protos::mesos::scheduler::call::UpdateFramework;

use crate::frameworks::Subscription;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::FrameworkKey;
use crate::validate;

impl Master {
    /// Applies all changes of a call, or none of them. Agents and operators are notified only if the info has changed.
    pub(crate) fn update_framework(
        &mut self,
        key: FrameworkKey,
        call: UpdateFramework,
        out: &mut Outbox,
    ) -> Result<(), CallError> {
        let Some(framework) = self.framework(key) else { return Err(CallError::invalid("Framework cannot be found")) };
        let info = &call.framework_info;
        validate::framework_info(info)
            .and_then(|()| validate::subscription_update(info, &call.suppressed_roles, &self.config))
            .and_then(|()| validate::failover_timeout(info))
            .map_err(|why| CallError::invalid(format!("Supplied FrameworkInfo is not valid: {why}")))?;
        unchanged(&framework.info, info)
            .map_err(|why| CallError::invalid(format!("FrameworkInfo update is not valid: {why}")))?;
        let compiled = self
            .compile_constraints(Some(key), call.offer_constraints.as_ref())
            .map_err(|why| CallError::invalid(format!("'UpdateFramework.offer_constraints' are not valid: {why}")))?;
        self.authorize_roles(info).map_err(|why| CallError::new(ErrorKind::Forbidden, why))?;
        let before = framework.info.clone();
        let subscription = Subscription {
            info: call.framework_info,
            suppressed: call.suppressed_roles,
            constraints: call.offer_constraints,
            compiled,
            force: false,
        };
        self.replace_info(key, subscription, out);
        if self.framework(key).is_some_and(|framework| framework.info != before) {
            self.broadcast_framework(key, out);
            self.announce_framework_updated(key, out);
        }
        Ok(())
    }
}

/// Checks that a call leaves the immutable fields of the info as they are. SUBSCRIBE ignores such changes instead.
fn unchanged(old: &FrameworkInfo, new: &FrameworkInfo) -> Result<(), String> {
    if old.principal != new.principal {
        return Err("Updating 'FrameworkInfo.principal' is unsupported".to_owned());
    }
    if old.user != new.user {
        return Err("Updating 'FrameworkInfo.user' is unsupported".to_owned());
    }
    if old.checkpoint() != new.checkpoint() {
        return Err("Updating 'FrameworkInfo.checkpoint' is unsupported".to_owned());
    }
    Ok(())
}
