//! Sets up logging: where log lines are written, and at which level: `--logging_level`, `--quiet`, `--log_dir`, and the
//! switch at run time.
//!
//! It writes no line itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::Context;
use store::Access;
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::common::LogLevel;
use crate::flags::{FlagError, LoggingFlags, Part};
use crate::log_limit::{Limit, Short};

/// Current level: 0 errors, 1 warnings, 2 changes in the cluster, 3 events of tasks, 4 all lines.
static VERBOSITY: AtomicU8 = AtomicU8::new(2);

fn rank(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 0,
        Level::WARN => 1,
        Level::INFO => 2,
        Level::DEBUG => 3,
        Level::TRACE => 4,
    }
}

/// Returns whether a line is written at the current level. ZooKeeper's client logs each try and each message; tepui's
/// own lines have what is relevant of it.
fn is_wanted(target: &str, level: &Level) -> bool {
    rank(level) <= VERBOSITY.load(Ordering::Relaxed) && !target.starts_with("zookeeper_client")
}

/// Sets up logging of this process and returns the switch of its level. Only the first call in a process has an effect.
///
/// # Errors
/// An unknown level, or a log directory that cannot be used.
pub fn start(part: Part, flags: &LoggingFlags) -> anyhow::Result<Arc<LogLevel>> {
    let base = match flags.logging_level.as_str() {
        "ERROR" => 0,
        "WARNING" => 1,
        "INFO" => 2,
        other => {
            let why = format!("there is no level '{other}': use INFO, WARNING or ERROR");
            return Err(FlagError::Refused { name: "logging_level", why }.into());
        }
    };
    VERBOSITY.store(base, Ordering::Relaxed);
    let wanted = || filter_fn(|line| is_wanted(line.target(), line.level()));
    let has_colours = stdio::has_colours();
    // By default a layer reports its own errors with `eprintln!`, which panics; here they are ignored.
    let console =
        layer().with_writer(Short(std::io::stderr)).with_ansi(has_colours).with_target(false).with_filter(wanted());
    let console = (!flags.quiet).then_some(console);
    let file = match log_file(part, flags) {
        Some(path) => {
            let made = path.parent().map_or(Ok(()), |directory| store::create_directories(directory, Access::Group));
            let open = made.and_then(|()| store::append_file(&path, Access::Group));
            let file = open.with_context(|| format!("cannot write the log '{}'", path.display()))?;
            Some(layer().with_writer(Short(Mutex::new(file))).with_ansi(false).with_target(false).with_filter(wanted()))
        }
        None => None,
    };
    // A second daemon in the process uses the log of the first one.
    let _ = tracing_subscriber::registry().with(console).with(file).with(Limit { is_wanted }).try_init();
    Ok(switch(base))
}

/// Returns the switch of the level; its levels are added to `base`.
pub fn switch(base: u8) -> Arc<LogLevel> {
    LogLevel::new(Arc::new(move |level| {
        let verbosity = u32::from(base).saturating_add(level).min(4);
        VERBOSITY.store(u8::try_from(verbosity).unwrap_or(4), Ordering::Relaxed);
    }))
}

/// Returns the path of the log file in `--log_dir`; `None` without the flag.
pub fn log_file(part: Part, flags: &LoggingFlags) -> Option<PathBuf> {
    Some(flags.log_dir.as_ref()?.join(format!("tepui-{}.log", part.command())))
}
