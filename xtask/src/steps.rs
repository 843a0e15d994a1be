//! Named steps, run one after the other, with their durations and a summary at the end.
//!
//! A failed step does not stop the ones after it: one run shows all that is wrong.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// What was run so far.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: &'static str,
    took: Duration,
    error: Option<anyhow::Error>,
}

impl Steps {
    /// Runs `work` under `name`, keeps how long it took and how it ended; gives its value if it went well.
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        println!("\n==> {name}");
        #[expect(clippy::disallowed_methods, reason = "how long a step took is for the person who waits")]
        let began = Instant::now();
        let result = work();
        let took = began.elapsed();
        let (value, error) = match result {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        match &error {
            None => println!("<== {name}: ok, {:.1} s", took.as_secs_f64()),
            Some(error) => println!("<== {name}: FAILED after {:.1} s: {error:#}", took.as_secs_f64()),
        }
        self.done.push(Step { name, took, error });
        value
    }

    /// Prints the summary.
    ///
    /// # Errors
    /// Names the steps that failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n{:<44} {:>8}  result", "step", "seconds");
        for step in &self.done {
            let result = if step.error.is_none() { "ok" } else { "FAILED" };
            println!("{:<44} {:>8.1}  {result}", step.name, step.took.as_secs_f64());
        }
        let failed: Vec<&str> = self.done.iter().filter(|s| s.error.is_some()).map(|s| s.name).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

/// Runs `command` to its end, its output going to the terminal.
///
/// # Errors
/// Names the command line when it cannot be started or ends with another status than 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = text(command);
    let status = command.status().with_context(|| format!("cannot start: {line}"))?;
    if !status.success() {
        bail!("{status}: {line}");
    }
    Ok(())
}

/// The command line as one would type it.
fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
