//! Writes lines to standard output, whose reader may close it at any moment, as `head` does.

use std::fmt::Arguments;
use std::process::exit;

/// Prints a line as `println!` does, but without a panic if the reader has gone or the disk is full.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::line(format_args!($($text)*))
    };
}
pub(crate) use say;

/// Writes a line. A closed output is not an error: the command continues to its end and its exit status.
pub(crate) fn line(text: Arguments<'_>) {
    if let Err(why) = stdio::write(format_args!("{text}\n")) {
        stdio::err!("tepui: cannot write to standard output: {why}");
        exit(1);
    }
}
