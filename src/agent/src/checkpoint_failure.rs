//! Handles a disk that does not accept checkpoints: running tasks continue, launches are refused, and the master makes
//! no offers of the agent.
//!
//! Meanwhile the shell keeps checkpoints in a journal, or withholds the outputs that depend on them. The agent tells
//! the master by an attribute of the registration that is not checkpointed. A Mesos master shows it to frameworks.

use base::Time;
use protos::mesos as pb;
use protos::mesos::value::{Text, Type};

use crate::agent::{Agent, AgentState};
use crate::output::Outbox;
use crate::state::CheckpointFailure;

/// Name of the attribute that marks an agent as unhealthy. Its text is the reason.
pub const UNHEALTHY: &str = "unhealthy";

impl Agent {
    /// Handles the report that checkpoints cannot be written.
    pub(crate) fn checkpoints_failing(&mut self, why: &str, lacks_space: bool, now: Time, out: &mut Outbox) {
        let why = format!("cannot write checkpoints to {}: {why}", self.config.work_dir);
        let checkpoint_failure = CheckpointFailure { why: why.into(), lacks_space };
        if self.checkpoint_failure.as_ref() == Some(&checkpoint_failure) {
            return;
        }
        if self.checkpoint_failure.is_none() {
            out.error(format!(
                "{}: tasks continue; new tasks are refused until writes succeed",
                checkpoint_failure.why
            ));
        }
        self.checkpoint_failure = Some(checkpoint_failure);
        self.collect_garbage(now, out);
        self.report_health(out);
    }

    /// Handles the report that checkpoints can be written again, and the disk has some space.
    pub(crate) fn checkpoints_work(&mut self, now: Time, out: &mut Outbox) {
        if self.checkpoint_failure.take().is_some() {
            out.info("Checkpoints can be written again: new tasks are accepted");
            self.collect_garbage(now, out);
            self.report_health(out);
        }
    }

    /// Returns why new work is refused; `None` while checkpoints can be written.
    pub(crate) fn refusal(&self, what: &str) -> Option<String> {
        self.checkpoint_failure.as_ref().map(|checkpoint_failure| format!("{what} refused: {}", checkpoint_failure.why))
    }

    /// Returns whether checkpoints fail because the disk is full, so that old sandboxes must be deleted.
    pub(crate) fn lacks_space(&self) -> bool {
        self.checkpoint_failure.as_ref().is_some_and(|checkpoint_failure| checkpoint_failure.lacks_space)
    }

    /// Reregisters with a master that has accepted the agent, if the last registration reported another health, or may
    /// have.
    pub(crate) fn report_health(&mut self, out: &mut Outbox) {
        if self.state != AgentState::Running {
            return;
        }
        let announcements_differ = std::mem::take(&mut self.announcements_differ);
        if announcements_differ || self.announced_failure != self.checkpoint_failure {
            self.reregister_to_correct_master(out);
        }
    }

    /// Returns the attribute that marks the agent as unhealthy; `None` while checkpoints can be written.
    pub(crate) fn unhealthy_attribute(&self) -> Option<pb::Attribute> {
        let checkpoint_failure = self.checkpoint_failure.as_ref()?;
        Some(pb::Attribute {
            name: UNHEALTHY.to_owned(),
            r#type: Type::Text as i32,
            text: Some(Text { value: checkpoint_failure.why.to_string() }),
            ..pb::Attribute::default()
        })
    }
}
