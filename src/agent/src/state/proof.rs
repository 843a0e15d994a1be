//! What an executor's call brings as a proof, and the claims of its token.
//!
//! The shell verifies signatures.

use super::executor::Executor;

/// What a call has brought to prove that it is its executor's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nothing.
    None,
    /// A token that this agent has signed.
    Token(Claims),
    /// It came over the connection that the executor was started with.
    Connection,
}

/// What a token says that its bearer is (SEC-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// `fid`: the framework's id.
    pub framework: String,
    /// `eid`: the executor's id.
    pub executor: String,
    /// `cid`: the id of the executor's container.
    pub container: String,
}

impl Claims {
    /// Compares them with an executor.
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
