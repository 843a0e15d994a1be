//! What is made ready before a container starts: the sandbox, the volumes in it, the limits; and what is refused.
//!
//! It starts nothing.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use agent::ContainerSpec;
use containers::{Folder, Rlimit, RlimitKind, User};
use protos::mesos::r_limit_info::r_limit::Type;

use super::volumes;

/// What a container is started with that has to be made ready before.
pub(super) struct Ready {
    /// The user to run as, if it is another one.
    pub(super) user: Option<User>,
    /// The open sandbox, if it is at hand.
    pub(super) sandbox: Option<OwnedFd>,
}

impl Ready {
    /// The sandbox for the process that starts in it.
    pub(super) fn folder(self, path: &Path) -> Option<Folder> {
        self.sandbox.map(|fd| Folder { path: path.to_owned(), fd: Arc::new(fd) })
    }
}

/// Makes the sandbox and shows the volumes in it, unless they are to be mounted. What
/// `docker` runs is described by its executor.
///
/// # Errors
/// What cannot be made ready, or cannot be given at all.
pub(super) fn prepare(spec: &ContainerSpec, mounts: bool, docker: bool) -> anyhow::Result<Ready> {
    if !docker {
        refuse_what_is_missing(spec, mounts)?;
    }
    let user = match &spec.user {
        Some(name) => User::other(name)?,
        None => None,
    };
    if spec.session.is_some() {
        return Ok(Ready { user, sandbox: None });
    }
    let sandbox = Path::new(&spec.sandbox);
    let folder = containers::create_sandbox(sandbox, user.as_ref())?;
    if let Some(latest) = &spec.latest {
        store::replace_link(Path::new(latest), sandbox)?;
    }
    // An executor's volumes are mounted; what is inside its container shares its root, and gets links.
    if !mounts || spec.latest.is_none() {
        volumes::show(sandbox, &spec.volumes, user.as_ref())?;
    }
    Ok(Ready { user, sandbox: Some(folder) })
}

/// The parts of a container that this agent cannot give are refused: a task must not run without what it asked for.
fn refuse_what_is_missing(spec: &ContainerSpec, mounts: bool) -> anyhow::Result<()> {
    if let Some(container) = &spec.container {
        anyhow::ensure!(
            mounts || container.volumes.is_empty(),
            "Volumes in ContainerInfo need the isolator filesystem/linux"
        );
    }
    Ok(())
}

/// The limits that a container asks for (`posix/rlimits`, mesos-features.md AGT-107).
///
/// # Errors
/// A limit of no known kind, with one of its two values only, or with the soft one above the hard one.
pub(super) fn rlimits(spec: &ContainerSpec) -> anyhow::Result<Vec<Rlimit>> {
    let info = spec.container.as_ref().and_then(|container| container.rlimit_info.as_ref());
    let limits = info.map(|info| info.rlimits.as_slice()).unwrap_or_default();
    let read = |limit: &protos::mesos::r_limit_info::RLimit| {
        let name = limit.r#type().as_str_name();
        let kind = kind_of(limit.r#type()).ok_or_else(|| anyhow::anyhow!("A resource limit has no known type"))?;
        match (limit.soft, limit.hard) {
            (Some(soft), Some(hard)) if soft > hard => {
                anyhow::bail!("The soft limit {soft} of {name} is above its hard limit {hard}")
            }
            (Some(_), Some(_)) | (None, None) => Ok(Rlimit { kind, soft: limit.soft, hard: limit.hard }),
            _ => anyhow::bail!("{name} needs both its soft and its hard limit, or none of them"),
        }
    };
    limits.iter().map(read).collect()
}

fn kind_of(kind: Type) -> Option<RlimitKind> {
    Some(match kind {
        Type::Unknown => return None,
        Type::RlmtAs => RlimitKind::As,
        Type::RlmtCore => RlimitKind::Core,
        Type::RlmtCpu => RlimitKind::Cpu,
        Type::RlmtData => RlimitKind::Data,
        Type::RlmtFsize => RlimitKind::Fsize,
        Type::RlmtLocks => RlimitKind::Locks,
        Type::RlmtMemlock => RlimitKind::Memlock,
        Type::RlmtMsgqueue => RlimitKind::Msgqueue,
        Type::RlmtNice => RlimitKind::Nice,
        Type::RlmtNofile => RlimitKind::Nofile,
        Type::RlmtNproc => RlimitKind::Nproc,
        Type::RlmtRss => RlimitKind::Rss,
        Type::RlmtRtprio => RlimitKind::Rtprio,
        Type::RlmtRttime => RlimitKind::Rttime,
        Type::RlmtSigpending => RlimitKind::Sigpending,
        Type::RlmtStack => RlimitKind::Stack,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::{ContainerInfo, RLimitInfo, r_limit_info::RLimit};

    fn of(kind: Option<Type>, soft: Option<u64>, hard: Option<u64>) -> anyhow::Result<Vec<Rlimit>> {
        let limit = RLimit { r#type: kind.map(|kind| kind as i32), soft, hard };
        let rlimit_info = Some(RLimitInfo { rlimits: vec![limit] });
        let container = Some(ContainerInfo { rlimit_info, ..ContainerInfo::default() });
        let spec = ContainerSpec { container, ..ContainerSpec::default() };
        rlimits(&spec)
    }

    #[test]
    fn limits_that_make_sense() {
        let nofile = Some(Type::RlmtNofile);
        let limit = |soft, hard| vec![Rlimit { kind: RlimitKind::Nofile, soft, hard }];
        assert_eq!(of(nofile, Some(1), Some(2)).unwrap(), limit(Some(1), Some(2)));
        assert_eq!(of(nofile, None, None).unwrap(), limit(None, None));
        for (kind, soft, hard, said) in [
            (nofile, Some(3), Some(2), "above"),
            (nofile, Some(3), None, "both"),
            (nofile, None, Some(3), "both"),
            (None, None, None, "known type"),
        ] {
            assert!(of(kind, soft, hard).unwrap_err().to_string().contains(said), "{said}");
        }
    }
}
