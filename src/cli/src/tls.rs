//! `tepui tls`: creates an authority and certificates for a small cluster. It changes no daemon.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SanType,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::json;

use crate::read::print;
use crate::read::table::table;

const DAY: Duration = Duration::from_secs(86_400);
/// Number of days for which an authority is valid.
const AUTHORITY_DAYS: u32 = 3650;
/// Subject of an authority; the certificates that it signs name it.
const AUTHORITY: &str = "tepui CA";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Write an authority, and a certificate with its key for each host; an authority that is there is used
    Init(InitArgs),
}

#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Directory for the files
    directory: PathBuf,
    /// A host: all of its names and addresses, separated by commas; its files have the first one as name
    #[arg(long, required = true, value_name = "NAME[,NAME...]")]
    host: Vec<String>,
    /// Days until the certificates of hosts expire
    #[arg(long, default_value_t = 825, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Overwrite the certificates of hosts that are there; never the authority
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// A name is invalid, or a file exists already or cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Command::Init(args) => init(&args),
        }
    }
}

/// The file name of a host, and the names and addresses of its certificate.
struct Host {
    file: String,
    names: Vec<SanType>,
}

fn host(text: &str) -> Result<Host> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    let valid = |name: &&str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        name.parse::<IpAddr>().is_ok() || (!name.is_empty() && !name.starts_with('.') && name.chars().all(is_name))
    };
    if let Some(name) = names.iter().find(|name| !valid(name)) {
        bail!("invalid value '{text}' for '--host': '{name}' is neither a host name nor an IP address");
    }
    let file = names[0].replace(':', "_");
    ensure!(file != "ca" && file != "ca-key", "invalid value '{text}' for '--host': '{file}' is the authority's file");
    let san = |name: &&str| -> Result<SanType> {
        Ok(match name.parse() {
            Ok(ip) => SanType::IpAddress(ip),
            Err(_) => SanType::DnsName((*name).try_into()?),
        })
    };
    Ok(Host { file, names: names.iter().map(san).collect::<Result<_>>()? })
}

fn init(args: &InitArgs) -> Result<ExitCode> {
    let hosts = args.host.iter().map(|text| host(text)).collect::<Result<Vec<_>>>()?;
    let path = |name: &str| args.directory.join(format!("{name}.pem"));
    let pair = |file: &str| (path(file), path(&format!("{file}-key")));
    for (number, host) in hosts.iter().enumerate() {
        let is_twice = hosts[..number].iter().any(|other| other.file == host.file);
        ensure!(!is_twice, "'{}' is given twice with '--host'", host.file);
        let (certificate, key) = pair(&host.file);
        for file in [certificate, key].iter().filter(|_| !args.force) {
            ensure!(!file.exists(), "'{}' already exists: --force overwrites it", file.display());
        }
    }
    fs::create_dir_all(&args.directory).with_context(|| format!("cannot create '{}'", args.directory.display()))?;
    let (ca_file, ca_key_file) = pair("ca");
    let (issuer, is_new) = authority(&ca_file, &ca_key_file)?;
    let mut rows = vec![(if is_new { "authority" } else { "authority, unchanged" }, ca_file.clone(), ca_key_file)];
    for host in &hosts {
        let (file, key_file) = pair(&host.file);
        let key = KeyPair::generate()?;
        let mut params = params(&host.file, args.days)?;
        params.subject_alt_names = host.names.clone();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        write(&key_file, &key.serialize_pem(), 0o600, args.force)?;
        write(&file, &params.signed_by(&key, &issuer)?.pem(), 0o644, args.force)?;
        rows.push(("host", file, key_file));
    }
    if args.json {
        let row = |(what, file, key): &(&str, PathBuf, PathBuf)| json!({"for": what, "certificate": file, "key": key});
        return print(&serde_json::to_string_pretty(&rows.iter().map(row).collect::<Vec<_>>())?);
    }
    let mut files = table(&["FOR", "CERTIFICATE", "KEY"]);
    for (what, file, key) in &rows {
        files.add_row([(*what).to_owned(), file.display().to_string(), key.display().to_string()]);
    }
    let (_, certificate, key) = &rows[1];
    print(&format!(
        "{files}\n\nCopy ca.pem and the files of each host to that host, keep ca-key.pem here, and start its master or agent \
         with\n  --tls_cert_file={} --tls_key_file={} --tls_ca_file={} --tls_verify_server_cert",
        certificate.display(),
        key.display(),
        ca_file.display()
    ))
}

/// Reads the authority of a directory; creates one if there is none.
fn authority(file: &Path, key_file: &Path) -> Result<(Issuer<'static, KeyPair>, bool)> {
    let mut params = params(AUTHORITY, AUTHORITY_DAYS)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let is_new = match (file.exists(), key_file.exists()) {
        (false, false) => true,
        (true, true) => false,
        (true, false) => bail!("'{}' has no key '{}': give another directory", file.display(), key_file.display()),
        (false, true) => bail!("'{}' has no certificate '{}'", key_file.display(), file.display()),
    };
    if is_new {
        let key = KeyPair::generate()?;
        write(key_file, &key.serialize_pem(), 0o600, false)?;
        write(file, &params.self_signed(&key)?.pem(), 0o644, false)?;
        return Ok((Issuer::new(params, key), true));
    }
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read '{}'", path.display()));
    let key = KeyPair::from_pem(&read(key_file)?).with_context(|| format!("'{}' is not a key", key_file.display()))?;
    let certificate = CertificateDer::from_pem_slice(read(file)?.as_bytes())
        .with_context(|| format!("'{}' is not a certificate", file.display()))?;
    // Certificates are signed for a subject of this name and for this key.
    let has = |part: &[u8]| certificate.windows(part.len()).any(|window| window == part);
    let is_ours = has(AUTHORITY.as_bytes()) && has(&key.subject_public_key_info());
    ensure!(
        is_ours,
        "'{}' is not an authority of `tepui tls`, or '{}' is not its key",
        file.display(),
        key_file.display()
    );
    Ok((Issuer::new(params, key), false))
}

/// Returns the parameters of a subject's certificate, valid from yesterday on, as clocks differ.
#[expect(clippy::disallowed_methods, reason = "certificates expire by the time of day")]
fn params(name: &str, days: u32) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now();
    params.not_before = (now - DAY).into();
    params.not_after = (now + DAY * days).into();
    Ok(params)
}

fn write(path: &Path, text: &str, mode: u32, force: bool) -> Result<()> {
    if force && let Err(error) = fs::remove_file(path) {
        ensure!(error.kind() == ErrorKind::NotFound, "cannot remove '{}': {error}", path.display());
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write '{}'", path.display()))
}
