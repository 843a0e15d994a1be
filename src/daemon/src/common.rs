//! Endpoints that both daemons have: health, version, flags, files, load, log level, help, the web page.
//!
//! They do not depend on the cores.

pub mod calls;
mod files;
mod help;
mod large_calls;
mod log_level;
mod query;
pub(crate) mod unknown_call;

use std::sync::Arc;

use protos::json::Writer;
use wire::Connections;
use wire::http::{Request, Response, StatusCode};
use wire::route::Table;
use wire::tls::Tls;

#[cfg(test)]
pub use help::gaps;
pub use large_calls::check_off_reactor;
pub use log_level::LogLevel;
pub(crate) use log_level::note_toggle;
pub use query::{form, number};

use crate::audit::Audit;
use crate::files::Files;
use crate::firewall::Firewall;
use crate::flags::{Flags, LoggingFlags, Part};
use crate::host;
use crate::webui::Webui;

/// The Mesos release whose wire protocol the daemons implement: clients and agents compare it (docs/mesos/clients.md).
pub const MESOS_VERSION: &str = "1.11.0";

/// The data that endpoints of both daemons use.
#[derive(Debug)]
pub struct Common {
    /// The kind of the daemon.
    pub part: Part,
    /// Effective flags of the daemon, as `/flags` shows them.
    pub flags: Flags,
    /// Flags of the log: where it is written.
    pub(crate) logging: LoggingFlags,
    /// Files and directories that `/files` serves.
    pub files: Files,
    /// Connections with clients and other processes, and their limit.
    pub(crate) connections: Connections,
    /// TLS of the daemon; `None` if it is off.
    pub(crate) tls: Option<Tls>,
    /// The web page at `/`.
    pub(crate) webui: Webui,
    /// Disabled endpoints.
    pub(crate) firewall: Firewall,
    /// Whether requests with the parameter `jsonp` are allowed.
    pub(crate) jsonp: bool,
    /// Current log level.
    pub log_level: Arc<LogLevel>,
    /// Audit log.
    pub(crate) audit: Audit,
    /// Whether messages are refused that come from another address than that of the sender that they name.
    pub strict_peers: bool,
}

/// Returns the value of `LIBPROCESS_REQUIRE_PEER_ADDRESS_IP_MATCH`.
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
    /// Attaches the log to a virtual path, if there is one.
    pub fn attach_log(&self, virtual_path: &str) {
        let external = self.logging.external_log_file.clone();
        if let Some(path) = external.or_else(|| crate::logging::log_file(self.part, &self.logging)) {
            self.files.attach(virtual_path, &path);
        }
    }

    /// Writes the fields `log_dir` and `external_log_file` of a state document.
    pub(crate) fn write_log_fields(&self, writer: &mut Writer<'_>) {
        for (name, path) in [("log_dir", &self.logging.log_dir), ("external_log_file", &self.logging.external_log_file)]
        {
            if let Some(path) = path {
                writer.key(name).string(&path.to_string_lossy());
            }
        }
    }

    /// Answers a request for a shared endpoint. `rest` is the rest of the path after that of the endpoint.
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

    /// Returns the document `{"flags":{...}}`.
    pub fn flags_json(&self) -> Vec<u8> {
        Writer::document(|w| {
            w.object(|w| {
                w.key("flags").object(|w| self.write_flags(w));
            });
        })
    }

    /// Writes the fields of the object of flags.
    pub fn write_flags(&self, writer: &mut Writer<'_>) {
        for (name, value) in self.flags.iter() {
            writer.key(name).string(&value);
        }
    }
}

/// Data of the build, shown in `/version` and `/state`.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Date of the build, as `YYYY-MM-DD HH:MM:SS`.
    pub date: &'static str,
    /// Time of the build, in seconds since the epoch.
    pub time: f64,
    /// User that built the program.
    pub user: &'static str,
    /// Release of tepui.
    pub tag: &'static str,
}

/// The data of this build.
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
