//! Persistent state of the leading master in ZooKeeper, beside the candidates: named entries, each a node.
//!
//! Opening them takes them over: the former owner can no longer write, so a master that has not detected yet that
//! another one leads does no harm. Entries are not interpreted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use zookeeper_client::{Acl, Acls, CreateMode, Error, MultiWriteError, MultiWriteResult, MultiWriter};

use crate::Url;
use crate::candidate::rights;
use crate::session::{Session, is_lost};

/// Name of the node with the entries, below the group's. It is not taken for a candidate: the text after the last `_`
/// is not a number.
const ROOT: &str = "tepui_registry";
/// Maximum number of bytes of one write; a server refuses more than a megabyte.
const WRITE_MAX: usize = 512 << 10;
/// Number of directories of entries, because the list of one must not exceed that limit, either.
const FOLDERS: u32 = 256;
/// Approximate number of bytes of a change in addition to its content.
const OVERHEAD: usize = 128;
/// Version of an unchanged node, such as a candidate's.
const UNCHANGED: i32 = 0;
/// Wait before a write is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// Entries that only the leading master can change.
pub trait SharedEntries {
    /// Error of reading or writing the entries.
    type Error;

    /// Returns all entries by key.
    fn all(&self) -> &BTreeMap<String, Vec<u8>>;

    /// Changes entries; `None` removes one. Changes that do not fit into one write are made in several, in order.
    ///
    /// # Errors
    /// This master no longer leads, the store returns an error, or there is no answer within `limit`: then it is
    /// unknown which changes are made.
    fn write(&mut self, changes: &[Change], limit: Duration) -> impl Future<Output = Result<(), Self::Error>>;
}

/// An error of reading or writing entries.
#[derive(Debug, thiserror::Error)]
pub enum EntriesError {
    /// ZooKeeper cannot be reached, or returns an error.
    #[error(transparent)]
    ZooKeeper(#[from] Error),
    /// Another master has taken the entries over.
    #[error("another master has taken the registry over")]
    TakenOver,
    /// This master no longer leads.
    #[error("this master's node '{0}' is gone, so another one may lead")]
    NotLeading(String),
    /// An entry is too large.
    #[error("the entry '{0}' is too large for ZooKeeper")]
    TooLarge(String),
    /// There was no answer within the time limit.
    #[error("ZooKeeper has not answered within {} ms", .0.as_millis())]
    Late(Duration),
}

/// The key of an entry, and its new value; `None` deletes the entry.
pub type Change = (String, Option<Vec<u8>>);

/// All entries. Only one process can change them at a time.
pub struct Entries {
    session: Session,
    url: Url,
    /// Requested timeout of new sessions.
    session_timeout: Duration,
    root: String,
    rights: Vec<Acl>,
    /// Version of the root node since these entries were taken over.
    version: i32,
    directories: BTreeSet<String>,
    known: BTreeMap<String, Vec<u8>>,
}

impl SharedEntries for Entries {
    type Error = EntriesError;

    fn all(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.known
    }

    async fn write(&mut self, changes: &[Change], limit: Duration) -> Result<(), EntriesError> {
        let written = tokio::time::timeout(limit, self.write_all(changes)).await;
        written.map_err(|_| EntriesError::Late(limit))?
    }
}

impl Entries {
    /// Takes the entries over and reads them, for the candidate whose node in the group has the name `member`. `owner`
    /// is for people who inspect ZooKeeper.
    ///
    /// # Errors
    /// The candidate's node is gone, an error of ZooKeeper, or no answer within `limit`.
    pub async fn open(
        url: &Url,
        session_timeout: Duration,
        member: &str,
        owner: &str,
        limit: Duration,
    ) -> Result<Entries, EntriesError> {
        let opened = tokio::time::timeout(limit, async {
            loop {
                match Entries::take_over(url, session_timeout, member, owner).await {
                    Err(EntriesError::ZooKeeper(error)) if is_lost(&error) => tokio::time::sleep(PAUSE).await,
                    opened => return opened,
                }
            }
        });
        opened.await.map_err(|_| EntriesError::Late(limit))?
    }

