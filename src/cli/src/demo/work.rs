//! The three frameworks of the demo, and their work: the files of `examples/demo`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jobs::service::Handle as _;
use quality::allocate;
use sdk::driver::Options;
use sdk::v1::FrameworkInfo;
use serde_json::Value;
use video::pipeline::{Knobs, QueryKind, Scope};
use video::profile::{ClipOptions, Profile};
use video::scene::{self, SceneOptions};
use video::schedule;
use video::spec::QuerySpec;

use super::frame::{Frame, Share};
use crate::connect::MasterArgs;
use crate::execute::{capabilities, user};

const BATCH: &str = include_str!("../../../../examples/demo/batch.toml");
const TRAINING: &str = include_str!("../../../../examples/demo/training.toml");
const QUERIES: &str = include_str!("../../../../examples/demo/queries.toml");

/// Names of the frameworks; their roles are the same.
pub(super) const NAMES: [&str; 3] = ["batch", "training", "video"];
/// Maximum number of training workers: the other frameworks need cores, too.
const WORKERS: u32 = 4;
/// Numbers that a core of a training worker processes in a second, so that its speed does not depend on this machine's
/// load.
const PACE: f64 = 500_000.0;
/// Share of what all queries could use at their best that the video framework may use, so that they compete on every
/// machine.
const VIDEO_PART: f64 = 0.5;
/// Minimum number of cores for each query, which is enough for its smallest task.
const VIDEO_LEAST: f64 = 0.021;
/// Number of seconds of a video that are profiled.
const PROFILED: f64 = 6.0;

/// The policy by which training and video share their cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// By the quality that cores gain: SLAQ and VideoStorm.
    Quality,
    /// In equal shares.
    Fair,
}

impl Sharing {
    /// Returns the policy's name in reports.
    pub(super) fn words(self) -> &'static str {
        match self {
            Sharing::Quality => "by the gain in quality",
            Sharing::Fair => "evenly",
        }
    }
}

/// The running frameworks.
pub(super) struct Frameworks {
    batch: binpack::service::Service,
    training: quality::service::Service,
    video: video::service::Service,
}

/// States of the demo's tasks that are not failures.
const FINE: [&str; 6] =
    ["TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING", "TASK_FINISHED", "TASK_KILLED"];

fn driver(master: &str, name: &str) -> Result<Options> {
    let framework = FrameworkInfo {
        user: user(),
        name: name.to_owned(),
        roles: vec![name.to_owned()],
        checkpoint: Some(true),
        failover_timeout: Some(60.0),
        capabilities: capabilities(&["MULTI_ROLE", "RESERVATION_REFINEMENT", "PARTITION_AWARE"])?,
        ..Default::default()
    };
    Ok(Options::new(master, framework)?)
}

/// Generates two street videos with their ground truth, before any work begins.
fn streets(directory: &Path) -> Result<()> {
    for (name, seed, vehicles, people) in [("street", 1, 50.0, 30.0), ("corner", 2, 80.0, 10.0)] {
        let options = SceneOptions {
            width: 960,
            height: 540,
            fps: 20.0,
            seconds: 12.0,
            seed,
            vehicles_per_minute: vehicles,
            people_per_minute: people,
            ..SceneOptions::default()
        };
        scene::generate(&options, &directory.join(format!("{name}.mp4")))
            .with_context(|| format!("cannot create {name}"))?;
    }
    Ok(())
}

/// Writes a profile of each query to where the framework finds it. Returns the number of cores that the queries can use
/// at their best.
fn profiled(queries: &[QuerySpec], directory: &Path) -> Result<f64> {
    let clip = ClipOptions { seconds: PROFILED, ..Default::default() };
    let mut cores = 0.0;
    for query in queries {
        let path = query.video.file().with_context(|| format!("the query {} has no file", query.name))?;
        let made = Profile::load_or_make(directory, path, query.kind, &Knobs::default(), clip.clone());
        let (profile, _) = made.with_context(|| format!("the query {}", query.name))?;
        cores += profile.frontier.last().map_or(0.0, |best| best.cores);
    }
    Ok(cores)
}

/// Returns a picture of the first street with what the query `counting` detects in it, as base64 of a PNG.
pub(super) fn picture(directory: &Path) -> Result<Option<String>> {
    let street = directory.join("street.mp4");
    let frame = video::local::still(&street, QueryKind::Cars, &Scope::default(), PROFILED).context("the street")?;
    let png = frame.map(|frame| video::output::png(&frame)).transpose()?;
    Ok(png.map(|png| BASE64.encode(png)))
}

