//! Abilities of agents that containers of jobs need, and the flags of agents that tell of them.

use crate::job::{Containerizer, Job};

/// An ability that not every agent has, and that containers of jobs need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// The Docker containerizer.
    Docker,
    /// Docker images for the Mesos containerizer.
    Images,
}

impl Ability {
    /// Returns the ability that the tasks of a job need; `None` if they can run on every agent.
    pub fn of(job: &Job) -> Option<Ability> {
        match job.container.containerizer {
            Containerizer::Docker => Some(Ability::Docker),
            Containerizer::Mesos => job.image.as_ref().map(|_| Ability::Images),
        }
    }

    /// Returns the name of the flag with which an agent is given the ability.
    pub fn flag(self) -> &'static str {
        match self {
            Ability::Docker => "containerizers",
            Ability::Images => "image_providers",
        }
    }

    /// Returns whether an agent with this value of the flag has the ability; `None` if it does not tell.
    pub fn is_given_by(self, value: Option<&str>) -> Option<bool> {
        match (self, value) {
            (_, Some(names)) => Some(names.split(',').any(|name| name.trim().eq_ignore_ascii_case("docker"))),
            // An agent lists the flags that are set. This one has a default, so the agent does not list its flags.
            (Ability::Docker, None) => None,
            (Ability::Images, None) => Some(false),
        }
    }

    /// Names the ability in reasons, and the flag.
    pub(super) fn text(self) -> (&'static str, &'static str) {
        match self {
            Ability::Docker => ("Docker containerizer", "--containerizers=docker,mesos"),
            Ability::Images => ("provider of images", "--image_providers=docker"),
        }
    }
}