    async fn take_over(
        url: &Url,
        session_timeout: Duration,
        member: &str,
        owner: &str,
    ) -> Result<Entries, EntriesError> {
        let session = Session::open(url, session_timeout, 0).await?;
        let (root, rights) = (format!("{}/{ROOT}", url.path()), rights(url));
        session.client.mkdir(&root, &CreateMode::Persistent.with_acls(Acls::new(&rights))).await?;
        // After this no other process can write, and earlier writes are visible. A candidate that is no longer the
        // leader must not take the entries from its successor.
        let node = format!("{}/{member}", url.path());
        let mut writer = session.client.new_multi_writer();
        writer.add_check_version(&node, UNCHANGED)?;
        writer.add_set_data(&root, owner.as_bytes(), None)?;
        let results = match writer.commit().await {
            Err(MultiWriteError::OperationFailed { index: 0, .. }) => return Err(EntriesError::NotLeading(node)),
            results => results.map_err(Error::from)?,
        };
        let Some(MultiWriteResult::SetData { stat }) = results.last() else {
            return Err(Error::UnexpectedError("no version after a change".to_owned()).into());
        };
        let version = stat.version;
        let (url, directories, known) = (url.clone(), BTreeSet::new(), BTreeMap::new());
        let mut entries = Entries { session, url, session_timeout, root, rights, version, directories, known };
        entries.read().await?;
        Ok(entries)
    }

    /// Opens another session. Writes depend on the root's version, and on nothing that belongs to a session.
    async fn reconnect(&mut self) -> Result<(), Error> {
        let session = loop {
            match Session::open(&self.url, self.session_timeout, 0).await {
                Err(error) if is_lost(&error) => tokio::time::sleep(PAUSE).await,
                opened => break opened?,
            }
        };
        std::mem::replace(&mut self.session, session).cut().await;
        Ok(())
    }

    async fn read(&mut self) -> Result<(), Error> {
        for directory in self.session.client.list_children(&self.root).await? {
            let path = format!("{}/{directory}", self.root);
            let names = self.session.client.list_children(&path).await?;
            // All requests are sent before the first answer is awaited.
            let asked: Vec<_> =
                names.iter().map(|name| self.session.client.get_data(&format!("{path}/{name}"))).collect();
            for (name, answer) in names.iter().zip(asked) {
                let (data, _) = answer.await?;
                if let Some(key) = key_of(name) {
                    self.known.insert(key, data);
                }
            }
            self.directories.insert(directory);
        }
        Ok(())
    }

    async fn write_all(&mut self, mut changes: &[Change]) -> Result<(), EntriesError> {
        while !changes.is_empty() {
            let (now, later) = changes.split_at(fitting(changes)?);
            self.write_some(now).await?;
            changes = later;
        }
        Ok(())
    }

    /// Makes changes that fit into one write: all, or none.
    async fn write_some(&mut self, changes: &[Change]) -> Result<(), EntriesError> {
        // Of several changes of one entry the last one counts.
        let changes: BTreeMap<&str, Option<&[u8]>> =
            changes.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        self.make_directories(&changes).await?;
        while let Err(error) = commit(self.transaction(&changes)?).await {
            match error {
                MultiWriteError::OperationFailed { index: 0, source: Error::BadVersion | Error::NoNode } => {
                    return Err(EntriesError::TakenOver);
                }
                MultiWriteError::RequestFailed { source } if is_lost(&source) => {
                    // The write may have been made. The changes are repeated on the current state.
                    self.look_again(&changes).await?;
                }
                error => return Err(Error::from(error).into()),
            }
        }
        for (key, value) in changes {
            match value {
                Some(value) => drop(self.known.insert(key.to_owned(), value.to_vec())),
                None => drop(self.known.remove(key)),
            }
        }
        Ok(())
    }

    fn transaction(&self, changes: &BTreeMap<&str, Option<&[u8]>>) -> Result<MultiWriter<'_>, Error> {
        let mut writer = self.session.client.new_multi_writer();
        writer.add_check_version(&self.root, self.version)?;
        let options = CreateMode::Persistent.with_acls(Acls::new(&self.rights));
        for (key, value) in changes {
            let path = self.path(key);
            match (value, self.known.contains_key(*key)) {
                (Some(value), true) => writer.add_set_data(&path, value, None)?,
                (Some(value), false) => writer.add_create(&path, value, &options)?,
                (None, true) => writer.add_delete(&path, None)?,
                (None, false) => {}
            }
        }
        Ok(writer)
    }

