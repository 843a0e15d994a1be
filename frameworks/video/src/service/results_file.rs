//! The file of a query's findings: appends lines, begins a new file when one is too long, and reads the last findings
//! again.
//!
//! It does not know which findings are new; see [`super::results`].

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::pipeline::Finding;

/// Maximum length of a file in bytes. Lines that would exceed it begin a new file.
const BYTES_MAX: u64 = 256 << 20;
/// Maximum number of bytes at the end of a file in which its last findings are searched.
const TAIL_MAX: u64 = 4 << 20;
/// Maximum number of renamed files with one name; above that the last one is overwritten.
const EARLIER_MAX: u32 = 1000;

/// An open file of findings, one line for each.
#[derive(Debug)]
pub(super) struct ResultsFile {
    directory: PathBuf,
    query: String,
    file: File,
    /// Maximum length in bytes.
    bytes_max: u64,
    /// Whether the file may end within a line.
    torn: bool,
}

impl ResultsFile {
    /// Opens the file of a query, or creates it. Returns it with its last findings, at most `recent_max`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened for writing.
    pub(super) fn open(directory: &Path, query: &str, recent_max: usize) -> Result<(ResultsFile, VecDeque<Finding>)> {
        let path = path(directory, query);
        // A file that cannot be read can still be appended to.
        let tail = tail(&path, TAIL_MAX).unwrap_or_default();
        let mut recent = VecDeque::new();
        for line in tail.split(|byte| *byte == b'\n') {
            recent.extend(serde_json::from_slice::<Finding>(line));
            if recent.len() > recent_max {
                recent.pop_front();
            }
        }
        let torn = tail.last().is_some_and(|byte| *byte != b'\n');
        let (directory, query) = (directory.to_owned(), query.to_owned());
        Ok((ResultsFile { directory, query, file: appended(&path)?, bytes_max: BYTES_MAX, torn }, recent))
    }

    /// Appends complete lines. Lines that could not be written do not damage those of later calls.
    ///
    /// # Errors
    /// Returns an error if they cannot be written, or the file is full and no new one can be begun.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let length = self.file.metadata()?.len();
        if length > 0 && length + lines.len() as u64 > self.bytes_max {
            set_aside(&self.directory, &self.query)?;
            self.file = appended(&path(&self.directory, &self.query))?;
            self.torn = false;
        }
        self.write(lines)
    }

    /// Appends lines. What a failed write has left is removed, or ended before the next line.
    fn write(&mut self, lines: &[u8]) -> Result<()> {
        let length = self.file.metadata()?.len();
        let end: &[u8] = if self.torn { b"\n" } else { b"" };
        let written = self.file.write_all(&[end, lines].concat());
        match &written {
            Ok(()) => self.torn = false,
            Err(_) => self.cut(length),
        }
        written
    }

    /// Restores the length from before a write that has failed.
    fn cut(&mut self, length: u64) {
        self.torn |= self.file.set_len(length).is_err();
    }
}

/// Creates the file of a query, unless it exists, and checks that it can be appended to.
///
/// # Errors
/// Returns an error if it cannot.
pub(super) fn check(directory: &Path, query: &str) -> Result<()> {
    appended(&path(directory, query)).map(drop)
}

/// Renames the file of a query, with a number. Does nothing if there is none, or it is empty.
///
/// # Errors
/// Returns an error if it cannot be renamed.
pub(super) fn set_aside(directory: &Path, query: &str) -> Result<()> {
    let path = path(directory, query);
    if fs::metadata(&path).map_or(true, |file| file.len() == 0) {
        return Ok(());
    }
    let numbered = |n: u32| directory.join(format!("{query}.{n}.jsonl"));
    let aside = (1..=EARLIER_MAX).map(numbered).find(|aside| !aside.exists());
    fs::rename(&path, aside.unwrap_or_else(|| numbered(EARLIER_MAX)))
}

/// Returns the path of a query's file.
pub(super) fn path(directory: &Path, query: &str) -> PathBuf {
    directory.join(format!("{query}.jsonl"))
}

