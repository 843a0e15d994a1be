//! Tests of feeds from a real `ffmpeg`, over HTTP and a named pipe. They are skipped where it is not installed.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::*;
use crate::media::Source;
use crate::media::tests::Directory;

pub(super) fn installed() -> bool {
    let found = Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("not run: no ffmpeg");
    }
    found
}

/// A process that is killed when this is dropped.
pub(super) struct Server(pub(super) Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a free port that no other test here uses.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts `ffmpeg` as an HTTP server for one client, with a test picture of this size.
fn server(port: u16, (size, rate, seconds): (&str, u32, u32), format: &[&str]) -> Server {
    let from = format!("testsrc=size={size}:rate={rate}");
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", &from, "-t", &seconds.to_string()]);
    command.args(format).args(["-listen", "1", &format!("http://127.0.0.1:{port}/camera")]);
    Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

const MJPEG: [&str; 4] = ["-c:v", "mjpeg", "-f", "mpjpeg"];
const MPEGTS: [&str; 6] = ["-c:v", "mpeg2video", "-f", "mpegts", "-g", "10"];

pub(super) fn camera(text: &str) -> Camera {
    text.parse::<Source>().unwrap().camera().unwrap().clone()
}

fn http(port: u16) -> Camera {
    camera(&format!("http://user:hunter2@127.0.0.1:{port}/camera"))
}

/// Returns options of a feed with short timeouts.
pub(super) fn soon(reconnect: f64) -> FeedOptions {
    FeedOptions { answer: 20.0, stall: 20.0, reconnect, ..Default::default() }
}

/// Returns the next pictures, up to `count` or the end of the feed.
pub(super) fn pictures(feed: &Feed, count: usize) -> Vec<Picture> {
    let (mut out, until) = (Vec::new(), clock::monotonic() + 60.0);
    while out.len() < count {
        assert!(clock::monotonic() < until, "{:?}", feed.status());
        match feed.next(Duration::from_millis(200)) {
            Next::Picture(picture) => out.push(*picture),
            Next::Nothing => {}
            Next::Ended => break,
        }
    }
    out
}

fn wait_until(feed: &Feed, is: impl Fn(&FeedStatus) -> bool) -> FeedStatus {
    let until = clock::monotonic() + 60.0;
    while !is(&feed.status()) {
        assert!(clock::monotonic() < until, "{:?}", feed.status());
        feed.next(Duration::from_millis(50));
    }
    feed.status()
}

#[test]
fn mjpeg_and_mpegts_over_http_with_capture_times() {
    if !installed() {
        return;
    }
    for format in [&MJPEG[..], &MPEGTS[..]] {
        let port = port();
        let _server = server(port, ("320x240", 10, 3), format);
        let feed = Feed::open(&http(port), soon(20.0));
        let got = pictures(&feed, 12);
        assert_eq!(got.len(), 12, "{:?}", feed.status());
        assert!(got.iter().all(|p| (p.frame.width(), p.frame.height()) == (320, 240)));
        assert!(got.is_sorted_by(|a, b| a.captured < b.captured && a.number < b.number));
        // Pictures that arrive at once get times a thousandth of a second apart.
        let now = clock::monotonic();
        assert!(got.iter().all(|p| p.captured < now + 0.5 && p.captured > now - 60.0));
        let status = feed.status();
        assert_eq!((status.state, status.connections), (FeedState::Live, 1));
        assert!(feed.used() > 0.0 && status.fps > 0.0);
    }
}

#[test]
fn a_source_that_ends_is_connected_again_and_then_given_up() {
    if !installed() {
        return;
    }
    let port = port();
    let first = server(port, ("160x120", 10, 1), &MJPEG);
    let feed = Feed::open(&http(port), soon(20.0));
    assert_eq!(pictures(&feed, 3).len(), 3);
    let lost = wait_until(&feed, |status| status.state == FeedState::Lost);
    assert!(lost.message.contains("the source has ended") && lost.message.contains("attempt"), "{lost:?}");
    drop(first);
    let _second = server(port, ("160x120", 10, 1), &MJPEG);
    let again = wait_until(&feed, |status| status.connections == 2);
    assert_eq!(again.state, FeedState::Live);
    drop(feed);
    // Without reconnection the end of the source is the end of the feed.
    let port = self::port();
    let _third = server(port, ("160x120", 10, 1), &MJPEG);
    let options = soon(0.0);
    let feed = until_connected(port, options);
    let rest = pictures(&feed, usize::MAX);
    assert!(!rest.is_empty() && !feed.failed());
    assert_eq!(feed.status().message, "the source has ended");
}

/// Opens a feed without reconnection once the server listens.
fn until_connected(port: u16, options: FeedOptions) -> Feed {
    let until = clock::monotonic() + 60.0;
    loop {
        let feed = Feed::open(&http(port), options);
        while matches!(feed.status().state, FeedState::Connecting) {
            assert!(clock::monotonic() < until);
            feed.next(Duration::from_millis(20));
        }
        if feed.status().state == FeedState::Live || feed.status().received > 0 {
            return feed;
        }
        assert!(clock::monotonic() < until);
    }
}

#[test]
fn a_source_that_cannot_be_reached_or_never_answers_is_named_without_credentials() {
    if !installed() {
        return;
    }
    let refused = Feed::open(&http(port()), soon(0.3));
    let status = wait_until(&refused, |status| status.state == FeedState::Ended);
    assert!(refused.failed() && status.message.contains("refused") && status.message.contains("stopped after"));
    assert!(!format!("{status:?}").contains("hunter2"), "{status:?}");
    // A server that accepts the connection and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let camera = http(silent.local_addr().unwrap().port());
    let feed = Feed::open(&camera, FeedOptions { answer: 0.5, reconnect: 0.0, ..Default::default() });
    let status = wait_until(&feed, |status| status.state == FeedState::Ended);
    assert!(status.message.starts_with("no answer within"), "{status:?}");
    // A server that answers with text instead of pictures.
    let text = TcpListener::bind("127.0.0.1:0").unwrap();
    let camera = http(text.local_addr().unwrap().port());
    let answer = std::thread::spawn(move || {
        let (mut stream, _) = text.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    let feed = Feed::open(&camera, soon(0.0));
    let status = wait_until(&feed, |status| status.state == FeedState::Ended);
    assert!(feed.failed() && status.message.contains("404"), "{status:?}");
    answer.join().unwrap();
}

#[test]
fn a_source_that_stalls_is_lost() {
    if !installed() {
        return;
    }
    // A server that sends some pictures and then nothing, without closing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let camera = http(listener.local_addr().unwrap().port());
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=10", "-t", "2"])
        .args(MJPEG)
        .arg("pipe:1")
        .output()
        .unwrap();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let stalled = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let head = "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=ffmpeg\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&made.stdout);
        let _ = wait.recv();
    });
    let feed = Feed::open(&camera, FeedOptions { stall: 0.7, reconnect: 0.0, ..soon(0.0) });
    let status = wait_until(&feed, |status| status.state == FeedState::Ended);
    assert!(status.received > 5 && status.message.starts_with("no picture for"), "{status:?}");
    assert!(feed.failed());
    drop(feed);
    drop(done);
    stalled.join().unwrap();
}

#[test]
fn a_pipe_with_a_resolution_that_changes() {
    if !installed() {
        return;
    }
    let directory = Directory::new("camera-pipe");
    let path = directory.file("fifo");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let feed = Feed::open(&camera(&format!("pipe:{}", path.display())), soon(20.0));
    let writer = std::thread::spawn(move || {
        let mut out = std::fs::File::options().write(true).open(path).unwrap();
        for size in ["160x120", "320x240"] {
            let made = Command::new("ffmpeg")
                .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", &format!("testsrc=size={size}:rate=10")])
                .args(["-t", "1", "-c:v", "mjpeg", "-f", "mjpeg", "pipe:1"])
                .output()
                .unwrap();
            out.write_all(&made.stdout).unwrap();
        }
    });
    let widths: Vec<usize> = pictures(&feed, usize::MAX).iter().map(|p| p.frame.width()).collect();
    writer.join().unwrap();
    assert!(widths.is_sorted() && widths.first() == Some(&160) && widths.last() == Some(&320), "{widths:?}");
    assert_eq!((feed.status().message.as_str(), feed.failed()), ("the source has ended", false));
    // A file that is not a pipe is rejected at once.
    let plain = directory.file("plain");
    std::fs::write(&plain, "x").unwrap();
    let feed = Feed::open(&camera(&format!("pipe:{}", plain.display())), soon(20.0));
    let status = wait_until(&feed, |status| status.state == FeedState::Ended);
    assert!(status.message.contains("is not a named pipe"), "{status:?}");
}

#[test]
fn what_is_not_taken_is_dropped_and_counted_and_memory_is_limited() {
    if !installed() {
        return;
    }
    let port = port();
    let _server = server(port, ("160x120", 25, 3), &MJPEG);
    let bytes = 4 * 160 * 120 * 3 / 2;
    let feed = Feed::open(&http(port), FeedOptions { bytes, ..soon(20.0) });
    let until = clock::monotonic() + 60.0;
    while feed.status().dropped < 5 {
        assert!(clock::monotonic() < until, "{:?}", feed.status());
        drop(feed.shared.changed.wait_timeout(feed.shared.lock(), Duration::from_millis(50)));
    }
    assert!(feed.shared.lock().waiting.len() <= 4);
    feed.every(1000);
    let picture = pictures(&feed, 1);
    assert!(picture[0].number >= 5, "the oldest were dropped");
}

#[test]
fn a_recording_has_the_measured_rate() {
    if !installed() {
        return;
    }
    let directory = Directory::new("camera-record");
    let path = directory.file("a.y4m");
    let port = port();
    let _server = server(port, ("160x120", 10, 4), &MJPEG);
    let recording = until_recorded(port, &path);
    let mut video = crate::media::Video::open(&path).unwrap();
    assert_eq!(video.info().frames, Some(recording.frames as u64));
    assert!(video.frame(recording.frames as u64 - 1).unwrap().is_some());
    assert!(recording.frames > 4 && recording.decode > 0.0 && recording.fps > 0.0, "{recording:?}");
    assert!((video.info().fps - recording.fps).abs() < 0.01);
}

fn until_recorded(port: u16, path: &std::path::Path) -> Recording {
    let until = clock::monotonic() + 60.0;
    loop {
        match record(&http(port), soon(0.0), 1.5, path) {
            Ok(recording) => return recording,
            Err(error) => assert!(clock::monotonic() < until, "{error}"),
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_named_with_the_rule() {
    if !installed() {
        return;
    }
    let feed = Feed::open(&camera("/dev/video987"), soon(0.0));
    assert!(pictures(&feed, 1).is_empty());
    let status = feed.status();
    assert!(feed.failed() && status.state == FeedState::Ended, "{status:?}");
    assert_eq!(status.message, "/dev/video987: there is no such device on this machine");
    // With reconnection it is only lost: a camera can be plugged in later.
    let feed = Feed::open(&camera("/dev/video987"), soon(60.0));
    let lost = wait_until(&feed, |status| status.state == FeedState::Lost);
    assert!(lost.message.starts_with("/dev/video987: there is no such device on this machine; attempt 1"), "{lost:?}");
}
