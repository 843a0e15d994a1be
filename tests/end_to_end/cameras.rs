//! Tests a query on a camera: a real `ffmpeg` serves a generated street over HTTP, and is stopped and restarted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{self, Cluster, free_port, tepui};

/// A camera for one client; it is killed when this is dropped.
struct Camera(Child);

impl Camera {
    /// Serves a file in a loop, in real time.
    fn start(file: &str, port: u16) -> Camera {
        let mut command = Command::new("ffmpeg");
        command.args([
            "-nostdin",
            "-v",
            "error",
            "-re",
            "-stream_loop",
            "-1",
            "-i",
            file,
            "-c",
            "copy",
            "-f",
            "mpegts",
        ]);
        command.args(["-listen", "1", &format!("http://127.0.0.1:{port}/camera")]);
        Camera(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn has_ffmpeg() -> bool {
    Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn video(arguments: &[&str]) -> Command {
    let mut command = tepui();
    command.args(["framework", "video"]).args(arguments);
    command
}

fn succeeds(mut command: Command) {
    let output = command.run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const QUERY: &str = r#"
[[query]]
name = "gate"
kind = "cars"
profile = "p.json"
max_lag = 5
region = [[0.1, 0.0], [0.9, 0.0], [0.9, 1.0], [0.1, 1.0]]

[[query.line]]
name = "low"
from = [0.0, 0.6]
to = [1.0, 0.6]
forward = "in"
backward = "out"
"#;

#[test]
fn a_camera_is_watched_lost_and_found_again() {
    if !has_ffmpeg() {
        println!("not run: no ffmpeg");
        return;
    }
    let cluster = Cluster::start("cameras", 1, "cpus:1;mem:1024;disk:1024");
    let path = |name: &str| cluster.directory.join(name);
    let street = path("street.mp4");
    succeeds(video(&["generate", &street, "--seed=4", "--vehicles=90", "--width=320", "--height=180", "--seconds=8"]));
    succeeds(video(&["profile", &street, "--seconds=4", "--output", &path("p.json")]));
    let port = free_port();
    let source = format!("http://user:hunter2@127.0.0.1:{port}/camera");
    std::fs::write(path("queries.toml"), QUERY.replace("max_lag", &format!("video = \"{source}\"\nmax_lag"))).unwrap();
    let camera = Camera::start(&street, port);
    let hook = TcpListener::bind("127.0.0.1:0").unwrap();
    let post = format!("--alert-post=http://{}/alert", hook.local_addr().unwrap());
    let mut command = video(&["--master", &cluster.master, "--queries", &path("queries.toml"), &post]);
    let mut process = Process::start(command.args(["--results", &path("found")]));
    let line = process.line(Stream::Stderr, &["http://"]);
    let api = line.trim().rsplit("http://").next().unwrap().to_owned();
    let query = || support::call(&api, "GET", "/queries/gate").unwrap_or_default();
    process.until("cars are counted", || query()["found"].as_u64() > Some(2));
    let status = query();
    assert_eq!(status["source"]["state"], "live", "{status}");
    assert!(status["lag"].as_f64().unwrap() < 60.0, "{status}");
    // The API returns a picture of the current frame, and the webhook receives an alert for a detection.
    let picture = support::get(&api, "/queries/gate/frame");
    assert!(picture.is_none_or(|text| !text.contains("no picture")));
    let alert = next_alert(&hook);
    assert_eq!((&alert["query"], &alert["finding"]["line"]), (&"gate".into(), &"low".into()), "{alert}");
    assert!(["in", "out"].contains(&alert["finding"]["direction"].as_str().unwrap()));
    drop(camera);
    process.until("the source is lost", || query()["source"]["state"] == "lost");
    let _again = Camera::start(&street, port);
    process.until("the source is connected again", || query()["source"]["connections"].as_u64() == Some(2));
    let status = query();
    let texts: Vec<String> = status["notices"].as_array().unwrap().iter().map(|n| n["text"].to_string()).collect();
    assert!(texts.iter().any(|text| text.contains("connected again")), "{texts:?}");
    let told = format!("{status}{}", process.told());
    assert!(!told.contains("hunter2"), "credentials are told: {told}");
    let found = std::fs::read_to_string(path("found/gate.jsonl")).unwrap();
    assert!(found.lines().all(|line| line.contains("\"line\":\"low\"")), "{found}");
    process.kill();
}

#[test]
fn an_uplink_is_read_lost_and_found_again() {
    let cluster = Cluster::start("uplinks", 1, "cpus:1;mem:1024;disk:1024");
    let path = |name: &str| cluster.directory.join(name);
    let street = path("street.mp4");
    succeeds(video(&["generate", &street, "--seed=4", "--vehicles=90", "--width=320", "--height=180", "--seconds=8"]));
    succeeds(video(&["profile", &street, "--seconds=4", "--output", &path("p.json")]));
    std::fs::write(path("readers"), "me:hunter2\n").unwrap();
    let (listen, credential) = (format!("127.0.0.1:{}", free_port()), path("readers"));
    let uplink = || {
        let arguments = ["uplink", &street, "--repeat", "--listen", &listen, "--credential-file", &credential];
        let mut uplink = Process::start(&mut video(&arguments));
        uplink.line(Stream::Stdout, &["uplink://"]);
        uplink
    };
    let mut first = uplink();
    let source = format!("uplink://me:hunter2@{listen}/?most=2");
    std::fs::write(path("queries.toml"), QUERY.replace("max_lag", &format!("video = \"{source}\"\nmax_lag"))).unwrap();
    let mut process = Process::start(&mut video(&["--master", &cluster.master, "--queries", &path("queries.toml")]));
    let line = process.line(Stream::Stderr, &["http://"]);
    let api = line.trim().rsplit("http://").next().unwrap().to_owned();
    let query = || support::call(&api, "GET", "/queries/gate").unwrap_or_default();
    process.until("cars are counted", || query()["found"].as_u64() > Some(2));
    let status = query();
    assert_eq!(status["source"]["state"], "live", "{status}");
    let refused = support::request(&listen, "GET", "/status", "").unwrap();
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    first.kill();
    process.until("the source is lost", || query()["source"]["state"] == "lost");
    let mut second = uplink();
    process.until("the source is connected again", || query()["source"]["connections"].as_u64() == Some(2));
    // Pictures of all rungs arrive in the size of the source.
    let told = format!("{}{}", query(), process.told());
    assert!(!told.contains("hunter2"), "credentials are told: {told}");
    assert!(!told.contains("pictures changed"), "{told}");
    process.kill();
    second.kill();
}

/// Returns the body of the next POST.
fn next_alert(hook: &TcpListener) -> Value {
    let (stream, _) = hook.accept().unwrap();
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn one_query_over_a_camera_without_a_cluster_and_a_frame_to_choose_lines() {
    if !has_ffmpeg() {
        println!("not run: no ffmpeg");
        return;
    }
    let directory = support::Directory::new("cameras-local");
    let street = directory.join("street.mp4");
    succeeds(video(&["generate", &street, "--seed=4", "--vehicles=90", "--width=320", "--height=180", "--seconds=8"]));
    directory.write("queries.toml", &QUERY.replace("max_lag", "video = \"street.mp4\"\nmax_lag"));
    let (picture, queries) = (directory.join("frame.png"), directory.join("queries.toml"));
    succeeds(video(&["frame", &street, "-o", &picture, "--queries", &queries, "--at=2"]));
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let port = free_port();
    let source = format!("http://user:hunter2@127.0.0.1:{port}/camera");
    // Nothing listens yet: the attempt is refused, without credentials.
    let output = video(&["run", &source, "--reconnect=0"]).run();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("refused") && !said.contains("hunter2"), "{said}");
    let _camera = Camera::start(&street, port);
    let output = video(&["run", &source, "--seconds=20", "--reconnect=30", "--queries", &queries, "--json"]).run();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("pictures received") && !said.contains("hunter2"), "{said}");
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    let first: Value = serde_json::from_str(found.lines().next().expect("something is found")).unwrap();
    assert_eq!(first["line"], "low");
    for refused in ["concat:a.mp4", "file:/etc/passwd", "rtmp://host/a"] {
        let output = video(&["run", refused]).run();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("is not accepted"), "{said}");
    }
}

/// Script in place of `ffmpeg`: records its arguments, and either returns pictures or fails, as the file `mode` states.
const DEVICE: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$@" > "$here/arguments"
error=$(cat "$here/mode")
if [ -n "$error" ]; then
    echo "[video4linux2,v4l2 @ 0x55] [error] $error" >&2
    exit 1
fi
echo "[info] Input #0, video4linux2,v4l2, from '/dev/video7':" >&2
for n in 10 11 12 13 14 15 16 17 18 19; do
    echo "[Parsed_showinfo_0 @ 0x55] [info] n:$n pts:$n pts_time:0.$n pos:0 fmt:yuv420p s:32x24 i:P iskey:1 type:I" >&2
    head -c 1152 /dev/zero
done
"#;

/// Machines for tests have no camera, so this tests only the arguments of `ffmpeg`, and the handling of its output.
#[test]
fn a_device_is_read_as_it_is_and_its_errors_name_it() {
    let directory = support::Directory::new("cameras-device");
    let program = directory.write("ffmpeg", DEVICE);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let device = |arguments: &[&str]| {
        let mut command = video(arguments);
        command.env("PATH", &path);
        command
    };
    let picture = directory.join("frame.png");
    directory.write("mode", "");
    succeeds(device(&["frame", "/dev/video7", "-o", &picture]));
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let arguments = std::fs::read_to_string(directory.join("arguments")).unwrap();
    // The device's own format, size and rate.
    assert!(arguments.contains(" -f v4l2 -i /dev/video7 -map 0:v:0 "), "{arguments}");
    assert!(["-video_size", "-framerate", "-input_format"].iter().all(|word| !arguments.contains(word)), "{arguments}");
    for (error, rule) in [
        ("Cannot open video device /dev/video7: No such file or directory", "there is no such device on this machine"),
        ("Cannot open video device /dev/video7: Permission denied", "user needs to read and write it"),
        ("ioctl(VIDIOC_STREAMON): Device or resource busy", "another program uses it"),
    ] {
        directory.write("mode", error);
        let output = device(&["run", "/dev/video7", "--reconnect=0"]).run();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("/dev/video7: ") && said.contains(rule), "{said}");
    }
}
