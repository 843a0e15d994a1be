//! What an agent writes for itself is read by no task: other tasks' variables are in there.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::one_agent::OneAgent;
use crate::support::until;

/// Everything below a directory, and itself, but links.
fn below(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all.extend(below(&entry.path())),
            Ok(kind) if !kind.is_symlink() => all.push(entry.path()),
            _ => {}
        }
    }
    all
}

fn is_open(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o077 != 0)
}

#[test]
fn a_task_cannot_read_what_others_are_told() {
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: it needs root, to run tasks of two users");
    }
    let mut cluster = OneAgent::start("secrecy", &["--launcher=posix".to_owned()]);
    let private = [cluster.directory.path().join("a/meta"), cluster.directory.path().join("r")];
    let variables = json!({"variables": [{"name": "PASSWORD", "value": "xyzzy"}]});
    let command = json!({"value": "echo up; sleep 1000", "user": "daemon", "environment": variables});
    let _told = cluster.start_task("told", command, json!({"type": "MESOS"}));
    let kept = || private.iter().flat_map(|path| below(path)).collect::<Vec<_>>();
    let holds = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.windows(5).any(|part| part == b"xyzzy"));
    assert!(kept().iter().any(holds), "nothing to protect: {:?}", kept());

    let look = format!(
        "touch mine && cat mine; grep -rl xyzzy {} {}; find {} {}; echo looked",
        private[0].display(),
        private[1].display(),
        private[0].display(),
        private[1].display()
    );
    let seen = |cluster: &OneAgent, id: &str| {
        let (told, written) = cluster.run(id, json!({"value": look, "user": "nobody"}), json!({"type": "MESOS"}));
        assert!(told.contains("TASK_FINISHED"), "{told}");
        written
    };
    // It may see that the directories are there.
    let shown = format!("{}\n{}\nlooked\n", private[0].display(), private[1].display());
    assert_eq!(seen(&cluster, "first"), shown);
    let open: Vec<PathBuf> = kept().into_iter().filter(|path| is_open(path)).collect();
    assert!(open.is_empty(), "open to others: {open:?}");

    // As an older version, or Mesos, has left it.
    cluster.replace_agent(|| {
        for path in kept() {
            let mode = if path.is_dir() { 0o755 } else { 0o644 };
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    });
    // A directory that was there before may be shared; what is in it is not.
    fs::set_permissions(&private[1], Permissions::from_mode(0o700)).unwrap();
    assert_eq!(seen(&cluster, "second"), shown);
    until("the old files are closed, too", || !kept().iter().any(|path| is_open(path)));
}
