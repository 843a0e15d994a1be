//! LAUNCH_GROUP of an ACCEPT: all tasks are launched together under one executor, or all are refused.

use std::sync::Arc;

use protos::mesos::TaskGroupInfo;
use protos::mesos::internal::RunTaskGroupMessage;
use protos::mesos::offer::{Operation, operation::Type};
use protos::mesos::task_status::Reason;

use super::accept::AcceptedOffers;
use super::launch::versions_of;
use super::normalize;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::validate::{self, Group, GroupNeeds, Needs};

impl Master {
    pub(crate) fn launch_group(&mut self, accepted: &mut AcceptedOffers, operation: Operation, out: &mut Outbox) {
        let with_id = operation.id.is_some();
        let Some(mut group) = operation.launch_group else { return };
        normalize::allocate(&mut group.executor.resources, accepted.role.as_str());
        for task in &mut group.task_group.tasks {
            normalize::group_task(task, &group.executor, accepted.role.as_str());
        }
        let checked = match with_id {
            true => Err("Operation 'LAUNCH_GROUP' must not have an id".to_owned()),
            false => self.check_group(accepted, &group),
        };
        let checked = checked.map_err(|why| (Reason::TaskGroupInvalid, why)).and_then(|needs| {
            let allowed = self.framework(accepted.framework).map_or(Ok(()), |framework| {
                let executor = Some(&group.executor);
                self.config.authorizer.may_launch(&framework.info, &group.task_group.tasks, executor)
            });
            allowed.map(|()| needs).map_err(|why| (Reason::TaskGroupUnauthorized, why.to_string()))
        });
        match checked {
            Ok(needs) => self.run_group(accepted, *group, needs, out),
            Err((reason, why)) => {
                for task in &group.task_group.tasks {
                    self.task_error(accepted.framework, task, reason, why.clone(), out);
                }
            }
        }
    }

    fn check_group(
        &self,
        accepted: &AcceptedOffers,
        group: &protos::mesos::offer::operation::LaunchGroup,
    ) -> Result<GroupNeeds, String> {
        let (Some(framework), Some(agent)) = (self.framework(accepted.framework), self.agent(accepted.agent)) else {
            return Err("The agent is gone".to_owned());
        };
        let in_use = |id: &str| self.frameworks.task_id_in_use(accepted.framework, id);
        let context =
            Group { framework, key: accepted.framework, agent, in_use: &in_use, available: &accepted.available() };
        validate::group(&context, group)
    }

    fn run_group(
        &mut self,
        accepted: &mut AcceptedOffers,
        mut group: protos::mesos::offer::operation::LaunchGroup,
        needs: GroupNeeds,
        out: &mut Outbox,
    ) {
        self.frameworks.count_operation(accepted.framework, Type::LaunchGroup);
        let format = self.agent_format(accepted.agent);
        group.executor.resources = needs.executor.to_proto(format);
        if needs.launch_executor {
            self.start_executor(accepted, needs.executor_id, &group.executor, needs.executor.clone());
        }
        for (task, resources) in group.task_group.tasks.iter_mut().zip(needs.tasks) {
            let needs = Needs { resources, executor: None, launch_executor: false };
            self.add_launched_task(accepted, task, needs, out);
            if let Some(executor) = &mut task.executor {
                executor.resources.clone_from(&group.executor.resources);
            }
        }
        let (Some(framework), Some(agent)) = (self.framework(accepted.framework), self.agent(accepted.agent)) else {
            return;
        };
        let message = RunTaskGroupMessage {
            framework: Arc::clone(&framework.info).into(),
            executor: group.executor,
            task_group: TaskGroupInfo { tasks: group.task_group.tasks },
            resource_version_uuids: versions_of(agent),
            launch_executor: Some(needs.launch_executor),
        };
        out.push(Output::send(&agent.pid, message));
    }
}
