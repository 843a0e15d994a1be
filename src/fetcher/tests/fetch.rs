//! Tests whole fetches on real directories: copies, archives, the cache, and errors.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use fetcher::{Trust, fetch_all};
use protos::mesos::command_info::Uri;
use protos::mesos::fetcher::FetcherInfo;
use protos::mesos::fetcher::fetcher_info::Item;
use protos::mesos::fetcher::fetcher_info::item::Action;

/// A directory with a sandbox, a cache and sources in it, deleted after the test.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tepui-fetch-{}-{number}", std::process::id()));
        for directory in ["sandbox", "cache", "source"] {
            fs::create_dir_all(path.join(directory)).unwrap();
        }
        Place(path)
    }

    fn source(&self, name: &str, bytes: &[u8]) -> Uri {
        let path = self.0.join("source").join(name);
        fs::write(&path, bytes).unwrap();
        Uri { value: path.to_string_lossy().into_owned(), ..Uri::default() }
    }

    fn fetch(&self, uri: Uri, action: Action) -> Result<(), String> {
        let path = |name: &str| self.0.join(name).to_string_lossy().into_owned();
        let item = Item { uri, action: action as i32, cache_filename: Some("entry".to_owned()) };
        let info = FetcherInfo {
            sandbox_directory: path("sandbox"),
            cache_directory: Some(path("cache")),
            items: vec![item],
            ..FetcherInfo::default()
        };
        fetch_all(&info, &Trust::default()).map_err(|error| base::error_chain(&error))
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join("sandbox").join(name)).ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tarball(path: &str, text: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    // A hostile archive may have such names; the library's own setter rejects them.
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_cksum();
    builder.append(&header, text.as_bytes()).unwrap();
    builder.into_inner().unwrap()
}

#[test]
fn files_are_copied_with_their_mode() {
    let place = Place::new();
    let uri = place.source("plain", b"text");
    place.fetch(uri.clone(), Action::BypassCache).unwrap();
    assert_eq!(place.text("plain").as_deref(), Some("text"));
    let tool = Uri { executable: Some(true), output_file: Some("bin/tool".to_owned()), ..uri };
    place.fetch(tool, Action::BypassCache).unwrap();
    let mode = fs::metadata(place.0.join("sandbox/bin/tool")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn archives_are_unpacked_and_stay() {
    let place = Place::new();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&tarball("inside", "packed")).unwrap();
    let uri = place.source("a.tar.gz", &gz.finish().unwrap());
    let whole = Uri { extract: Some(false), ..uri.clone() };
    place.fetch(whole, Action::BypassCache).unwrap();
    assert_eq!(place.text("inside"), None);
    place.fetch(uri, Action::BypassCache).unwrap();
    assert_eq!(place.text("inside").as_deref(), Some("packed"));
    assert!(place.0.join("sandbox/a.tar.gz").exists());
}

#[test]
fn nothing_is_unpacked_outside() {
    let place = Place::new();
    let uri = place.source("evil.tar", &tarball("../escaped", "x"));
    // The entry may be skipped or be an error; it must not be written.
    let _ = place.fetch(uri, Action::BypassCache);
    assert!(!place.0.join("escaped").exists());
}

#[test]
fn the_cache_is_filled_once_and_leaves_no_archive() {
    let place = Place::new();
    let uri = place.source("b.tar", &tarball("inside", "cached"));
    place.fetch(uri.clone(), Action::DownloadAndCache).unwrap();
    fs::remove_file(place.0.join("source/b.tar")).unwrap();
    fs::remove_file(place.0.join("sandbox/inside")).unwrap();
    place.fetch(uri, Action::RetrieveFromCache).unwrap();
    assert_eq!(place.text("inside").as_deref(), Some("cached"));
    assert!(!place.0.join("sandbox/b.tar").exists());
}

/// Starts a server for FTP with one file, `/there`, and returns its port.
fn ftp_server(content: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let data = TcpListener::bind("127.0.0.1:0").unwrap();
            let (mut answer, mut lines) = (stream.try_clone().unwrap(), BufReader::new(stream).lines());
            let mut say = |text: String| answer.write_all((text + "\r\n").as_bytes()).is_ok();
            say("220 hello".into());
            while let Some(Ok(line)) = lines.next() {
                let said = match line.split_once(' ').unwrap_or((&line, "")) {
                    ("EPSV", _) => format!("229 here (|||{}|)", data.local_addr().unwrap().port()),
                    ("USER", _) => "230 come in".into(),
                    ("PWD", _) => "257 \"/\"".into(),
                    ("RETR", "there") => {
                        say("150 it comes".into());
                        data.accept().unwrap().0.write_all(content.as_bytes()).unwrap();
                        "226 done".into()
                    }
                    ("RETR", _) => "550 there is no such file".into(),
                    ("SIZE", "there") => format!("213 {}", content.len()),
                    ("SIZE", _) => "550 there is no such file".into(),
                    ("QUIT", _) => "221 bye".into(),
                    _ => "200 fine".into(),
                };
                if !say(said) {
                    break;
                }
            }
        }
    });
    port
}

