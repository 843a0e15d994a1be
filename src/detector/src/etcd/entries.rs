//! Persistent state of the leading master in etcd: named entries, each a key below the group's prefix.
//!
//! Every write depends on the leader's key and on the key of the last write, so a master that has not detected yet that
//! another one leads changes nothing, and a write that is sent twice is made once. Entries are not interpreted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::candidate::LEADER;
use super::client::{Connection, EtcdError, Service};
use super::message::{self, Outcome, Transaction};
use crate::entries::{Change, SharedEntries};

/// Key that each write changes; `ENTRIES` is the prefix of the entries' keys. Both are below the group's prefix.
const OWNER: &str = "owner";
const ENTRIES: &str = "registry/";
/// Maximum number of bytes of one write: etcd refuses requests of more than 1.5 MiB.
const WRITE_MAX: usize = 1 << 20;
/// Maximum number of changes of one write, besides the one of the owner's key: etcd refuses more than 128 in a
/// transaction.
const CHANGES_MAX: usize = 100;
/// Approximate number of bytes of a change in addition to its content.
const OVERHEAD: usize = 64;
/// Number of entries that are requested at once; fewer if the answer is too large.
const PAGE: usize = 256;
/// Time limit for an answer of a member.
const PATIENCE: Duration = Duration::from_secs(5);
/// Wait before a request is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// An error of reading or writing entries.
#[derive(Debug, thiserror::Error)]
pub enum EtcdEntriesError {
    /// etcd returns an error.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// Another master leads, or may lead.
    #[error("this master's key '{0}' in etcd is gone, so another one may lead")]
    NotLeading(String),
    /// Another process has changed the owner's key.
    #[error("another process has changed the key '{0}' in etcd")]
    TakenOver(String),
    /// An entry is too large.
    #[error("the entry '{0}' is too large for etcd")]
    TooLarge(String),
    /// There was no answer within the time limit.
    #[error("etcd has not answered within {} ms", .0.as_millis())]
    Late(Duration),
}

/// All entries. Only the leading master can change them.
pub struct EtcdEntries {
    connection: Connection,
    /// Revision at which the leader's key was created.
    term: i64,
    /// State of the owner's key: the start of its value, the number of writes, and the revision of the last one.
    name: String,
    writes: u64,
    revision: i64,
    known: BTreeMap<String, Vec<u8>>,
}

impl SharedEntries for EtcdEntries {
    type Error = EtcdEntriesError;

    fn all(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.known
    }

    async fn write(&mut self, changes: &[Change], limit: Duration) -> Result<(), EtcdEntriesError> {
        let written = tokio::time::timeout(limit, self.write_all(changes)).await;
        written.map_err(|_| EtcdEntriesError::Late(limit))?
    }
}

impl EtcdEntries {
    /// Takes the entries over and reads them, for the leader whose [`member`](crate::Leader::member) is given. `owner`
    /// is for people who inspect etcd.
    ///
    /// # Errors
    /// This master no longer leads, etcd returns an error, or there is no answer within `limit`.
    pub async fn open(
        service: Service,
        member: &str,
        owner: &str,
        limit: Duration,
    ) -> Result<EtcdEntries, EtcdEntriesError> {
        let connection = Connection::new(service, PATIENCE, 0);
        let leader = connection.key(LEADER);
        let term = member.parse().map_err(|_| EtcdEntriesError::NotLeading(leader))?;
        let name = format!("{owner} {term}");
        let mut entries = EtcdEntries { connection, term, name, writes: 0, revision: 0, known: BTreeMap::new() };
        let opened = tokio::time::timeout(limit, async {
            entries.take_over().await?;
            entries.read().await
        });
        opened.await.map_err(|_| EtcdEntriesError::Late(limit))??;
        Ok(entries)
    }

