//! What a task does in the laboratory, read from its labels or its command.
//!
//! A task without such a description runs until it is killed.

use std::time::Duration;

use protos::mesos::{CommandInfo, TaskInfo};
use rand_distr::{Distribution, StandardUniform};

use crate::seeds::Seed;
use crate::span::{parse_span, show_span};

/// Label with a task's duration.
pub const WORK: &str = "lab.work";
/// Label with a task's exit status, as for `exit(3)`.
pub const EXIT: &str = "lab.exit";
/// Label with the number and the attempt of a submitted task, as `12.0`, if its id does not contain them.
pub const TASK: &str = "lab.task";

/// The duration and the exit status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Duration of the task; `None` if it runs until it is killed.
    pub span: Option<Duration>,
    /// Exit status of the task.
    pub exit: u8,
}

/// Returns the number and the attempt of a submitted task, from its label.
pub(crate) fn numbered(task: &sdk::v1::TaskInfo) -> Option<(u64, u32)> {
    let labels = task.labels.iter().flat_map(|labels| &labels.labels);
    let text = labels.filter(|label| label.key == TASK).find_map(|label| label.value.as_deref())?;
    let (number, attempt) = text.split_once('.')?;
    Some((number.parse().ok()?, attempt.parse().ok()?))
}

impl Work {
    /// Returns what a task does, from its labels, or else from its command if that is `sleep` or `true`.
    pub fn of(task: &TaskInfo) -> Work {
        let label = |key: &str| {
            let labels = task.labels.iter().flat_map(|labels| &labels.labels);
            labels.filter(|label| label.key == key).find_map(|label| label.value.as_deref())
        };
        let span = label(WORK).and_then(|text| parse_span(text).ok());
        Work {
            span: span.or_else(|| task.command.as_ref().and_then(command)),
            exit: label(EXIT).and_then(|text| text.parse().ok()).unwrap_or(0),
        }
    }

    /// Returns the labels that describe the work.
    pub fn labels(self) -> Vec<(&'static str, String)> {
        let mut labels = Vec::new();
        labels.extend(self.span.map(|span| (WORK, show_span(span))));
        labels.extend((self.exit != 0).then(|| (EXIT, self.exit.to_string())));
        labels
    }
}

/// Shares of tasks that fail or are slow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FailureRates {
    /// Share of tasks that fail at a random time of their run, 0 to 1.
    pub failures: f64,
    /// Share of tasks that take `straggling` times as long, 0 to 1.
    pub stragglers: f64,
    /// Factor by which slow tasks take longer; at least 1.
    pub straggling: f64,
}

impl FailureRates {
    /// Draws how long a task runs, and whether it fails then. The draw depends on `task`, the branch of the seeds with
    /// the task's name, so that it is the same under every policy.
    pub fn draw(&self, span: Duration, task: impl FnOnce() -> Seed) -> (Duration, bool) {
        if self.failures <= 0.0 && self.stragglers <= 0.0 {
            return (span, false);
        }
        let mut rng = task().rng();
        let mut unit = || -> f64 { StandardUniform.sample(&mut rng) };
        let (fails, straggles, when) = (unit(), unit(), unit());
        let span = if straggles < self.stragglers { span.mul_f64(self.straggling) } else { span };
        match fails < self.failures {
            true => (span.mul_f64(when), true),
            false => (span, false),
        }
    }
}

/// Returns the duration of a command that states one.
fn command(command: &CommandInfo) -> Option<Duration> {
    let words: Vec<&str> = match command.shell() {
        true => command.value().split_whitespace().collect(),
        false => command.arguments.iter().map(String::as_str).collect(),
    };
    match words[..] {
        ["true"] => Some(Duration::ZERO),
        ["sleep", time] => time
            .parse()
            .ok()
            .and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok())
            .or(parse_span(time).ok()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::{Label, Labels};

    fn of_command(text: &str) -> Option<Duration> {
        let command = CommandInfo { value: Some(text.to_owned()), ..CommandInfo::default() };
        Work::of(&TaskInfo { command: Some(command), ..TaskInfo::default() }).span
    }

    #[test]
    fn commands_and_labels() {
        assert_eq!(of_command("sleep 2.5"), Some(Duration::from_millis(2500)));
        assert_eq!(of_command("sleep 2m"), Some(Duration::from_secs(120)));
        assert_eq!(of_command("true"), Some(Duration::ZERO));
        assert_eq!(of_command("sleep infinity"), None);
        assert_eq!(of_command("./server"), None);
        let work = Work { span: Some(Duration::from_secs(3)), exit: 2 };
        let labels = work.labels().into_iter().map(|(key, value)| Label { key: key.to_owned(), value: Some(value) });
        let task = TaskInfo { labels: Some(Labels { labels: labels.collect() }), ..TaskInfo::default() };
        assert_eq!(Work::of(&task), work);
    }
}