fn appended(path: &Path) -> Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Returns the end of a file, at most `bytes_max` bytes. Its first line may have lost its beginning.
fn tail(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Rect;
    use crate::media::tests::Directory;

    fn finding(at: u32) -> Finding {
        let (line, direction) = (String::new(), "down".to_owned());
        Finding { at: f64::from(at), label: "person".to_owned(), track: 1, line, direction, place: Rect::default() }
    }

    fn line(at: u32) -> Vec<u8> {
        let mut line = serde_json::to_vec(&finding(at)).unwrap();
        line.push(b'\n');
        line
    }

    /// Opens the file `gate.jsonl` of a directory.
    fn open(directory: &Directory) -> (ResultsFile, Vec<f64>) {
        let (file, recent) = ResultsFile::open(&directory.file(""), "gate", 3).unwrap();
        (file, recent.iter().map(|finding| finding.at).collect())
    }

    #[test]
    fn the_last_findings_are_read_again() {
        let directory = Directory::new("results-recent");
        let (mut file, recent) = open(&directory);
        assert!(recent.is_empty());
        (0..5).for_each(|at| file.append(&line(at)).unwrap());
        assert_eq!(open(&directory).1, [2.0, 3.0, 4.0]);
    }

    #[test]
    fn findings_after_a_failed_write_are_on_lines_of_their_own() {
        let directory = Directory::new("results-torn");
        let (mut file, _) = open(&directory);
        file.append(&line(0)).unwrap();
        let length = file.file.metadata().unwrap().len();
        // What a write has left that failed is removed.
        fs::write(path(&directory.file(""), "gate"), [&line(0)[..], &b"{\"at\":1"[..]].concat()).unwrap();
        file.cut(length);
        assert!(!file.torn && file.file.metadata().unwrap().len() == length);
        // A write to a full disk fails, and this device cannot be cut.
        let full = File::options().append(true).open("/dev/full").unwrap();
        let whole = std::mem::replace(&mut file.file, full);
        assert!(file.append(&line(1)).is_err() && file.torn);
        file.file = whole;
        file.file.write_all(b"{\"at\":1").unwrap();
        file.append(&line(2)).unwrap();
        file.append(&line(3)).unwrap();
        assert_eq!(open(&directory).1, [0.0, 2.0, 3.0]);
        // A program that was killed has left a part of a line.
        file.file.write_all(b"{\"at\":4").unwrap();
        let (mut file, _) = open(&directory);
        file.append(&line(5)).unwrap();
        assert_eq!(open(&directory).1, [2.0, 3.0, 5.0]);
    }

    #[test]
    fn a_file_that_is_full_is_renamed() {
        let directory = Directory::new("results-full");
        let (mut file, _) = open(&directory);
        file.bytes_max = 2 * line(0).len() as u64;
        (0..5).for_each(|at| file.append(&line(at)).unwrap());
        for (name, from, to) in [("gate.1.jsonl", 0, 2), ("gate.2.jsonl", 2, 4), ("gate.jsonl", 4, 5)] {
            let lines: Vec<u8> = (from..to).flat_map(line).collect();
            assert_eq!(fs::read(directory.file(name)).unwrap(), lines, "{name}");
        }
        // When all numbers are used, the last file is overwritten.
        (3..=EARLIER_MAX).for_each(|n| fs::write(directory.file(&format!("gate.{n}.jsonl")), "x").unwrap());
        set_aside(&directory.file(""), "gate").unwrap();
        assert_eq!(fs::read(directory.file(&format!("gate.{EARLIER_MAX}.jsonl"))).unwrap(), line(4));
        assert_eq!(fs::read(directory.file("gate.999.jsonl")).unwrap(), b"x");
    }

    #[test]
    fn only_the_end_of_a_long_file_is_read() {
        let directory = Directory::new("results-long");
        let long = vec![b'x'; TAIL_MAX as usize];
        let text = [&line(0)[..], &long[..], &b"\n"[..], &line(1)[..]].concat();
        fs::write(directory.file("gate.jsonl"), &text).unwrap();
        assert_eq!(open(&directory).1, [1.0]);
        assert_eq!(tail(&directory.file("gate.jsonl"), 10).unwrap(), text[text.len() - 10..]);
        // One line without an end.
        fs::write(directory.file("gate.jsonl"), &long).unwrap();
        let (file, recent) = open(&directory);
        assert!(file.torn && recent.is_empty());
    }
}
