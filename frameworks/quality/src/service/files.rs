//! Reads and writes files of the service: checkpoints of jobs, and the record of all iterations.
//!
//! A file is replaced as a whole: it is written under a temporary name and renamed.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::stop::StopConditions;
use crate::job::Job;
use crate::learn::Learner;
use crate::scheduler::Iteration;

/// Version of checkpoints. A change that older programs cannot read raises it.
const CHECKPOINT_VERSION: u32 = 5;

/// The state of a job's training at the end of an iteration.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    pub(super) version: u32,
    /// Job, as JSON: a checkpoint of another job under the same name is ignored.
    pub(super) job: String,
    pub(super) learner: Learner,
    /// Losses of the newest iterations, the newest last.
    pub(super) losses: Vec<f64>,
    /// Newest iteration.
    pub(super) last: Option<Iteration>,
    /// Number of iterations that are done.
    pub(super) iterations: u64,
    /// State of the conditions that end the job.
    pub(super) stopping: StopConditions,
}

impl Checkpoint {
    /// Creates the checkpoint of a training that has not begun.
    pub(super) fn new(job: &Job, learner: Learner) -> Checkpoint {
        Checkpoint {
            version: CHECKPOINT_VERSION,
            job: serde_json::to_string(job).unwrap_or_default(),
            learner,
            losses: Vec::new(),
            last: None,
            iterations: 0,
            stopping: StopConditions::default(),
        }
    }

    /// Writes the checkpoint to `path`, and returns when it is on the disk.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        replace(path, &bytes)
    }

    /// Reads the checkpoint of this job from `path`; `None` if there is no usable one.
    pub(super) fn read(path: &Path, job: &Job) -> Option<Checkpoint> {
        let bytes = fs::read(path).ok()?;
        let checkpoint: Checkpoint = match postcard::from_bytes(&bytes) {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the checkpoint cannot be read; the job starts again");
                return None;
            }
        };
        let same = checkpoint.version == CHECKPOINT_VERSION
            && serde_json::from_str::<Job>(&checkpoint.job).ok().as_ref() == Some(job);
        same.then_some(checkpoint)
    }
}

/// Replaces or creates a file.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = || Error::io(format!("cannot write {}", path.display()));
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(failed())?;
    let beside = path.with_extension("new");
    let mut file = fs::File::create(&beside).map_err(failed())?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed())?;
    fs::rename(&beside, path).map_err(failed())?;
    fs::File::open(directory).and_then(|f| f.sync_all()).map_err(failed())
}

/// A CSV file with a line for each iteration of each job.
#[derive(Debug)]
pub(super) struct Record(fs::File);

impl Record {
    /// Creates the file with its line of names, and overwrites an existing one.
    pub(super) fn create(path: &Path) -> Result<Record, Error> {
        let failed = Error::io(format!("cannot write {}", path.display()));
        let names = "job,algorithm,seconds,iteration,loss,accuracy,workers,iteration_seconds,busy_seconds,\
                     validation_loss,validation_accuracy,rows\n";
        let made = fs::File::create(path).and_then(|mut f| f.write_all(names.as_bytes()).map(|()| f));
        made.map(Record).map_err(failed)
    }

    /// Appends an iteration that ended `seconds` after the service's start.
    pub(super) fn add(&mut self, job: &Job, seconds: f64, i: &Iteration) {
        let (name, kind, number, loss) = (&job.name, job.algorithm.name(), i.number, i.loss);
        let accuracy = i.accuracy.map(|a| a.to_string()).unwrap_or_default();
        let (workers, took, busy) = (i.workers, i.seconds, i.busy);
        let validation = match i.validation {
            Some(score) => format!("{},{}", score.loss, score.accuracy.map(|a| a.to_string()).unwrap_or_default()),
            None => ",".to_owned(),
        };
        let rows = i.rows.map(|rows| format!("{:.4}", rows.now)).unwrap_or_default();
        let line = format!(
            "{name},{kind},{seconds:.3},{number},{loss},{accuracy},{workers:.2},{took:.6},{busy:.6},{validation},{rows}\n"
        );
        if let Err(error) = self.0.write_all(line.as_bytes()) {
            tracing::warn!(%error, "an iteration could not be recorded");
        }
    }
}
