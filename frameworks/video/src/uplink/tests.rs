//! Tests of uplinks: a file is sent over a connection and read as a camera.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::clock;
use crate::frame::{Colour, Frame};
use crate::media::Y4mWriter;
use crate::media::camera::{Feed, FeedOptions, Next, Picture};
use crate::media::tests::Directory;

/// Writes a video of 320x180 pixels with 25 frames a second, of which each is brighter than the one before.
fn video(path: &Path, seconds: usize) {
    let mut writer = Y4mWriter::create(path, 320, 180, 25.0).unwrap();
    for n in 0..seconds * 25 {
        writer.push(&Frame::filled(320, 180, Colour::grey(16 + n as u8))).unwrap();
    }
    writer.finish().unwrap();
}

fn options(source: &Path, repeat: bool, credential: Option<(&str, &str)>) -> UplinkOptions {
    UplinkOptions {
        source: Source::File(source.to_owned()),
        repeat,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        credential: credential.map(|(user, password)| (user.to_owned(), password.to_owned())),
    }
}

fn feed(address: &str) -> Feed {
    let source: Source = address.parse().unwrap();
    let options = FeedOptions { answer: 20.0, stall: 20.0, reconnect: 0.0, ..FeedOptions::default() };
    Feed::open(source.camera().unwrap(), options)
}

/// Returns the next pictures, up to `count` or the end.
fn pictures(feed: &Feed, count: usize) -> Vec<Picture> {
    let (mut all, until) = (Vec::new(), clock::monotonic() + 60.0);
    while all.len() < count && clock::monotonic() < until {
        match feed.next(Duration::from_millis(100)) {
            Next::Picture(picture) => all.push(*picture),
            Next::Nothing => {}
            Next::Ended => break,
        }
    }
    all
}

#[tokio::test]
async fn a_file_is_read_as_a_camera_in_the_size_of_the_source() {
    let directory = Directory::new("uplink-read");
    let path = directory.file("ramp.y4m");
    video(&path, 4);
    let uplink = Uplink::start(options(&path, true, None)).await.unwrap();
    // The smallest pictures have half the sides of the source, and two come in a second.
    let feed = feed(&format!("uplink://{}/?policy=0", uplink.address()));
    let (feed, all) = tokio::task::spawn_blocking(move || {
        let all = pictures(&feed, 5);
        (feed, all)
    })
    .await
    .unwrap();
    assert_eq!(all.len(), 5, "{:?}", feed.status());
    for pair in all.windows(2) {
        assert_eq!((pair[1].frame.width(), pair[1].frame.height()), (320, 180));
        // A frame's brightness is its time, so that capture times can be compared with what was sent.
        let shown = f64::from(pair[1].frame.y[0]) - f64::from(pair[0].frame.y[0]);
        let passed = (pair[1].captured - pair[0].captured) * 25.0;
        assert!((shown.rem_euclid(100.0) - passed.rem_euclid(100.0)).abs() < 3.0, "{shown} {passed}");
    }
    assert!(feed.used() > 0.0);
}

#[tokio::test]
async fn a_reader_needs_the_credential() {
    let directory = Directory::new("uplink-credential");
    let path = directory.file("ramp.y4m");
    video(&path, 2);
    let uplink = Uplink::start(options(&path, true, Some(("me", "pass word")))).await.unwrap();
    let address = uplink.address();
    tokio::task::spawn_blocking(move || {
        for text in [format!("uplink://{address}"), format!("uplink://me:wrong@{address}")] {
            let feed = feed(&text);
            assert!(pictures(&feed, 1).is_empty());
            let status = feed.status();
            assert!(status.message.contains("401") && !status.message.contains("wrong"), "{}", status.message);
        }
        assert_eq!(pictures(&feed(&format!("uplink://me:pass%20word@{address}")), 1).len(), 1);
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_uplink_ends_with_its_file() {
    let directory = Directory::new("uplink-end");
    let path = directory.file("ramp.y4m");
    video(&path, 1);
    let mut uplink = Uplink::start(options(&path, false, None)).await.unwrap();
    let feed = feed(&format!("uplink://{}", uplink.address()));
    tokio::time::timeout(Duration::from_secs(60), uplink.wait()).await.unwrap().unwrap();
    tokio::task::spawn_blocking(move || {
        while !matches!(feed.next(Duration::from_millis(100)), Next::Ended) {}
        assert!(!feed.failed(), "{:?}", feed.status());
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_is_told() {
    let missing = Uplink::start(options(Path::new("/nowhere/a.mp4"), false, None)).await.unwrap_err();
    assert!(matches!(missing, UplinkError::Source(_)), "{missing}");
    let directory = Directory::new("uplink-answers");
    let path = directory.file("ramp.y4m");
    video(&path, 2);
    let uplink = Uplink::start(options(&path, true, None)).await.unwrap();
    let taken = UplinkOptions { listen: uplink.address(), ..options(&path, true, None) };
    assert!(matches!(Uplink::start(taken).await.unwrap_err(), UplinkError::Listen(..)));
    let mut client = wire::client::Client::new(&uplink.address().to_string()).unwrap();
    let status = client.get("/status").await.unwrap().text();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["readers"], serde_json::json!([0, 0, 0, 0, 0, 0]));
    for (path, code, says) in [
        ("/?policy=6", 400, "policy must be"),
        ("/?most=6", 400, "most must be"),
        ("/?most=", 400, "most must be"),
        ("/other", 404, "there are GET /"),
    ] {
        let reply = client.get(path).await.unwrap();
        assert_eq!(reply.status.as_u16(), code);
        assert!(reply.text().contains(says), "{}", reply.text());
    }
}
