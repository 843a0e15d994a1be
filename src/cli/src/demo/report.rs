//! Writes the report of the demo: tables on the screen, and a page with plots.

use plot::{Line, Lines, Page};

use super::frame::{Frame, RunHistory};
use super::score;
use super::work::Sharing;
use crate::read::table::table;

/// A function that returns a number of a frame.
type Of<'a> = &'a dyn Fn(&Frame) -> f64;

/// Formats tables of the results.
pub(super) fn summary(runs: &[(Sharing, RunHistory)]) -> String {
    let mut parts: Vec<String> = runs.iter().map(|(sharing, history)| summary_of(*sharing, history)).collect();
    let names: Vec<String> = runs.iter().map(|(sharing, _)| format!(">{}", sharing.words().to_uppercase())).collect();
    let mut scores =
        table(&std::iter::once("CORES SHARED").chain(names.iter().map(String::as_str)).collect::<Vec<_>>());
    for row in score_rows(runs) {
        scores.add_row(row);
    }
    parts.push(scores.trim_fmt());
    parts.join("\n\n")
}

fn summary_of(sharing: Sharing, history: &RunHistory) -> String {
    let Some(last) = history.last() else { return String::new() };
    let mut batch = table(&["BATCH", ">TASKS", ">FINISHED", "STATE"]);
    for row in batch_rows(last) {
        batch.add_row(row);
    }
    let mut training = table(&[
        "TRAINING",
        "ALGORITHM",
        ">ITERATIONS",
        ">LOSS",
        ">ACCURACY",
        ">90 % LEARNT s",
        ">PREDICTION ERROR",
        "STATE",
    ]);
    for row in training_rows(last) {
        training.add_row(row);
    }
    let mut video = table(&["QUERY", "ABOUT", ">QUALITY", ">LAG OVER GOAL s", ">FOUND", "STATE"]);
    for row in video_rows(last) {
        video.add_row(row);
    }
    format!(
        "Cores shared {}: {:.0} s; mean of Jain's index of fairness among the frameworks {:.3}\n\n{}\n\n{}\n\n{}",
        sharing.words(),
        last.at,
        mean(history, &|frame| frame.jain),
        batch.trim_fmt(),
        training.trim_fmt(),
        video.trim_fmt(),
    )
}

/// Returns the results of the runs, with a column for each run.
fn score_rows(runs: &[(Sharing, RunHistory)]) -> Vec<Vec<String>> {
    // All runs are measured over the same time: what one run has learnt while another still learns counts.
    let seconds = runs.iter().filter_map(|(_, history)| history.last()).map(|last| last.at).fold(0.0, f64::max);
    let columns: Vec<_> = runs.iter().map(|(_, history)| score::rows(history, seconds)).collect();
    let Some(first) = columns.first() else { return Vec::new() };
    let row = |(n, (what, _)): (usize, &(&str, String))| {
        let values = columns.iter().map(|column| column.get(n).map_or_else(String::new, |(_, value)| value.clone()));
        std::iter::once((*what).to_owned()).chain(values).collect()
    };
    first.iter().enumerate().map(row).collect()
}

