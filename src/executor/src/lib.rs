//! The command executor and the default (pod) executor, without an async runtime.
//!
//! One process runs beside every task, so it is small: one thread, non-blocking sockets and `poll`, and only the needed
//! parts of the wire's messages (`messages.rs`). It uses the v1 executor API in protobuf.
//!
//! This crate does not depend on resources, offers or the master; of the agent it uses two paths and the environment.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

mod blocking;
mod checks;
mod clock;
pub mod command;
pub mod default;
pub mod docker;
mod environment;
mod exchange;
mod helper_process;
mod http;
mod init;
mod kill;
mod link;
mod messages;
mod poller;
mod process;
mod records;
mod socket;
mod switchboard;
mod tls;
mod updates;

pub use http::{AnswerReader, HttpError, Part};
pub use records::{RecordError, Records};

/// Runs the process called `kind` until it has ended: the executor `command` or `default`; `init` or `keep`, which runs
/// the program in the further arguments; `switchboard`, which runs beside a terminal; or `template`, from which an
/// agent forks executors.
pub fn main(kind: Option<&OsStr>) -> ExitCode {
    // The limits of a task are its executor's, too, and both write to the same files.
    containers::ignore_file_size_signal();
    run(kind, None)
}

/// Runs a process like [`main`], with a line (an open socket) to the agent if there is one.
fn run(kind: Option<&OsStr>, line: Option<OwnedFd>) -> ExitCode {
    match kind.and_then(OsStr::to_str) {
        Some("command") => command::main(line),
        Some("default") => default::main(line),
        Some("template") if line.is_none() => template(),
        Some("docker") => docker::main(),
        Some("session") => checks::run_in_session(),
        Some("switchboard") => switchboard::main(),
        Some("init") => init::main(std::env::args_os().skip_while(|word| word != "init").skip(1)),
        Some("keep") => init::keep(std::env::args_os().skip_while(|word| word != "keep").skip(1)),
        _ => {
            stdio::err!("No executor is named: agents start 'executor command' or 'executor default'");
            ExitCode::FAILURE
        }
    }
}

/// Runs a template: it waits, and its copies continue as the executors that the agent orders.
fn template() -> ExitCode {
    match containers::become_copy() {
        Ok(None) => ExitCode::SUCCESS,
        // The arguments are those of the whole program: 'tepui executor command'. All errors were reported.
        Ok(Some(copy)) => match run(copy.argv.get(2).map(|word| word.as_os_str()), copy.line) {
            ExitCode::SUCCESS => containers::end_now(0),
            _ => containers::end_now(1),
        },
        Err(error) => refuse(&error),
    }
}

/// Reports why this executor cannot start.
fn refuse(error: &dyn Error) -> ExitCode {
    stdio::err!("The executor cannot start: {}", base::error_chain(error));
    ExitCode::FAILURE
}
