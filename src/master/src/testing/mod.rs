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
mod scenarios {
    use std::path::PathBuf;

    /// Set this to write what comes out into the files instead of comparing.
    const UPDATE: &str = "UPDATE_SCENARIOS";

    #[test]
    fn scenarios_come_out_as_written() {
        let directory = "tests/scenarios";
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        let mut wrong = Vec::new();
        for file in files {
            let written = std::fs::read_to_string(&file).unwrap();
            let found = super::run(&written);
            if found == written {
                continue;
            }
            if std::env::var_os(UPDATE).is_some() {
                std::fs::write(&file, found).unwrap();
                continue;
            }
            let differs = written.lines().zip(found.lines()).find(|(one, two)| one != two);
            wrong.push(format!("{}: {differs:#?}", file.display()));
        }
        assert!(wrong.is_empty(), "set {UPDATE} if this is right:\n{}", wrong.join("\n"));
    }
}
