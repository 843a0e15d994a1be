//! The tools of the video framework that need no cluster: scenes, profiles, and one query over one file.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use video::local::{LocalOptions, run as run_local};
use video::media::Source;
use video::pipeline::{Config, Finding, Knobs, QueryKind};
use video::profile::{ClipOptions, EVENTS_FEW, Profile};
use video::scene::{SceneOptions, generate as generate_scene};
use video::scope::Scope;
use video::vision::Detector;

use crate::read::table::table;
use crate::say::say;

/// Flags of `tepui framework video generate`.
#[derive(Debug, clap::Args)]
pub(super) struct GenerateArgs {
    /// The video to write: .mp4 (H.264) or .y4m; its truth goes beside it, as .json
    #[arg(value_name = "FILE")]
    output: PathBuf,
    /// Seed of the scene
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds before the scene repeats itself, without a seam
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Width in pixels
    #[arg(long, default_value_t = 640)]
    width: usize,
    /// Height in pixels
    #[arg(long, default_value_t = 360)]
    height: usize,
    /// Frames a second
    #[arg(long, default_value_t = 25.0)]
    fps: f64,
    /// Vehicles a minute
    #[arg(long, default_value_t = 60.0)]
    vehicles: f64,
    /// People a minute
    #[arg(long, default_value_t = 40.0)]
    people: f64,
}

/// Flags of `tepui framework video profile`.
#[derive(Debug, clap::Args)]
pub(super) struct ProfileArgs {
    /// A video file, or a camera, of which the seconds are recorded
    #[arg(value_name = "SOURCE")]
    video: Source,
    /// What the query counts: cars, people, plates, kinds or tracks
    #[arg(long, default_value = "cars")]
    kind: QueryKind,
    /// Best detector to try
    #[arg(long, default_value = "colour")]
    detector: DetectorName,
    #[command(flatten)]
    model: ModelArgs,
    /// Seconds of the video to try
    #[arg(long, default_value_t = 12.0)]
    seconds: f64,
    /// Where to write the profile
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DetectorName {
    /// A fixed difference in brightness
    Difference,
    /// A difference in brightness against each pixel's own noise
    Gaussian,
    /// A difference in brightness against each pixel's own noise, and in colour
    Colour,
    /// Several values of brightness and colour for each place, without shadows
    Mixture,
    /// The neural network of --model
    Network,
}

impl DetectorName {
    fn detector(self) -> Detector {
        match self {
            DetectorName::Difference => Detector::Difference,
            DetectorName::Gaussian => Detector::Gaussian,
            DetectorName::Colour => Detector::Colour,
            DetectorName::Mixture => Detector::Mixture,
            DetectorName::Network => Detector::Network,
        }
    }
}

/// The model of the detector `network`.
#[derive(Debug, clap::Args)]
struct ModelArgs {
    /// ONNX file of a YOLO-like network, for --detector=network
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

impl ModelArgs {
    /// Returns the file, which must be given for the detector `network` and for no other.
    fn of(&self, detector: Detector) -> Result<Option<PathBuf>> {
        match (detector == Detector::Network, &self.model) {
            (true, None) => bail!("--detector=network needs a network: set --model=FILE.onnx"),
            (false, Some(_)) => bail!("--model is used by --detector=network only"),
            (_, model) => Ok(model.clone()),
        }
    }
}

/// Flags of `tepui framework video run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// A video file, or a camera: rtsp://, http://, https://, uplink://, /dev/videoN or pipe:PATH
    #[arg(value_name = "SOURCE")]
    video: Source,
    /// Seconds to process of a camera [default: until it ends]
    #[arg(long)]
    seconds: Option<f64>,
    /// Seconds for which to try to reconnect to a lost camera; 0: end when it is lost
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    reconnect: f64,
    /// Kind of query: cars, people, plates, kinds or tracks
    #[arg(long, default_value = "cars")]
    kind: QueryKind,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Process only every Nth frame
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    every: u32,
    /// Factor by which to divide the width and height of frames
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    shrink: u32,
    /// Number of frames in which an object must be seen, and of readings in a vote
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=32))]
    window: u32,
    /// Method that separates objects from the background
    #[arg(long, default_value = "colour")]
    detector: DetectorName,
    #[command(flatten)]
    model: ModelArgs,
    /// File to write the findings to, as JSON lines
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Write the video with boxes and names drawn in it, as MP4
    #[arg(long, value_name = "FILE")]
    annotated: Option<PathBuf>,
    /// Write a sheet of pictures with boxes and names, as PNG
    #[arg(long, value_name = "FILE")]
    sheet: Option<PathBuf>,
    /// The truth of a synthetic scene, to measure against
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Flags that select where a query counts.
#[derive(Debug, clap::Args)]
pub(super) struct ScopeArgs {
    /// A file of queries, as TOML, whose lines and region are taken
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Which query of the file [default: the first one]
    #[arg(long, value_name = "NAME", requires = "queries")]
    query: Option<String>,
}

