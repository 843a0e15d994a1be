//! Tests that only its owner can read stored data, whatever the umask.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use store::{Access, Batch, FileRegistry, create_private, make_private, replace_file, write_file};

/// Returns the paths below a directory that other users have access to, except links.
fn open_to_others(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if !metadata.is_symlink() && metadata.mode() & 0o077 != 0 {
            found.push(path.display().to_string());
        }
        if metadata.is_dir() {
            found.extend(open_to_others(&path));
        }
    }
    found
}

/// A directory for one test, which is deleted when dropped.
struct Place(std::path::PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("tepui-modes-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_is_stored_is_for_its_owner_alone() {
    let place = Place::new("new");
    let mut batch = Batch::new(&place.0);
    batch.replace("meta/a/file", b"x").unwrap();
    batch.append("meta/b/log", b"x").unwrap();
    batch.directory("meta/c/d").unwrap();
    batch.link("meta/e/latest", "../a").unwrap();
    batch.commit().unwrap();
    replace_file(&place.0.join("meta/f/file"), b"x").unwrap();
    fs::create_dir(place.0.join("m")).unwrap();
    fs::set_permissions(place.0.join("m"), Permissions::from_mode(0o700)).unwrap();
    FileRegistry::open(&place.0.join("m/registry.redb"), None).unwrap();
    assert_eq!(open_to_others(&place.0), [""; 0]);
}

#[test]
fn what_an_older_version_left_is_closed() {
    let place = Place::new("old");
    let (meta, outside) = (place.0.join("meta"), place.0.join("outside"));
    fs::create_dir_all(meta.join("a/b")).unwrap();
    let modes = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for (file, mode) in [("a/file", 0o644), ("a/b/program", 0o755), ("a/b/own", 0o400)] {
        fs::write(meta.join(file), "x").unwrap();
        modes(&meta.join(file), mode);
    }
    fs::write(&outside, "x").unwrap();
    modes(&outside, 0o644);
    symlink(&outside, meta.join("link")).unwrap();
    modes(&meta, 0o755);
    make_private(&meta).unwrap();
    assert_eq!(open_to_others(&meta), [""; 0]);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o7777;
    assert_eq!((mode(&meta), mode(&meta.join("a/b/program")), mode(&meta.join("a/b/own"))), (0o700, 0o700, 0o400));
    assert_eq!(mode(&outside), 0o644, "links are not followed");

    let registry = place.0.join("registry.redb");
    drop(FileRegistry::open(&registry, None).unwrap());
    modes(&registry, 0o644);
    FileRegistry::open(&registry, None).unwrap();
    assert_eq!(mode(&registry), 0o600);
}

#[test]
fn access_is_named() {
    let place = Place::new("access");
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
    for (access, of_file) in [(Access::Owner, 0o600), (Access::Group, 0o640), (Access::All, 0o644)] {
        let file = place.0.join(format!("{access:?}"));
        write_file(&file, b"x", access).unwrap();
        // The umask of a test may remove more access.
        assert_eq!(mode(&file) & !of_file, 0);
    }
    fs::create_dir(place.0.join("there")).unwrap();
    fs::set_permissions(place.0.join("there"), Permissions::from_mode(0o755)).unwrap();
    create_private(&place.0.join("there")).unwrap();
    create_private(&place.0.join("above/new")).unwrap();
    assert_eq!((mode(&place.0.join("there")), mode(&place.0.join("above/new"))), (0o700, 0o700));
}
