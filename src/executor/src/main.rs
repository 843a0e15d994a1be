//! `tepui-executor`: the executors alone, so that the process beside each task is as small as possible.
//!
//! The whole program does the same as `tepui executor ...`; nothing else is in here.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    // An agent starts it with the arguments of the whole program: 'tepui executor command'.
    let mut words = std::env::args_os().skip(1).skip_while(|word| word == "executor");
    executor::main(words.next().as_deref())
}
