//! Capabilities of a container (mesos-features.md AGT-105), and that programs cannot get more (AGT-106).

use agent::ContainerSpec;
use containers::isolation::{Capabilities, Isolation};
use protos::json::Value;
use protos::mesos::capability_info::Capability;
use protos::mesos::{CapabilityInfo, LinuxInfo};

use super::Isolators;
use crate::flags::json;

/// Capability 0 has the number 1000 in messages.
const FIRST: i32 = 1000;

impl Isolators {
    /// What the container may do. Nothing else of its isolation is set yet.
    ///
    /// # Errors
    /// A capability that is not within the bounding ones.
    pub(super) fn rights(&self, spec: &ContainerSpec) -> anyhow::Result<Isolation> {
        let linux = spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        let capabilities = match self.capabilities {
            true => self.capabilities(linux)?,
            false => {
                let asked = linux.is_some_and(names_capabilities);
                anyhow::ensure!(!asked, "Capabilities need the isolator linux/capabilities");
                None
            }
        };
        let most = capabilities.as_ref().map_or(u64::MAX, |capabilities| capabilities.bounding);
        let seccomp = self.filters(linux, most)?;
        Ok(Isolation { capabilities, seccomp, no_new_privileges: self.no_new_privileges, ..Isolation::default() })
    }

    #[allow(deprecated)]
    fn capabilities(&self, linux: Option<&LinuxInfo>) -> anyhow::Result<Option<Capabilities>> {
        let effective =
            linux.and_then(|linux| linux.effective_capabilities.as_ref().or(linux.capability_info.as_ref()));
        let effective = effective.map(bits).or(self.effective);
        let bounding = linux.and_then(|linux| linux.bounding_capabilities.as_ref()).map(bits);
        if let (Some(asked), Some(most)) = (bounding.or(effective), self.bounding) {
            anyhow::ensure!(asked & !most == 0, "The capabilities are not within those of --bounding_capabilities");
        }
        // Who names what he needs gets no way to more.
        let Some(bounding) = bounding.or(effective.and(self.bounding)).or(effective).or(self.bounding) else {
            return Ok(None);
        };
        let outside = effective.is_some_and(|effective| effective & !bounding != 0);
        anyhow::ensure!(!outside, "The effective capabilities are not within the bounding ones");
        Ok(Some(Capabilities { bounding, effective }))
    }
}

fn bits(info: &CapabilityInfo) -> u64 {
    let number = |capability: &i32| u32::try_from(capability.checked_sub(FIRST)?).ok();
    let numbers = info.capabilities.iter().filter_map(number).filter(|number| *number < u64::BITS);
    numbers.fold(0, |bits, number| bits | 1 << number)
}

#[allow(deprecated)]
fn names_capabilities(linux: &LinuxInfo) -> bool {
    linux.effective_capabilities.is_some() || linux.bounding_capabilities.is_some() || linux.capability_info.is_some()
}

/// The number of a capability by its name without `CAP_`.
pub(super) fn number(name: &str) -> Option<u32> {
    u32::try_from(Capability::from_str_name(name)? as i32 - FIRST).ok().filter(|number| *number < u64::BITS)
}

/// The value of a flag: JSON of the message `CapabilityInfo`.
pub(super) fn of_flag(text: &str) -> Result<u64, String> {
    let value = Value::parse(text.as_bytes()).map_err(|error| format!("is no JSON: {error}"))?;
    json::only(&value, "", &["capabilities"])?;
    let names = value.get("capabilities").and_then(Value::as_array).ok_or("has no list 'capabilities'")?;
    let mut info = CapabilityInfo::default();
    for name in names {
        let name = name.as_str().unwrap_or_default();
        let known = Capability::from_str_name(name).ok_or_else(|| format!("names '{name}', which is no capability"))?;
        info.capabilities.push(known as i32);
    }
    Ok(bits(&info))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(numbers: &[i32]) -> Option<CapabilityInfo> {
        Some(CapabilityInfo { capabilities: numbers.iter().map(|number| number + FIRST).collect() })
    }

    #[test]
    fn within_bounds() {
        let isolators = Isolators { bounding: Some(0b111), effective: Some(0b1), ..Isolators::default() };
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
        assert!(Isolators::default().capabilities(None).unwrap().is_none());
        assert_eq!(bits(&CapabilityInfo { capabilities: vec![i32::MIN, 0, i32::MAX] }), 0, "numbers of nothing");
    }

    #[test]
    fn what_is_asked_for_is_not_passed_over() {
        let linux = LinuxInfo { bounding_capabilities: info(&[1]), ..LinuxInfo::default() };
        assert!(names_capabilities(&linux) && !names_capabilities(&LinuxInfo::default()));
    }

    #[test]
    fn flags() {
        assert_eq!(of_flag(r#"{"capabilities":["CHOWN","KILL"]}"#), Ok(0b10_0001));
        assert!(of_flag("{").is_err());
    }
}
