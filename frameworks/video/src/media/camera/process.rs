//! The `ffmpeg` process of a live source: raw pictures on one pipe, their timestamps and errors on the other.
//!
//! Reads wait for a limited time. The process does not reconnect.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::messages::{Message, message};
use crate::clock;
use crate::frame::{Frame, SIDE_MAX};
use crate::media::source::{Camera, CameraKind};

/// Maximum number of queued messages; each picture has one.
const MESSAGES_MAX: usize = 1024;
/// Maximum length of a line in bytes; the rest counts as another line.
const LINE_MAX: u64 = 4096;
/// Interval in seconds at which a wait checks whether it should stop.
pub(super) const LOOK: f64 = 0.1;

/// Reason why there is no next picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NoPicture {
    /// The wait was interrupted.
    Stopped,
    /// No data came in time.
    Silent,
    /// The program has ended, with its error if it failed.
    Ended(Option<String>),
    /// The source cannot be read, and a retry does not help.
    Unreadable(String),
}

/// A picture as it arrives.
#[derive(Debug)]
pub(super) struct Arrival {
    pub stamp: Option<f64>,
    pub at: f64,
    pub frame: Frame,
}

/// A running `ffmpeg` process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pictures: ChildStdout,
    messages: Receiver<Message>,
    reader: Option<JoinHandle<()>>,
    /// Format of the input; `None` until it is known.
    pub format: Option<String>,
    error: Option<String>,
    buffer: Vec<u8>,
}

impl Process {
    /// Starts the program. For a named pipe it waits for a writer until `deadline`, or until `stop` returns `true`.
    ///
    /// # Errors
    /// Returns an error if the program is not installed or cannot be started, or the pipe cannot be opened.
    pub(super) fn start(camera: &Camera, deadline: f64, stop: &dyn Fn() -> bool) -> Result<Process, NoPicture> {
        let input = match camera.kind() {
            CameraKind::Pipe => Stdio::from(open_pipe(camera.secret(), deadline, stop)?),
            _ => Stdio::null(),
        };
        let spawned = Command::new("ffmpeg")
            .args(["-hide_banner", "-nostdin", "-nostats", "-loglevel", "level+info", "-threads", "1"])
            .args(["-analyzeduration", "2000000"])
            .args(camera.input())
            // Changes of size are reported instead of being hidden by scaling.
            .args(["-map", "0:v:0", "-autoscale", "0", "-fps_mode", "passthrough", "-vf", "showinfo=checksum=0"])
            .args(["-pix_fmt", "yuv420p", "-f", "rawvideo", "pipe:1"])
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = spawned.map_err(|error| {
            NoPicture::Unreadable(match error.kind() {
                std::io::ErrorKind::NotFound => "the ffmpeg program is not installed".to_owned(),
                _ => format!("ffmpeg does not start: {error}"),
            })
        })?;
        Process::of(child)
    }

    /// Reads the output of a process that was started with a pipe for each of its two outputs.
    ///
    /// # Errors
    /// Returns an error if a pipe is missing.
    fn of(mut child: Child) -> Result<Process, NoPicture> {
        let Some((pictures, errors)) = child.stdout.take().zip(child.stderr.take()) else {
            return Err(NoPicture::Unreadable("ffmpeg has no output".to_owned()));
        };
        let (sender, messages) = sync_channel(MESSAGES_MAX);
        let reader = Some(std::thread::spawn(move || read_messages(errors, &sender)));
        Ok(Process { child, pictures, messages, reader, format: None, error: None, buffer: Vec::new() })
    }

    /// Returns the core-seconds that the process has used.
    pub(super) fn used(&self) -> f64 {
        clock::of_process(self.child.id())
    }

