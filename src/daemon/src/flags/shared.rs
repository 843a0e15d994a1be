//! The flags that master and agent share: addresses, the log and the audit log.
//!
//! Rules that need more than one value are checked by the readers.

use std::path::PathBuf;

use super::spec::{Bytes, Flag, Group, Json, Kind, flags};

flags! {
    /// Where the daemon listens, and how it names itself.
    NetworkFlags {
        /// Bind IP; exclusive with ip_discovery_command
        ip: Option<String>,
        /// Command printing the IP
        ip_discovery_command: Option<String>,
        /// Advertised IP; the bind address stays --ip
        advertise_ip: Option<String>,
        /// Advertised port
        advertise_port: Option<u64>,
        /// Advertised host name
        hostname: Option<String>,
        /// False: use IP as hostname
        hostname_lookup: bool = "true",
        /// Connections open at once, outgoing ones included; default: half of the open files, a master's nine tenths
        max_connections: Option<u64>,
        /// Disabled endpoints JSON
        firewall_rules: Option<Json>,
        /// Answer requests with the parameter `jsonp` by JavaScript, which pages of any origin can read
        jsonp: bool = "true",
    }
}

flags! {
    /// TLS, as the variables LIBPROCESS_SSL_* of the same meaning; a flag wins.
    TlsFlags {
        /// Certificate chain, PEM; with --tls_key_file it turns TLS on
        tls_cert_file: Option<PathBuf>,
        /// Private key of --tls_cert_file, PEM
        tls_key_file: Option<PathBuf>,
        /// Certificates of trusted authorities, PEM; default: those of the system
        tls_ca_file: Option<PathBuf>,
        /// Directory of such files
        tls_ca_dir: Option<PathBuf>,
        /// Verify the certificates of masters, agents and frameworks that the daemon connects to
        tls_verify_server_cert: Option<bool>,
        /// Require a valid certificate of every client
        tls_require_client_cert: Option<bool>,
        /// Also accept plain connections, and connect to peers without TLS
        tls_support_downgrade: Option<bool>,
    }
}

flags! {
    /// The log.
    LoggingFlags {
        /// Log directory
        log_dir: Option<PathBuf>,
        /// Log file managed elsewhere, shown in UI
        external_log_file: Option<PathBuf>,
        /// INFO/WARNING/ERROR
        logging_level: String = "INFO",
        /// No stderr logging
        quiet: bool = "false",
    }
}

flags! {
    /// The audit log.
    AuditFlags {
        /// File of the audit log, or `journald`; without it there is none
        audit_log: Option<PathBuf>,
        /// Size at which the file of the audit log is rotated
        audit_log_max_size: Bytes = "100MB",
        /// Number of files of the audit log, the one that is written included
        audit_log_max_files: u64 = "5",
    }
}

/// Flags that no code reads.
pub(super) const UNREAD: &[Flag] = &[
    Flag::without_effect(
        "initialize_driver_logging",
        Kind::Bool,
        Some("true"),
        "v0 driver only",
        "the log of a scheduler is its own",
    ),
    Flag::without_effect("logbufsecs", Kind::Count, Some("0"), "flush delay", "log lines are written at once"),
];

/// Flags that both daemons use while they load the others.
pub(super) const GENERAL: Group = Group {
    about: " General.",
    flags: &[
        Flag::of_loader("help", Kind::Bool, Some("false"), "print the flags and exit"),
        Flag::of_loader("version", Kind::Bool, Some("false"), "print and exit"),
        Flag::of_loader(
            "config",
            Kind::Text,
            None,
            "TOML file of flags: one `name = value` a line; environment and command line win over it",
        ),
    ],
};