    async fn make_directories(&mut self, changes: &BTreeMap<&str, Option<&[u8]>>) -> Result<(), EntriesError> {
        let rights = self.rights.clone();
        let options = CreateMode::Persistent.with_acls(Acls::new(&rights));
        for key in changes.keys() {
            let directory = directory_of(key);
            if self.directories.contains(&directory) {
                continue;
            }
            let path = format!("{}/{directory}", self.root);
            loop {
                match self.session.client.create(&path, b"", &options).await {
                    Ok(_) | Err(Error::NodeExists) => break,
                    Err(error) if is_lost(&error) => self.reconnect().await?,
                    Err(error) => return Err(error.into()),
                }
            }
            self.directories.insert(directory);
        }
        Ok(())
    }

    /// Reads again which of these entries exist, over another connection.
    async fn look_again(&mut self, changes: &BTreeMap<&str, Option<&[u8]>>) -> Result<(), EntriesError> {
        self.reconnect().await?;
        for key in changes.keys() {
            let path = self.path(key);
            let stat = loop {
                match self.session.client.check_stat(&path).await {
                    Ok(stat) => break stat,
                    Err(error) if is_lost(&error) => self.reconnect().await?,
                    Err(error) => return Err(error.into()),
                }
            };
            match stat {
                Some(_) => drop(self.known.entry((*key).to_owned()).or_default()),
                None => drop(self.known.remove(*key)),
            }
        }
        Ok(())
    }

    fn path(&self, key: &str) -> String {
        format!("{}/{}/{}", self.root, directory_of(key), name_of(key))
    }
}

async fn commit(mut writer: MultiWriter<'_>) -> Result<(), MultiWriteError> {
    writer.commit().await.map(|_| ())
}

/// Returns how many of the changes, from the first on, fit into one write.
fn fitting(changes: &[Change]) -> Result<usize, EntriesError> {
    let mut bytes = 0;
    for (count, (key, value)) in changes.iter().enumerate() {
        bytes += 3 * key.len() + value.as_ref().map_or(0, Vec::len) + OVERHEAD;
        if bytes > WRITE_MAX {
            return if count == 0 { Err(EntriesError::TooLarge(key.clone())) } else { Ok(count) };
        }
    }
    Ok(changes.len())
}

/// Returns the directory of an entry, by FNV-1a.
fn directory_of(key: &str) -> String {
    let hash = key.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{:02x}", hash % FOLDERS)
}

/// Returns the name of an entry's node: each byte that is neither a letter, a digit nor one of `-.` is written as `_`
/// and two hexadecimal digits.
pub fn name_of(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 16);
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => name.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(name, "_{byte:02x}")),
        }
    }
    name
}

/// Returns the key of a node's entry; `None` if the name is not that of an entry.
pub fn key_of(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        match first {
            b'_' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = rest.get(2..)?;
            }
            byte => bytes.push(*byte),
        }
    }
    // Every entry has one name: a write to a node with another one would not change the entry.
    String::from_utf8(bytes).ok().filter(|key| name_of(key) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_keys() {
        for key in ["master", "slave/7a-S1", "quota_config/a/b c", "machine/host/10.0.0.1", "weight/*", "gone/\u{e4}"] {
            let name = name_of(key);
            assert!(!name.contains('/'), "{name}");
            assert_eq!(key_of(&name).as_deref(), Some(key));
        }
        assert_eq!(name_of("weight/a_b"), "weight_2fa_5fb");
        assert_eq!(key_of("a_2"), None);
        for other in ["a_zz", "a_+f", "a_2F", "a_61", "a/b"] {
            assert_eq!(key_of(other), None, "{other}");
        }
        assert_eq!(directory_of("master").len(), 2);
    }

    #[test]
    fn writes_are_cut_to_size() {
        let change = |key: &str, bytes: usize| (key.to_owned(), Some(vec![0; bytes]));
        assert_eq!(fitting(&[change("a", 10), ("b".to_owned(), None)]).unwrap(), 2);
        assert_eq!(fitting(&[change("a", WRITE_MAX / 2), change("b", WRITE_MAX / 2), change("c", 1)]).unwrap(), 1);
        assert!(matches!(fitting(&[change("a", WRITE_MAX)]), Err(EntriesError::TooLarge(key)) if key == "a"));
    }
}
