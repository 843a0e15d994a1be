//! Reads the secret of a flag from a file, a program, or a credential of systemd. It does not interpret the secret.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::flags::FlagError;

/// Maximum length of a secret in bytes.
const LENGTH_MAX: u64 = 16 << 20;
/// Time limit for a program that prints a secret.
const PATIENCE: Duration = Duration::from_secs(30);
/// Name of the variable in which systemd passes the directory of a service's credentials.
const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";

/// The source of a secret.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    /// A program whose standard output is the secret.
    Program(PathBuf),
    /// A credential of systemd, by its name.
    Systemd(String),
}

impl Source {
    fn of(given: &Path) -> Source {
        let Some(text) = given.to_str() else { return Source::File(given.to_owned()) };
        if let Some(program) = text.strip_prefix("program:") {
            Source::Program(program.into())
        } else if let Some(name) = text.strip_prefix("systemd:") {
            Source::Systemd(name.to_owned())
        } else {
            Source::File(text.strip_prefix("file://").unwrap_or(text).into())
        }
    }
}

/// Reads the secret that the value of the flag `name` stands for: the path of a file, `program:PATH` of a program that
/// prints it, or `systemd:NAME` of a credential (`LoadCredential=` of a unit).
///
/// # Errors
/// The secret cannot be read, or is too long.
pub(crate) fn read(name: &'static str, given: &Path) -> Result<Vec<u8>, FlagError> {
    match Source::of(given) {
        Source::File(path) => {
            warn_if_open(name, &path);
            of_file(&path).map_err(|source| FlagError::File { name, path: path.display().to_string(), source })
        }
        Source::Program(path) => {
            of_program(&path).map_err(|source| FlagError::File { name, path: path.display().to_string(), source })
        }
        Source::Systemd(credential) => of_systemd(name, &credential, std::env::var_os(CREDENTIALS_DIRECTORY)),
    }
}

fn of_systemd(
    name: &'static str,
    credential: &str,
    directory: Option<std::ffi::OsString>,
) -> Result<Vec<u8>, FlagError> {
    let refused = |why: String| FlagError::Refused { name, why };
    if credential.is_empty() || credential.contains('/') {
        return Err(refused(format!("'{credential}' is not the name of a credential of systemd")));
    }
    let Some(directory) = directory else {
        return Err(refused(format!(
            "'systemd:{credential}' needs the variable {CREDENTIALS_DIRECTORY}: systemd sets it for a unit with \
             LoadCredential={credential}:PATH"
        )));
    };
    let path = Path::new(&directory).join(credential);
    of_file(&path).map_err(|source| FlagError::File { name, path: path.display().to_string(), source })
}

fn of_file(path: &Path) -> io::Result<Vec<u8>> {
    limited(std::fs::File::open(path)?)
}

fn limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LENGTH_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LENGTH_MAX {
        return Err(io::Error::other(format!("it has more than {LENGTH_MAX} bytes")));
    }
    Ok(bytes)
}

/// Runs a program and returns its standard output.
fn of_program(path: &Path) -> io::Result<Vec<u8>> {
    let mut program = Command::new(path).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let Some(output) = program.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let (done, result) = mpsc::channel();
    std::thread::Builder::new().name("secret".to_owned()).spawn(move || done.send(limited(output)))?;
    let read = result.recv_timeout(PATIENCE);
    if !matches!(read, Ok(Ok(_))) {
        // The program may have ended already.
        let _ = program.kill();
    }
    let status = program.wait()?;
    match read {
        Ok(Ok(bytes)) if status.success() => Ok(bytes),
        Ok(Ok(_)) => Err(io::Error::other(format!("the program has failed ({status})"))),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other(format!("the program has not ended after {} s", PATIENCE.as_secs()))),
    }
}

/// Warns about a file that every user may access. A missing one is reported when it is read.
fn warn_if_open(name: &'static str, path: &Path) {
    if std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o007 != 0) {
        tracing::warn!(
            "'--{name}': the file '{}' is accessible to all users; restrict it to its owner",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let of = |text: &str| Source::of(Path::new(text));
        assert_eq!(of("/etc/x"), Source::File("/etc/x".into()));
        assert_eq!(of("file:///etc/x"), Source::File("/etc/x".into()));
        assert_eq!(of("program:/bin/x"), Source::Program("/bin/x".into()));
        assert_eq!(of("systemd:x"), Source::Systemd("x".into()));
    }

    #[test]
    fn contents_and_reasons() {
        let directory = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            PathBuf::from(format!("program:{}", path.display()))
        };
        assert_eq!(read("credentials", &script("prints", "printf s3cret")).unwrap(), b"s3cret");
        let why = |given: &Path| {
            let error = read("credentials", given).unwrap_err();
            format!("{:#}", anyhow::Error::from(error))
        };
        let failed = why(&script("fails", "echo s3cret; exit 3"));
        assert!(failed.contains("exit status: 3") && !failed.contains("s3cret"), "{failed}");
        let long = why(&script("long", "exec head -c 20000000 /dev/zero"));
        assert!(long.contains("more than 16777216 bytes"), "{long}");
        assert!(why(Path::new("program:/no/such/program")).contains("'/no/such/program'"));
        assert!(why(Path::new("systemd:a/b")).contains("not the name of a credential"));

        std::fs::write(directory.path().join("list"), "x").unwrap();
        let place = Some(directory.path().as_os_str().to_owned());
        assert_eq!(of_systemd("credentials", "list", place.clone()).unwrap(), b"x");
        assert!(of_systemd("credentials", "other", place).is_err());
        let unset = of_systemd("credentials", "list", None).unwrap_err().to_string();
        assert!(unset.contains("LoadCredential=list:PATH"), "{unset}");
    }
}