impl ScopeArgs {
    /// Reads the query's lines and region; without a file, returns a line across the middle.
    pub(super) fn read(&self) -> Result<Scope> {
        let Some(path) = &self.queries else { return Ok(Scope::default()) };
        let specs = super::read_queries(Some(path))?;
        let found = specs.iter().find(|spec| self.query.as_ref().is_none_or(|name| spec.name == *name));
        let name = self.query.as_deref().unwrap_or_default();
        Ok(found.with_context(|| format!("{}: no query '{name}'", path.display()))?.scope.clone())
    }
}

pub(super) fn generate(args: &GenerateArgs) -> Result<ExitCode> {
    let options = SceneOptions {
        width: args.width,
        height: args.height,
        fps: args.fps,
        seconds: args.seconds,
        seed: args.seed,
        vehicles_per_minute: args.vehicles,
        people_per_minute: args.people,
        ..Default::default()
    };
    let (truth, beside) = generate_scene(&options, &args.output).context("no scene")?;
    let vehicles = truth.objects.iter().filter(|o| o.kind.is_vehicle()).count();
    let people = truth.objects.len() - vehicles;
    say!("{}: {} s, {vehicles} vehicles, {people} people", args.output.display(), args.seconds);
    say!("{}: the truth", beside.display());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn profile(args: &ProfileArgs) -> Result<ExitCode> {
    let detector = args.detector.detector();
    let clip = ClipOptions { seconds: args.seconds, model: args.model.of(detector)?, ..Default::default() };
    let knobs = Knobs::default().with_detector(detector);
    let profile = match &args.video {
        Source::File(path) => Profile::make(path, args.kind, &knobs, clip)?,
        Source::Camera(camera) => Profile::of_camera(&std::env::temp_dir(), camera, args.kind, &knobs, clip)?,
    };
    let mut rows = table(&["QUALITY", "CORES", "CONFIGURATION"]);
    for point in &profile.frontier {
        let config = point.config.describe(profile.video.fps, profile.video.width);
        rows.add_row([format!("{:.3}", point.quality), format!("{:.4}", point.cores), config]);
    }
    say!("{}", rows.trim_fmt());
    say!("{} of {} configurations tried in {:.2} core-seconds", profile.tried, knobs.all().len(), profile.core_seconds);
    say!(
        "quality is measured against {} objects that the best configuration found in {:.1} s",
        profile.events,
        profile.seconds
    );
    if profile.events < EVENTS_FEW {
        stdio::err!(
            "fewer than {EVENTS_FEW}: the quality is imprecise; use more --seconds, or a video with more events"
        );
    }
    if let Some(path) = &args.output {
        profile.write(path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a finding at once.
fn tell(finding: &Finding, json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(finding)?)?;
    } else {
        let where_to = format!("{} {}", finding.line, finding.direction);
        let line = format!("{:8.2} s  {:<10} {}", finding.at, finding.label, where_to.trim());
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(out.flush()?)
}

pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    let detector = args.detector.detector();
    let config = Config { every: args.every, shrink: args.shrink, window: args.window, detector };
    if args.seconds.is_some_and(|s| !(s > 0.0 && s <= 1e9)) || !(0.0..=1e9).contains(&args.reconnect) {
        bail!("--seconds and --reconnect: seconds, up to 1e9");
    }
    let options = LocalOptions {
        video: args.video.clone(),
        seconds: args.seconds,
        reconnect: args.reconnect,
        scope: args.scope.read()?,
        kind: args.kind,
        config,
        model: args.model.of(detector)?,
        results: args.results.clone(),
        annotated: args.annotated.clone(),
        sheet: args.sheet.clone(),
        truth: args.truth.clone(),
    };
    let mut printed = Ok(());
    let report = run_local(&options, &mut |finding| {
        if printed.is_ok() {
            printed = tell(finding, args.json);
        }
    })?;
    printed?;
    stdio::err!(
        "{} found in {:.1} s of video; {} objects followed; {}: {:.3} cores to keep up",
        report.findings.len(),
        report.seconds,
        report.distinct,
        config.describe(report.format.1, report.format.0),
        report.core_seconds / report.seconds.max(1e-9),
    );
    if let Some(score) = report.score {
        let (right, wrong, missed) = (score.right, score.wrong, score.missed);
        stdio::err!("against the truth: {right} right, {wrong} wrong, {missed} missed (F1 {:.3})", score.f1());
    }
    if let Some(source) = &report.source {
        let (received, dropped, times) = (source.received, source.dropped, source.connections);
        stdio::err!("{}: {received} pictures received, {dropped} dropped, connected {times} times", args.video);
    }
    for notice in &report.notices {
        stdio::err!("{:8.2} s  {}", notice.at, notice.text);
    }
    match report.cut {
        Some(why) => Err(anyhow::Error::new(why).context("the video could not be read to its end")),
        None => Ok(ExitCode::SUCCESS),
    }
}
