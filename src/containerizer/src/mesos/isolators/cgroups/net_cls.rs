//! Isolator `cgroups/net_cls`, which assigns handles by which traffic control distinguishes the packets of containers
//! (AGT-93).
//!
//! The operator defines the rules for traffic. A handle is `primary << 16 | secondary`. After a restart of the agent
//! the control groups contain the handles in use.

use std::collections::BTreeMap;
use std::sync::Mutex;

use agent::{ContainerName, Input};
use anyhow::Context;
use base::lock;
use containers::cgroups::Group;

use crate::config;
use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator `cgroups/net_cls`; without configured handles it assigns none.
pub(crate) struct NetCls {
    handles: Option<config::NetCls>,
    held: Mutex<BTreeMap<String, u16>>,
}

impl Isolator for NetCls {
    /// Assigns a handle to a top-level container. Nested containers use that of their root.
    fn isolate(&self, container: Container<'_>, group: &Group, launch: &mut Launch) -> anyhow::Result<()> {
        let container = container.name;
        let class = if container.parent().is_none() { self.give(container)? } else { None };
        if let Some(class) = class {
            group.set_net_class(class)?;
            launch.reports.push(Input::ContainerClass { container: container.clone(), class });
        }
        Ok(())
    }

    fn status(&self, container: &ContainerName, group: Option<&Group>) -> Option<Input> {
        self.handles?;
        let class = group?.net_class()?;
        self.note(container, class);
        Some(Input::ContainerClass { container: container.clone(), class })
    }

    fn cleanup(&self, container: &ContainerName) {
        lock(&self.held).remove(container.as_str());
    }
}

impl NetCls {
    pub(crate) fn new(handles: Option<config::NetCls>) -> NetCls {
        NetCls { handles, held: Mutex::default() }
    }

    /// Returns the handle of a container, and assigns one if it has none.
    ///
    /// # Errors
    /// All handles are in use.
    fn give(&self, container: &ContainerName) -> anyhow::Result<Option<u32>> {
        let Some(handles) = self.handles else { return Ok(None) };
        let mut held = lock(&self.held);
        let secondary = match held.get(container.as_str()) {
            Some(own) => *own,
            None => {
                let used: std::collections::BTreeSet<u16> = held.values().copied().collect();
                let free = (handles.first..=handles.last).find(|handle| !used.contains(handle));
                free.context("All network handles are in use by other containers")?
            }
        };
        held.insert(container.as_str().to_owned(), secondary);
        Ok(Some(u32::from(handles.primary) << 16 | u32::from(secondary)))
    }

    /// Records the handle of a container of the previous agent process.
    fn note(&self, container: &ContainerName, class: u32) {
        if self.handles.is_some_and(|handles| class >> 16 == u32::from(handles.primary)) {
            lock(&self.held).insert(container.as_str().to_owned(), (class & 0xffff) as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ContainerName {
        ContainerName::top(&text.parse().unwrap())
    }

    #[test]
    fn handles_are_given_once() {
        let classes = NetCls::new(Some(config::NetCls { primary: 0x12, first: 5, last: 6 }));
        assert_eq!(classes.give(&name("a")).unwrap(), Some(0x0012_0005));
        assert_eq!(classes.give(&name("a")).unwrap(), Some(0x0012_0005));
        classes.note(&name("old"), 0x0012_0006);
        classes.note(&name("others"), 0x0099_0001);
        assert!(classes.give(&name("b")).is_err());
        classes.cleanup(&name("old"));
        assert_eq!(classes.give(&name("b")).unwrap(), Some(0x0012_0006));
        assert_eq!(NetCls::new(None).give(&name("a")).unwrap(), None);
    }
}
