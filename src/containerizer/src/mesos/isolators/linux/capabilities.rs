//! Isolator `linux/capabilities`, which limits the capabilities of a container (capabilities(7), AGT-105).

use agent::ContainerSpec;
use containers::isolation;
use protos::mesos::capability_info::Capability;
use protos::mesos::{CapabilityInfo, LinuxInfo};

use crate::config::Isolation;
use crate::mesos::isolators::{Container, Isolator, Launch};

/// Number of capability 0 in messages, 1000.
const FIRST: i32 = 1000;

/// The isolator `linux/capabilities`.
#[derive(Default)]
pub(crate) struct Capabilities {
    /// Default effective and bounding capabilities as bit sets (`--effective_capabilities`, `--bounding_capabilities`).
    effective: Option<u64>,
    bounding: Option<u64>,
}

impl Isolator for Capabilities {
    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        let linux = container.spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        launch.isolation.capabilities = self.capabilities(linux)?;
        Ok(())
    }
}

/// Returns whether a container requests capabilities.
#[allow(deprecated)]
pub(crate) fn asks(spec: &ContainerSpec) -> bool {
    let linux = spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
    linux.is_some_and(|linux| {
        linux.effective_capabilities.is_some()
            || linux.bounding_capabilities.is_some()
            || linux.capability_info.is_some()
    })
}

impl Capabilities {
    pub(crate) fn new(config: &Isolation) -> Capabilities {
        Capabilities { effective: config.effective, bounding: config.bounding }
    }

    /// Returns the capabilities of a container; `None` if neither it nor the agent sets any.
    ///
    /// # Errors
    /// A capability that is not within the bounding ones.
    #[allow(deprecated)]
    fn capabilities(&self, linux: Option<&LinuxInfo>) -> anyhow::Result<Option<isolation::Capabilities>> {
        let effective =
            linux.and_then(|linux| linux.effective_capabilities.as_ref().or(linux.capability_info.as_ref()));
        let effective = effective.map(bits).or(self.effective);
        let bounding = linux.and_then(|linux| linux.bounding_capabilities.as_ref()).map(bits);
        if let (Some(asked), Some(most)) = (bounding.or(effective), self.bounding) {
            anyhow::ensure!(asked & !most == 0, "The capabilities are not within those of --bounding_capabilities");
        }
        // A task that names the capabilities it needs gets no others.
        let Some(bounding) = bounding.or(effective.and(self.bounding)).or(effective).or(self.bounding) else {
            return Ok(None);
        };
        let outside = effective.is_some_and(|effective| effective & !bounding != 0);
        anyhow::ensure!(!outside, "The effective capabilities are not within the bounding ones");
        Ok(Some(isolation::Capabilities { bounding, effective }))
    }
}

/// Returns capabilities as a bit set; unknown numbers are ignored.
pub fn bits(info: &CapabilityInfo) -> u64 {
    let number = |capability: &i32| u32::try_from(capability.checked_sub(FIRST)?).ok();
    let numbers = info.capabilities.iter().filter_map(number).filter(|number| *number < u64::BITS);
    numbers.fold(0, |bits, number| bits | 1 << number)
}

/// Returns the number of a capability from its name without `CAP_`.
pub(crate) fn number(name: &str) -> Option<u32> {
    u32::try_from(Capability::from_str_name(name)? as i32 - FIRST).ok().filter(|number| *number < u64::BITS)
}

#[cfg(test)]
mod tests {
    use protos::mesos::ContainerInfo;

    use super::*;

    fn info(numbers: &[i32]) -> Option<CapabilityInfo> {
        Some(CapabilityInfo { capabilities: numbers.iter().map(|number| number + FIRST).collect() })
    }

    #[test]
    fn within_bounds() {
        let isolators = Capabilities { bounding: Some(0b111), effective: Some(0b1) };
        let of = |effective: Option<CapabilityInfo>, bounding| {
            let linux = LinuxInfo {
                effective_capabilities: effective,
                bounding_capabilities: bounding,
                ..LinuxInfo::default()
            };
            isolators.capabilities(Some(&linux)).map(|found| found.map(|found| (found.bounding, found.effective)))
        };
        assert_eq!(of(None, None).unwrap(), Some((0b111, Some(0b1))));
        assert_eq!(of(info(&[1]), None).unwrap(), Some((0b111, Some(0b10))));
        assert_eq!(of(info(&[]), info(&[0])).unwrap(), Some((0b1, Some(0))));
        assert!(of(info(&[3]), None).is_err());
        assert!(of(info(&[1]), info(&[0])).is_err());
        assert!(Capabilities::default().capabilities(None).unwrap().is_none());
        assert_eq!(bits(&CapabilityInfo { capabilities: vec![i32::MIN, 0, i32::MAX] }), 0, "numbers of nothing");
    }

    #[test]
    fn requested_capabilities_are_not_passed_over() {
        let asked = |linux_info: LinuxInfo| {
            let container = Some(ContainerInfo { linux_info: Some(linux_info), ..ContainerInfo::default() });
            asks(&ContainerSpec { container, ..ContainerSpec::default() })
        };
        assert!(asked(LinuxInfo { bounding_capabilities: info(&[1]), ..LinuxInfo::default() }));
        assert!(!asked(LinuxInfo::default()));
    }
}
