//! Runs a daemon as a process: flags, log, signals, exit code.
//!
//! What the daemon does is in `master` and `agent`.

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::{self, Stop};
use crate::flags::{Flags, LoggingFlags, Part, help};
use crate::{log_limit, logging, master};

/// Time after which a daemon has usually started: an agent has registered, a master has recovered and leads.
const STARTED: Duration = Duration::from_secs(1);
/// Time for which a daemon that ends waits for writes in progress. Those that take longer are left as a crash leaves
/// them.
const WRITES: Duration = Duration::from_millis(50);

/// Runs a daemon with Mesos's flags until it ends or is stopped.
///
/// # Errors
/// The reason why it cannot start or continue.
pub fn run(part: Part, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let Some(flags) = read_flags(part, arguments)? else { return Ok(ExitCode::SUCCESS) };
    // A write beyond the file size limit is an error like that of a full disk.
    containers::ignore_file_size_signal();
    let log_level = logging::start(flags.part(), &LoggingFlags::read(&flags)?)?;
    for warning in &flags.warnings {
        tracing::warn!("{warning}");
    }
    // A master needs two sockets for every agent.
    if let Err(error) = wire::raise_open_files_limit() {
        tracing::warn!("the limit of open files cannot be raised: {error}");
    }
    let runtime = runtime()?;
    let ended = runtime.block_on(async move {
        tokio::spawn(async {
            tokio::time::sleep(STARTED).await;
            // The code of the start is not needed again; pages that are needed are read again.
            containers::trim_program();
        });
        tokio::spawn(log_limit::report_regularly());
        match part {
            Part::Master => {
                let running = master::start(flags, log_level).await?;
                tracing::info!("master listens on {}", running.address);
                running.run_until(terminated()?).await?;
                Ok(ExitCode::SUCCESS)
            }
            Part::Agent => {
                let running = agent::start(flags, log_level).await?;
                tracing::info!("agent listens on {}", running.address);
                let ended = running.run_until(stop_signal()?).await?;
                match ended.message.as_str() {
                    "" => {}
                    message if ended.code != 0 => tracing::warn!("{message}"),
                    message => tracing::info!("{message}"),
                }
                Ok(ExitCode::from(u8::try_from(ended.code).unwrap_or(1)))
            }
        }
    });
    log_limit::report(true);
    match ended {
        // A write in progress may finish.
        Ok(_) => runtime.shutdown_timeout(WRITES),
        // The process must end, whatever a thread still waits for: ZooKeeper may be unreachable.
        Err(_) => runtime.shutdown_background(),
    }
    ended
}

/// Creates the reactor of a daemon: one thread, and others only for disks and long documents.
///
/// # Errors
/// An error of the system.
pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(64)
        .build()
        .context("the reactor cannot be started")
}

/// Reads the flags. Returns `None` if `--help` or `--version` was answered.
fn read_flags(part: Part, arguments: &[String]) -> anyhow::Result<Option<Flags>> {
    let flags = Flags::load(part, arguments, std::env::vars())?;
    if flags.asks_for_help() {
        stdio::write(format_args!("{}", help(part))).context("cannot write to standard output")?;
        return Ok(None);
    }
    if flags.asks_for_version() {
        let (own, theirs) = (env!("CARGO_PKG_VERSION"), crate::common::MESOS_VERSION);
        stdio::write(format_args!("tepui {own} (Mesos {theirs})\n")).context("cannot write to standard output")?;
        return Ok(None);
    }
    Ok(Some(flags))
}

/// Returns a future that is ready on SIGTERM or SIGINT, which it logs.
fn terminated() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("received SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("received SIGINT: stopping"),
        }
    })
}

/// Returns a future that is ready on SIGTERM or SIGINT, or on SIGUSR1, by which the agent leaves permanently. It logs
/// the signal.
fn stop_signal() -> anyhow::Result<impl Future<Output = Stop>> {
    let mut leave = signal(SignalKind::user_defined1())?;
    let terminated = terminated()?;
    Ok(async move {
        tokio::select! {
            () = terminated => Stop::KeepTasks,
            _ = leave.recv() => {
                tracing::info!("received SIGUSR1: unregistering, ending all tasks, and stopping");
                Stop::Unregister
            }
        }
    })
}
