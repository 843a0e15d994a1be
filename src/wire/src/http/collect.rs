//! Reads the bodies of requests within their limits: of each body, of all together, and of their decompressed size.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use super::gzip::{Gunzip, GunzipError};
use super::request::last_value;
use crate::budget::{Budget, Share, UNCOUNTED};

/// Maximum length of a refused request's body that is read to its end, so that its connection can be used further.
const DISCARD: usize = 64 << 10;

/// Number of bytes that are counted for a body longer than [`UNCOUNTED`] before any of it is read, or fewer if it is
/// announced as shorter. hyper reads up to so much of it before the first part can be counted.
const FIRST: usize = 128 << 10;

/// State that the bodies of all requests of a server share.
#[derive(Debug)]
pub(super) struct Bodies {
    pub(super) budget: Budget,
    /// Permits for bodies that are decompressed on threads: for half of the processors.
    unpacking: Arc<Semaphore>,
}

/// Reason why a body cannot be read.
#[derive(Debug)]
pub(super) enum CollectError {
    TooLong,
    /// The ratio of compression is too high.
    TooDense,
    /// The bodies in progress have too many bytes together.
    TooMany,
    Undecodable(&'static str),
}

/// A whole body, with its share of the budget.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) body: Bytes,
    pub(super) share: Share,
}

impl Bodies {
    pub(super) fn new(limit: usize) -> Bodies {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (processors / 2).max(1);
        Bodies { budget: Budget::new(limit), unpacking: Arc::new(Semaphore::new(threads)) }
    }

    /// Reads the whole body, decompressed, of at most `limit` bytes.
    pub(super) async fn collect(
        &self,
        headers: &HeaderMap,
        mut incoming: Incoming,
        limit: usize,
        mut share: Share,
    ) -> Result<Collected, CollectError> {
        let announced = announced(&incoming);
        if announced > limit {
            return Err(CollectError::TooLong);
        }
        if announced > UNCOUNTED && !share.grow_to(announced.min(FIRST)) {
            return Err(CollectError::TooMany);
        }
        let mut first = Bytes::new();
        let mut rest = Vec::new();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|_| CollectError::Undecodable("body"))?;
            let data = frame.into_data().map_err(|_| CollectError::Undecodable("trailers"))?;
            // Most bodies come in one part, which is then not copied.
            if first.is_empty() && rest.is_empty() && data.len() <= limit {
                // The part shares the buffer of its connection, which is as large as its first read.
                if data.len() > UNCOUNTED && !share.grow_to(data.len()) {
                    return Err(CollectError::TooMany);
                }
                first = data;
                continue;
            }
            let length = first.len() + rest.len() + data.len();
            if length > limit {
                return Err(CollectError::TooLong);
            }
            if length > rest.capacity() {
                // The announced length is not reserved at once, but as data arrives.
                let wanted = length.max(2 * rest.capacity()).min(limit);
                let wanted = if announced > 0 { wanted.min(announced).max(length) } else { wanted };
                if wanted > UNCOUNTED && !share.grow_to(wanted) {
                    return Err(CollectError::TooMany);
                }
                rest.reserve_exact(wanted - rest.len());
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
        let body = if rest.is_empty() { first } else { rest.into() };
        if last_value(headers, CONTENT_ENCODING.as_str()) != Some("gzip") {
            return Ok(Collected { body, share });
        }
        self.unpack(body, limit, share).await
    }

    /// Decompresses a body: a short one at once, others on threads, which leave processors to the reactor.
    async fn unpack(&self, packed: Bytes, limit: usize, mut share: Share) -> Result<Collected, CollectError> {
        let mut gunzip = Gunzip::new(packed, limit);
        if gunzip.is_short() && gunzip.count(UNCOUNTED)? {
            let body = gunzip.unpack(&mut share)?;
            return Ok(Collected { body, share });
        }
        // The semaphore is never closed.
        let _permit = self.unpacking.acquire().await;
        let work = tokio::task::spawn_blocking(move || {
            gunzip.count(usize::MAX)?;
            let body = gunzip.unpack(&mut share)?;
            Ok(Collected { body, share })
        });
        work.await.map_err(|_| CollectError::Undecodable("gzip"))?
    }
}

/// Reads the rest of a refused request if it is short. Returns `false` if its connection must close.
pub(super) async fn discard(mut incoming: Incoming) -> bool {
    if announced(&incoming) > DISCARD {
        return false;
    }
    let mut read = 0;
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else { return false };
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > DISCARD {
            return false;
        }
    }
    true
}

/// Returns the length that the head of the request states; 0 if it states none.
fn announced(incoming: &Incoming) -> usize {
    usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX)
}

impl From<GunzipError> for CollectError {
    fn from(error: GunzipError) -> CollectError {
        match error {
            GunzipError::TooLong => CollectError::TooLong,
            GunzipError::TooDense => CollectError::TooDense,
            GunzipError::TooMany => CollectError::TooMany,
            GunzipError::Malformed => CollectError::Undecodable("gzip"),
        }
    }
}
