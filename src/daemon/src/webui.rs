//! Serves the web page: the files that a browser loads, from the program itself or from the directory of `--webui_dir`.
//!
//! The files are public and contain no data. The data that they show comes from the endpoints, with their
//! authentication. It does not depend on the content of the page.

use std::hash::Hasher;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHasher;
use wire::http::{Request, Response, StatusCode, header, percent_decode};

use crate::files::{Files, FilesError};
use crate::flags::Part;

/// Defines a table of files below `src/daemon/webui`, by name.
macro_rules! files {
    ($($name:literal,)+) => { &[$(($name, include_bytes!(concat!("../webui/", $name)) as &[u8])),+] };
}

/// The files of the built-in page. The two documents are served at `/`, the others below `/assets`.
const FILES: &[(&str, &[u8])] = files![
    "agent.html",
    "master.html",
    "agent.js",
    "agents.js",
    "api.js",
    "dialog.js",
    "executors.js",
    "explain.js",
    "fairness.js",
    "format.js",
    "frameworks.js",
    "history.js",
    "icon.svg",
    "log.js",
    "maintenance.js",
    "master.js",
    "model.js",
    "offers.js",
    "overview.js",
    "plots.js",
    "roles.js",
    "route.js",
    "sandbox.js",
    "search.js",
    "shell.js",
    "store.js",
    "style.css",
    "table.js",
    "tasks.js",
    "theme.js",
    "ui.js",
    "vendor/LICENSE-htm.txt",
    "vendor/LICENSE-preact.txt",
    "vendor/preact-htm.js",
    "visible.js",
];

/// The content security policy: files come only from this origin, and there are no inline scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The content security policy of another page. It has no rule for scripts and styles: Mesos's page loads the answers
/// of agents as scripts from their addresses, and AngularJS evaluates text.
const POLICY_OF_DIRECTORY: &str = "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'";

/// Virtual path of the directory of `--webui_dir`.
const ROOT: &str = "/webui";

/// The files that are served at `/` and below `/assets`, `/app` and `/node_modules`.
#[derive(Debug)]
pub(crate) enum Webui {
    /// The built-in page of this daemon.
    BuiltIn(Part),
    /// The files of a directory, at the paths that they have in Mesos 1.11.
    Directory(Arc<Files>),
}

impl Webui {
    /// Returns the page in `directory`; without one, or if it has no `index.html`, the built-in page.
    pub(crate) fn of(part: Part, directory: Option<&Path>) -> Webui {
        let Some(directory) = directory else { return Webui::BuiltIn(part) };
        if !directory.join("index.html").is_file() {
            tracing::warn!(
                "'--webui_dir': there is no file index.html in {}; the built-in page is served",
                directory.display()
            );
            return Webui::BuiltIn(part);
        }
        let files = Files::default();
        files.attach(ROOT, directory);
        Webui::Directory(Arc::new(files))
    }

    /// Answers a request for the file `rest` of one of the page's directories; `""` is the page itself.
    pub(crate) async fn answer(&self, directory: &'static str, rest: &str, request: &Request) -> Response {
        if !request.is_get_or_head() {
            return Response::method_not_allowed(&["GET"], request.method.as_str());
        }
        let Some(path) = path_of(directory, rest) else { return Response::not_found() };
        let cached = request.header("if-none-match").unwrap_or_default();
        match self {
            Webui::BuiltIn(part) => match built_in(*part, &path) {
                Some((name, data)) => file(name, Bytes::from_static(data), cached)
                    .with_header(header::CONTENT_SECURITY_POLICY, POLICY)
                    .with_header(header::REFERRER_POLICY, "no-referrer"),
                None => Response::not_found(),
            },
            Webui::Directory(files) => {
                let (files, path) = (files.clone(), if path.is_empty() { "index.html".to_owned() } else { path });
                let read = tokio::task::spawn_blocking(move || files.read_whole(&format!("{ROOT}/{path}")));
                match read.await {
                    Ok(Ok((name, data))) => file(&name, data.into(), cached)
                        .with_header(header::CONTENT_SECURITY_POLICY, POLICY_OF_DIRECTORY),
                    Ok(Err(FilesError::Io(why))) => Response::internal(why),
                    Ok(Err(FilesError::NotFound | FilesError::Refused(_))) => Response::not_found(),
                    Err(error) => Response::internal(error.to_string()),
                }
            }
        }
    }
}

/// Returns the path of a file below the page's directory; `None` if it has empty parts or parts such as `..`.
fn path_of(directory: &str, rest: &str) -> Option<String> {
    if directory.is_empty() {
        return rest.is_empty().then(String::new);
    }
    let rest = percent_decode(rest).ok()?;
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\0', '\\']);
    rest.split('/').all(is_plain).then(|| format!("{directory}/{rest}"))
}