impl Frameworks {
    /// Starts all three frameworks with all their work.
    pub(super) async fn start(master: &str, directory: &Path, sharing: Sharing) -> Result<Frameworks> {
        streets(directory)?;
        let mut videos = video::service::Options::new(driver(master, NAMES[2])?);
        videos.queries = video::spec::parse(QUERIES, "queries.toml", directory)?;
        videos.results = Some(directory.join("results"));
        videos.profiles = directory.join("profiles");
        let wanted = profiled(&videos.queries, &videos.profiles)?;
        videos.cores_max = Some((VIDEO_PART * wanted).max(VIDEO_LEAST * videos.queries.len() as f64));
        videos.profile_seconds = PROFILED;
        videos.policy = match sharing {
            Sharing::Quality => schedule::Policy::Videostorm,
            Sharing::Fair => schedule::Policy::Fair,
        };
        let video = video::service::Service::start(videos).await.context("the video framework does not start")?;

        let mut trainings = quality::service::Options::new(driver(master, NAMES[1])?);
        trainings.jobs = quality::job::parse("training.toml", TRAINING)?;
        trainings.workers_max = WORKERS;
        trainings.pace = Some(PACE);
        trainings.epoch = Duration::from_secs(1);
        trainings.models = Some(directory.join("models"));
        trainings.policy = match sharing {
            Sharing::Quality => allocate::Policy::Slaq,
            Sharing::Fair => allocate::Policy::Fair,
        };
        let training = quality::service::Service::start(trainings).await.context("training does not start")?;

        let batch = binpack::service::start(binpack::service::Options {
            driver: driver(master, NAMES[0])?,
            listen: ([127, 0, 0, 1], 0).into(),
            knobs: binpack::Knobs::default(),
            measure_every: binpack::service::MEASURE_EVERY,
        });
        let batch = batch.await.context("the batch framework does not start")?;
        batch.handle().submit(binpack::job::read("batch.toml", BATCH, binpack::job::Syntax::Toml)?).await?;
        Ok(Frameworks { batch, training, video })
    }

    /// Returns the current state of all work.
    pub(super) async fn sample(&self, master: &MasterArgs, at: Duration) -> Result<Frame> {
        let fairness = master.call("GET_FAIRNESS", &Value::Null).await.unwrap_or_default();
        let roles = fairness["roles"].as_array().cloned().unwrap_or_default();
        let share = |name: &&str| {
            let role = roles.iter().find(|role| role["role"] == **name);
            let number = |field: &str| role.and_then(|role| role[field].as_f64()).unwrap_or_default();
            Share { name: (**name).to_owned(), share: number("share"), fair: number("fair_share") }
        };
        Ok(Frame {
            at: at.as_secs_f64(),
            shares: NAMES.iter().map(share).collect(),
            jain: fairness["jain_index"].as_f64().unwrap_or(1.0),
            batch: self.batch.handle().status().await.context("the batch framework has ended")?,
            training: self.training.status().await.context("the training framework has ended")?,
            video: self.video.status().await.context("the video framework has ended")?,
        })
    }

    /// Returns a sentence for each task that failed or was lost. Workers that are moved are killed, which is not a
    /// failure.
    pub(super) async fn failures(&self, master: &MasterArgs) -> Result<Vec<String>> {
        let answer = master.call("GET_TASKS", &Value::Null).await?;
        let lists = ["tasks", "completed_tasks", "orphan_tasks", "unreachable_tasks"];
        let tasks = lists.iter().flat_map(|list| answer[list].as_array().into_iter().flatten());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let wrong = tasks.filter(|task| !FINE.contains(&task["state"].as_str().unwrap_or_default()));
        Ok(wrong.map(|t| format!("the task {} ended in {}", text(&t["task_id"]["value"]), text(&t["state"]))).collect())
    }

    /// Stops all three frameworks with all their tasks.
    pub(super) async fn stop(self) {
        self.batch.stop(true).await;
        if let Err(why) = self.training.stop(true).await {
            tracing::warn!("training: {why}");
        }
        self.video.stop(true).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::frame::{self, BATCH_TASKS, TRAININGS};

    #[test]
    fn the_work_that_comes_along_is_right() {
        let batch = binpack::job::read("batch.toml", BATCH, binpack::job::Syntax::Toml).unwrap();
        assert_eq!(batch.iter().map(|job| job.count).sum::<u32>() as usize, BATCH_TASKS);
        assert_eq!(quality::job::parse("training.toml", TRAINING).unwrap().len(), TRAININGS);
        let queries = video::spec::parse(QUERIES, "queries.toml", Path::new("/v")).unwrap();
        assert_eq!(queries.len(), frame::QUERIES);
    }
}
