//! Reads all other formats with the `ffmpeg` program, which writes Y4M into a pipe that is read here.
//!
//! A pipe cannot be rewound: going back starts the program again. The processor time of the program is accounted to
//! this process.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use super::indexed::Fault;
use super::{Info, MediaError, y4m};
use crate::clock;
use crate::frame::Frame;

/// Number of bytes at the end of the program's messages that are kept.
const SAID_MAX: usize = 4096;

/// An `ffmpeg` process that is running or has ended.
#[derive(Debug)]
pub(super) struct Piped {
    path: PathBuf,
    header: y4m::Header,
    program: Program,
    next: u64,
    decoded: u64,
    /// Number of frames; `None` until the end has been read.
    frames: Option<u64>,
    /// Core-seconds of former processes that have ended.
    before: f64,
    buffer: Vec<u8>,
}

/// An `ffmpeg` process with its two output pipes.
#[derive(Debug)]
struct Program {
    child: Child,
    pipe: BufReader<ChildStdout>,
    /// Whether the process was reaped: its id may belong to another process then.
    ended: bool,
    /// Thread that reads standard error all the time, since a program that cannot write it blocks.
    errors: Option<JoinHandle<String>>,
}

/// Opens a file of any format that the installed ffmpeg supports. `why` is the reason that an error message gives for
/// using it.
pub(super) fn open(path: &Path, why: &str) -> Result<Piped, MediaError> {
    let mut program = start(path, why)?;
    let first = y4m::line(&mut program.pipe).ok().flatten().map(|line| y4m::header(&line));
    match first {
        Some(Ok(header)) => {
            let buffer = vec![0; header.frame_bytes()];
            let path = path.to_owned();
            Ok(Piped { path, header, program, next: 0, decoded: 0, frames: None, before: 0.0, buffer })
        }
        _ => {
            let said = program.end();
            Err(MediaError::Malformed {
                path: path.to_owned(),
                what: format!("{why}, and ffmpeg cannot read it: {said}"),
            })
        }
    }
}

fn start(path: &Path, why: &str) -> Result<Program, MediaError> {
    let unsupported = |what: String| MediaError::Unsupported { path: path.to_owned(), what };
    // A playlist must not open other protocols, and a name with a colon is still a file.
    let mut name = std::ffi::OsString::from("file:");
    name.push(path);
    // Without `-xerror` a file that is cut short ends as if it were complete.
    let spawned = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-xerror", "-protocol_whitelist", "file", "-i"])
        .arg(name)
        .args(["-map", "0:v:0", "-pix_fmt", "yuv420p", "-threads", "1", "-f", "yuv4mpegpipe", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(unsupported(format!("{why}; with the ffmpeg program installed it could be read")));
        }
        Err(error) => return Err(unsupported(format!("{why}, and ffmpeg does not start: {error}"))),
    };
    let Some((pipe, errors)) = child.stdout.take().zip(child.stderr.take()) else {
        return Err(unsupported("ffmpeg has no output".to_owned()));
    };
    let errors = std::thread::spawn(move || last_line(errors));
    Ok(Program { child, pipe: BufReader::with_capacity(1 << 20, pipe), ended: false, errors: Some(errors) })
}

/// Reads to the end, and returns the last line as far as it is kept.
fn last_line(mut errors: ChildStderr) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; SAID_MAX]);
    while let Ok(read @ 1..) = errors.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(SAID_MAX));
    }
    let text = String::from_utf8_lossy(&kept);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("without a message").to_owned()
}

impl Program {
    /// Returns the core-seconds that the process has used; 0 if it was reaped.
    fn used(&self) -> f64 {
        if self.ended {
            return 0.0;
        }
        clock::of_process(self.child.id())
    }

    /// Ends the process, and returns its last messages.
    fn end(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.ended = true;
        self.errors.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Piped {
    pub(super) fn info(&self) -> Info {
        Info { frames: self.frames, ..self.header.info() }
    }

    pub(super) fn decoded(&self) -> u64 {
        self.decoded
    }

    /// Returns the core-seconds that the program has used so far.
    pub(super) fn used(&self) -> f64 {
        self.before + self.program.used()
    }

    pub(super) fn frame(&mut self, number: u64) -> Result<Option<Frame>, MediaError> {
        if number < self.next {
            self.before += self.program.used();
            self.program.end();
            self.program = start(&self.path, "it is read through ffmpeg")?;
            let _ = y4m::line(&mut self.program.pipe);
            self.next = 0;
        }
        loop {
            match y4m::line(&mut self.program.pipe) {
                Ok(Some(mark)) if mark.starts_with("FRAME") => {}
                Ok(None) => return self.ended(number),
                Ok(Some(_)) | Err(Fault::Malformed(_) | Fault::Unsupported(_)) => {
                    return Err(self.undecodable("ffmpeg wrote no Y4M".to_owned()));
                }
                Err(Fault::Io(source)) => return Err(MediaError::Io { path: self.path.clone(), source }),
            }
            if let Err(error) = self.program.pipe.read_exact(&mut self.buffer) {
                return Err(self.undecodable(error.to_string()));
            }
            self.next += 1;
            self.decoded += 1;
            if self.next > number {
                return self.picture().map(Some);
            }
        }
    }

    fn picture(&self) -> Result<Frame, MediaError> {
        let (w, h) = (self.header.width, self.header.height);
        let half = w.div_ceil(2);
        let (y, rest) = self.buffer.split_at(w * h);
        let (u, v) = rest.split_at(rest.len() / 2);
        let frame = Frame::from_planes((w, h), [y, u, v], [w, half, half]);
        frame.ok_or_else(|| self.undecodable("a frame without its planes".to_owned()))
    }

    /// Handles the end of the pipe: either the video has ended, or the program failed.
    fn ended(&mut self, number: u64) -> Result<Option<Frame>, MediaError> {
        self.before = self.used();
        self.program.ended = true;
        match self.program.child.wait() {
            Ok(status) if !status.success() => {
                let what = self.program.end();
                Err(MediaError::Undecodable { path: self.path.clone(), frame: number, decoded: self.decoded, what })
            }
            _ => {
                self.frames = Some(self.next);
                Ok(None)
            }
        }
    }

    fn undecodable(&self, what: String) -> MediaError {
        MediaError::Undecodable { path: self.path.clone(), frame: self.next, decoded: self.decoded, what }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.program.end();
    }
}
