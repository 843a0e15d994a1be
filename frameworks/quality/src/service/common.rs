//! State that the drivers of all jobs share: the connection to the scheduler, and the directories of files.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sdk::{AskError, Requester};

use super::files::Record;
use crate::input::Schema;
use crate::learn::Shape;
use crate::scheduler::{Answer, Directive, Earlier, Iteration, Outcome, Progress, Question};

/// Delay before an end is reported again to a busy scheduler.
const BUSY: Duration = Duration::from_millis(100);

/// The state that all drivers share.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) requester: Requester<Question, Answer>,
    pub(super) started: Instant,
    /// Number of cores of a worker.
    pub(super) cores: u32,
    /// Directory of checkpoints; `None` if there are no checkpoints.
    pub(super) checkpoints: Option<PathBuf>,
    /// Directory of models; `None` if models are not saved.
    pub(super) models: Option<PathBuf>,
    pub(super) record: Option<Arc<Mutex<Record>>>,
}

impl Common {
    /// Returns the path of a job's checkpoint, if there are checkpoints.
    pub(super) fn checkpoint_path(&self, job: &str) -> Option<PathBuf> {
        self.checkpoints.as_ref().map(|directory| directory.join(format!("{job}.checkpoint")))
    }

    /// Reports to the scheduler, and returns its directive; an empty one if the scheduler has ended.
    pub(super) async fn report(&self, job: &str, progress: Progress) -> Directive {
        let progress = Progress { job: job.to_owned(), ..progress };
        match self.requester.ask(Question::Progress(Box::new(progress))).await {
            Ok(Answer::Directive(directive)) => directive,
            _ => Directive::default(),
        }
    }

    /// Reports the progress of a job before this start, if there was any. Must come before the job's first iteration.
    pub(super) async fn report_earlier(&self, job: &str, losses: &[f64], last: Option<Iteration>) {
        if !losses.is_empty() {
            let earlier = Some(Earlier { losses: losses.to_vec(), last });
            self.report(job, Progress { earlier, ..Progress::default() }).await;
        }
    }

    /// Removes the checkpoint of an ended job. One that remains does no harm, as it is valid for this job only.
    pub(super) fn remove_checkpoint(&self, job: &str) {
        if let Some(path) = self.checkpoint_path(job)
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "an obsolete checkpoint cannot be deleted");
        }
    }
}

/// The shape, the classes and the columns of a job's data.
#[derive(Debug, Default)]
pub(super) struct DataDescription {
    pub(super) shape: Shape,
    pub(super) classes: Vec<String>,
    pub(super) schema: Schema,
}

/// Reports the end of a job to the scheduler, and retries while the scheduler is busy. Returns its answer; `None` if
/// the scheduler has ended.
pub(super) async fn report_end(common: &Common, job: &str, outcome: Outcome, free: Vec<String>) -> Option<Answer> {
    loop {
        let (job, outcome, free) = (job.to_owned(), outcome.clone(), free.clone());
        match common.requester.ask(Question::Ended { job, outcome, free }).await {
            Ok(answer) => return Some(answer),
            Err(AskError::Busy) => tokio::time::sleep(BUSY).await,
            Err(AskError::Gone) => return None,
        }
    }
}
