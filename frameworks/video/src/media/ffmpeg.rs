//! Everything else, by the `ffmpeg` program: it writes Y4M into a pipe, which is read here.
//!
//! A pipe cannot be rewound: going back starts the program again.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::indexed::Fault;
use super::{Info, MediaError, y4m};
use crate::frame::Frame;

/// A running ffmpeg, or one that has ended.
#[derive(Debug)]
pub(super) struct Piped {
    path: PathBuf,
    header: y4m::Header,
    child: Child,
    pipe: BufReader<ChildStdout>,
    next: u64,
    decoded: u64,
    buffer: Vec<u8>,
}

/// Opens a file of any format that the installed ffmpeg knows. `why` says why that is needed.
pub(super) fn open(path: &Path, why: &str) -> Result<Piped, MediaError> {
    let (mut child, mut pipe) = start(path, why)?;
    let first = y4m::line(&mut pipe).ok().flatten().map(|line| y4m::header(&line));
    match first {
        Some(Ok(header)) => {
            let buffer = vec![0; header.frame_bytes()];
            Ok(Piped { path: path.to_owned(), header, child, pipe, next: 0, decoded: 0, buffer })
        }
        _ => {
            let _ = child.kill();
            let said = said(&mut child);
            Err(MediaError::Malformed {
                path: path.to_owned(),
                what: format!("{why}, and ffmpeg cannot read it: {said}"),
            })
        }
    }
}

fn start(path: &Path, why: &str) -> Result<(Child, BufReader<ChildStdout>), MediaError> {
    let unsupported = |what: String| MediaError::Unsupported { path: path.to_owned(), what };
    let spawned = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(path)
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
    let Some(pipe) = child.stdout.take() else { return Err(unsupported("ffmpeg has no output".to_owned())) };
    Ok((child, BufReader::with_capacity(1 << 20, pipe)))
}

/// The last line that the program wrote to its standard error.
fn said(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(errors) = child.stderr.take() {
        let _ = errors.take(16 << 10).read_to_string(&mut text);
    }
    let _ = child.wait();
    text.lines().last().unwrap_or("it says nothing").to_owned()
}

impl Piped {
    pub(super) fn info(&self) -> Info {
        self.header.info()
    }

    pub(super) fn decoded(&self) -> u64 {
        self.decoded
    }

    pub(super) fn frame(&mut self, number: u64) -> Result<Option<Frame>, MediaError> {
        if number < self.next {
            let _ = self.child.kill();
            let _ = self.child.wait();
            (self.child, self.pipe) = start(&self.path, "it is read through ffmpeg")?;
            let _ = y4m::line(&mut self.pipe);
            self.next = 0;
        }
        loop {
            match y4m::line(&mut self.pipe) {
                Ok(Some(mark)) if mark.starts_with("FRAME") => {}
                Ok(None) => return self.ended(number),
                Ok(Some(_)) | Err(Fault::Malformed(_) | Fault::Unsupported(_)) => {
                    return Err(self.undecodable("ffmpeg wrote no Y4M".to_owned()));
                }
                Err(Fault::Io(source)) => return Err(MediaError::Io { path: self.path.clone(), source }),
            }
            if let Err(error) = self.pipe.read_exact(&mut self.buffer) {
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

    /// The pipe has ended: the video too, or the program failed.
    fn ended(&mut self, number: u64) -> Result<Option<Frame>, MediaError> {
        match self.child.wait() {
            Ok(status) if !status.success() => {
                let said = said(&mut self.child);
                Err(MediaError::Undecodable {
                    path: self.path.clone(),
                    frame: number,
                    decoded: self.decoded,
                    what: said,
                })
            }
            _ => Ok(None),
        }
    }

    fn undecodable(&self, what: String) -> MediaError {
        MediaError::Undecodable { path: self.path.clone(), frame: self.next, decoded: self.decoded, what }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
