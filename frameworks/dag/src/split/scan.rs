//! Examines the files of an input: expands patterns and finds where lines and records start. It blocks.
//!
//! Files are read completely for lines and records; for bytes only around each cut. What is written to a file later is
//! not part of the input.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::{File, PIECES_MAX, Piece, Pieces};
use crate::job::{FilesInput, Size, SplitUnit};

/// Maximum number of files of an input.
pub const FILES_MAX: usize = 100_000;
/// Number of pieces into which an input is cut, so that tasks of any size are possible.
const CUTS: u64 = 20_000;
/// Smallest piece of an input by bytes whose task size is chosen while the stage runs, in bytes.
const LEAST: u64 = 4 << 10;
/// Longest line that may follow a cut by bytes, in bytes.
const LINE_MAX: u64 = 64 << 20;

/// The reason why an input cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The pattern has invalid syntax.
    #[error("'{0}' is not a pattern")]
    Pattern(String, #[source] glob::PatternError),
    /// A pattern, or a path, matches no file.
    #[error("'{0}' matches no file")]
    Nothing(String),
    /// The patterns match too many files.
    #[error("the input has more than {FILES_MAX} files")]
    TooMany,
    /// All files are empty; has their number.
    #[error("the input is empty: {0} files without a byte")]
    Empty(usize),
    /// The file cannot be read.
    #[error("'{0}' cannot be read")]
    Read(String, #[source] io::Error),
    /// The file does not start with a record.
    #[error("'{path}' holds no valid records: its first line does not begin with \"{mark}\"")]
    Records {
        /// Path of the file.
        path: String,
        /// Prefix that marks the start of a record.
        mark: String,
    },
    /// A line of the file is too long for a cut by bytes.
    #[error("'{0}' cannot be cut by bytes: a line has more than {LINE_MAX} bytes")]
    Line(String),
}

/// Returns the files that match the patterns, each once, in the order of their names.
///
/// # Errors
/// A pattern is invalid or matches no file, a file cannot be read, or there are too many files.
pub fn expand(patterns: &[String]) -> Result<Vec<File>, ScanError> {
    let mut files = std::collections::BTreeMap::new();
    for pattern in patterns {
        let before = files.len();
        let mut found = false;
        for path in glob::glob(pattern).map_err(|error| ScanError::Pattern(pattern.clone(), error))? {
            let path = path.map_err(|error| {
                let path = error.path().display().to_string();
                ScanError::Read(path, error.into())
            })?;
            let text = path.display().to_string();
            let meta = fs::metadata(&path).map_err(|error| ScanError::Read(text.clone(), error))?;
            if meta.is_file() {
                found = true;
                files.insert(text, meta.len());
            }
            if files.len() > FILES_MAX {
                return Err(ScanError::TooMany);
            }
        }
        if !found && files.len() == before {
            return Err(ScanError::Nothing(pattern.clone()));
        }
    }
    Ok(files.into_iter().map(|(path, size)| File { path, size }).collect())
}

/// Cuts an input into pieces.
///
/// # Errors
/// A file is missing or has no valid records, or all files are empty.
pub fn scan(input: &FilesInput) -> Result<Pieces, ScanError> {
    let files = expand(&input.files)?;
    let total: u64 = files.iter().map(|file| file.size).sum();
    let mut pieces = Vec::new();
    if input.by == SplitUnit::Files {
        pieces.extend((0..).zip(&files).map(|(place, file)| Piece(place, 0, file.size, 1)));
        return Ok(Pieces { files, pieces });
    }
    if total == 0 {
        return Err(ScanError::Empty(files.len()));
    }
    let mut units = 1;
    for (place, file) in (0..).zip(&files) {
        match input.by {
            SplitUnit::Bytes => by_bytes(place, file, piece_bytes(input.size, total), &mut pieces)?,
            _ => by_lines(place, file, input.record.as_deref(), &mut units, &mut pieces)?,
        }
    }
    if input.by != SplitUnit::Bytes {
        coarsen(&mut pieces, input.size);
    }
    Ok(Pieces { files, pieces })
}

/// Returns the length of a piece of an input by bytes.
fn piece_bytes(size: Size, total: u64) -> u64 {
    let finest = total.div_ceil(PIECES_MAX as u64 / 2).max(1);
    match size {
        Size::Fixed(size) => size.max(finest),
        Size::Auto | Size::Target(_) => total.div_ceil(CUTS).max(LEAST).max(finest),
    }
}

/// Cuts a file after the first end of a line at or after each multiple of `size`.
fn by_bytes(place: u32, file: &File, size: u64, pieces: &mut Vec<Piece>) -> Result<(), ScanError> {
    let failed = |error| ScanError::Read(file.path.clone(), error);
    let mut opened = fs::File::open(&file.path).map_err(failed)?;
    let mut start = 0;
    while start < file.size {
        let mut end = start + size;
        if end < file.size {
            // A line that ends exactly there needs no further byte.
            opened.seek(SeekFrom::Start(end - 1)).map_err(failed)?;
            let mut line = Vec::new();
            let mut reader = BufReader::new((&mut opened).take(LINE_MAX));
            let read = reader.read_until(b'\n', &mut line).map_err(failed)? as u64;
            if read == LINE_MAX {
                return Err(ScanError::Line(file.path.clone()));
            }
            end = end - 1 + read;
        }
        let end = end.min(file.size);
        pieces.push(Piece(place, start, end - start, end - start));
        start = end;
    }
    Ok(())
}

/// Adds the pieces of a file by lines, or by records if there is a `mark`. `units` is the number of lines or records of
/// a piece; it doubles when there would be too many pieces.
fn by_lines(
    place: u32,
    file: &File,
    mark: Option<&str>,
    units: &mut u64,
    pieces: &mut Vec<Piece>,
) -> Result<(), ScanError> {
    let failed = |error| ScanError::Read(file.path.clone(), error);
    let opened = fs::File::open(&file.path).map_err(failed)?;
    // Bytes that were written since the file was examined are not part of the input.
    let mut reader = BufReader::with_capacity(1 << 20, opened.take(file.size));
    let mark = mark.map(str::as_bytes);
    let (mut at, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(failed)? as u64;
        if read == 0 {
            return Ok(());
        }
        let begins = mark.is_none_or(|mark| line.starts_with(mark));
        match pieces.last_mut().filter(|piece| piece.0 == place) {
            None if !begins => {
                let mark = mark.map(String::from_utf8_lossy).unwrap_or_default().into_owned();
                return Err(ScanError::Records { path: file.path.clone(), mark });
            }
            Some(piece) if !begins => piece.2 += read,
            Some(piece) if piece.3 < *units => {
                piece.2 += read;
                piece.3 += 1;
            }
            _ => pieces.push(Piece(place, at, read, 1)),
        }
        at += read;
        if pieces.len() > PIECES_MAX {
            *units *= 2;
            join(pieces, *units);
        }
    }
}

/// Joins consecutive pieces of one file as long as they have at most this many units.
fn join(pieces: &mut Vec<Piece>, units: u64) {
    pieces.dedup_by(|next, piece| {
        let joins = next.0 == piece.0 && piece.3 + next.3 <= units;
        if joins {
            piece.2 += next.2;
            piece.3 += next.3;
        }
        joins
    });
}

/// Joins pieces to the requested size, or to one fine enough to choose sizes later.
fn coarsen(pieces: &mut Vec<Piece>, size: Size) {
    match size {
        Size::Fixed(size) => join(pieces, size),
        Size::Auto | Size::Target(_) => {
            let units: u64 = pieces.iter().map(|piece| piece.3).sum();
            join(pieces, (units / CUTS).max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Directory(std::path::PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("tepui-scan-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Directory(path)
        }

        fn write(&self, name: &str, text: &str) -> String {
            let path = self.0.join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        }

        fn input(&self, by: SplitUnit, size: Size, record: Option<&str>) -> FilesInput {
            let files = vec![self.0.join("*").display().to_string()];
            FilesInput { files, by, size, record: record.map(str::to_owned) }
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn lengths(pieces: &Pieces) -> Vec<(u32, u64, u64)> {
        pieces.pieces.iter().map(|piece| (piece.0, piece.2, piece.3)).collect()
    }

    #[test]
    fn files_are_cut_at_ends_of_lines() {
        let directory = Directory::new("lines");
        directory.write("a", "one\ntwo\nthree\nfour");
        directory.write("b", "");
        let cut = |by, size| lengths(&scan(&directory.input(by, size, None)).unwrap());
        assert_eq!(cut(SplitUnit::Files, Size::Fixed(1)), [(0, 18, 1), (1, 0, 1)]);
        assert_eq!(cut(SplitUnit::Lines, Size::Fixed(3)), [(0, 14, 3), (0, 4, 1)]);
        assert_eq!(cut(SplitUnit::Lines, Size::Auto), [(0, 4, 1), (0, 4, 1), (0, 6, 1), (0, 4, 1)]);
        assert_eq!(cut(SplitUnit::Bytes, Size::Fixed(4)), [(0, 4, 4), (0, 4, 4), (0, 6, 6), (0, 4, 4)]);
        assert_eq!(cut(SplitUnit::Bytes, Size::Fixed(5)), [(0, 8, 8), (0, 6, 6), (0, 4, 4)]);
    }

    #[test]
    fn records_begin_with_their_mark() {
        let directory = Directory::new("records");
        directory.write("a.fa", ">x\nAC\nGT\n>y\nA\n>z\nC\n");
        let cut = |size| scan(&directory.input(SplitUnit::Records, size, Some(">"))).map(|pieces| lengths(&pieces));
        assert_eq!(cut(Size::Auto).unwrap(), [(0, 9, 1), (0, 5, 1), (0, 5, 1)]);
        assert_eq!(cut(Size::Fixed(2)).unwrap(), [(0, 14, 2), (0, 5, 1)]);
        directory.write("b.fa", "AC\n>y\nA\n");
        let error = cut(Size::Auto).unwrap_err().to_string();
        assert!(error.contains("b.fa' holds no valid records"), "{error}");
    }

    #[test]
    fn many_records_become_coarser_pieces_of_whole_records() {
        let directory = Directory::new("many");
        let records = PIECES_MAX / 2 - 10;
        for name in ["a.fa", "b.fa", "c.fa"] {
            directory.write(name, &">x\nA\n".repeat(records));
        }
        let all = scan(&directory.input(SplitUnit::Records, Size::Auto, Some(">"))).unwrap();
        assert!(all.pieces.len() <= PIECES_MAX);
        assert_eq!(all.units_from(0), 3 * records as u64);
        assert!(all.pieces.iter().all(|piece| piece.2 == 5 * piece.3 && piece.1 % 5 == 0));
    }

    #[test]
    fn what_is_missing_is_named() {
        let directory = Directory::new("missing");
        let error = scan(&directory.input(SplitUnit::Files, Size::Auto, None)).unwrap_err().to_string();
        assert!(error.ends_with("/*' matches no file"), "{error}");
        directory.write("a", "");
        let error = scan(&directory.input(SplitUnit::Lines, Size::Auto, None)).unwrap_err().to_string();
        assert!(error.contains("is empty"), "{error}");
    }
}
