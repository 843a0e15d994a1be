//! Samples of the demo: one frame with all states, and the list of all frames.

use binpack::core::State as Batch;
use quality::scheduler::State as Training;
use video::core::State as Video;

/// The share of a framework in the cluster.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) name: String,
    /// Dominant share of the framework.
    pub(super) share: f64,
    /// Fair share of the framework.
    pub(super) fair: f64,
}

/// A sample of the states of all work.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Seconds since the work began.
    pub(super) at: f64,
    pub(super) shares: Vec<Share>,
    /// Jain's fairness index, as the master computes it.
    pub(super) jain: f64,
    pub(super) batch: binpack::core::Status,
    pub(super) training: quality::scheduler::Status,
    pub(super) video: video::core::Status,
}

impl Frame {
    /// Returns whether all work has ended, successfully or not.
    pub(super) fn is_over(&self) -> bool {
        let batch = |state: Batch| matches!(state, Batch::Finished | Batch::Failed | Batch::Stopped);
        let training = |state: Training| !matches!(state, Training::Waiting | Training::Running);
        self.batch.jobs.iter().all(|job| batch(job.state))
            && self.training.jobs.iter().all(|job| training(job.state))
            && self.video.all_ended()
    }
}

/// All frames of a run, the first one first.
#[derive(Debug, Default)]
pub(super) struct RunHistory {
    frames: Vec<Frame>,
}

/// Number of pieces of work of each framework.
pub(super) const BATCH_TASKS: usize = 144;
pub(super) const TRAININGS: usize = 4;
pub(super) const QUERIES: usize = 6;
/// Number of frames beyond which every other one is removed.
const FRAMES: usize = 2_000;

impl RunHistory {
    /// Adds a frame.
    pub(super) fn add(&mut self, frame: Frame) {
        if self.frames.len() >= FRAMES {
            let mut keep = false;
            self.frames.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.frames.push(frame);
    }

    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(super) fn last(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// Returns a sentence for each piece of work that did not succeed.
    pub(super) fn wrong(&self) -> Vec<String> {
        let Some(last) = self.last() else { return vec!["the demo has no samples".to_owned()] };
        let batch = last.batch.jobs.iter().filter(|job| job.state != Batch::Finished);
        let batch = batch.map(|job| format!("the job {} is {:?}; tepui job show has the reason", job.name, job.state));
        let training = last.training.jobs.iter().filter(|job| job.state != Training::Finished);
        let training = training.map(|job| format!("the training {} is {:?}: {}", job.name, job.state, job.reason));
        let video = last.video.queries.iter().filter(|query| query.state != Video::Done);
        let video = video.map(|query| format!("the query {} is {:?}: {}", query.name, query.state, query.message));
        let blind = last.video.queries.iter().filter(|query| query.found == 0);
        let blind = blind.map(|query| format!("the query {} found nothing", query.name));
        let still = last.training.jobs.iter().filter(|job| job.iteration.is_none());
        let still = still.map(|job| format!("the training {} did not iterate", job.name));
        let counts = [
            ("batch tasks", BATCH_TASKS, last.batch.jobs.iter().map(|job| job.tasks.finished as usize).sum()),
            ("training jobs", TRAININGS, last.training.jobs.len()),
            ("video queries", QUERIES, last.video.queries.len()),
        ];
        let counts = counts.into_iter().filter(|(_, wanted, there)| wanted != there);
        let counts = counts.map(|(what, wanted, there)| format!("{there} {what} instead of {wanted}"));
        batch.chain(training).chain(video).chain(blind).chain(still).chain(counts).collect()
    }
}
