//! `tepui-executor`: the executors alone, for a process beside each task that is as small as can be.
//!
//! The whole program does the same as `tepui executor ...`; nothing else is in here.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    executor::main(std::env::args_os().nth(1).as_deref())
}
