//! Reads and writes files of measurements: a line of JSON for each sample.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use advice::Sample;
use anyhow::{Context, Result, bail};

/// Maximum size of a file that is written, in bytes.
const FILE_MAX: u64 = 1 << 30;
/// Maximum length of a line that is read, in bytes.
const LINE_MAX: u64 = 64 << 10;

/// A file to which measurements are appended.
pub(super) struct Recorder {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
    limit: u64,
}

impl Recorder {
    /// Opens a file for appending.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Recorder> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot write to '{}'", path.display()))?;
        let length = file.metadata().map_or(0, |about| about.len());
        Ok(Recorder { path: path.to_owned(), file: BufWriter::new(file), length, limit: FILE_MAX })
    }

    /// Appends samples. Nothing more is written to a file that is full; that is reported once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&mut self, samples: &[Sample]) -> Result<()> {
        if self.length >= self.limit {
            return Ok(());
        }
        let mut lines = String::new();
        for sample in samples {
            lines.push_str(&serde_json::to_string(sample)?);
            lines.push('\n');
        }
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.flush());
        written.with_context(|| format!("cannot write to '{}'", self.path.display()))?;
        self.length += lines.len() as u64;
        if self.length >= self.limit {
            stdio::err!("'{}' has {} bytes, the maximum: recording ends", self.path.display(), self.length);
        }
        Ok(())
    }
}

/// Reads a file's samples. The last line may be incomplete, as an interrupted command leaves it.
///
/// # Errors
/// The file cannot be read, or a line is not a sample: with the file, the line and the rule.
pub(super) fn read(path: &Path, mut each: impl FnMut(Sample)) -> Result<()> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot read '{name}'"))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        if read.with_context(|| format!("cannot read '{name}'"))? == 0 {
            break;
        }
        let is_complete = line.last() == Some(&b'\n');
        if line.len() as u64 >= LINE_MAX && !is_complete {
            bail!("{name}:{number}: the line is longer than {LINE_MAX} bytes");
        }
        match serde_json::from_slice(&line) {
            Ok(sample) => each(sample),
            Err(_) if !is_complete => stdio::err!("{name}:{number}: the last line is incomplete and is ignored"),
            Err(error) => bail!("{name}:{number}: not a measurement of `tepui advise --record`: {error}"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(round: u64) -> Sample {
        Sample { round, name: "web.1".to_owned(), ..Sample::default() }
    }

    fn all(path: &Path) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        read(path, |sample| samples.push(sample))?;
        Ok(samples)
    }

    #[test]
    fn what_was_recorded_is_read() {
        let directory = std::env::temp_dir().join(format!("tepui-advise-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("file");
        Recorder::open(&path).unwrap().write(&[sample(1), sample(1)]).unwrap();
        let mut recorder = Recorder::open(&path).unwrap();
        recorder.limit = 1;
        // The file is full.
        recorder.write(&[sample(2)]).unwrap();
        assert_eq!(all(&path).unwrap(), [sample(1), sample(1)]);

        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"round\":")).unwrap();
        assert_eq!(all(&path).unwrap().len(), 2, "an incomplete last line");
        std::fs::write(&path, format!("{text}[]\n")).unwrap();
        let error = all(&path).unwrap_err().to_string();
        assert!(error.contains("file:3: not a measurement"), "{error}");
        std::fs::write(&path, "x".repeat(70_000)).unwrap();
        assert!(all(&path).unwrap_err().to_string().contains("file:1: the line is longer"));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
