//! The program `tepui`: selects the command to run. The executor is in `executor`, the fetcher in `fetcher`, every
//! other command in `cli`, the daemons in `daemon`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: containers::Memory = containers::Memory;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The executor is selected before anything else: one runs beside every task, and must use as little of this program
    // as possible.
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == "executor") {
        return executor::main(arguments.next().as_deref());
    }
    if first.is_some_and(|first| first == "fetch") {
        return fetcher::main();
    }
    cli::main()
}
