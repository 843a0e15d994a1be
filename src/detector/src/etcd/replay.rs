//! Parses an answer of etcd without a connection, for tests with arbitrary bytes. It sends nothing.

use wire::client::Address;
use wire::http::StatusCode;

use super::client::{EtcdError, answer};
use super::message::{KeyValue, Outcome, found, number, revision};

/// An answer, parsed as the answer to each kind of request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Keys and values of a range.
    pub range: Option<Vec<(Vec<u8>, Vec<u8>)>>,
    /// Revision at which a transaction was made.
    pub made: Option<i64>,
    /// Values of the keys that a transaction has read because a condition did not hold.
    pub otherwise: Option<Vec<Option<Vec<u8>>>>,
    /// Revision of the store.
    pub revision: Option<i64>,
    /// Id of a granted lease.
    pub lease: Option<i64>,
}

/// Parses the answer of a member at this address.
///
/// # Errors
/// It is an error of etcd, or not an answer of etcd.
pub fn replay(address: &Address, status: StatusCode, body: &[u8]) -> Result<Answer, EtcdError> {
    let value = answer(address, "/v3/kv/range", status, body)?;
    let pair = |entry: KeyValue| (entry.key, entry.value);
    let (made, otherwise) = match Outcome::of(&value) {
        Some(Outcome::Made(revision)) => (Some(revision), None),
        Some(Outcome::Otherwise(found)) => {
            (None, Some(found.into_iter().map(|entry| entry.map(|entry| entry.value)).collect()))
        }
        None => (None, None),
    };
    Ok(Answer {
        range: found(&value).map(|found| found.into_iter().map(pair).collect()),
        made,
        otherwise,
        revision: revision(&value),
        lease: number(&value["ID"]),
    })
}
