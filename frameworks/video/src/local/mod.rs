//! Runs one query without a cluster: on a file as fast as possible, or on a camera as its pictures arrive.

mod live;
mod still;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::media::camera::FeedStatus;
use crate::media::write::WriteError;
use crate::media::{MediaError, Mp4Writer, Source, Video};
use crate::output::{Sheet, SheetError, annotate, draw_scope};
use crate::pipeline::{Config, Finding, Notice, Pipeline, QueryKind, Scope, Score, learn_still, score, true_findings};
use crate::profile::core_seconds;
use crate::scene::{GenerateError, read_truth};
use crate::vision::Network;

pub use still::still;

/// Interval in seconds at which pictures for the contact sheet are taken; each finding adds one too.
const SHEET_EVERY: f64 = 2.0;

/// Options of a local run.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// Video file or camera.
    pub video: Source,
    /// Time for which a camera is examined, in seconds; `None` until its end.
    pub seconds: Option<f64>,
    /// Time for which a lost camera is reconnected, in seconds.
    pub reconnect: f64,
    /// Kind of the query.
    pub kind: QueryKind,
    /// Part of the picture that counts.
    pub scope: Scope,
    /// Configuration of the pipeline.
    pub config: Config,
    /// Path of the ONNX model of the detector `network`.
    pub model: Option<PathBuf>,
    /// Path of the results file, to which findings are written as JSON lines.
    pub results: Option<PathBuf>,
    /// Path of the annotated video (MP4).
    pub annotated: Option<PathBuf>,
    /// Path of the contact sheet (PNG).
    pub sheet: Option<PathBuf>,
    /// Path of the ground truth of a generated scene.
    pub truth: Option<PathBuf>,
}

/// Result of a local run.
#[derive(Debug)]
pub struct LocalReport {
    /// Findings in the order of time.
    pub findings: Vec<Finding>,
    /// Number of distinct objects that were tracked.
    pub distinct: u64,
    /// Number of frames that were examined.
    pub frames: u64,
    /// Length of the video in seconds.
    pub seconds: f64,
    /// Core-seconds used for decoding and detection.
    pub core_seconds: f64,
    /// Score against the ground truth; `None` if the truth is unknown.
    pub score: Option<Score>,
    /// State of the camera at the end; `None` for a file.
    pub source: Option<FeedStatus>,
    /// Events of the source and of its view.
    pub notices: Vec<Notice>,
    /// Width in pixels, and frames a second.
    pub format: (usize, f64),
    /// Reason why the video ended early; `None` if it was complete. The findings until then are in `findings`.
    pub cut: Option<MediaError>,
}

