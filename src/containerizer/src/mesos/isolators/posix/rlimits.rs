//! Isolator `posix/rlimits`, which sets the resource limits that a container requests (setrlimit(2), AGT-107).

use agent::ContainerSpec;
use containers::{Rlimit, RlimitKind};
use protos::mesos::r_limit_info::r_limit::Type;

use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator `posix/rlimits`.
pub(crate) struct Rlimits;

impl Isolator for Rlimits {
    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        launch.rlimits = rlimits(container.spec)?;
        Ok(())
    }
}

/// Returns the resource limits that a container requests.
///
/// # Errors
/// A limit of an unknown kind, with only one of its two values, or with the soft one above the hard one.
pub(crate) fn rlimits(spec: &ContainerSpec) -> anyhow::Result<Vec<Rlimit>> {
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
