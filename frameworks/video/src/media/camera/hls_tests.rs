//! Tests of HLS feeds: a real `ffmpeg` writes a growing playlist, and a server in the test serves it over HTTP.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use super::tests::{Server, camera, installed, pictures, soon};
use super::*;
use crate::media::tests::Directory;

/// Starts an `ffmpeg` that writes a stream with segments of one second into a directory, in real time.
fn live(directory: &Directory) -> Server {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=10", "-t", "60"]);
    command.args(["-c:v", "mpeg2video", "-g", "10", "-f", "hls", "-hls_time", "1", "-hls_list_size", "5"]);
    command.args(["-hls_flags", "delete_segments"]).arg(directory.file("live.m3u8"));
    Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Serves the files of a directory over HTTP, one GET request for each connection, until the test's process ends.
/// Returns the port.
fn serve(directory: std::path::PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let directory = directory.clone();
            std::thread::spawn(move || answer(&stream, &directory));
        }
    });
    port
}

fn answer(mut stream: &TcpStream, directory: &std::path::Path) {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    let _ = reader.read_line(&mut request);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        line.clear();
    }
    let name = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let found = std::fs::read(directory.join(&name));
    let (status, body) = found.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
    let kind = if name.ends_with(".m3u8") { "application/vnd.apple.mpegurl" } else { "video/mp2t" };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

#[test]
fn a_playlist_that_grows_is_followed() {
    if !installed() {
        return;
    }
    let directory = Directory::new("hls");
    let _live = live(&directory);
    let playlist = directory.file("live.m3u8");
    let until = clock::monotonic() + 60.0;
    while !std::fs::read_to_string(&playlist).is_ok_and(|text| text.matches("#EXTINF").count() >= 2) {
        assert!(clock::monotonic() < until, "no playlist");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let port = serve(playlist.parent().unwrap().to_owned());
    let feed = Feed::open(&camera(&format!("http://127.0.0.1:{port}/live.m3u8")), soon(0.0));
    // More pictures than the first playlist had.
    let got = pictures(&feed, 70);
    assert_eq!(got.len(), 70, "{:?}", feed.status());
    assert!(got.iter().all(|p| (p.frame.width(), p.frame.height()) == (160, 120)));
    assert!(got.is_sorted_by(|a, b| a.captured < b.captured));
    // The segments of the first playlist arrive at once; the rest, four seconds and more, as it is written.
    let seconds = got[69].captured - got[0].captured;
    assert!((1.0..20.0).contains(&seconds), "70 pictures of 10 a second: {seconds}");
}

#[test]
fn a_playlist_that_names_files_of_this_machine_is_refused() {
    if !installed() {
        return;
    }
    let directory = Directory::new("hls-file");
    let secret = directory.file("secret.ts");
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=10", "-t", "1"])
        .args(["-c:v", "mpeg2video"])
        .arg(&secret)
        .status();
    assert!(made.unwrap().success());
    let text = format!(
        "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXTINF:1.0,\nfile://{}\n#EXT-X-ENDLIST\n",
        secret.display()
    );
    let playlist = directory.file("list.m3u8");
    std::fs::write(&playlist, text).unwrap();
    let port = serve(playlist.parent().unwrap().to_owned());
    let feed = Feed::open(&camera(&format!("http://127.0.0.1:{port}/list.m3u8")), soon(0.0));
    assert_eq!(pictures(&feed, 1).len(), 0, "{:?}", feed.status());
    assert!(feed.failed());
}
