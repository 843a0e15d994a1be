//! Tests of feeds over RTSP. The server here implements the part of the protocol (RFC 2326) that a client needs to play
//! one stream, for clients that log in. A real `ffmpeg` makes the stream: MPEG-TS in RTP (RFC 2250), interleaved in the
//! connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use super::tests::{camera, installed, pictures, soon};
use super::*;

/// Size of an MPEG-TS packet in bytes; the number of them in an RTP packet follows.
const PACKET: usize = 188;
const TOGETHER: usize = 7;
const SDP: &str = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=test\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n\
                   m=video 0 RTP/AVP 33\r\na=control:track1\r\n";

/// Serves one client until it disconnects. Returns whether it logged in.
fn serve(stream: TcpStream) -> bool {
    let mut stream = BufReader::new(stream);
    let mut known = false;
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while stream.read_line(&mut line).is_ok_and(|read| read > 0) && line != "\r\n" {
            head.push_str(&line);
            line.clear();
        }
        if head.is_empty() {
            return known;
        }
        let number = head.lines().find_map(|l| l.strip_prefix("CSeq: ")).unwrap_or("0").to_owned();
        // user:hunter2
        known |= head.contains("Authorization: Basic dXNlcjpodW50ZXIy");
        let method = head.split(' ').next().unwrap_or_default();
        let (status, more, body) = match method {
            "OPTIONS" => ("200 OK", "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n".to_owned(), ""),
            _ if !known => ("401 Unauthorized", "WWW-Authenticate: Basic realm=\"camera\"\r\n".to_owned(), ""),
            "DESCRIBE" => {
                let length = SDP.len();
                ("200 OK", format!("Content-Type: application/sdp\r\nContent-Length: {length}\r\n"), SDP)
            }
            "SETUP" => {
                let transport = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n";
                ("200 OK", transport.to_owned(), "")
            }
            _ => ("200 OK", "Session: 1\r\n".to_owned(), ""),
        };
        let answer = format!("RTSP/1.0 {status}\r\nCSeq: {number}\r\n{more}\r\n{body}");
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
        if method == "PLAY" {
            play(stream.get_mut());
            return known;
        }
    }
}

/// Sends three seconds of a test picture in real time.
fn play(stream: &mut TcpStream) {
    let mut made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=10", "-t", "3"])
        .args(["-c:v", "mpeg2video", "-g", "5", "-f", "mpegts", "pipe:1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = made.stdout.take().unwrap();
    let mut payload = [0; PACKET * TOGETHER];
    for number in 0_u16.. {
        if pipe.read_exact(&mut payload).is_err() {
            break;
        }
        let stamp = u32::from(number) * 900;
        let mut packet = vec![b'$', 0];
        packet.extend((payload.len() as u16 + 12).to_be_bytes());
        packet.extend([0x80, 33]);
        packet.extend(number.to_be_bytes());
        packet.extend(stamp.to_be_bytes());
        packet.extend([0, 0, 0, 7]);
        packet.extend(payload);
        if stream.write_all(&packet).is_err() {
            break;
        }
    }
    let _ = made.kill();
    let _ = made.wait();
}

#[test]
fn a_camera_over_rtsp_that_asks_for_a_password() {
    if !installed() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    let feed = Feed::open(&camera(&format!("rtsp://user:hunter2@127.0.0.1:{port}/stream")), soon(0.0));
    let got = pictures(&feed, 8);
    assert_eq!(got.len(), 8, "{:?}", feed.status());
    assert!(got.iter().all(|p| p.frame.width() == 320) && got.is_sorted_by(|a, b| a.captured < b.captured));
    drop(feed);
    assert!(server.join().unwrap(), "the client logged in");
    // A wrong password is rejected, and the message contains neither user nor password.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    let feed = Feed::open(&camera(&format!("rtsp://user:hunter3@127.0.0.1:{port}/stream")), soon(0.0));
    assert!(pictures(&feed, 1).is_empty());
    let status = feed.status();
    assert!(feed.failed() && status.message.contains("401") && !status.message.contains("hunter3"), "{status:?}");
    assert!(!server.join().unwrap());
}
