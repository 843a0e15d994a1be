//! Checks responses of etcd, and its URLs.

use std::sync::LazyLock;

use detector::etcd::{EtcdError, EtcdUrl, replay};
use wire::client::Address;
use wire::http::StatusCode;

use crate::pieces::Pieces;

/// Maximum length of the part of an unexpected response that an error shows: 200 characters, each of which may be
/// escaped to ten.
const SHOWN_MAX: usize = 200 * 10;

static MEMBER: LazyLock<Address> = LazyLock::new(|| "http://etcd.example:2379".parse().expect("an address"));

/// Checks an input whose first line is a URL with the status, and whose rest is the response. An error is short, keys
/// and values are no longer than the text that they come from, and the displayed URL parses to the same URL.
pub fn etcd(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    let line = pieces.line();
    let body = pieces.rest();
    if let Ok(url) = String::from_utf8_lossy(line).parse::<EtcdUrl>() {
        let again: EtcdUrl = url.to_string().parse().expect("what is shown is a URL");
        assert_eq!(again, url);
        assert!(!url.servers().is_empty() && url.prefix().starts_with('/') && !url.prefix().ends_with('/'));
    }
    let status = if line.first() == Some(&b'5') { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    match replay(&MEMBER, status, body) {
        Ok(answer) => {
            assert!(status == StatusCode::OK);
            let pairs = answer.range.iter().flatten();
            let values = answer.otherwise.iter().flatten().flatten();
            let bytes = pairs.map(|(key, value)| key.len() + value.len()).sum::<usize>();
            assert!(bytes <= body.len() && values.map(Vec::len).sum::<usize>() <= body.len());
            assert!(answer.made.is_none() || answer.otherwise.is_none());
            assert!(answer.made.is_none_or(|made| made > 0 && answer.revision == Some(made)));
        }
        Err(EtcdError::NoEtcd { answer, .. }) => assert!(answer.len() < SHOWN_MAX),
        Err(EtcdError::Refused { code, message }) => assert!(code != 0 && message.chars().count() <= SHOWN_MAX),
        Err(error) => panic!("{error}"),
    }
}
