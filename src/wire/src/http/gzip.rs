//! gzip in both directions (docs/mesos/transport.md). It does not decide which bodies are streams.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, HeaderValue};

use super::Response;
use super::response::ResponseBody;
use crate::negotiate::allows_gzip;

/// Shorter bodies are sent as they are.
const MINIMUM: usize = 1024;
/// Bodies from here on are worked on by the blocking pool: about a millisecond's work.
const OFF_THREAD: usize = 64 << 10;

/// Why a compressed body cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum GunzipError {
    #[error("the body is no gzip")]
    Malformed(#[source] io::Error),
    #[error("the decompressed body is longer than {0} bytes")]
    TooLong(usize),
}

fn gunzip_now(body: &[u8], limit: usize) -> Result<Bytes, GunzipError> {
    let mut plain = Vec::new();
    // One byte more than the limit shows that there is more; the rest is never unpacked.
    let ceiling = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(body).take(ceiling).read_to_end(&mut plain).map_err(GunzipError::Malformed)?;
    if plain.len() > limit {
        return Err(GunzipError::TooLong(limit));
    }
    Ok(plain.into())
}

/// Decompresses a request's body to at most `limit` bytes.
pub(super) async fn gunzip(body: Bytes, limit: usize) -> Result<Bytes, GunzipError> {
    if body.len() < OFF_THREAD {
        return gunzip_now(&body, limit);
    }
    let work = tokio::task::spawn_blocking(move || gunzip_now(&body, limit));
    work.await.unwrap_or_else(|error| Err(GunzipError::Malformed(io::Error::other(error))))
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

    #[test]
    fn round_trip_and_limit() {
        let plain = vec![b'x'; 100_000];
        let packed = gzip_now(&[plain[..10].to_vec().into(), plain[10..].to_vec().into()]).unwrap();
        assert!(packed.len() < 1000);
        assert_eq!(gunzip_now(&packed, 100_000).unwrap(), plain);
        assert!(matches!(gunzip_now(&packed, 99_999), Err(GunzipError::TooLong(99_999))));
        assert!(matches!(gunzip_now(b"no gzip", 10), Err(GunzipError::Malformed(_))));
        assert!(matches!(gunzip_now(&packed[..packed.len() - 5], 100_000), Err(GunzipError::Malformed(_))));
    }
}
