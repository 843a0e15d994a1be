//! The parts of the cluster that a principal may view (OPM-06): documents leave out everything else.
//!
//! Most principals may view everything, and share the documents.

use authorizer::{Action, Verdict, executor_user, launched_user};
use master::{Framework, Task};
use protos::mesos::{self, ExecutorInfo, FrameworkInfo};
use resources::{Resource, Resources};

use crate::acls::Caller;

/// The permissions of a principal to view parts of the cluster.
pub(in crate::master) struct Visibility {
    caller: Caller,
    frameworks: Verdict,
    tasks: Verdict,
    executors: Verdict,
    roles: Verdict,
    pub(super) flags: bool,
}

impl Visibility {
    pub(in crate::master) fn of(caller: Caller) -> Visibility {
        let verdict = |action| caller.authorizer.verdict(caller.principal.as_deref(), action);
        Visibility {
            frameworks: verdict(Action::ViewFramework),
            tasks: verdict(Action::ViewTask),
            executors: verdict(Action::ViewExecutor),
            roles: verdict(Action::ViewRole),
            flags: caller.may(Action::ViewFlags, None),
            caller,
        }
    }

    /// Returns the suffix of the names of documents for this principal; empty if it may view everything, so that those
    /// principals share documents.
    pub(in crate::master) fn name(&self) -> String {
        let all =
            [self.frameworks, self.tasks, self.executors, self.roles].iter().all(|one| *one == Verdict::Everything);
        match all && self.flags && self.all_quotas() && self.maintenance() == (true, true) {
            true => String::new(),
            false => format!(" for {:?}", self.caller.principal),
        }
    }

    /// Returns whether all frameworks, roles and quotas may be viewed; documents that cannot leave out parts require
    /// it.
    pub(in crate::master) fn is_unrestricted(&self) -> bool {
        [self.frameworks, self.roles].iter().all(|one| *one == Verdict::Everything) && self.all_quotas()
    }

    fn all_quotas(&self) -> bool {
        self.caller.authorizer.verdict(self.caller.principal.as_deref(), Action::GetQuota) == Verdict::Everything
    }

    /// Returns whether the maintenance schedule and the maintenance status may be viewed.
    pub(in crate::master) fn maintenance(&self) -> (bool, bool) {
        (self.caller.may(Action::GetMaintenanceSchedule, None), self.caller.may(Action::GetMaintenanceStatus, None))
    }

    fn one(&self, verdict: Verdict, action: Action, object: &str) -> bool {
        match verdict {
            Verdict::Everything => true,
            Verdict::Nothing => false,
            Verdict::Depends => self.caller.may(action, Some(object)),
        }
    }

    pub(in crate::master) fn framework(&self, info: &FrameworkInfo) -> bool {
        self.one(self.frameworks, Action::ViewFramework, &info.user)
    }

    /// Returns whether all tasks of a framework that may be viewed may be viewed.
    pub(super) fn all_tasks(&self) -> bool {
        self.tasks == Verdict::Everything
    }

    /// Returns whether a task of a framework that may be viewed may be viewed.
    pub(super) fn task(&self, framework: &Framework, task: &Task) -> bool {
        self.one(self.tasks, Action::ViewTask, launched_user(&task.proto, &framework.info))
    }

    /// Returns whether an executor of a framework that may be viewed may be viewed.
    pub(super) fn executor(&self, framework: &FrameworkInfo, executor: &ExecutorInfo) -> bool {
        self.one(self.executors, Action::ViewExecutor, executor_user(executor, framework))
    }

    /// Returns whether an executor and its framework may be viewed. Without a known framework, all frameworks and
    /// executors must be.
    pub(super) fn executor_of(&self, framework: Option<&FrameworkInfo>, executor: &ExecutorInfo) -> bool {
        match framework {
            Some(info) => self.framework(info) && self.executor(info, executor),
            None => self.frameworks == Verdict::Everything && self.executors == Verdict::Everything,
        }
    }

    pub(in crate::master) fn role(&self, role: &str) -> bool {
        self.one(self.roles, Action::ViewRole, role)
    }

    /// Returns whether all roles may be viewed.
    pub(super) fn all_roles(&self) -> bool {
        self.roles == Verdict::Everything
    }

    /// Returns the resources of roles that may be viewed.
    pub(super) fn resources(&self, resources: &Resources) -> Resources {
        let may = |one: &&Resource| {
            let reserved = one.reservations().iter().map(|reservation| &reservation.role);
            reserved.chain(one.allocation()).all(|role| self.role(role.as_str()))
        };
        resources.iter().filter(may).cloned().collect()
    }

    pub(super) fn resource(&self, resource: &mesos::Resource) -> bool {
        self.caller.may_view_resource(resource)
    }

    /// Returns whether the roles of all resources of an operation may be viewed.
    pub(super) fn operation(&self, operation: &mesos::offer::Operation) -> bool {
        self.all_roles() || self.caller.may_view_operation(operation)
    }

    pub(in crate::master) fn quota(&self, role: &str) -> bool {
        self.caller.may(Action::GetQuota, Some(role))
    }
}
