//! Isolator `linux/nnp`: programs of a container cannot gain privileges (PR_SET_NO_NEW_PRIVS, AGT-106).

use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator `linux/nnp`.
pub(crate) struct NoNewPrivileges;

impl Isolator for NoNewPrivileges {
    fn prepare(&self, _: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        launch.isolation.no_new_privileges = true;
        Ok(())
    }
}
