//! The flags that master and agent share: logging, configuration, connections.
//! Only names, defaults, kinds and help: what a flag does is decided where it is used.

use super::spec::{Flag, Kind};

/// The flags that master and agent share.
pub(super) const SHARED: &[Flag] = &[
    Flag {
        name: "external_log_file",
        aliases: &[],
        default: None,
        kind: Kind::Path,
        help: "log file managed elsewhere, shown in UI",
    },
    Flag {
        name: "initialize_driver_logging",
        aliases: &[],
        default: Some("true"),
        kind: Kind::Bool,
        help: "v0 driver only",
    },
    Flag { name: "log_dir", aliases: &[], default: None, kind: Kind::Path, help: "log directory" },
    Flag { name: "logbufsecs", aliases: &[], default: Some("0"), kind: Kind::Count, help: "flush delay" },
    Flag { name: "logging_level", aliases: &[], default: Some("INFO"), kind: Kind::Text, help: "INFO/WARNING/ERROR" },
    Flag { name: "quiet", aliases: &[], default: Some("false"), kind: Kind::Bool, help: "no stderr logging" },
    Flag { name: "help", aliases: &[], default: Some("false"), kind: Kind::Bool, help: "print the flags and exit" },
    Flag {
        name: "config",
        aliases: &[],
        default: None,
        kind: Kind::Text,
        help: "TOML file of flags: one `name = value` a line; environment and command line win over it",
    },
    Flag {
        name: "max_connections",
        aliases: &[],
        default: None,
        kind: Kind::Count,
        help: "connections open at once, outgoing ones included; default: half of the open files, a master's nine tenths",
    },
];
