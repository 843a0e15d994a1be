//! The flags that master and agent share: addresses, the log and the audit log.
//!
//! Rules that need more than one value are checked by the readers.

use std::path::PathBuf;

use super::spec::{Bytes, Flag, Group, Json, Kind, flags};

flags! {
    /// Where the daemon listens, and how it names itself.
    NetworkFlags {
        /// IP address to bind; excludes --ip_discovery_command
        ip: Option<String>,
        /// Command that prints the IP address to bind
        ip_discovery_command: Option<String>,
        /// IP address to advertise; the bind address stays --ip
        advertise_ip: Option<String>,
        /// Port to advertise
        advertise_port: Option<u64>,
        /// Host name to advertise
        hostname: Option<String>,
        /// Whether to look up the host name; if false, the IP is the host name
        hostname_lookup: bool = "true",
        /// Limit of open connections, outgoing ones included; default: half of the limit of open files, for a master
        /// nine tenths
        max_connections: Option<u64>,
        /// Endpoints to disable, as JSON
        firewall_rules: Option<Json>,
        /// Answer requests that have the parameter `jsonp` with JavaScript, which pages of any origin can read
        jsonp: bool = "true",
    }
}

flags! {
    /// TLS, as the variables LIBPROCESS_SSL_* of the same meaning; a flag wins.
    TlsFlags {
        /// Whether TLS is on; default: if --tls_cert_file and --tls_key_file are set
        tls_enabled: Option<bool>,
        /// Certificate chain, PEM; with --tls_key_file it turns TLS on
        tls_cert_file: Option<PathBuf>,
        /// Private key of --tls_cert_file, PEM
        tls_key_file: Option<PathBuf>,
        /// Certificates of trusted authorities, PEM; default: those of the system
        tls_ca_file: Option<PathBuf>,
        /// Directory of certificates of trusted authorities, PEM
        tls_ca_dir: Option<PathBuf>,
        /// Verify the certificates of masters, agents and frameworks that the daemon connects to
        tls_verify_server_cert: Option<bool>,
        /// Require a valid certificate of every client
        tls_require_client_cert: Option<bool>,
        /// Also accept plain connections, and connect to peers without TLS
        tls_support_downgrade: Option<bool>,
        /// Maximum number of certificates that a peer may send besides its own, at most 6; default: 4
        tls_verify_depth: Option<u64>,
        /// Check of a peer's certificate: `legacy` accepts the name that its address has in DNS, `openssl` does not;
        /// default: legacy
        tls_hostname_validation_scheme: Option<String>,
        /// Whether TLS 1.2 is allowed; default: true
        tls_enable_v1_2: Option<bool>,
        /// Whether TLS 1.3 is allowed; default: true
        tls_enable_v1_3: Option<bool>,
    }
}

flags! {
    /// The log.
    LoggingFlags {
        /// Log directory
        log_dir: Option<PathBuf>,
        /// Log file that another program manages, to show in the web page
        external_log_file: Option<PathBuf>,
        /// Least severe level to log: INFO, WARNING or ERROR
        logging_level: String = "INFO",
        /// Do not log to standard error
        quiet: bool = "false",
    }
}

flags! {
    /// The audit log.
    AuditFlags {
        /// File of the audit log, or `journald`; without this flag no audit log is written
        audit_log: Option<PathBuf>,
        /// Size at which the audit log file is rotated
        audit_log_max_size: Bytes = "100MB",
        /// Number of audit log files to keep, the current one included
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
        "schedulers configure their own logs",
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
            "TOML file of flags: one `name = value` a line; environment and command line override it",
        ),
    ],
};
