//! Endpoints that master and agent share: health, version, flags, files, load, log level, help, the web page.
//!
//! They do not depend on the cores.

pub mod calls;
mod files;
mod help;
mod judged;
mod log_level;
mod query;
pub(crate) mod unknown_call;

use std::sync::Arc;

use protos::json::Writer;
use wire::Connections;
use wire::http::{Method, Request, Response, StatusCode};
use wire::route::Table;
use wire::tls::Tls;

#[cfg(test)]
pub use help::gaps;
pub use judged::judged;
pub use log_level::LogLevel;
pub(crate) use log_level::note_toggle;
pub use query::{form, number};

use crate::audit::Audit;
use crate::files::Files;
use crate::firewall::Firewall;
use crate::flags::{Flags, LoggingFlags, Part};
use crate::host;
use crate::webui::Webui;

/// The Mesos release whose wire this is: clients and agents compare it (docs/mesos/clients.md).
pub const MESOS_VERSION: &str = "1.11.0";

/// What every endpoint may use.
#[derive(Debug)]
pub struct Common {
    /// Which daemon this is.
    pub part: Part,
    /// Its effective flags, as `/flags` shows them.
    pub flags: Flags,
    /// Where its log is.
    pub(crate) logging: LoggingFlags,
    /// What `/files` shows.
    pub files: Files,
    /// Connections of clients and to other processes.
    pub(crate) connections: Connections,
    /// Its TLS, if it has any.
    pub(crate) tls: Option<Tls>,
    /// The page at `/`.
    pub(crate) webui: Webui,
    /// Disabled endpoints.
    pub(crate) firewall: Firewall,
    /// Whether callbacks of pages are answered.
    pub(crate) jsonp: bool,
    /// How much is logged.
    pub log_level: Arc<LogLevel>,
    /// The log of changes.
    pub(crate) audit: Audit,
    /// Whether messages from another address than their sender names are refused.
    pub strict_peers: bool,
}

/// The value of `LIBPROCESS_REQUIRE_PEER_ADDRESS_IP_MATCH`.
pub fn strict_peers() -> bool {
    std::env::var("LIBPROCESS_REQUIRE_PEER_ADDRESS_IP_MATCH").is_ok_and(|value| matches!(&*value, "true" | "1"))
}

/// An endpoint that both daemons have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named as its path")]
pub enum Shared {
    Health,
    Version,
    Flags,
    SystemStats,
    LoggingToggle,
    Help,
    FilesBrowse,
    FilesRead,
    FilesDownload,
    FilesDebug,
    /// The web page at `""`, or one of its directories.
    Webui(&'static str),
}

/// Adds the shared endpoints to a daemon's routes.
pub fn add_routes<T>(table: Table<T>, process: &str, route: impl Fn(Shared) -> T) -> Table<T> {
    table
        .add(process, "/health", route(Shared::Health))
        .add(process, "/flags", route(Shared::Flags))
        .add("version", "", route(Shared::Version))
        .add("system", "/stats.json", route(Shared::SystemStats))
        .add("logging", "/toggle", route(Shared::LoggingToggle))
        .add("help", "", route(Shared::Help))
        .add("files", "/browse", route(Shared::FilesBrowse))
        .add("files", "/read", route(Shared::FilesRead))
        .add("files", "/download", route(Shared::FilesDownload))
        .add("files", "/debug", route(Shared::FilesDebug))
        .add(process, "", route(Shared::Webui("")))
        .add(process, "/assets", route(Shared::Webui("assets")))
}

impl Common {
    /// Shows the log as a file, if there is one.
    pub fn attach_log(&self, virtual_path: &str) {
        let external = self.logging.external_log_file.clone();
        if let Some(path) = external.or_else(|| crate::logging::log_file(self.part, &self.logging)) {
            self.files.attach(virtual_path, &path);
        }
    }

    /// The fields `log_dir` and `external_log_file` of a state document.
    pub(crate) fn write_log_fields(&self, writer: &mut Writer<'_>) {
        for (name, path) in [("log_dir", &self.logging.log_dir), ("external_log_file", &self.logging.external_log_file)]
        {
            if let Some(path) = path {
                writer.key(name).string(&path.to_string_lossy());
            }
        }
    }

    /// Answers a shared endpoint. `rest` is what follows it in the path.
    pub async fn answer(self: &Arc<Self>, endpoint: Shared, rest: &str, request: &Request) -> Response {
        let jsonp = request.query.get("jsonp");
        match endpoint {
            Shared::Health => Response::empty(StatusCode::OK),
            Shared::Version => Response::ok_jsonp(version_json(), jsonp),
            Shared::Flags => Response::ok_jsonp(self.flags_json(), jsonp),
            Shared::SystemStats => Response::ok_jsonp(system_json(), jsonp),
            Shared::LoggingToggle => self.log_level.toggle(request),
            Shared::Help => help::page(self.part),
            Shared::FilesBrowse => files::browse(self, request).await,
            Shared::FilesRead => files::read(self, request).await,
            Shared::FilesDownload => files::download(self, request).await,
            Shared::FilesDebug => files::debug(self, jsonp),
            Shared::Webui(directory) => self.webui.answer(directory, rest, request).await,
        }
    }

    /// `{"flags":{...}}`
    pub fn flags_json(&self) -> Vec<u8> {
        Writer::document(|w| {
            w.object(|w| {
                w.key("flags").object(|w| self.write_flags(w));
            });
        })
    }

    /// The fields of the object of flags.
    pub fn write_flags(&self, writer: &mut Writer<'_>) {
        for (name, value) in self.flags.iter() {
            writer.key(name).string(&value);
        }
    }
}

/// Whether a request is a GET. Most endpoints that only read answer any method, as Mesos's do (docs/mesos/clients.md);
/// a few do not.
pub fn gets(request: &Request) -> bool {
    request.method == Method::GET || request.method == Method::HEAD
}

/// Facts of the build, shown in `/version` and `/state`.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// `YYYY-MM-DD HH:MM:SS`
    pub date: &'static str,
    /// Seconds since the epoch.
    pub time: f64,
    /// The user that built it.
    pub user: &'static str,
    /// The release of tepui.
    pub tag: &'static str,
}

/// This build.
pub const BUILD: Build = Build {
    date: "2026-11-20 00:00:00",
    time: 1_795_132_800.0,
    user: "tepui",
    tag: concat!("tepui-", env!("CARGO_PKG_VERSION")),
};

fn version_json() -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out).object(|w| {
        w.key("build_date").string(BUILD.date);
        w.key("build_time").double(BUILD.time);
        w.key("build_user").string(BUILD.user);
        w.key("git_tag").string(BUILD.tag);
        w.key("version").string(MESOS_VERSION);
    });
    out
}

fn system_json() -> Vec<u8> {
    let (load, memory) = (host::load(), containers::host_memory());
    let mut out = Vec::new();
    Writer::new(&mut out).object(|w| {
        w.key("avg_load_15min").double(load[2]);
        w.key("avg_load_1min").double(load[0]);
        w.key("avg_load_5min").double(load[1]);
        w.key("cpus_total").uint(host::processors());
        w.key("mem_free_bytes").uint(memory.free);
        w.key("mem_total_bytes").uint(memory.total);
    });
    out
}
