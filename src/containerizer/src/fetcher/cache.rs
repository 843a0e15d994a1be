//! The fetcher's cache: it maps a user and a URI to a file, counts the fetches that use the file, and evicts files when
//! it is full (AGT-65).
//!
//! It counts and deletes; the fetcher's processes write and read the files.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

use base::lock;
use containers::User;

/// Key of a cached file: a user (empty for the agent's own) and a URI.
pub(crate) type Key = (String, String);

#[derive(Debug, Default)]
struct Entry {
    name: String,
    /// Size of the file in bytes; `None` while it is being downloaded.
    bytes: Option<u64>,
    /// Expected size of the file in bytes, while it is being downloaded.
    expected: u64,
    /// Number of fetches that use the file now.
    users: usize,
    /// Number of the last request for the file.
    wanted: u64,
}

impl Entry {
    fn size(&self) -> u64 {
        self.bytes.unwrap_or(self.expected)
    }
}

#[derive(Debug, Default)]
struct Books {
    entries: BTreeMap<Key, Entry>,
    counter: u64,
}

/// The fetcher's cache.
#[derive(Debug)]
pub(crate) struct FetchCache {
    directory: PathBuf,
    /// Maximum size in bytes; zero: there is no cache.
    limit: u64,
    books: Mutex<Books>,
    changed: Condvar,
}

/// Action that a fetch takes with a file of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The file is missing: download it to this name, and use it from there.
    Missing(String),
    /// The file with this name is present: use it.
    Present(String),
}

