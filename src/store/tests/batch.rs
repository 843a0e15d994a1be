//! Tests a batch's changes in a real directory: the content after commit, and the remains of a dropped batch.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use store::{Batch, frame, read_frames, read_meta, replace_file, replace_link};

/// A directory for one test, which is deleted when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tepui-store-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn all_changes_are_there_after_commit() {
    let directory = Directory::new();
    let mut batch = Batch::new(&directory.0);
    batch.replace("a/b/file", b"one").unwrap();
    batch.replace("a/b/file", b"two").unwrap();
    batch.append("a/log", b"1").unwrap();
    batch.append("a/log", b"2").unwrap();
    batch.directory("a/runs/x").unwrap();
    batch.link("a/runs/latest", "/elsewhere/x").unwrap();
    batch.link("a/runs/latest", "/elsewhere/y").unwrap();
    batch.commit().unwrap();
    assert_eq!(directory.text("a/b/file").unwrap(), "two");
    assert_eq!(directory.text("a/log").unwrap(), "12");
    assert!(directory.0.join("a/runs/x").is_dir());
    assert_eq!(fs::read_link(directory.0.join("a/runs/latest")).unwrap(), PathBuf::from("/elsewhere/y"));
    let names: Vec<_> = fs::read_dir(directory.0.join("a/b")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["file"], "no temporary file is left");
}

#[test]
fn an_append_after_a_replace_in_one_batch_lands_in_the_new_file() {
    let directory = Directory::new();
    fs::write(directory.0.join("updates"), b"torn").unwrap();
    let mut batch = Batch::new(&directory.0);
    batch.append("updates", b"lost").unwrap();
    batch.replace("updates", b"whole").unwrap();
    batch.append("updates", b"+more").unwrap();
    batch.commit().unwrap();
    assert_eq!(directory.text("updates").unwrap(), "whole+more");
}

#[test]
fn a_batch_that_is_not_committed_replaces_nothing() {
    let directory = Directory::new();
    replace_file(&directory.0.join("file"), b"old").unwrap();
    replace_link(&directory.0.join("link"), &directory.0.join("file")).unwrap();
    let mut batch = Batch::new(&directory.0);
    batch.replace("file", b"new").unwrap();
    batch.link("link", "/nowhere").unwrap();
    drop(batch);
    assert_eq!(directory.text("file").unwrap(), "old");
    assert_eq!(directory.text("link").unwrap(), "old");
}

#[test]
fn removal_comes_after_earlier_requests() {
    let directory = Directory::new();
    let mut batch = Batch::new(&directory.0);
    batch.replace("a/b/one", b"1").unwrap();
    batch.remove("a/b").unwrap();
    batch.remove("a/never").unwrap();
    batch.replace("a/b/two", b"2").unwrap();
    batch.commit().unwrap();
    assert_eq!((directory.text("a/b/one"), directory.text("a/b/two")), (None, Some("2".into())));
}

#[test]
fn many_files_in_one_batch() {
    let directory = Directory::new();
    let mut batch = Batch::new(&directory.0);
    for number in 0..200 {
        batch.replace(&format!("directory-{number}/file"), number.to_string().as_bytes()).unwrap();
        batch.append(&format!("directory-{number}/log"), b"x").unwrap();
    }
    batch.commit().unwrap();
    for number in 0..200 {
        assert_eq!(directory.text(&format!("directory-{number}/file")).unwrap(), number.to_string());
        assert_eq!(directory.text(&format!("directory-{number}/log")).unwrap(), "x");
    }
}

#[test]
fn a_disk_error_is_reported_with_the_path() {
    let directory = Directory::new();
    fs::write(directory.0.join("file"), b"").unwrap();
    let mut batch = Batch::new(&directory.0);
    let error = batch.replace("file/below", b"x").unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

/// A crash can tear an append at any byte: the complete records before it are read, and the next run cuts off the rest.
#[test]
fn torn_appends_lose_only_the_record_that_was_written() {
    let directory = Directory::new();
    let record = |value: &str| frame(&protos::mesos::TaskId { value: value.into() });
    let whole = [record("one"), record("two")].concat();
    let next = record("three");
    for torn in 0..next.len() {
        let mut batch = Batch::new(&directory.0);
        batch.replace("log", &whole).unwrap();
        batch.append("log", &next[..torn]).unwrap();
        batch.commit().unwrap();
        let bytes = fs::read(directory.0.join("log")).unwrap();
        let (messages, length) = read_frames::<protos::mesos::TaskId>(&bytes).unwrap();
        assert_eq!((messages.len(), length), (2, whole.len()));
    }
}

#[test]
fn a_meta_directory_is_read_without_its_history() {
    let directory = Directory::new();
    let mut batch = Batch::new(&directory.0);
    batch.replace("boot_id", b"boot").unwrap();
    batch.replace("slaves/old/slave.info", b"old").unwrap();
    batch.replace("slaves/new/slave.info", b"new").unwrap();
    batch.link("slaves/latest", "/somewhere/slaves/new").unwrap();
    let executors = "slaves/new/frameworks/f/executors";
    for (executor, run) in [("alive", "r2"), ("ended", "r3")] {
        batch.replace(&format!("{executors}/{executor}/executor.info"), b"info").unwrap();
        batch.replace(&format!("{executors}/{executor}/runs/{run}/tasks/t/task.info"), b"task").unwrap();
        batch.link(&format!("{executors}/{executor}/runs/latest"), &format!("/w/runs/{run}")).unwrap();
    }
    batch.replace(&format!("{executors}/alive/runs/r1/tasks/t/task.info"), b"older").unwrap();
    batch.replace(&format!("{executors}/ended/runs/r3/executor.sentinel"), b"").unwrap();
    // These executors ended after that one, and are so many that it is not read completely.
    let newer: Vec<String> = (0..150).map(|number| format!("{executors}/newer{number}")).collect();
    for executor in &newer {
        batch.replace(&format!("{executor}/executor.info"), b"info").unwrap();
        batch.replace(&format!("{executor}/runs/r/executor.sentinel"), b"").unwrap();
        batch.link(&format!("{executor}/runs/latest"), "/w/runs/r").unwrap();
    }
    batch.commit().unwrap();
    let old = UNIX_EPOCH + Duration::from_secs(1);
    let sentinel = directory.0.join(format!("{executors}/ended/runs/r3/executor.sentinel"));
    fs::File::options().write(true).open(sentinel).unwrap().set_modified(old).unwrap();

    let tree = read_meta(&directory.0).unwrap();
    assert!(newer.iter().all(|executor| tree.files.contains_key(&format!("{executor}/executor.info"))));
    let files: Vec<_> = tree.files.keys().map(String::as_str).filter(|path| !path.contains("/newer")).collect();
    assert_eq!(
        files,
        [
            "boot_id",
            "slaves/new/frameworks/f/executors/alive/executor.info",
            "slaves/new/frameworks/f/executors/alive/runs/r2/tasks/t/task.info",
            "slaves/new/frameworks/f/executors/ended/runs/r3/executor.sentinel",
            "slaves/new/slave.info",
        ]
    );
    assert!(tree.directories.contains("slaves/old"));
    assert!(tree.directories.contains("slaves/new/frameworks/f/executors/alive/runs/r1"));
    assert_eq!(tree.links["slaves/latest"], "/somewhere/slaves/new");
    assert_eq!(read_meta(&directory.0.join("nothing")).unwrap(), cores::Tree::default());
}
