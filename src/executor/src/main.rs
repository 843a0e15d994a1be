//! `tepui-executor`: the executors alone, for a process beside each task that is as small as can be.
//!
//! The whole program does the same as `tepui executor ...`; nothing else is in here.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    // An agent names it as if it were the whole program: 'tepui executor command'.
    let mut words = std::env::args_os().skip(1).skip_while(|word| word == "executor");
    executor::main(words.next().as_deref())
}
