//! The endpoints `/files/browse`, `/files/read`, `/files/download`, `/files/debug`: HTTP around [`crate::files`].
//!
//! Disks may be slow: the work is done on another thread than the reactor's.

use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use protos::json::Writer;
use wire::http::{Request, Response, StatusCode, TEXT, header};

use super::{Common, number};
use crate::files::{Download, FileInfo, Files, FilesError, Part, mode_text};

/// The content security policy of files that tasks have written, for a client that shows one nevertheless.
const POLICY: &str = "default-src 'none'; sandbox";

/// Does slow work on `files` on a thread that may block.
pub async fn on_blocking_thread<T: Send + 'static>(
    common: &Arc<Common>,
    work: impl FnOnce(&Files) -> Result<T, FilesError> + Send + 'static,
) -> Result<T, FilesError> {
    let common = common.clone();
    match tokio::task::spawn_blocking(move || work(&common.files)).await {
        Ok(result) => result,
        Err(error) => Err(FilesError::Io(error.to_string())),
    }
}

fn path_of(request: &Request) -> Result<String, FilesError> {
    match request.query.get("path") {
        Some(path) if !path.is_empty() => Ok(path.to_owned()),
        _ => Err(FilesError::Refused("Expecting 'path=value' in query.".into())),
    }
}

fn refused(error: &FilesError) -> Response {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Response::text(status, error.to_string())
}

pub(super) async fn browse(common: &Arc<Common>, request: &Request) -> Response {
    let found = match path_of(request) {
        Ok(path) => on_blocking_thread(common, move |files| files.browse(&path)).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(entries) => Response::ok_jsonp(browse_json(&entries), request.query.get("jsonp")),
        Err(error) => refused(&error),
    }
}

fn browse_json(entries: &[FileInfo]) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out).array(|w| {
        for entry in entries {
            w.object(|w| {
                w.key("gid").string(&entry.group);
                w.key("mode").string(&mode_text(entry.mode));
                w.key("mtime").double(entry.modified.as_secs_f64());
                w.key("nlink").uint(entry.nlink);
                w.key("path").string(&entry.path);
                w.key("size").uint(entry.size);
                w.key("uid").string(&entry.user);
            });
        }
    });
    out
}

/// Parses the parameter `offset` or `length`; missing and -1 both mean that it is not set.
fn place(request: &Request, name: &str) -> Result<Option<u64>, FilesError> {
    match number(&request.query, name) {
        Err(why) => Err(FilesError::Refused(format!("Failed to parse {name}: {why}."))),
        Ok(None | Some(-1)) => Ok(None),
        Ok(Some(value)) => u64::try_from(value)
            .map(Some)
            .map_err(|_| FilesError::Refused(format!("Negative {name} provided: {value}."))),
    }
}

pub(super) async fn read(common: &Arc<Common>, request: &Request) -> Response {
    let part = async {
        let path = path_of(request)?;
        let (offset, length) = (place(request, "offset")?, place(request, "length")?);
        on_blocking_thread(common, move |files| files.read(&path, offset, length)).await
    };
    match part.await {
        Ok(part) => Response::ok_jsonp(read_json(&part), request.query.get("jsonp")),
        Err(error) => refused(&error),
    }
}

fn read_json(part: &Part) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out).object(|w| {
        w.key("data").string_bytes(&part.data);
        w.key("offset").uint(part.offset);
    });
    out
}

pub(super) async fn download(common: &Arc<Common>, request: &Request) -> Response {
    let found = match path_of(request) {
        Ok(path) => on_blocking_thread(common, move |files| files.download(&path)).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(Download { name, file, size }) => Response::ok_file(media_type(&name), file, size)
            .with_header(header::CONTENT_DISPOSITION, &disposition(&name))
            .with_header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
            .with_header(header::CONTENT_SECURITY_POLICY, POLICY),
        Err(FilesError::NotFound) => Response::not_found(),
        Err(error) => refused(&error),
    }
}

/// Returns the header by which a browser saves a file and never shows it. Tasks choose the names of files: characters
/// that end or continue a header's value become `_`, and the whole name follows as of RFC 6266.
fn disposition(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+@#~".contains(c);
    if name.chars().all(is_plain) {
        return format!("attachment; filename={name}");
    }
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("attachment; filename={plain}; filename*=UTF-8''{}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

/// Returns the content type of a file by its extension; that of an unknown one is bytes.
fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html" | "htm") => "text/html",
        Some("css") => "text/css",
        Some("js") => "application/javascript",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => TEXT,
        _ => "application/octet-stream",
    }
}

pub(super) fn debug(common: &Common, jsonp: Option<&str>) -> Response {
    let mut out = Vec::new();
    Writer::new(&mut out).object(|w| {
        for (name, real) in common.files.list() {
            w.key(&name).string(&real.to_string_lossy());
        }
    });
    Response::ok_jsonp(out, jsonp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_downloads_stay_in_their_header() {
        assert_eq!(disposition("stdout.1"), "attachment; filename=stdout.1");
        assert_eq!(disposition("r\n.html"), "attachment; filename=r_.html; filename*=UTF-8''r%0A%2Ehtml");
        assert_eq!(disposition("a; \"b\""), "attachment; filename=a___b_; filename*=UTF-8''a%3B%20%22b%22");
        assert_eq!(disposition("ü"), "attachment; filename=_; filename*=UTF-8''%C3%BC");
    }
}
