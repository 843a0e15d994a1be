//! Limits the lines of the ordinary log by the place in the code that writes them: clients without any permission can
//! cause lines.
//!
//! Warnings report invalid input, or a loss. Above [`WARNINGS_MAX`] warnings a minute of one place, further ones are
//! counted, and one line reports their number and one of them. Lines at INFO report changes of the cluster, of which a
//! large cluster has many at once: their limit is higher than any healthy cluster reaches. Errors, and lines at DEBUG,
//! which an operator switches on for a limited time, have no limit.

use std::fmt::{self, Write as _};
use std::io;
use std::panic::Location;
use std::sync::Mutex;
use std::time::Duration;

use base::lock;
use rustc_hash::FxHashMap;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;

use crate::window::{Window, instant};

/// Maximum number of warnings a minute of one place in the code.
const WARNINGS_MAX: u32 = 200;
/// Maximum number of lines at INFO a minute of one place: twice the number of agents of a large cluster that register
/// again.
const INFOS_MAX: u32 = 20_000;
/// Maximum length of a line in bytes: lines contain names that clients choose.
const LINE_MAX: usize = 4096;
/// Maximum number of characters of the line in a report.
const SAMPLE_MAX: usize = 200;
/// Interval of reports of left-out lines.
const REPORT: Duration = Duration::from_secs(10);

/// The target of lines that are limited before they become events: those of cores, and reports.
pub(crate) const COUNTED: &str = "counted";

/// A place in the code that writes lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LogSite {
    /// A call of one of `tracing`'s macros.
    Callsite(Identifier),
    /// File, line and column in a core.
    Core(&'static str, u32, u32),
}

impl From<&'static Location<'static>> for LogSite {
    fn from(at: &'static Location<'static>) -> LogSite {
        LogSite::Core(at.file(), at.line(), at.column())
    }
}

/// The lines of one place in the code.
#[derive(Debug)]
struct Lines {
    window: Window,
    level: Level,
    /// The first line that was left out.
    sample: String,
}

static LINES: Mutex<Option<FxHashMap<LogSite, Lines>>> = Mutex::new(None);

/// Returns whether a line may be written; otherwise counts it. `text` returns the line.
pub(crate) fn admits(place: LogSite, level: Level, text: impl FnOnce() -> String) -> bool {
    let max = match level {
        Level::WARN => WARNINGS_MAX,
        Level::INFO => INFOS_MAX,
        _ => return true,
    };
    let now = instant();
    let mut all = lock(&LINES);
    let new = || Lines { window: Window::new(now), level, sample: String::new() };
    let lines = all.get_or_insert_default().entry(place).or_insert_with(new);
    let is_first = !lines.window.is_waiting();
    let admitted = lines.window.admits(now, max);
    if !admitted && is_first {
        lines.sample = text().chars().take(SAMPLE_MAX).collect();
    }
    admitted
}

/// Reports the left-out lines of past periods at intervals; runs until it is dropped.
pub(crate) async fn report_regularly() {
    loop {
        tokio::time::sleep(REPORT).await;
        report(false);
    }
}

/// Reports left-out lines: those of past periods, or all at the end of the process.
pub(crate) fn report(is_end: bool) {
    let mut reports = Vec::new();
    for lines in lock(&LINES).iter_mut().flat_map(FxHashMap::values_mut) {
        let now = instant();
        let count = if is_end { lines.window.end(now) } else { lines.window.take_left_out(now) };
        reports.extend(count.map(|count| (lines.level, count, std::mem::take(&mut lines.sample))));
    }
    for (level, count, sample) in reports {
        let text = format!("Suppressed {count} similar lines within a minute, such as: {sample}");
        if level == Level::WARN {
            tracing::warn!(target: COUNTED, "{text}");
        } else {
            tracing::info!(target: COUNTED, "{text}");
        }
    }
}

/// A layer of `tracing` that drops events above the limit of their place.
#[derive(Debug)]
pub(crate) struct Limit {
    /// Returns whether an event is written at all, by its target and level.
    pub(crate) is_wanted: fn(&str, &Level) -> bool,
}

impl<S: Subscriber> Layer<S> for Limit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let data = event.metadata();
        if data.target() == COUNTED || !(self.is_wanted)(data.target(), data.level()) {
            return true;
        }
        admits(LogSite::Callsite(data.callsite()), *data.level(), || {
            let mut text = Text::default();
            event.record(&mut text);
            text.0
        })
    }
}

/// The text of an event: its message and fields.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let gap = if self.0.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{gap}{value:?}"),
            name => write!(self.0, "{gap}{name}={value:?}"),
        };
    }
}

/// A writer that shortens lines to [`LINE_MAX`]. An event is one call of `write`.
#[derive(Debug)]
pub(crate) struct Short<W>(pub(crate) W);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Short<M> {
    type Writer = Short<M::Writer>;

    fn make_writer(&'a self) -> Short<M::Writer> {
        Short(self.0.make_writer())
    }
}

impl<W: io::Write> io::Write for Short<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.len() <= LINE_MAX {
            return self.0.write(line);
        }
        let end = (LINE_MAX - 3..LINE_MAX).rev().find(|at| line[*at] & 0xc0 != 0x80).unwrap_or(LINE_MAX);
        self.0.write_all(&[&line[..end], "…\n".as_bytes()].concat())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// A log in memory, for tests.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn warnings_of_one_place_have_a_limit_and_are_counted() {
        let memory = Memory::default();
        let log = memory.clone();
        let format = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Short(move || log.clone()));
        let subscriber = tracing_subscriber::registry().with(format).with(Limit { is_wanted: |_, _| true });
        tracing::subscriber::with_default(subscriber, || {
            (0..WARNINGS_MAX + 50).for_each(|number| tracing::warn!(number, "a flood"));
            tracing::warn!("another line");
            (0..WARNINGS_MAX + 50).for_each(|_| tracing::error!("an error"));
            tracing::warn!("{}", "é".repeat(LINE_MAX));
            report(true);
        });
        let text = String::from_utf8(lock(&memory.0).clone()).unwrap();
        let count = |words: &str| text.lines().filter(|line| line.contains(words)).count();
        assert_eq!(count("a flood number=0") + count("another line"), 2);
        assert_eq!(count("an error"), WARNINGS_MAX as usize + 50);
        assert_eq!(count("a flood"), WARNINGS_MAX as usize + 1);
        assert_eq!(
            count(&format!("Suppressed 50 similar lines within a minute, such as: a flood number={WARNINGS_MAX}")),
            1
        );
        assert!(text.lines().all(|line| line.len() <= LINE_MAX + 3) && count("éé…") == 1);
    }
}
