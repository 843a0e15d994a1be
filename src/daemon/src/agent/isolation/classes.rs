//! Network classes: the handles by which a container's packets are told from others' (`cgroups/net_cls`, mesos-features.md AGT-93).
//!
//! What traffic control makes of them is the operator's. A handle is `primary << 16 | secondary`; who has which is read from the
//! control groups when the agent starts again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use agent::ContainerName;
use anyhow::Context;

use crate::flags::{FlagError, Flags};
use crate::sync::lock;

const PRIMARY: &str = "cgroups_net_cls_primary_handle";
const SECONDARY: &str = "cgroups_net_cls_secondary_handles";

/// The handles of this agent; none are given without a primary one. Clones share them.
#[derive(Clone, Debug, Default)]
pub(in crate::agent) struct Classes(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    primary: u16,
    first: u16,
    last: u16,
    held: Mutex<BTreeMap<String, u16>>,
}

impl Classes {
    /// Reads the flags.
    ///
    /// # Errors
    /// What is no handle, or would be in vain.
    pub(in crate::agent) fn read(flags: &Flags) -> Result<Classes, FlagError> {
        let refused = |name, why: &str| FlagError::Refused { name, why: why.to_owned() };
        let given = |name| flags.get(name).filter(|text| !text.is_empty());
        let (first, last) = match given(SECONDARY) {
            Some(_) if given(PRIMARY).is_none() => {
                return Err(refused(SECONDARY, "needs --cgroups_net_cls_primary_handle"));
            }
            Some(text) => range(text).ok_or_else(|| refused(SECONDARY, "must be two handles such as 0x0001,0xffff"))?,
            None => (1, u16::MAX),
        };
        let Some(text) = given(PRIMARY) else { return Ok(Classes::default()) };
        let primary = handle(text).ok_or_else(|| refused(PRIMARY, "must be a handle such as 0x0012"))?;
        if !super::super::has_isolator(flags, &["cgroups/net_cls", "cgroups/all"]) {
            return Err(refused(PRIMARY, "needs the isolator cgroups/net_cls"));
        }
        Ok(Classes(Some(Arc::new(Inner { primary, first, last, held: Mutex::default() }))))
    }

    /// Whether containers are given handles.
    pub(super) fn are_given(&self) -> bool {
        self.0.is_some()
    }

    /// The handle of a container, which is given one if it has none.
    ///
    /// # Errors
    /// All are given.
    pub(super) fn give(&self, container: &ContainerName) -> anyhow::Result<Option<u32>> {
        let Some(inner) = &self.0 else { return Ok(None) };
        let mut held = lock(&inner.held);
        let secondary = match held.get(container.as_str()) {
            Some(own) => *own,
            None => {
                let used: std::collections::BTreeSet<u16> = held.values().copied().collect();
                let free = (inner.first..=inner.last).find(|handle| !used.contains(handle));
                free.context("All network handles are given to other containers")?
            }
        };
        held.insert(container.as_str().to_owned(), secondary);
        Ok(Some(u32::from(inner.primary) << 16 | u32::from(secondary)))
    }

    /// Notes what a container of an earlier agent has.
    pub(super) fn note(&self, container: &ContainerName, class: u32) {
        if let Some(inner) = &self.0
            && class >> 16 == u32::from(inner.primary)
        {
            lock(&inner.held).insert(container.as_str().to_owned(), (class & 0xffff) as u16);
        }
    }

    /// Takes back what a container has.
    pub(super) fn take_back(&self, container: &str) {
        if let Some(inner) = &self.0 {
            lock(&inner.held).remove(container);
        }
    }
}

/// A handle: 16 bits in hexadecimal digits, not zero.
fn handle(text: &str) -> Option<u16> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    u16::from_str_radix(digits, 16).ok().filter(|handle| *handle != 0)
}

fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once(',')?;
    let (first, last) = (handle(first)?, handle(last)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn read(words: &[&str]) -> Result<Classes, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        Classes::read(&flags).map_err(|error| error.to_string())
    }

    fn name(text: &str) -> ContainerName {
        ContainerName::top(&text.parse().unwrap())
    }

    #[test]
    fn handles_are_given_once() {
        let isolation = "--isolation=cgroups/net_cls";
        let primary = "--cgroups_net_cls_primary_handle=0x0012";
        let classes = read(&[isolation, primary, "--cgroups_net_cls_secondary_handles=0x0005,0x0006"]).unwrap();
        assert_eq!(classes.give(&name("a")).unwrap(), Some(0x0012_0005));
        assert_eq!(classes.give(&name("a")).unwrap(), Some(0x0012_0005));
        classes.note(&name("old"), 0x0012_0006);
        classes.note(&name("others"), 0x0099_0001);
        assert!(classes.give(&name("b")).is_err());
        classes.take_back("old");
        assert_eq!(classes.give(&name("b")).unwrap(), Some(0x0012_0006));
        assert_eq!(read(&[isolation]).unwrap().give(&name("a")).unwrap(), None);
    }

    #[test]
    fn flags_that_make_no_sense() {
        for (words, said) in [
            (&["--cgroups_net_cls_primary_handle=0x1"][..], "needs the isolator"),
            (&["--isolation=cgroups/net_cls", "--cgroups_net_cls_primary_handle=1"], "must be a handle"),
            (&["--isolation=cgroups/net_cls", "--cgroups_net_cls_primary_handle=0x0"], "must be a handle"),
            (&["--cgroups_net_cls_secondary_handles=0x1,0x2"], "needs --cgroups_net_cls_primary_handle"),
            (
                &["--cgroups_net_cls_primary_handle=0x1", "--cgroups_net_cls_secondary_handles=0x2,0x1"],
                "must be two handles",
            ),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
