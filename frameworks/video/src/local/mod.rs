//! One query over one file, here and now, as fast as it goes, or over a camera as its pictures come: no cluster.

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

pub use still::still;

/// Pictures for the contact sheet are taken this often, in seconds, and when something is found.
const SHEET_EVERY: f64 = 2.0;

/// What to run.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// The video or the camera.
    pub video: Source,
    /// A camera is examined for this many seconds; `None` until its end.
    pub seconds: Option<f64>,
    /// For how many seconds a lost camera is connected again.
    pub reconnect: f64,
    /// What to look for.
    pub kind: QueryKind,
    /// The part of the picture that counts.
    pub scope: Scope,
    /// The configuration of the pipeline.
    pub config: Config,
    /// Where findings go, as JSON lines.
    pub results: Option<PathBuf>,
    /// Where an annotated video goes, as MP4.
    pub annotated: Option<PathBuf>,
    /// Where a contact sheet goes, as PNG.
    pub sheet: Option<PathBuf>,
    /// The truth of a made scene.
    pub truth: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub struct LocalReport {
    /// What was found, by time.
    pub findings: Vec<Finding>,
    /// Objects that were followed.
    pub distinct: u64,
    /// Frames looked at.
    pub frames: u64,
    /// Seconds of video.
    pub seconds: f64,
    /// Core-seconds used for reading and looking.
    pub core_seconds: f64,
    /// Against the truth, if it is known.
    pub score: Option<Score>,
    /// How the camera stood at the end.
    pub source: Option<FeedStatus>,
    /// What happened to the source and its view.
    pub notices: Vec<Notice>,
    /// Pixels in a row, and frames a second.
    pub format: (usize, f64),
    /// Why the video ended before its end, if it did. What was found before is above.
    pub cut: Option<MediaError>,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The video.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The truth.
    #[error(transparent)]
    Truth(#[from] GenerateError),
    /// The annotated video.
    #[error("the annotated video")]
    Write(#[from] WriteError),
    /// The contact sheet.
    #[error("the contact sheet")]
    Sheet(#[from] SheetError),
    /// The results.
    #[error("{}: the results cannot be written", path.display())]
    Results {
        /// Which file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Runs a query over a whole file or a camera, and gives findings to `each` as they come. A file that is cut short, or
/// has a frame that cannot be decoded, is run up to there.
///
/// # Errors
/// Nothing of the video can be decoded, or something cannot be written.
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
    let mut pipeline = Pipeline::new(options.kind, options.config, still).within(&options.scope);
    let mut drawn = Drawn::new(options, info.width, info.height, info.fps / f64::from(every))?;
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

/// The annotated video and the sheet, as requested.
struct Drawn<'a> {
    options: &'a LocalOptions,
    video: Option<Mp4Writer>,
    sheet: Sheet,
    next_picture: f64,
    names: BTreeMap<u64, String>,
    found: u64,
}

impl<'a> Drawn<'a> {
    fn new(options: &'a LocalOptions, width: usize, height: usize, fps: f64) -> Result<Drawn<'a>, LocalError> {
        let video = options.annotated.as_ref().map(|_| Mp4Writer::new(width, height, fps, 1.0)).transpose()?;
        Ok(Drawn { options, video, sheet: Sheet::default(), next_picture: 0.0, names: BTreeMap::new(), found: 0 })
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
