//! Tests registries whose files are damaged, replaced or cut off by a crash.
//!
//! Invariants:
//! - After any damage to one of the two files, opening gives exactly what was committed last, or an error; never
//!   something older.
//! - A registry that opens after damage keeps what is committed to it from then on.
//! - A loss that is accepted leaves a registry that opens without an error, and whose older copies do not.
//! - After a crash at any instant of a commit opening succeeds, with what was committed last or with that commit; never
//!   without a commit that has returned.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::sample::Index;
use protos::mesos::internal::{Registry, registry};
use protos::mesos::{self, SlaveId};
use store::{FileRegistry, Found, Opening, RegistryStore, StoreError, Update};

/// Number of commits of the history that is damaged.
const COMMITS: usize = 9;
const PAGE: usize = 4096;

/// A directory for one case, which is deleted when dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tepui-damage-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Place(path)
    }

    fn registry(&self) -> PathBuf {
        self.0.join("registry.redb")
    }

    fn commits(&self) -> PathBuf {
        self.0.join("registry.redb.commits")
    }

    fn open(&self, accept: Option<u64>) -> Result<FileRegistry, StoreError> {
        FileRegistry::open(&self.registry(), accept)
    }

    fn files(&self) -> Files {
        Files { registry: fs::read(self.registry()).ok(), commits: fs::read(self.commits()).ok() }
    }

    /// Creates a directory with these files.
    fn with(files: &Files) -> Place {
        let place = Place::new();
        for (path, bytes) in [(place.registry(), &files.registry), (place.commits(), &files.commits)] {
            if let Some(bytes) = bytes {
                write_sparsely(&path, bytes);
            }
        }
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The two files of a registry; `None` for a missing file.
#[derive(Clone, Debug)]
struct Files {
    registry: Option<Vec<u8>>,
    commits: Option<Vec<u8>>,
}

/// Writes a file without its zeros: a new registry's file has a megabyte, most of it zeros.
fn write_sparsely(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (number, page) in bytes.chunks(PAGE).enumerate() {
        if page.iter().any(|byte| *byte != 0) {
            file.write_all_at(page, (number * PAGE) as u64).unwrap();
        }
    }
}

/// A registry's states after each of its commits.
struct History {
    /// Content of the registry.
    contents: Vec<Registry>,
    /// Files of the open registry, as a killed process leaves them.
    killed: Vec<Files>,
    /// Files after it was closed, for the last commit only.
    closed: Files,
}

fn id(number: usize) -> SlaveId {
    SlaveId { value: format!("S{number}").into() }
}

/// Returns changes as masters make them: agents are admitted, change and are removed.
fn updates(commit: usize) -> Vec<Update> {
    let agent = |number: usize| {
        let hostname = format!("host-{number}-{commit}-{}", "x".repeat(200));
        let info = mesos::SlaveInfo { hostname, id: Some(id(number)), ..Default::default() };
        Update::agent(&registry::Slave { info, drain_info: None, deactivated: None })
    };
    let mut updates: Vec<Update> = (commit..commit + 30).map(|number| agent(number * 7 % 120)).collect();
    updates.push(Update::no_agent(&id(commit)));
    updates
}

fn history() -> History {
    let place = Place::new();
    let mut file = place.open(None).unwrap();
    let (mut contents, mut killed) = (Vec::new(), Vec::new());
    for commit in 0..COMMITS {
        if commit > 0 {
            file.commit(&updates(commit)).unwrap();
        }
        contents.push(file.load().unwrap());
        killed.push(place.files());
    }
    drop(file);
    History { contents, killed, closed: place.files() }
}

thread_local! {
    static HISTORY: History = history();
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Registry,
    Commits,
}

#[derive(Clone, Debug)]
enum Damage {
    /// A byte that is not zero gets another value.
    FlipUsed(Which, Index, u8),
    /// Any byte gets another value.
    Flip(Which, Index, u8),
    Truncate(Which, Index),
    /// A few bytes are cut off.
    Shorten(Which, u8),
    /// Bytes are appended.
    Extend(Which, u16),
    ZeroPage(Which, Index),
    /// The file is replaced by its state after an earlier commit.
    Older(Which, Index),
    Delete(Which),
}

fn damage() -> impl Strategy<Value = Damage> {
    let which = || prop_oneof![2 => Just(Which::Registry), 1 => Just(Which::Commits)];
    let index = any::<Index>;
    prop_oneof![
        4 => (which(), index(), 1..=u8::MAX).prop_map(|(which, at, by)| Damage::FlipUsed(which, at, by)),
        1 => (which(), index(), 1..=u8::MAX).prop_map(|(which, at, by)| Damage::Flip(which, at, by)),
        1 => (which(), index()).prop_map(|(which, at)| Damage::Truncate(which, at)),
        1 => (which(), 1..=u8::MAX).prop_map(|(which, by)| Damage::Shorten(which, by)),
        1 => (which(), 1..=u16::MAX).prop_map(|(which, by)| Damage::Extend(which, by)),
        2 => (which(), index()).prop_map(|(which, at)| Damage::ZeroPage(which, at)),
        2 => (which(), index()).prop_map(|(which, at)| Damage::Older(which, at)),
        1 => which().prop_map(Damage::Delete),
    ]
}

/// Damages one of the files.
fn apply(damage: &Damage, files: &mut Files, history: &History) {
    let bytes = |files: &mut Files, which: Which| match which {
        Which::Registry => files.registry.take().unwrap(),
        Which::Commits => files.commits.take().unwrap(),
    };
    let (which, new) = match damage {
        Damage::FlipUsed(which, at, by) => {
            let mut bytes = bytes(files, *which);
            let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
            bytes[used[at.index(used.len())]] ^= by;
            (which, Some(bytes))
        }
        Damage::Flip(which, at, by) => {
            let mut bytes = bytes(files, *which);
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            (which, Some(bytes))
        }
        Damage::Truncate(which, at) => {
            let mut bytes = bytes(files, *which);
            bytes.truncate(at.index(bytes.len()));
            (which, Some(bytes))
        }
        Damage::Shorten(which, by) => {
            let mut bytes = bytes(files, *which);
            bytes.truncate(bytes.len() - usize::from(*by));
            (which, Some(bytes))
        }
        Damage::Extend(which, by) => {
            let mut bytes = bytes(files, *which);
            bytes.resize(bytes.len() + usize::from(*by), 0);
            (which, Some(bytes))
        }
        Damage::ZeroPage(which, at) => {
            let mut bytes = bytes(files, *which);
            let pages: Vec<usize> = (0..bytes.len() / PAGE)
                .filter(|page| bytes[page * PAGE..][..PAGE].iter().any(|byte| *byte != 0))
                .collect();
            bytes[pages[at.index(pages.len())] * PAGE..][..PAGE].fill(0);
            (which, Some(bytes))
        }
        Damage::Older(which, at) => {
            let mut older = history.killed[at.index(COMMITS - 1)].clone();
            (which, Some(bytes(&mut older, *which)))
        }
        Damage::Delete(which) => (which, None),
    };
    match which {
        Which::Registry => files.registry = new,
        Which::Commits => files.commits = new,
    }
}

/// Asserts that a registry keeps a commit over a restart, and is confirmed afterwards.
fn keeps_a_commit(place: &Place, mut file: FileRegistry) -> Result<(), TestCaseError> {
    file.commit(&updates(COMMITS + 3)).unwrap();
    let content = file.load().unwrap();
    drop(file);
    let mut file = place.open(None).unwrap();
    prop_assert!(matches!(file.opening(), Opening::Confirmed), "{:?}", file.opening());
    prop_assert_eq!(file.load().unwrap(), content);
    Ok(())
}

proptest! {
    #[test]
    fn damage_is_found_or_does_no_harm(damage in damage(), is_closed in any::<bool>()) {
        HISTORY.with(|history| {
            let mut files = if is_closed { history.closed.clone() } else { history.killed[COMMITS - 1].clone() };
            apply(&damage, &mut files, history);
            let place = Place::with(&files);
            let number = match place.open(None) {
                Ok(mut file) => {
                    prop_assert_eq!(&file.load().unwrap(), &history.contents[COMMITS - 1]);
                    return keeps_a_commit(&place, file);
                }
                Err(StoreError::Lost(loss)) => loss.number(),
                Err(error) => return Err(TestCaseError::fail(format!("{error:?}"))),
            };
            prop_assert!(matches!(place.open(Some(number + 1)), Err(StoreError::Lost(_))), "another number accepts nothing");
            let mut file = place.open(Some(number)).unwrap();
            prop_assert!(matches!(file.opening(), Opening::Accepted { .. }), "{:?}", file.opening());
            let left = file.load().unwrap();
            let is_changed = matches!(file.opening(), Opening::Accepted { loss, .. } if matches!(loss.found, Found::Changed { .. }));
            prop_assert!(is_changed || history.contents.contains(&left));
            keeps_a_commit(&place, file)?;
            // A loss that was accepted once is not the loss that is found the next time.
            fs::remove_file(place.registry()).unwrap();
            prop_assert!(matches!(place.open(Some(number)), Err(StoreError::Lost(_))));
            Ok(())
        })?;
    }

    /// Before a commit returns, any of its pages may be on the disk, in any order; the confirmation is written after
    /// all of them.
    #[test]
    fn a_crash_leaves_the_commit_or_what_was_before(
        last in 1..COMMITS,
        written in prop::collection::vec(any::<bool>(), 64),
        torn in 0..=2 * PAGE,
        is_confirming in any::<bool>(),
    ) {
        HISTORY.with(|history| {
            let (before, after) = (&history.killed[last - 1], &history.killed[last]);
            let mut files = before.clone();
            if is_confirming {
                files.registry = after.registry.clone();
                let (new, all) = (after.commits.as_ref().unwrap(), files.commits.as_mut().unwrap());
                all[..torn].copy_from_slice(&new[..torn]);
            } else {
                let (new, all) = (after.registry.as_ref().unwrap(), files.registry.as_mut().unwrap());
                // A file grows before its new pages are written, and shrinks after the commit.
                all.resize(all.len().max(new.len()), 0);
                let changed = (0..new.len()).step_by(PAGE).filter(|at| all[*at..][..PAGE] != new[*at..][..PAGE]);
                let changed: Vec<usize> = changed.collect();
                for (at, _) in changed.iter().zip(written.iter().cycle()).filter(|(_, written)| **written) {
                    all[*at..][..PAGE].copy_from_slice(&new[*at..][..PAGE]);
                }
            }
            let place = Place::with(&files);
            let mut file = place.open(None).unwrap();
            let content = file.load().unwrap();
            if is_confirming {
                prop_assert_eq!(&content, &history.contents[last]);
            } else {
                prop_assert!(content == history.contents[last - 1] || content == history.contents[last]);
            }
            keeps_a_commit(&place, file)
        })?;
    }
}

fn found(outcome: Result<FileRegistry, StoreError>) -> Found {
    match outcome {
        Err(StoreError::Lost(loss)) => loss.found,
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn each_kind_of_loss_says_what_is_lost() {
    HISTORY.with(|history| {
        let newest = &history.killed[COMMITS - 1];
        let last = COMMITS as u64 - 1;
        let case = |change: &dyn Fn(&mut Files)| {
            let mut files = newest.clone();
            change(&mut files);
            Place::with(&files)
        };
        let message = |place: &Place| {
            let error = place.open(None).unwrap_err();
            let text = error.to_string();
            let text =
                text.strip_prefix(&format!("the registry '{}' ", place.registry().display())).unwrap().to_owned();
            // The time is that of the test's run.
            match text.find(" of 2") {
                Some(at) => format!("{}{}", &text[..at], &text[at + " of 2026-11-25T01:02:03Z".len()..]),
                None => text,
            }
        };
        let older = |commits: usize| history.killed[COMMITS - 1 - commits].clone();

        let place = case(&|files| files.registry = older(1).registry);
        assert_eq!(message(&place), "ends with commit 7, but commit 8 is confirmed: the last commit is lost");
        let place = case(&|files| files.registry = older(3).registry);
        assert_eq!(message(&place), "ends with commit 5, but commit 8 is confirmed: the last 3 commits are lost");
        let place = case(&|files| files.registry = None);
        assert_eq!(message(&place), "is missing: all commits up to commit 8 are lost");
        let place = case(&|files| files.registry = Some(Vec::new()));
        assert_eq!(message(&place), "is an empty file: all commits up to commit 8 are lost");
        let place = case(&|files| files.registry = Some(b"something else".to_vec()));
        assert_eq!(message(&place), "cannot be read: all commits up to commit 8 are lost");
        assert!(std::error::Error::source(&place.open(None).unwrap_err()).is_some());
        let place = case(&|files| files.commits = None);
        assert_eq!(found(place.open(None)), Found::Unconfirmed { last });
        let place = case(&|files| files.commits = Some(Vec::new()));
        assert_eq!(found(place.open(None)), Found::ConfirmationsDamaged { last });
        let place = case(&|files| files.commits = older(2).commits);
        assert!(
            matches!(found(place.open(None)), Found::ConfirmationsOld { last: 8, confirmed } if confirmed.number == 6)
        );
        let place = Place::new();
        fs::write(place.registry(), "").unwrap();
        assert_eq!(found(place.open(None)), Found::Empty(None));
        assert_eq!(message(&place), "is an empty file: all its entries are lost");
    });
}

#[test]
fn an_accepted_loss_keeps_what_cannot_be_read() {
    HISTORY.with(|history| {
        let mut files = history.killed[COMMITS - 1].clone();
        files.registry = Some(b"something else".to_vec());
        let place = Place::with(&files);
        fs::write(place.0.join("registry.redb.damaged"), "of another time").unwrap();
        let mut file = place.open(Some(8)).unwrap();
        let Opening::Accepted { kept: Some(kept), .. } = file.opening() else { panic!("{:?}", file.opening()) };
        assert_eq!(fs::read(kept).unwrap(), b"something else");
        assert_eq!(kept.file_name().unwrap(), "registry.redb.damaged.1");
        assert_eq!(file.load().unwrap(), Registry::default());
        drop(file);
        assert!(matches!(place.open(None).unwrap().opening(), Opening::Confirmed));
    });
}

#[test]
fn a_registry_of_an_older_version_is_taken_up_once() {
    let place = Place::new();
    let table = redb::TableDefinition::<&str, &[u8]>::new("registry");
    let database = redb::Database::create(place.registry()).unwrap();
    let writing = database.begin_write().unwrap();
    let weight = mesos::WeightInfo { weight: 2.0, role: Some("dev".into()) };
    let update = Update::weight(&registry::Weight { info: weight });
    writing.open_table(table).unwrap().insert(update.key(), update.value().unwrap()).unwrap();
    writing.commit().unwrap();
    drop(database);
    let before = place.files();
    let mut file = place.open(None).unwrap();
    assert!(matches!(file.opening(), Opening::Older));
    let content = file.load().unwrap();
    assert_eq!(content.weights.len(), 1);
    file.commit(&updates(0)).unwrap();
    drop(file);
    assert!(matches!(place.open(None).unwrap().opening(), Opening::Confirmed));

    let mut files = place.files();
    files.registry = before.registry;
    assert!(
        matches!(found(Place::with(&files).open(None)), Found::RolledBack { last: 0, confirmed } if confirmed.number == 1)
    );
}

#[test]
fn a_crash_while_a_registry_is_made_leaves_none_or_an_empty_one() {
    HISTORY.with(|history| {
        let first = &history.killed[0];
        for (files, is_new) in [
            (Files { registry: None, commits: None }, true),
            (Files { registry: first.registry.clone(), commits: None }, true),
            (first.clone(), false),
        ] {
            let place = Place::with(&files);
            fs::write(place.0.join("registry.redb.new"), "of a process that was killed").unwrap();
            let mut file = place.open(None).unwrap();
            assert_eq!(matches!(file.opening(), Opening::New), is_new);
            assert_eq!(file.load().unwrap(), Registry::default());
        }
    });
}

#[test]
fn a_registry_that_is_not_at_its_path_any_more_takes_no_commit() {
    for removed in ["registry.redb", "registry.redb.commits", ""] {
        let place = Place::new();
        let mut file = place.open(None).unwrap();
        file.commit(&updates(0)).unwrap();
        let path = place.0.join(removed);
        if removed.is_empty() {
            fs::remove_dir_all(&place.0).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        let error = file.commit(&updates(1)).unwrap_err();
        assert!(matches!(&error, StoreError::NotInPlace { found: "no file is there", .. }), "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    let place = Place::new();
    let mut file = place.open(None).unwrap();
    let copy = place.files();
    fs::remove_file(place.registry()).unwrap();
    fs::write(place.registry(), copy.registry.unwrap()).unwrap();
    let error = file.commit(&updates(1)).unwrap_err();
    assert!(matches!(error, StoreError::NotInPlace { found: "another file is there", .. }), "{error}");
}

#[test]
fn a_registry_is_renamed_with_its_confirmations() {
    let place = Place::new();
    let mut file = place.open(None).unwrap();
    file.commit(&updates(0)).unwrap();
    let content = file.load().unwrap();
    drop(file);
    let moved = place.0.join("registry.moved");
    FileRegistry::rename(&place.registry(), &moved).unwrap();
    assert!(!FileRegistry::is_at(&place.registry()));
    assert_eq!(FileRegistry::open(&moved, None).unwrap().load().unwrap(), content);
}