#[test]
fn files_come_over_ftp() {
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        return println!("NOT RUN: it needs curl");
    }
    let (place, port) = (Place::new(), ftp_server("over the wire"));
    let uri = |name: &str| Uri { value: format!("ftp://127.0.0.1:{port}/{name}"), ..Uri::default() };
    place.fetch(uri("there"), Action::BypassCache).unwrap();
    assert_eq!(place.text("there").as_deref(), Some("over the wire"));
    let error = place.fetch(uri("gone"), Action::BypassCache).unwrap_err();
    assert!(error.contains("/gone': curl: (78)"), "{error}");
    assert_eq!(place.text("gone"), None);
}

fn zipped(entries: &[(&str, &str, bool)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text, link) in entries {
        let options = zip::write::SimpleFileOptions::default();
        match link {
            true => writer.add_symlink(*name, *text, options).unwrap(),
            false => {
                writer.start_file(*name, options).unwrap();
                writer.write_all(text.as_bytes()).unwrap();
            }
        }
    }
    writer.finish().unwrap().into_inner()
}

fn tarball_with_link(link: &str, target: &str, file: &str, text: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    header.set_mode(0o777);
    builder.append_link(&mut header, link, target).unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, file, text.as_bytes()).unwrap();
    builder.into_inner().unwrap()
}

#[test]
fn no_kind_of_archive_leads_out() {
    let place = Place::new();
    let outside = place.0.join("outside");
    fs::create_dir(&outside).unwrap();
    let out = outside.to_str().unwrap();
    let absolute = format!("{out}/absolute");
    for (name, bytes) in [
        ("up.zip", zipped(&[("../outside/up", "x", false)])),
        ("absolute.zip", zipped(&[(&absolute, "x", false)])),
        ("link.zip", zipped(&[("way", out, true), ("way/linked", "x", false)])),
        ("up.tar", tarball("../outside/up", "x")),
        ("absolute.tar", tarball(&absolute, "x")),
        ("link.tar", tarball_with_link("way2", out, "way2/linked", "x")),
        ("far.tar", tarball_with_link("way3", "..", "way3/outside/linked", "x")),
    ] {
        let uri = place.source(name, &bytes);
        // The entry may be skipped or be an error; it must not be written.
        let _ = place.fetch(uri, Action::BypassCache);
        let written: Vec<_> = fs::read_dir(&outside).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert!(written.is_empty(), "{name}: {written:?}");
    }
}

#[test]
fn what_cannot_be_fetched_is_named() {
    let place = Place::new();
    let missing = Uri { value: "/no/such/file".to_owned(), ..Uri::default() };
    let error = place.fetch(missing, Action::BypassCache).unwrap_err();
    assert!(error.starts_with("Failed to fetch '/no/such/file': "), "{error}");
    let broken = place.source("broken.zip", b"no zip");
    assert!(place.fetch(broken, Action::BypassCache).unwrap_err().contains("cannot unpack"));
    let outside = Uri { output_file: Some("../x".to_owned()), ..place.source("y", b"") };
    assert!(place.fetch(outside, Action::BypassCache).unwrap_err().contains("not a path inside the sandbox"));
}

#[test]
fn sizes_are_printed_before_anything_is_fetched() {
    let place = Place::new();
    let served =
        serve_heads(&["HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n", "HTTP/1.1 405 No\r\n", "HTTP/1.1 200 OK\r\n"]);
    let web = |name: &str| Uri { value: format!("http://{served}/{name}"), ..Uri::default() };
    let none = Uri { value: "/no/such/file".into(), ..Uri::default() };
    let uris = [place.source("plain", b"text"), none, web("a"), web("b"), web("c")];
    let items = uris.map(|uri| Item { uri, action: Action::BypassCache as i32, cache_filename: None });
    let info = FetcherInfo { items: items.into(), ..FetcherInfo::default() };
    assert_eq!(fetcher::sizes(&info, &Trust::default()), [Some(4), None, Some(70_000), None, None]);
    assert!(fs::read_dir(place.0.join("sandbox")).unwrap().next().is_none());
}

/// Answers HEAD requests, one after the other.
fn serve_heads(answers: &'static [&'static str]) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut socket, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
            assert!(lines.next().unwrap().unwrap().starts_with("HEAD "));
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            socket.write_all(format!("{answer}Connection: close\r\n\r\n").as_bytes()).unwrap();
        }
    });
    address
}
