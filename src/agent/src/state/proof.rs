//! Evidence that a call comes from an executor, and the claims of its token.
//!
//! The shell verifies signatures.

use super::executor::Executor;

/// Evidence that a call comes from its executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The call has no evidence.
    None,
    /// The call has a token that this agent has signed.
    Token(Claims),
    /// The call came over the connection that the executor was started with.
    Connection,
}

/// Claims of a token: the ids of its executor (SEC-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Claim `fid`: id of the framework.
    pub framework: String,
    /// Claim `eid`: id of the executor.
    pub executor: String,
    /// Claim `cid`: id of the executor's container.
    pub container: String,
}

impl Claims {
    /// Checks that the claims are those of an executor.
    ///
    /// # Errors
    /// The first claim that differs, in Mesos's words.
    pub(crate) fn check(&self, executor: &Executor) -> Result<(), &'static str> {
        if self.framework != executor.framework_id.as_str() {
            Err("a 'fid' claim with the correct FrameworkID")
        } else if self.executor != executor.id.as_str() {
            Err("an 'eid' claim with the correct ExecutorID")
        } else if self.container != executor.container.as_str() {
            Err("a 'cid' claim with the correct active ContainerID")
        } else {
            Ok(())
        }
    }
}
