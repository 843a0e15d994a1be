//! gzip in both directions (docs/mesos/transport.md). It does not decide which bodies are streams.

use std::io::{self, Read, Write};

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, HeaderValue};

use super::Response;
use super::response::ResponseBody;
use crate::budget::{Share, UNCOUNTED};
use crate::negotiate::allows_gzip;

/// Shorter bodies are sent as they are.
const MINIMUM: usize = 1024;
/// Bodies from here on are worked on by the blocking pool: about a millisecond's work.
const OFF_THREAD: usize = 64 << 10;

/// A compressed body may be this many times as long once it is decompressed, beyond the first `DENSE_FREE` bytes. JSON
/// of many equal tasks is compressed some 100 times; gzip itself reaches 1,000 times.
const DENSITY_MAX: usize = 200;
const DENSE_FREE: usize = 1 << 20;
/// Bytes that are decompressed between two looks at the limits.
const STEP: usize = 64 << 10;

/// Why a compressed body cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GunzipError {
    Malformed,
    TooLong,
    TooDense,
    TooMany,
}

/// A body that is decompressed in steps.
pub(super) struct Gunzip {
    decoder: MultiGzDecoder<Reader<Bytes>>,
    packed: usize,
    plain: Vec<u8>,
    limit: usize,
    share: Share,
}

impl Gunzip {
    /// A body that may have `limit` bytes once it is decompressed; `share` has its compressed bytes already.
    pub(super) fn new(packed: Bytes, limit: usize, share: Share) -> Gunzip {
        let length = packed.len();
        Gunzip { decoder: MultiGzDecoder::new(packed.reader()), packed: length, plain: Vec::new(), limit, share }
    }

    /// Whether the compressed body is so short that looking at it takes no time.
    pub(super) fn is_short(&self) -> bool {
        self.packed < STEP
    }

    /// Decompresses to the end, or until there are more than `until` bytes; whether that is the end.
    pub(super) fn run(&mut self, until: usize) -> Result<bool, GunzipError> {
        while self.plain.len() <= until {
            let step = (&mut self.decoder).take(STEP as u64).read_to_end(&mut self.plain);
            if step.map_err(|_| GunzipError::Malformed)? == 0 {
                return Ok(true);
            }
            let length = self.plain.len();
            if length > self.limit {
                return Err(GunzipError::TooLong);
            }
            if length > DENSE_FREE && length / DENSITY_MAX > self.packed {
                return Err(GunzipError::TooDense);
            }
            if length > UNCOUNTED && !self.share.grow_to(self.packed + length) {
                return Err(GunzipError::TooMany);
            }
        }
        Ok(false)
    }

    pub(super) fn into_parts(self) -> (Bytes, Share) {
        (self.plain.into(), self.share)
    }
}

fn gzip_now(parts: &[Bytes]) -> io::Result<Bytes> {
    let length: usize = parts.iter().map(Bytes::len).sum();
    let mut encoder = GzEncoder::new(Vec::with_capacity(length / 4), Compression::fast());
    for part in parts {
        encoder.write_all(part)?;
    }
    Ok(encoder.finish()?.into())
}

/// Compresses a response where the request's `Accept-Encoding` allows it and all other conditions hold.
pub(super) async fn gzip(mut response: Response, accept_encoding: Option<&str>) -> Response {
    let length = match &response.body {
        ResponseBody::Full(body) => body.len(),
        ResponseBody::Parts(parts) => parts.iter().map(Bytes::len).sum(),
        ResponseBody::Stream(_) => return response,
    };
    if length < MINIMUM || response.headers.contains_key(CONTENT_ENCODING) || !allows_gzip(accept_encoding) {
        return response;
    }
    let parts: Vec<Bytes> = match &response.body {
        ResponseBody::Full(body) => vec![body.clone()],
        ResponseBody::Parts(parts) => parts.iter().cloned().collect(),
        ResponseBody::Stream(_) => return response,
    };
    let packed = if length < OFF_THREAD {
        gzip_now(&parts)
    } else {
        tokio::task::spawn_blocking(move || gzip_now(&parts)).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    };
    // Writing into memory does not fail; were it to, the plain body is as good an answer.
    if let Ok(packed) = packed {
        response.body = ResponseBody::Full(packed);
        response.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    fn gunzip(packed: impl Into<Bytes>, limit: usize) -> Result<Bytes, GunzipError> {
        gunzip_within(packed, limit, usize::MAX)
    }

    fn gunzip_within(packed: impl Into<Bytes>, limit: usize, budget: usize) -> Result<Bytes, GunzipError> {
        let share = Budget::new(budget).share([127, 0, 0, 1].into());
        let mut gunzip = Gunzip::new(packed.into(), limit, share);
        gunzip.run(usize::MAX).map(|done| {
            assert!(done);
            gunzip.into_parts().0
        })
    }

    #[test]
    fn round_trip_and_limit() {
        let plain = vec![b'x'; 100_000];
        let packed = gzip_now(&[plain[..10].to_vec().into(), plain[10..].to_vec().into()]).unwrap();
        assert!(packed.len() < 1000);
        assert_eq!(gunzip(packed.clone(), 100_000).unwrap(), plain);
        assert_eq!(gunzip(packed.clone(), 99_999), Err(GunzipError::TooLong));
        assert_eq!(gunzip(b"no gzip".to_vec(), 10), Err(GunzipError::Malformed));
        assert_eq!(gunzip(packed.slice(..packed.len() - 5), 100_000), Err(GunzipError::Malformed));
        assert_eq!(gunzip_within(packed, 100_000, 1000), Err(GunzipError::TooMany));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let packed = gzip_now(&[vec![0; 50 << 20].into()]).unwrap();
        let share = Budget::new(usize::MAX).share([127, 0, 0, 1].into());
        let mut gunzip = Gunzip::new(packed.clone(), usize::MAX, share);
        assert_eq!(gunzip.run(usize::MAX), Err(GunzipError::TooDense));
        assert!(gunzip.plain.len() < DENSITY_MAX * packed.len() + 2 * STEP, "{}", gunzip.plain.len());
    }
}
