//! gzip compression in both directions (docs/mesos/transport.md). It does not decide which bodies are streams.

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

/// Minimum length of a body that is compressed.
const MINIMUM: usize = 1024;
/// Length from which bodies are compressed on the blocking pool: about a millisecond's work.
const OFF_THREAD: usize = 64 << 10;

/// Maximum ratio of a body's decompressed length to its compressed length, beyond the first `DENSE_FREE` bytes. JSON of
/// many equal tasks is compressed some 100 times; gzip itself reaches 1,000 times.
const DENSITY_MAX: usize = 200;
const DENSE_FREE: usize = 1 << 20;
/// Length below which a compressed body is examined on the reactor's thread.
const SHORT: usize = 4 << 10;

/// Reason why a compressed body cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GunzipError {
    Malformed,
    TooLong,
    TooDense,
    TooMany,
}

/// A compressed body. It is decompressed twice: once to determine its length, and once into as many bytes. A body that
/// is too long never uses memory.
pub(super) struct Gunzip {
    packed: Bytes,
    /// Decoder that determines the length, and the length so far.
    counter: MultiGzDecoder<Reader<Bytes>>,
    counted: usize,
    limit: usize,
}

impl Gunzip {
    /// Creates it from a compressed body of at most `limit` bytes once it is decompressed.
    pub(super) fn new(packed: Bytes, limit: usize) -> Gunzip {
        Gunzip { counter: MultiGzDecoder::new(packed.clone().reader()), packed, counted: 0, limit }
    }

    /// Returns whether the compressed body is so short that examining it takes no time.
    pub(super) fn is_short(&self) -> bool {
        self.packed.len() < SHORT
    }

    /// Determines the length to the end, or until it exceeds `until`. Returns whether the end was reached.
    pub(super) fn count(&mut self, until: usize) -> Result<bool, GunzipError> {
        let mut step = [0; 4 << 10];
        while self.counted <= until {
            let length = self.counter.read(&mut step).map_err(|_| GunzipError::Malformed)?;
            if length == 0 {
                return Ok(true);
            }
            self.counted += length;
            if self.counted > self.limit {
                return Err(GunzipError::TooLong);
            }
            if self.counted > DENSE_FREE && self.counted / DENSITY_MAX > self.packed.len() {
                return Err(GunzipError::TooDense);
            }
        }
        Ok(false)
    }

    /// Decompresses a body whose length has been determined. `share` already has its compressed bytes.
    pub(super) fn unpack(&self, share: &mut Share) -> Result<Bytes, GunzipError> {
        if self.counted > UNCOUNTED && !share.grow_to(self.packed.len() + self.counted) {
            return Err(GunzipError::TooMany);
        }
        let mut plain = Vec::with_capacity(self.counted);
        MultiGzDecoder::new(&self.packed[..]).read_to_end(&mut plain).map_err(|_| GunzipError::Malformed)?;
        Ok(plain.into())
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
        ResponseBody::File(_) | ResponseBody::Stream(_) => return response,
    };
    if length < MINIMUM || response.headers.contains_key(CONTENT_ENCODING) || !allows_gzip(accept_encoding) {
        return response;
    }
    let parts: Vec<Bytes> = match &response.body {
        ResponseBody::Full(body) => vec![body.clone()],
        ResponseBody::Parts(parts) => parts.iter().cloned().collect(),
        ResponseBody::File(_) | ResponseBody::Stream(_) => return response,
    };
    let packed = if length < OFF_THREAD {
        gzip_now(&parts)
    } else {
        tokio::task::spawn_blocking(move || gzip_now(&parts)).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    };
    // Writing into memory does not fail; if it did, the plain body would do as well.
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
        let mut share = Budget::new(budget).share([127, 0, 0, 1].into());
        let mut gunzip = Gunzip::new(packed.into(), limit);
        assert!(gunzip.count(usize::MAX)?);
        gunzip.unpack(&mut share)
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
        let mut gunzip = Gunzip::new(packed.clone(), usize::MAX);
        assert_eq!(gunzip.count(1 << 16), Ok(false), "it is looked at in parts");
        assert!(gunzip.counted < 2 << 16);
        assert_eq!(gunzip.count(usize::MAX), Err(GunzipError::TooDense));
        assert!(gunzip.counted < DENSITY_MAX * packed.len() + (1 << 20), "{}", gunzip.counted);
    }
}