fn mean(history: &RunHistory, of: Of<'_>) -> f64 {
    let frames = history.frames();
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
            job.iteration.map_or_else(|| "-".to_owned(), |n| (n + 1).to_string()),
            shown(job.loss, 4),
            shown(job.accuracy, 3),
            shown(score::mostly_learnt(job), 1),
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

/// The text of the page before its tables.
const INTRODUCTION: &str = "Three frameworks share a cluster: a batch of commands that is packed onto few agents, training jobs, \
    and video queries. The commands read files of this machine. The data of the training jobs and the two streets that \
    the queries look at are made by the demo. Training may use four cores, and video half of what all its queries could \
    use at their best: so the jobs and the queries compete for cores on every machine.";

/// Formats the page. `street` is a picture of the queries' video, as base64 of a PNG.
pub(super) fn page(runs: &[(Sharing, RunHistory)], street: Option<&str>) -> String {
    let mut page = Page::new("tepui demo");
    page.text(INTRODUCTION);
    let names: Vec<&str> = runs.iter().map(|(sharing, _)| sharing.words()).collect();
    page.table(&std::iter::once("cores shared").chain(names).collect::<Vec<_>>(), &score_rows(runs));
    match runs {
        [(sharing, _)] => {
            page.text(&format!("Cores were shared {}. With --policy=both it is done both ways.", sharing.words()));
        }
        _ => page.text(&cost(runs)),
    }
    let shown: Vec<(String, &RunHistory, &Frame)> = runs
        .iter()
        .filter_map(|(sharing, history)| {
            let how = if runs.len() > 1 { format!(", shared {}", sharing.words()) } else { String::new() };
            Some((how, history, history.last()?))
        })
        .collect();
    page.heading("Training");
    page.text(
        "Below, a loss of 1 is that of the first iteration and 0 the lowest that the job has reached. Sharing by quality \
         gives a core to the job whose loss it lowers most: new jobs get many, and jobs that have learnt most keep one.",
    );
    for (how, history, last) in &shown {
        training(&mut page, how, history, last);
    }
    page.heading("Video");
    if let Some(street) = street {
        page.text(
            "One picture of a street, with what the query counting follows in it and the line at which it counts.",
        );
        page.png(street, "a synthetic street with a box around each vehicle");
    }
    page.text(
        "A query can look at fewer frames, or at smaller ones: its quality is that of its configuration against the best \
         one. Its lag is how far it is behind its camera; each has a goal for both.",
    );
    for (how, history, last) in &shown {
        video(&mut page, how, history, last);
    }
    page.heading("How the cluster was shared");
    page.text(
        "The dominant share of a framework is the largest part of any resource that it has. Its fair share is what dominant \
         resource fairness gives it at that moment, by what it asks for: a framework that has less than that is offered \
         resources first. Jain's index is 1 if all have the same part of their fair shares.",
    );
    for (how, history, last) in &shown {
        cluster(&mut page, how, history, last);
    }
    TERMS.iter().for_each(|(term, meaning)| page.term(term, meaning));
    page.html()
}

/// The glossary of the page.
const TERMS: [(&str, &str); 8] = [
    (
        "dominant share",
        "The largest of a framework's parts of the cluster's resources: of 10 % of the cores and 30 % of the memory it is 30 %.",
    ),
    (
        "fair share",
        "The dominant share that a framework would have if the cluster were divided by dominant resource fairness over what all want at that moment.",
    ),
    (
        "Jain's index",
        "How evenly frameworks have their fair shares: 1 if all have the same part of them, 1/n if one of n has everything.",
    ),
    ("lag", "How far a query is behind its camera, in seconds. Lag over goal is what exceeds the goal of the query."),
    ("loss", "What a training job lowers from iteration to iteration: the error of its model on its data."),
    (
        "normalised loss",
        "The part of what a job lowers its loss by that is still to come: 1 at its first iteration, 0 at its lowest loss.",
    ),
    ("prediction error", "How far the predicted losses of the next iterations were from the real ones, in the mean."),
    (
        "quality",
        "How good the results of a query's configuration are against those of its best one: the F1 score, from 0 to 1.",
    ),
];

/// Describes the gains and costs of sharing by quality in these runs, against even shares.
fn cost(runs: &[(Sharing, RunHistory)]) -> String {
    let of = |wanted: Sharing| runs.iter().find(|(sharing, _)| *sharing == wanted).map(|(_, history)| history);
    let (Some(quality), Some(fair)) = (of(Sharing::Quality), of(Sharing::Fair)) else { return String::new() };
    let change = |name: &str, of: fn(&RunHistory) -> f64| {
        let (quality, fair) = (of(quality), of(fair));
        let word = if quality <= fair { "sooner" } else { "later" };
        format!("{name} {:.1} s {word} ({quality:.1} s against {fair:.1} s)", (quality - fair).abs())
    };
    format!(
        "In these runs, with cores shared by quality instead of evenly, {}, and {}. Sharing by quality takes cores from \
         jobs that have nearly learnt, so their last iterations come later: use it where models are used or judged while \
         they train. One run of each says little; the README of the training framework has ten.",
        change("nine tenths were learnt", score::mean_learnt),
        change("trainings ended", score::mean_completion),
    )
}

fn cluster(page: &mut Page, how: &str, history: &RunHistory, last: &Frame) {
    let names: Vec<String> = last.shares.iter().map(|share| share.name.clone()).collect();
    let mut lines = Vec::new();
    for (n, name) in names.iter().enumerate() {
        lines.push(Line { colour: Some(n), ..line(history, name, &|frame| frame.shares[n].share) });
        lines.push(Line { colour: Some(n), dashed: true, ..line(history, "", &|frame| frame.shares[n].fair) });
    }
    page.text("What each framework has, and its fair share, dashed. The caps keep training and video below theirs when the batch is done.");
    let dashes = "fair share of the same colour".to_owned();
    let shares = plot(&format!("Dominant shares{how}"), "dominant share (part of the cluster)", lines);
    page.picture(&Lines { dashes, ..shares }.svg());
    page.text("How evenly fair shares are reached. It falls when a framework begins or ends much work at once.");
    page.picture(&picture(&format!("Jain's index of fairness{how}"), "index", vec![line(history, "", &|f| f.jain)]));
    page.table(&["batch job", "tasks", "finished", "state"], &batch_rows(last));
    let jobs = last.batch.jobs.iter().enumerate().map(|(n, job)| {
        line(history, &job.name, &|frame| frame.batch.jobs.get(n).map_or(0.0, |job| f64::from(job.tasks.finished)))
    });
    page.text("How the batch gets on: a job is done where its line is level.");
    page.picture(&picture(&format!("Finished tasks of the batch{how}"), "tasks", jobs.collect()));
}

fn training(page: &mut Page, how: &str, history: &RunHistory, last: &Frame) {
    page.table(
        &["job", "algorithm", "iterations", "loss", "accuracy", "90 % learnt after s", "prediction error", "state"],
        &training_rows(last),
    );
    let losses = last.training.jobs.iter().map(|job| Line::new(job.name.clone(), score::left(job)));
    page.text("What each job has still to learn: the sooner a line is low, the better is a model that is used before its end.");
    page.picture(&picture(&format!("Normalised loss: what is not learnt yet{how}"), "part", losses.collect()));
    let cores = last.training.jobs.iter().enumerate().map(|(n, job)| {
        stairs(line(history, &job.name, &|frame| frame.training.jobs.get(n).map_or(0.0, |job| f64::from(job.cores))))
    });
    page.text("Which job had how many of the four cores.");
    page.picture(&picture(&format!("Cores of training jobs{how}"), "cores", cores.collect()));
}

fn video(page: &mut Page, how: &str, history: &RunHistory, last: &Frame) {
    page.table(&["query", "about", "quality", "lag over goal s", "found", "state"], &video_rows(last));
    type Of = fn(&video::core::QueryStatus) -> f64;
    let plots: [(&str, &str, &str, Of); 3] = [
        ("Quality of queries", "quality", "The quality of the configuration that each query runs in.", |q| q.quality),
        ("Lag of queries", "seconds", "How far each query is behind its camera.", |query| query.lag),
        ("Cores of queries", "cores", "What each query was given: more to those that lag or gain by it.", |query| {
            query.cores
        }),
    ];
    for (title, unit, says, of) in plots {
        let queries = last
            .video
            .queries
            .iter()
            .enumerate()
            .map(|(n, query)| line(history, &query.name, &|frame| frame.video.queries.get(n).map_or(0.0, of)));
        page.text(says);
        page.picture(&picture(&format!("{title}{how}"), unit, queries.collect()));
    }
}

/// Makes a line level from each point to the next, for values that change in steps.
fn stairs(line: Line) -> Line {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(2 * line.points.len());
    for point in line.points {
        if let Some(before) = points.last().copied().filter(|before| before.1 != point.1) {
            points.push((point.0, before.1));
        }
        points.push(point);
    }
    Line { points, ..line }
}

fn line(history: &RunHistory, name: &str, of: Of<'_>) -> Line {
    Line::new(name, history.frames().iter().map(|frame| (frame.at, of(frame))).collect())
}

fn picture(title: &str, unit: &str, lines: Vec<Line>) -> String {
    plot(title, unit, lines).svg()
}

fn plot(title: &str, unit: &str, lines: Vec<Line>) -> Lines {
    Lines::new(title, "time (s)", unit, lines)
}