/// Returns a file of the built-in page, with its name.
fn built_in(part: Part, path: &str) -> Option<(&'static str, &'static [u8])> {
    let wanted = match (path, part) {
        ("", Part::Master) => "master.html",
        ("", Part::Agent) => "agent.html",
        (path, _) => path.strip_prefix("assets/").filter(|name| !name.ends_with(".html"))?,
    };
    FILES.iter().find(|(name, _)| *name == wanted).copied()
}

/// Responds 200 with a file, or 304 if the browser has this content. Browsers ask each time, so they see a new release
/// at once.
fn file(name: &str, data: Bytes, cached: &str) -> Response {
    let mut hasher = FxHasher::default();
    hasher.write(&data);
    // A weak tag, because a compressed response has the same one.
    let tag = format!("W/\"{:016x}\"", hasher.finish());
    let response = match cached.contains(&tag) {
        true => Response::empty(StatusCode::NOT_MODIFIED),
        false => Response::ok_body(media_type(name), data),
    };
    response
        .with_header(header::ETAG, &tag)
        .with_header(header::CACHE_CONTROL, "no-cache")
        .with_header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
}

/// Returns the content type of a file by its extension.
fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("ico") => "image/x-icon",
        Some("woff") => "font/woff",
        Some("woff2") => "font/woff2",
        Some("ttf") => "font/ttf",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Returns the files of `src/daemon/webui`, by their paths in it.
    fn sources() -> Vec<(String, PathBuf)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("webui");
        let mut directories = vec![root.clone()];
        let mut found = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => directories.push(path),
                    false => found.push((path.strip_prefix(&root).unwrap().display().to_string(), path)),
                }
            }
        }
        found
    }

    #[test]
    fn every_file_is_in_the_program() {
        let mut sources: Vec<String> = sources().into_iter().map(|(name, _)| name).collect();
        let mut files: Vec<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        sources.sort();
        files.sort();
        assert_eq!(files, sources);
    }

    #[test]
    fn every_file_says_what_it_is_for_and_has_one_job() {
        for (name, path) in sources().into_iter().filter(|(name, _)| !name.starts_with("vendor/")) {
            let text = std::fs::read_to_string(path).unwrap();
            let opening = if name.ends_with(".js") {
                "// "
            } else if name.ends_with(".css") {
                "/* "
            } else {
                "<!"
            };
            assert!(text.starts_with(opening), "{name} opens with a comment that says what it is for");
            assert!(text.lines().count() < 300, "{name} has fewer than 300 lines");
            let wide = (1..).zip(text.lines()).find(|(_, line)| line.chars().count() > 120);
            assert!(wide.is_none(), "{name}:{}: wrap the line at 120 columns", wide.unwrap_or_default().0);
        }
    }

    #[test]
    fn paths_stay_below_their_directory() {
        assert_eq!(path_of("", ""), Some(String::new()));
        assert_eq!(path_of("app", "a/b%20c.js"), Some("app/a/b c.js".to_owned()));
        for rest in ["", ".", "..", "../x", "a/../b", "%2e%2e/x", "a%2f..%2fb", "a//b", "a\\b", "a%00b", "%ff", "%"] {
            assert_eq!(path_of("app", rest), None, "{rest}");
        }
        assert_eq!(path_of("", "x"), None);
    }

    #[test]
    fn documents_belong_to_their_daemon() {
        assert_eq!(built_in(Part::Master, "").unwrap().0, "master.html");
        assert_eq!(built_in(Part::Agent, "").unwrap().0, "agent.html");
        assert_eq!(built_in(Part::Master, "assets/style.css").unwrap().0, "style.css");
        for path in ["assets/agent.html", "assets/nothing.js", "app/style.css", "style.css"] {
            assert!(built_in(Part::Master, path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_browser_that_has_the_content_gets_304() {
        let first = file("a.js", Bytes::from_static(b"1"), "");
        let tag = first.headers()["etag"].to_str().unwrap().to_owned();
        assert_eq!(first.status(), 200);
        assert_eq!(first.headers()["content-type"], "text/javascript; charset=utf-8");
        assert_eq!(file("a.js", Bytes::from_static(b"1"), &tag).status(), 304);
        assert_eq!(file("a.js", Bytes::from_static(b"2"), &tag).status(), 200);
    }

    #[tokio::test]
    async fn a_link_out_of_the_directory_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let webui = root.path().join("webui");
        std::fs::create_dir_all(webui.join("app")).unwrap();
        std::fs::write(root.path().join("secret"), "s").unwrap();
        std::fs::write(webui.join("index.html"), "page").unwrap();
        std::os::unix::fs::symlink("../../secret", webui.join("app/out.js")).unwrap();
        std::os::unix::fs::symlink("../index.html", webui.join("app/in.html")).unwrap();
        let Webui::Directory(files) = Webui::of(Part::Master, Some(&webui)) else { panic!("the directory has a page") };
        assert!(files.read_whole("/webui/app/out.js").is_err());
        assert_eq!(files.read_whole("/webui/app/in.html").unwrap().1, b"page");
        assert!(matches!(Webui::of(Part::Master, Some(&webui.join("app"))), Webui::BuiltIn(Part::Master)));
    }
}
