//! Authenticates executors: decides which calls are accepted as an executor's own.
//!
//! The shell verifies tokens; their claims are compared here.

use std::sync::Arc;

use cores::{CallError, ErrorKind};

use crate::agent::Agent;
use crate::disk::paths;
use crate::output::Outbox;
use crate::state::{ExecutorLink, Proof};

impl Agent {
    /// Checks that a call with this proof comes from the executor. From its first token on, an executor must always
    /// present one.
    ///
    /// The agent's own executors must present one from their start. Other executors may not support tokens.
    ///
    /// # Errors
    /// The token is missing, or belongs to another executor. The text names the claim as Mesos does.
    pub(crate) fn check_proof(
        &mut self,
        framework: &str,
        executor: &str,
        proof: &Proof,
        out: &mut Outbox,
    ) -> Result<(), CallError> {
        let Some(target) = self.executor(framework, executor) else { return Ok(()) };
        match proof {
            Proof::Connection => return Ok(()),
            Proof::None if target.needs_token => {
                return Err(forbidden(format!(
                    "Executor '{executor}' must authenticate with its token (MESOS_EXECUTOR_AUTHENTICATION_TOKEN)"
                )));
            }
            Proof::None => return Ok(()),
            Proof::Token(claims) => claims.check(target).map_err(|claim| {
                forbidden(format!("The token of the call for executor '{executor}' does not contain {claim}"))
            })?,
        }
        if target.needs_token {
            return Ok(());
        }
        let (run, speaks) = (Arc::clone(&target.run), target.link != ExecutorLink::None);
        if let Some(target) = self.executor_mut(framework, executor) {
            target.needs_token = true;
        }
        // The handler of a SUBSCRIBE call writes the marker itself.
        if speaks && self.frameworks.get(framework).is_some_and(|known| known.checkpoints()) {
            self.checkpoint(paths::below(&run, paths::HTTP_MARKER), paths::TOKEN_MARK.to_vec(), out);
        }
        Ok(())
    }
}

fn forbidden(text: String) -> CallError {
    CallError::new(ErrorKind::Forbidden, text)
}
