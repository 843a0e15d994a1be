//! `tepui lab serve`: serves environments for learners over standard input and output. The frames are those of
//! `learning::wire`; nothing else is written to standard output.

use std::io::{BufWriter, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::lab::bundled::Catalog;
use anyhow::{Context, Result};
use learning::files::Files;

/// Maximum size of a file that settings name.
const LARGEST: u64 = 64 << 20;

/// Number of bytes of answers that are collected before they are written.
const GATHERED: usize = 1 << 20;

#[derive(Debug, clap::Args)]
pub struct Args {}

/// Access to the files of this machine.
struct LocalFiles;

impl Files for LocalFiles {
    fn read(&self, name: &str) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // A file can grow after its size was read.
        std::fs::File::open(name)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(std::io::Error::other("the file is larger than 64 MiB"));
        }
        Ok(bytes)
    }

    fn directory(&self, name: &str) -> PathBuf {
        Path::new(name).parent().unwrap_or(Path::new(".")).to_owned()
    }

    fn catalog(&self) -> Catalog {
        super::bundled::CATALOG
    }
}

pub fn run(_: &Args) -> Result<ExitCode> {
    let (mut input, mut output) = (std::io::stdin().lock(), BufWriter::with_capacity(GATHERED, std::io::stdout()));
    match learning::serve::serve(&mut input, &mut output, &LocalFiles) {
        // The learner has ended.
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        result => result.map(|()| ExitCode::SUCCESS).context("cannot serve environments"),
    }
}
