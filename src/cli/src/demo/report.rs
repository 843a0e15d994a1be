//! What the demo says at its end: tables on the screen, and a page with plots.

use plot::{Line, Lines, Page};

use super::frame::{Frame, Story};
use super::work::Sharing;
use crate::read::table::table;

/// A number of a frame.
type Of<'a> = &'a dyn Fn(&Frame) -> f64;

/// Tables of what was done.
pub(super) fn summary(story: &Story) -> String {
    let Some(last) = story.last() else { return String::new() };
    let mut batch = table(&["BATCH", ">TASKS", ">FINISHED", "STATE"]);
    for row in batch_rows(last) {
        batch.add_row(row);
    }
    let mut training =
        table(&["TRAINING", "ALGORITHM", ">ITERATIONS", ">LOSS", ">ACCURACY", ">PREDICTION ERROR", "STATE"]);
    for row in training_rows(last) {
        training.add_row(row);
    }
    let mut video = table(&["QUERY", "ABOUT", ">QUALITY", ">LAG OVER GOAL s", ">FOUND", "STATE"]);
    for row in video_rows(last) {
        video.add_row(row);
    }
    format!(
        "{}\n\n{}\n\n{}\n\n{:.0} s; mean of Jain's index of fairness {:.3}",
        batch.trim_fmt(),
        training.trim_fmt(),
        video.trim_fmt(),
        last.at,
        mean(story, &|frame| frame.jain)
    )
}

fn mean(story: &Story, of: Of<'_>) -> f64 {
    let frames = story.frames();
    frames.iter().map(of).sum::<f64>() / frames.len().max(1) as f64
}

fn batch_rows(last: &Frame) -> Vec<Vec<String>> {
    let row = |job: &binpack::core::JobSummary| {
        vec![job.name.clone(), job.count.to_string(), job.tasks.finished.to_string(), format!("{:?}", job.state)]
    };
    last.batch.jobs.iter().map(row).collect()
}

fn training_rows(last: &Frame) -> Vec<Vec<String>> {
    let shown = |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"));
    let row = |job: &quality::scheduler::JobStatus| {
        vec![
            job.name.clone(),
            job.kind.to_owned(),
            job.iteration.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            shown(job.loss, 4),
            shown(job.accuracy, 3),
            job.prediction_error.map_or_else(|| "-".to_owned(), |error| format!("{:.1} %", error * 100.0)),
            format!("{:?}", job.state),
        ]
    };
    last.training.jobs.iter().map(row).collect()
}

fn video_rows(last: &Frame) -> Vec<Vec<String>> {
    let row = |query: &video::core::QueryStatus| {
        vec![
            query.name.clone(),
            format!("{:?}", query.kind).to_lowercase(),
            format!("{:.2}", query.mean_quality),
            format!("{:.2}", query.mean_lag_over),
            query.found.to_string(),
            format!("{:?}", query.state),
        ]
    };
    last.video.queries.iter().map(row).collect()
}

/// The page.
pub(super) fn page(story: &Story, sharing: Sharing) -> String {
    let mut page = Page::new("tepui demo");
    page.text(&format!(
        "Three frameworks shared a cluster: a packed batch of commands, training jobs, and video queries. The last two gave \
         cores to their work {}.",
        sharing.words()
    ));
    let Some(last) = story.last() else { return page.html() };
    page.heading("How the cluster was shared");
    let names: Vec<String> = last.shares.iter().map(|share| share.name.clone()).collect();
    let mut lines = Vec::new();
    for (n, name) in names.iter().enumerate() {
        lines.push(Line { colour: Some(n), ..line(story, name, &|frame| frame.shares[n].share) });
        lines.push(Line { colour: Some(n), dashed: true, ..line(story, "", &|frame| frame.shares[n].fair) });
    }
    page.picture(&picture("Dominant shares (dashed: fair shares)", "share", lines));
    page.picture(&picture("Jain's index of fairness", "index", vec![line(story, "", &|frame| frame.jain)]));
    page.heading("The batch");
    page.table(&["job", "tasks", "finished", "state"], &batch_rows(last));
    let jobs = last.batch.jobs.iter().enumerate().map(|(n, job)| {
        line(story, &job.name, &|frame| frame.batch.jobs.get(n).map_or(0.0, |job| f64::from(job.tasks.finished)))
    });
    page.picture(&picture("Finished tasks", "tasks", jobs.collect()));
    page.heading("Training");
    page.table(
        &["job", "algorithm", "iterations", "loss", "accuracy", "prediction error", "state"],
        &training_rows(last),
    );
    let losses = last.training.jobs.iter().map(|job| {
        let points = job.history.iter().filter_map(|point| Some((point.seconds, point.normalised?)));
        Line::new(job.name.clone(), points.collect())
    });
    page.picture(&picture("Normalised loss: what is not learnt yet", "part", losses.collect()));
    let cores = last.training.jobs.iter().enumerate().map(|(n, job)| {
        line(story, &job.name, &|frame| frame.training.jobs.get(n).map_or(0.0, |job| f64::from(job.cores)))
    });
    page.picture(&picture("Cores of training jobs", "cores", cores.collect()));
    page.heading("Video");
    page.table(&["query", "about", "quality", "lag over goal s", "found", "state"], &video_rows(last));
    for (title, unit, of) in [
        ("Quality of queries", "quality", (|query| query.quality) as fn(&video::core::QueryStatus) -> f64),
        ("Lag of queries", "seconds", |query| query.lag),
        ("Cores of queries", "cores", |query| query.cores),
    ] {
        let queries = last
            .video
            .queries
            .iter()
            .enumerate()
            .map(|(n, query)| line(story, &query.name, &|frame| frame.video.queries.get(n).map_or(0.0, of)));
        page.picture(&picture(title, unit, queries.collect()));
    }
    page.html()
}

fn line(story: &Story, name: &str, of: Of<'_>) -> Line {
    Line::new(name, story.frames().iter().map(|frame| (frame.at, of(frame))).collect())
}

fn picture(title: &str, unit: &str, lines: Vec<Line>) -> String {
    Lines { title: title.to_owned(), x: "seconds".to_owned(), y: unit.to_owned(), lines, ..Lines::default() }.svg()
}