    /// Takes the entries over: earlier leaders' writes are visible then, and they make no more of them.
    async fn take_over(&mut self) -> Result<(), EtcdEntriesError> {
        let (leader, owner) = (self.connection.key(LEADER), self.connection.key(OWNER));
        let transaction = Transaction::default().if_created(&leader, self.term).put(&owner, self.name.as_bytes(), 0);
        match self.outcome(&transaction.request()).await? {
            Outcome::Made(revision) => self.revision = revision,
            Outcome::Otherwise(_) => return Err(EtcdEntriesError::NotLeading(leader)),
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), EtcdEntriesError> {
        const PATH: &str = "/v3/kv/range";
        let prefix = self.connection.key(ENTRIES).into_bytes();
        // The end of the range is the first key that does not start with the prefix: '0' follows '/'.
        let mut end = prefix.clone();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let (mut from, mut page) = (prefix.clone(), PAGE);
        loop {
            let answer = match self.connection.ask(PATH, &message::range(&from, &end, page)).await {
                Err(error) if error.is_transient() => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(error) if error.is_too_large() && page > 1 => {
                    page /= 2;
                    continue;
                }
                answer => answer?,
            };
            let found = message::found(&answer).ok_or(EtcdError::Invalid(PATH))?;
            let Some(last) = found.last() else { return Ok(()) };
            from = last.key.clone();
            from.push(0);
            for entry in found {
                let key = entry.key.strip_prefix(prefix.as_slice()).and_then(|key| std::str::from_utf8(key).ok());
                if let Some(key) = key {
                    self.known.insert(key.to_owned(), entry.value);
                }
            }
            if answer["more"] != true {
                return Ok(());
            }
        }
    }

    async fn write_all(&mut self, mut changes: &[Change]) -> Result<(), EtcdEntriesError> {
        while !changes.is_empty() {
            let (now, later) = changes.split_at(fitting(changes)?);
            self.write_some(now).await?;
            changes = later;
        }
        Ok(())
    }

    /// Makes changes that fit into one write: all, or none.
    async fn write_some(&mut self, changes: &[Change]) -> Result<(), EtcdEntriesError> {
        // Of several changes of one entry the last one counts: etcd accepts only one.
        let changes: BTreeMap<&str, Option<&[u8]>> =
            changes.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        let (leader, owner) = (self.connection.key(LEADER), self.connection.key(OWNER));
        self.writes += 1;
        let value = format!("{} {}", self.name, self.writes);
        let mut transaction = Transaction::default()
            .if_created(&leader, self.term)
            .if_changed(&owner, self.revision)
            .put(&owner, value.as_bytes(), 0)
            .or_get(&owner)
            .or_get(&leader);
        for (key, value) in &changes {
            let key = self.connection.key(&format!("{ENTRIES}{key}"));
            transaction = match value {
                Some(value) => transaction.put(&key, value, 0),
                None => transaction.delete(&key),
            };
        }
        match self.outcome(&transaction.request()).await? {
            Outcome::Made(revision) => self.revision = revision,
            Outcome::Otherwise(found) => {
                let mut found = found.into_iter();
                match found.next().flatten().filter(|found| found.value == value.as_bytes()) {
                    // The write was made by an earlier attempt.
                    Some(owner) => self.revision = owner.changed,
                    None if found.next().flatten().is_some_and(|leader| leader.created == self.term) => {
                        return Err(EtcdEntriesError::TakenOver(owner));
                    }
                    None => return Err(EtcdEntriesError::NotLeading(leader)),
                }
            }
        }
        Ok(())
    }

    /// Sends a transaction repeatedly until there is an answer.
    async fn outcome(&mut self, request: &serde_json::Value) -> Result<Outcome, EtcdError> {
        const PATH: &str = "/v3/kv/txn";
        loop {
            match self.connection.ask(PATH, request).await {
                Err(error) if error.is_transient() => tokio::time::sleep(PAUSE).await,
                answer => return Outcome::of(&answer?).ok_or(EtcdError::Invalid(PATH)),
            }
        }
    }
}

/// Returns how many of the changes, from the first on, fit into one write.
fn fitting(changes: &[Change]) -> Result<usize, EtcdEntriesError> {
    let mut bytes = 0;
    for (count, (key, value)) in changes.iter().enumerate().take(CHANGES_MAX) {
        bytes += key.len() + value.as_ref().map_or(0, Vec::len) + OVERHEAD;
        if bytes > WRITE_MAX {
            return if count == 0 { Err(EtcdEntriesError::TooLarge(key.clone())) } else { Ok(count) };
        }
    }
    Ok(changes.len().min(CHANGES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_cut_to_size_and_number() {
        let change = |key: &str, bytes: usize| (key.to_owned(), Some(vec![0; bytes]));
        assert_eq!(fitting(&[change("a", 10), ("b".to_owned(), None)]).unwrap(), 2);
        assert_eq!(fitting(&[change("a", WRITE_MAX / 2), change("b", WRITE_MAX / 2), change("c", 1)]).unwrap(), 1);
        assert!(matches!(fitting(&[change("a", WRITE_MAX)]), Err(EtcdEntriesError::TooLarge(key)) if key == "a"));
        let many: Vec<_> = (0..250).map(|number| change(&number.to_string(), 1)).collect();
        assert_eq!(fitting(&many).unwrap(), CHANGES_MAX);
    }
}