    /// Returns the next picture, if it arrives before `deadline` (of the monotonic clock).
    ///
    /// # Errors
    /// Returns the reason why there is no picture.
    pub(super) fn next(&mut self, deadline: f64, stop: &dyn Fn() -> bool) -> Result<Arrival, NoPicture> {
        let (stamp, width, height) = self.announced(deadline, stop)?;
        if width.min(height) < 2 || width.max(height) > SIDE_MAX {
            return Err(NoPicture::Unreadable(format!(
                "pictures of {width}x{height} pixels: sides are 2 to {SIDE_MAX}"
            )));
        }
        let half = width.div_ceil(2);
        self.buffer.resize(width * height + 2 * half * height.div_ceil(2), 0);
        let mut filled = 0;
        while filled < self.buffer.len() {
            wait_for_bytes(&self.pictures, deadline, stop)?;
            match self.pictures.read(&mut self.buffer[filled..]) {
                Ok(0) => return Err(self.ended()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(NoPicture::Ended(Some(error.to_string()))),
            }
        }
        let (y, rest) = self.buffer.split_at(width * height);
        let (u, v) = rest.split_at(rest.len() / 2);
        let frame = Frame::from_planes((width, height), [y, u, v], [width, half, half]);
        let frame = frame.ok_or_else(|| NoPicture::Unreadable("a picture without its planes".to_owned()))?;
        Ok(Arrival { stamp, at: clock::monotonic(), frame })
    }

    /// Returns the timestamp and the size of the next picture. Messages of other kinds do not extend the wait: a source
    /// that only causes errors is silent.
    fn announced(&mut self, deadline: f64, stop: &dyn Fn() -> bool) -> Result<(Option<f64>, usize, usize), NoPicture> {
        loop {
            if stop() {
                return Err(NoPicture::Stopped);
            }
            match self.messages.recv_timeout(Duration::from_secs_f64(LOOK)) {
                Ok(Message::Picture { stamp, width, height }) => return Ok((stamp, width, height)),
                Ok(Message::Format(format)) => self.format = Some(format),
                Ok(Message::Error(error)) => self.error = Some(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
            if clock::monotonic() >= deadline {
                return Err(NoPicture::Silent);
            }
        }
    }

    /// Waits for the program after it has closed its pipes, and returns how it ended.
    fn ended(&mut self) -> NoPicture {
        let failed = self.child.wait().map_or(true, |status| !status.success());
        for message in self.messages.try_iter() {
            if let Message::Error(error) = message {
                self.error = Some(error);
            }
        }
        let error = self.error.take();
        NoPicture::Ended(failed.then(|| error.unwrap_or_else(|| "ffmpeg failed without a message".to_owned())))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The reading thread must not block on a full queue of messages.
        while self.messages.recv().is_ok() {}
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Reads lines to the end. A line that is too long is read in parts.
fn read_messages(errors: ChildStderr, sender: &SyncSender<Message>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        match errors.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        if let Some(message) = message(String::from_utf8_lossy(&line).trim_end())
            && sender.send(message).is_err()
        {
            return;
        }
    }
}

/// Waits until the pipe is readable or its writer has closed it.
fn wait_for_bytes(pipe: &impl AsFd, deadline: f64, stop: &dyn Fn() -> bool) -> Result<(), NoPicture> {
    loop {
        let left = deadline - clock::monotonic();
        if stop() {
            return Err(NoPicture::Stopped);
        }
        if left <= 0.0 {
            return Err(NoPicture::Silent);
        }
        let wait = PollTimeout::from((left.min(LOOK) * 1000.0).ceil() as u16);
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], wait) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(NoPicture::Ended(Some(error.to_string()))),
        }
    }
}

/// Opens a named pipe and waits until it has data.
fn open_pipe(path: &str, deadline: f64, stop: &dyn Fn() -> bool) -> Result<OwnedFd, NoPicture> {
    use std::os::unix::fs::FileTypeExt;
    let bad = |error: std::io::Error| NoPicture::Unreadable(format!("the pipe cannot be opened: {error}"));
    // Without O_NONBLOCK the open would block until there is a writer.
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).map_err(bad)?;
    if !file.metadata().map_err(bad)?.file_type().is_fifo() {
        return Err(NoPicture::Unreadable("it is not a named pipe: make one with mkfifo".to_owned()));
    }
    wait_for_bytes(&file, deadline, stop)?;
    let flags = fcntl(&file, FcntlArg::F_GETFL).map_err(|error| bad(error.into()))?;
    let blocking = OFlag::from_bits_truncate(flags) - OFlag::O_NONBLOCK;
    fcntl(&file, FcntlArg::F_SETFL(blocking)).map_err(|error| bad(error.into()))?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_only_prints_errors_is_silent_at_the_deadline() {
        // Errors are more frequent than the timeouts of a wait for a message.
        let errors = "while :; do echo '[tcp @ 0x5] [error] no picture' >&2; sleep 0.02; done";
        let child = Command::new("sh")
            .args(["-c", errors])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut process = Process::of(child).unwrap();
        let begun = clock::monotonic();
        let too_late = || clock::monotonic() > begun + 30.0;
        assert_eq!(process.next(begun + 3.0, &too_late).unwrap_err(), NoPicture::Silent);
        assert_eq!(process.error.as_deref(), Some("no picture"));
    }
}
