//! Driving a core by scripts: terse lines in, readable lines out. For this crate's scenarios and properties.
//!
//! A scenario is a text file: lines of input, each followed by what comes of it, indented. [`run`] makes the second
//! from the first. The words are in `words.rs`, their messages in `build.rs`, and how outputs read in `describe.rs`.

mod build;
mod describe;
mod events;
mod operator;
mod providers;
#[cfg(test)]
mod random;
mod script;
mod words;

pub use crate::invariants::check_invariants;
pub use describe::{describe_op, describe_output};
pub use script::{Script, run};
pub use words::Words;

#[cfg(test)]
mod tests {
    #[test]
    fn the_master_does_what_the_scenarios_say() {
        scenarios::check("tests/scenarios", 20, super::run);
    }
}