impl FetchCache {
    /// Creates an empty cache in `directory`, and deletes the files of the previous agent process.
    pub(crate) fn new(directory: PathBuf, limit: u64) -> FetchCache {
        if directory.exists() {
            crate::delete(&directory);
        }
        FetchCache { directory, limit, books: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns the directory of a user's files, and creates it if needed; `None` if there is no cache.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(crate) fn directory_of(&self, user: Option<&User>) -> anyhow::Result<Option<PathBuf>> {
        if self.limit == 0 {
            return Ok(None);
        }
        let directory = self.directory.join(user.map_or("agent", |user| &user.name));
        containers::create_sandbox(&directory, user)?;
        // A user's group may read sandboxes, but not what the user has fetched.
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700))?;
        Ok(Some(directory))
    }

    /// Acquires a file. Waits while another fetch downloads it.
    pub(crate) fn acquire(&self, key: &Key) -> Found {
        let mut books = lock(&self.books);
        loop {
            books.counter += 1;
            let now = books.counter;
            match books.entries.get_mut(key) {
                Some(entry) if entry.bytes.is_some() => {
                    entry.users += 1;
                    entry.wanted = now;
                    return Found::Present(entry.name.clone());
                }
                Some(_) => books = self.changed.wait(books).unwrap_or_else(PoisonError::into_inner),
                None => {
                    let name = format!("{now}");
                    let entry = Entry { name: name.clone(), bytes: None, expected: 0, users: 1, wanted: now };
                    books.entries.insert(key.clone(), entry);
                    return Found::Missing(name);
                }
            }
        }
    }

    /// Reserves space for a missing file with so many bytes, if that is known. Returns whether it fits.
    ///
    /// Files in use are not evicted. If the file does not fit, it is not part of the cache, and need not be released.
    pub(crate) fn reserve(&self, key: &Key, bytes: Option<u64>) -> bool {
        let mut books = lock(&self.books);
        let in_use = books.entries.values().filter(|entry| entry.users > 0).map(Entry::size).sum::<u64>();
        let fitting = bytes.filter(|bytes| in_use.saturating_add(*bytes) <= self.limit);
        match (fitting, books.entries.get_mut(key)) {
            (Some(bytes), Some(entry)) => {
                entry.expected = bytes;
                self.evict(&mut books);
            }
            _ => drop(books.entries.remove(key)),
        }
        drop(books);
        self.changed.notify_all();
        fitting.is_some()
    }

    /// Releases an acquired file. `directory` is that of its user; `fetched` is true if the file is complete.
    pub(crate) fn release(&self, key: &Key, directory: &Path, fetched: bool) {
        let mut books = lock(&self.books);
        if let Some(entry) = books.entries.get_mut(key) {
            entry.users = entry.users.saturating_sub(1);
            if entry.bytes.is_none() {
                let size = std::fs::metadata(directory.join(&entry.name)).ok().filter(|_| fetched);
                entry.bytes = size.map(|metadata| metadata.len());
            }
            if entry.bytes.is_none() {
                crate::delete(&directory.join(&entry.name));
                books.entries.remove(key);
            }
        }
        self.evict(&mut books);
        drop(books);
        self.changed.notify_all();
    }

    /// Deletes the least recently requested unused files until the rest fits.
    fn evict(&self, books: &mut Books) {
        while Self::used(books) > self.limit {
            let unused = books.entries.iter().filter(|(_, entry)| entry.users == 0 && entry.bytes.is_some());
            let Some(oldest) = unused.min_by_key(|(_, entry)| entry.wanted).map(|(key, _)| key.clone()) else { return };
            if let Some(entry) = books.entries.remove(&oldest) {
                let user = if oldest.0.is_empty() { "agent" } else { &oldest.0 };
                crate::delete(&self.directory.join(user).join(entry.name));
            }
        }
    }

    fn used(books: &Books) -> u64 {
        books.entries.values().map(Entry::size).sum()
    }

    /// Returns the maximum size in bytes, and the bytes in use or reserved for downloads.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        (self.limit, Self::used(&lock(&self.books)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(uri: &str) -> Key {
        (String::new(), uri.to_owned())
    }

    fn fill(cache: &FetchCache, directory: &Path, uri: &str, bytes: usize) -> String {
        let Found::Missing(name) = cache.acquire(&key(uri)) else { panic!("{uri} is there") };
        std::fs::write(directory.join(&name), vec![0; bytes]).unwrap();
        cache.release(&key(uri), directory, true);
        name
    }

    #[test]
    fn the_oldest_unused_file_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let cache = FetchCache::new(place.path().join("cache"), 100);
        let directory = cache.directory_of(None).unwrap().unwrap();
        let (a, b) = (fill(&cache, &directory, "a", 40), fill(&cache, &directory, "b", 40));
        assert_eq!(cache.acquire(&key("a")), Found::Present(a.clone()));
        fill(&cache, &directory, "c", 40);
        // `a` is older than `b`, but in use.
        assert!(directory.join(&a).exists() && !directory.join(&b).exists());
        assert_eq!(cache.sizes(), (100, 80));
        cache.release(&key("a"), &directory, true);
        // A file that does not fit at all is deleted as soon as it was delivered.
        let big = fill(&cache, &directory, "d", 200);
        assert!(!directory.join(big).exists());
        // A failed download leaves nothing in the cache.
        let Found::Missing(name) = cache.acquire(&key("e")) else { panic!("there") };
        std::fs::write(directory.join(&name), "half").unwrap();
        cache.release(&key("e"), &directory, false);
        assert!(!directory.join(&name).exists());
        assert!(matches!(cache.acquire(&key("e")), Found::Missing(_)));
    }

    #[test]
    fn room_is_made_before_anything_is_downloaded() {
        let place = tempfile::tempdir().unwrap();
        let cache = FetchCache::new(place.path().join("cache"), 100);
        let directory = cache.directory_of(None).unwrap().unwrap();
        let (a, b) = (fill(&cache, &directory, "a", 40), fill(&cache, &directory, "b", 40));
        assert!(matches!(cache.acquire(&key("c")), Found::Missing(_)));
        assert!(cache.reserve(&key("c"), Some(50)));
        assert!(!directory.join(a).exists() && directory.join(&b).exists());
        assert_eq!(cache.sizes(), (100, 90));
        // A file that would not fit anyway, or whose size is unknown, evicts nothing.
        for (uri, size) in [("d", Some(51)), ("e", Some(101)), ("f", Some(u64::MAX)), ("g", None)] {
            assert!(matches!(cache.acquire(&key(uri)), Found::Missing(_)));
            assert!(!cache.reserve(&key(uri), size), "{uri}");
            assert!(matches!(cache.acquire(&key(uri)), Found::Missing(_)), "{uri} is not in the books");
            assert!(!cache.reserve(&key(uri), size));
        }
        assert!(directory.join(b).exists());
        assert_eq!(cache.sizes(), (100, 90));
    }

    #[test]
    fn without_room_there_is_no_cache() {
        let cache = FetchCache::new("/no/such/directory".into(), 0);
        assert_eq!(cache.directory_of(None).unwrap(), None);
    }
}
