//! Whole fetches on real folders: copies, archives, the cache, and what is refused.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use fetcher::fetch_all;
use protos::mesos::command_info::Uri;
use protos::mesos::fetcher::FetcherInfo;
use protos::mesos::fetcher::fetcher_info::Item;
use protos::mesos::fetcher::fetcher_info::item::Action;

/// A folder with a sandbox, a cache and sources in it, gone when the test is over.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tepui-fetch-{}-{number}", std::process::id()));
        for folder in ["sandbox", "cache", "source"] {
            fs::create_dir_all(path.join(folder)).unwrap();
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
        fetch_all(&info).map_err(|error| error.to_string())
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
    // As a hostile archive has it: the library's own setter refuses such names.
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
    // Left out or refused: it must not be written.
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
