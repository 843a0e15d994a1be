//! Shows the demo while it runs: bars on a terminal, lines elsewhere.

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::frame::Frame;
use super::work::NAMES;

/// An output of the demonstration.
pub(super) trait View {
    /// Shows a frame.
    fn show(&mut self, frame: &Frame);
}

/// Returns bars if standard error is a terminal, otherwise lines.
pub(super) fn new() -> Box<dyn View> {
    match std::io::stderr().is_terminal() {
        true => Box::new(Bars::new()),
        false => Box::new(Lines::default()),
    }
}

/// Number of steps of a bar.
const STEPS: u64 = 100;

/// A display with a bar for each framework's share, and one for each piece of work.
struct Bars {
    all: MultiProgress,
    fairness: ProgressBar,
    shares: Vec<ProgressBar>,
    batch: Vec<ProgressBar>,
    training: Vec<ProgressBar>,
    queries: Vec<ProgressBar>,
}

/// Returns a style whose template stands in this file, so that it is known to be valid.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

impl Bars {
    fn new() -> Bars {
        let all = MultiProgress::new();
        let fairness = all.add(ProgressBar::new(1).with_style(style("{msg}")));
        let share = |name: &&str| {
            let bar = all.add(ProgressBar::new(STEPS).with_style(style("{prefix:12} [{bar:30}] {msg}")));
            bar.set_prefix((**name).to_owned());
            bar
        };
        let shares = NAMES.iter().map(share).collect();
        Bars { fairness, shares, batch: Vec::new(), training: Vec::new(), queries: Vec::new(), all }
    }

    /// Creates as many bars as there are pieces of work of this kind.
    fn fit(all: &MultiProgress, bars: &mut Vec<ProgressBar>, names: impl Iterator<Item = String>) {
        for (n, name) in names.enumerate() {
            if n == bars.len() {
                let bar = all.add(ProgressBar::new(STEPS).with_style(style("  {prefix:10} [{bar:20}] {msg}")));
                bar.set_prefix(name);
                bars.push(bar);
            }
        }
    }
}

fn steps(part: f64) -> u64 {
    (part.clamp(0.0, 1.0) * STEPS as f64) as u64
}

impl View for Bars {
    fn show(&mut self, frame: &Frame) {
        let words = format!("{:.0} s, Jain's index of fairness {:.2}", frame.at, frame.jain);
        self.fairness.set_message(words);
        for (bar, share) in self.shares.iter().zip(&frame.shares) {
            bar.set_position(steps(share.share));
            bar.set_message(format!(
                "{:.0} % of the cluster, {:.0} % is fair",
                share.share * 100.0,
                share.fair * 100.0
            ));
        }
        let jobs = &frame.batch.jobs;
        Self::fit(&self.all, &mut self.batch, jobs.iter().map(|job| job.name.clone()));
        for (bar, job) in self.batch.iter().zip(jobs) {
            bar.set_position(steps(f64::from(job.tasks.finished) / f64::from(job.count.max(1))));
            bar.set_message(format!("{} of {} finished, {} run", job.tasks.finished, job.count, job.tasks.live));
        }
        let jobs = &frame.training.jobs;
        Self::fit(&self.all, &mut self.training, jobs.iter().map(|job| job.name.clone()));
        for (bar, job) in self.training.iter().zip(jobs) {
            bar.set_position(steps(1.0 - job.normalised_loss.unwrap_or(1.0)));
            let loss = job.loss.map_or_else(|| "-".to_owned(), |loss| format!("{loss:.4}"));
            bar.set_message(format!("{}: loss {loss}, {} cores, {:?}", job.kind, job.cores, job.state));
        }
        let queries = &frame.video.queries;
        Self::fit(&self.all, &mut self.queries, queries.iter().map(|query| query.name.clone()));
        for (bar, query) in self.queries.iter().zip(queries) {
            bar.set_position(steps(query.quality));
            bar.set_message(format!(
                "quality {:.2}, lag {:.1} of {:.0} s, {:.2} cores, {} found",
                query.quality, query.lag, query.goals.max_lag, query.cores, query.found
            ));
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        // This fails only when the terminal is gone.
        let _ = self.all.clear();
    }
}

/// A display with a line every five seconds.
#[derive(Default)]
struct Lines {
    next: f64,
}

/// Seconds between two lines.
const EVERY: f64 = 5.0;

impl View for Lines {
    fn show(&mut self, frame: &Frame) {
        if frame.at < self.next && !frame.is_over() {
            return;
        }
        self.next = frame.at + EVERY;
        let shares: Vec<String> =
            frame.shares.iter().map(|share| format!("{} {:.0} %", share.name, share.share * 100.0)).collect();
        let (finished, count) = frame
            .batch
            .jobs
            .iter()
            .fold((0, 0), |(finished, count), job| (finished + job.tasks.finished, count + job.count));
        let losses: Vec<String> = frame
            .training
            .jobs
            .iter()
            .map(|job| format!("{} {:.2}", job.name, job.normalised_loss.unwrap_or(1.0)))
            .collect();
        let lag = frame.video.queries.iter().map(|query| query.lag).fold(0.0, f64::max);
        stdio::err!(
            "{:>4.0} s  {}; {finished} of {count} tasks; normalised losses {}; largest lag {lag:.1} s",
            frame.at,
            shares.join(", "),
            losses.join(", ")
        );
    }
}
