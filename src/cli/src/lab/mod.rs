//! `tepui lab`: runs in the laboratory or on a real cluster, and their results.

mod bitrate;
pub(crate) mod bundled;
mod compare;
mod failures;
mod faults;
mod live;
mod load;
mod replay;
mod run;
mod serve;
mod stages;
mod train;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Run a scenario under virtual time or on a real cluster, with all its seeds and the points of its sweep, and
    /// write a report
    #[command(visible_alias = "sweep")]
    Run(run::Args),
    /// Submit tasks at a chosen rate on a real cluster, and measure how long it takes until they run
    Load(Box<load::Args>),
    /// Compare the results of two runs side by side
    Compare(compare::Args),
    /// Inject faults into random small clusters, and check that the invariants hold
    Faults(faults::Args),
    /// Replay a recorded master (`tepui master --record`), with the same or other policies
    Replay(replay::Args),
    /// Predict how jobs and tasks of a trace end, and measure how often the prediction is right
    Failures(failures::Args),
    /// Compare sizes, orders, drops and sprints of jobs of stages in virtual time, beside the numbers of the papers
    Stages(stages::Args),
    /// Compare policies of bitrates over traces of bandwidth, and train the linear one
    Bitrate(bitrate::Args),
    /// Serve environments for learners over standard input and output, for the Python package (tepui.lab)
    Serve(serve::Args),
    /// Train the learned order of stages in virtual time
    Train(train::Args),
}

impl LabCommand {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            LabCommand::Run(args) => run::run(&args),
            LabCommand::Load(args) => load::run(&args),
            LabCommand::Compare(args) => compare::run(&args),
            LabCommand::Faults(args) => faults::run(&args),
            LabCommand::Replay(args) => replay::run(&args),
            LabCommand::Failures(args) => failures::run(&args),
            LabCommand::Stages(args) => stages::run(&args),
            LabCommand::Bitrate(args) => bitrate::run(&args),
            LabCommand::Serve(args) => serve::run(&args),
            LabCommand::Train(args) => train::run(&args),
        }
    }
}

/// Runs `work`; Ctrl-C sets `interrupted`, which the work checks.
fn interruptible<T>(interrupted: &AtomicBool, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        scope.spawn(move || {
            // Without a runtime there is only no graceful stop.
            let _ = crate::block_on(async {
                tokio::select! {
                    _ = crate::interrupt::wait_for_end() => interrupted.store(true, Ordering::Relaxed),
                    _ = end => {}
                }
                Ok(())
            });
        });
        let result = work();
        // The receiver may have ended already.
        let _ = ended.send(());
        result
    })
}
