//! Runs a core by scripts: short lines of input, readable lines of output. For this crate's scenarios and properties.
//!
//! A scenario is a text file: lines of input, each followed by its outputs, indented. [`run`] generates the outputs
//! from the inputs. `words.rs` parses a line, `build.rs` builds its message, and `describe.rs` formats outputs.

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
