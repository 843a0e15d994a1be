//! What the drivers of all jobs share: the way to the scheduler, and where files are kept.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sdk::{AskError, Requester};

use super::files::Record;
use crate::input::Schema;
use crate::learn::Shape;
use crate::scheduler::{Answer, Directive, Earlier, Iteration, Outcome, Progress, Question};

/// Wait before an end is reported again to a busy scheduler.
const BUSY: Duration = Duration::from_millis(100);

/// What all drivers share.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) requester: Requester<Question, Answer>,
    pub(super) started: Instant,
    /// Cores of a worker.
    pub(super) cores: u32,
    /// Where checkpoints are kept.
    pub(super) checkpoints: Option<PathBuf>,
    /// Where models are kept.
    pub(super) models: Option<PathBuf>,
    pub(super) record: Option<Arc<Mutex<Record>>>,
}

impl Common {
    /// Where the checkpoint of a job is kept, if checkpoints are.
    pub(super) fn checkpoint_path(&self, job: &str) -> Option<PathBuf> {
        self.checkpoints.as_ref().map(|directory| directory.join(format!("{job}.checkpoint")))
    }

    /// Reports to the scheduler, and returns its directive; an empty one if it is gone.
    pub(super) async fn report(&self, job: &str, progress: Progress) -> Directive {
        let progress = Progress { job: job.to_owned(), ..progress };
        match self.requester.ask(Question::Progress(Box::new(progress))).await {
            Ok(Answer::Directive(directive)) => directive,
            _ => Directive::default(),
        }
    }

    /// Reports what a job had come to before this start, if it had: before its first iteration.
    pub(super) async fn report_earlier(&self, job: &str, losses: &[f64], last: Option<Iteration>) {
        if !losses.is_empty() {
            let earlier = Some(Earlier { losses: losses.to_vec(), last });
            self.report(job, Progress { earlier, ..Progress::default() }).await;
        }
    }

    /// Removes the checkpoint of a job that is over. One that stays is harmless: it is of this job only.
    pub(super) fn remove_checkpoint(&self, job: &str) {
        if let Some(path) = self.checkpoint_path(job)
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "a checkpoint that is not needed any more stays");
        }
    }
}

/// The shape of a job's data.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) shape: Shape,
    pub(super) classes: Vec<String>,
    pub(super) schema: Schema,
}

/// Tells the scheduler that a job is over, also if it has too much to do at first; its answer, unless it is gone.
pub(super) async fn tell_end(common: &Common, job: &str, outcome: Outcome, free: Vec<String>) -> Option<Answer> {
    loop {
        let (job, outcome, free) = (job.to_owned(), outcome.clone(), free.clone());
        match common.requester.ask(Question::Ended { job, outcome, free }).await {
            Ok(answer) => return Some(answer),
            Err(AskError::Busy) => tokio::time::sleep(BUSY).await,
            Err(AskError::Gone) => return None,
        }
    }
}