/// Reason why a local run failed.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The video cannot be read.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The ground truth cannot be read.
    #[error(transparent)]
    Truth(#[from] GenerateError),
    /// The annotated video cannot be written.
    #[error("the annotated video")]
    Write(#[from] WriteError),
    /// The contact sheet cannot be written.
    #[error("the contact sheet")]
    Sheet(#[from] SheetError),
    /// The results file cannot be written.
    #[error("{}: the results cannot be written", path.display())]
    Results {
        /// Path of the file.
        path: PathBuf,
        /// Error of the write.
        source: std::io::Error,
    },
}

/// Runs a query over a whole file or a camera, and calls `each` with every finding. A file that is cut short, or has a
/// frame that cannot be decoded, is processed up to there.
///
/// # Errors
/// Returns an error if nothing of the video can be decoded, or an output cannot be written.
pub fn run(options: &LocalOptions, each: &mut dyn FnMut(&Finding)) -> Result<LocalReport, LocalError> {
    match &options.video {
        Source::File(path) => run_file(options, path, each),
        Source::Camera(camera) => live::run(options, camera, each),
    }
}

fn run_file(options: &LocalOptions, path: &Path, each: &mut dyn FnMut(&Finding)) -> Result<LocalReport, LocalError> {
    let mut video = Video::open(path)?;
    let still = learn_still(&mut video, 0)?;
    let info = video.info();
    let every = options.config.every.max(1);
    let network = Network::open_if_any(options.model.as_deref()).map_err(MediaError::from)?;
    let pipeline = Pipeline::new(options.kind, options.config, still).within(&options.scope);
    let mut pipeline = pipeline.with_network(network);
    let mut drawn = VisualOutput::new(options, info.width, info.height, info.fps / f64::from(every))?;
    let (mut findings, mut frames, mut used, mut cut) = (Vec::new(), 0, 0.0, None);
    let mut seconds = 0.0;
    for number in (0..).step_by(every as usize) {
        let before = core_seconds();
        let frame = match video.frame(number) {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(error) => {
                cut = Some(error);
                break;
            }
        };
        seconds = number as f64 / info.fps;
        let found = pipeline.process(seconds, &frame);
        used += core_seconds() - before;
        frames += 1;
        drawn.frame(frame, &pipeline, seconds, &found)?;
        found.iter().for_each(&mut *each);
        findings.extend(found);
    }
    let rest = pipeline.finish();
    rest.iter().for_each(each);
    findings.extend(rest);
    findings.sort_by(|a: &Finding, b| a.at.total_cmp(&b.at));
    drawn.finish()?;
    write_results(options, &findings)?;
    let seconds = seconds + f64::from(every) / info.fps;
    let truth = options.truth.as_ref().map(|path| read_truth(path)).transpose()?;
    let score = truth.map(|truth| score(options.kind, &findings, &true_findings(&truth, options.kind, 0.0, seconds)));
    let format = (info.width, info.fps);
    let distinct = pipeline.distinct();
    Ok(LocalReport {
        findings,
        distinct,
        frames,
        seconds,
        core_seconds: used,
        score,
        source: None,
        notices: pipeline.notices(),
        format,
        cut,
    })
}

fn write_results(options: &LocalOptions, findings: &[Finding]) -> Result<(), LocalError> {
    let Some(path) = &options.results else { return Ok(()) };
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        for finding in findings {
            serde_json::to_writer(&mut out, finding)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    };
    write().map_err(|source| LocalError::Results { path: path.clone(), source })
}

/// The annotated video and the contact sheet, if requested.
struct VisualOutput<'a> {
    options: &'a LocalOptions,
    video: Option<Mp4Writer>,
    sheet: Sheet,
    next_picture: f64,
    names: BTreeMap<u64, String>,
    found: u64,
}

impl<'a> VisualOutput<'a> {
    fn new(options: &'a LocalOptions, width: usize, height: usize, fps: f64) -> Result<VisualOutput<'a>, LocalError> {
        let video = options.annotated.as_ref().map(|_| Mp4Writer::new(width, height, fps, 1.0)).transpose()?;
        Ok(VisualOutput {
            options,
            video,
            sheet: Sheet::default(),
            next_picture: 0.0,
            names: BTreeMap::new(),
            found: 0,
        })
    }

    fn frame(
        &mut self,
        mut frame: crate::frame::Frame,
        pipeline: &Pipeline,
        seconds: f64,
        found: &[Finding],
    ) -> Result<(), LocalError> {
        if self.video.is_none() && self.options.sheet.is_none() {
            return Ok(());
        }
        let named = !matches!(self.options.kind, QueryKind::Tracks);
        for finding in found {
            self.found += u64::from(named);
            let name = match self.options.kind {
                QueryKind::Cars | QueryKind::People => format!("#{} {}", finding.track, self.found),
                _ => finding.label.clone(),
            };
            self.names.insert(finding.track, name);
        }
        let picture = seconds >= self.next_picture || (named && !found.is_empty());
        if self.video.is_none() && !picture {
            return Ok(());
        }
        let below = format!("{seconds:.2} s  {}: {}", self.options.kind.name(), self.found);
        annotate(&mut frame, pipeline.tracks(), seconds, |id| self.names.get(&id).cloned(), &below);
        draw_scope(&mut frame, &self.options.scope);
        if picture && self.options.sheet.is_some() {
            self.sheet.push(&frame);
            self.next_picture = seconds + SHEET_EVERY;
        }
        if let Some(video) = &mut self.video {
            video.push(&frame)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), LocalError> {
        if let (Some(video), Some(path)) = (self.video, &self.options.annotated) {
            video.finish(path)?;
        }
        if let Some(path) = &self.options.sheet {
            self.sheet.write(path, 4)?;
        }
        Ok(())
    }
}
