//! `linux/nnp`: programs of a container cannot get more rights than it has (PR_SET_NO_NEW_PRIVS,
//! AGT-106).

use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator.
pub(crate) struct NoNewPrivileges;

impl Isolator for NoNewPrivileges {
    fn prepare(&self, _: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        launch.isolation.no_new_privileges = true;
        Ok(())
    }
}
