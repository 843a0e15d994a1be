//! `tepui framework video uplink`: sends the pictures of a camera on this machine to queries elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use video::media::Source;
use video::uplink::{Uplink, UplinkOptions};

use crate::interrupt::wait_for_end;
use crate::say::say;

/// Flags of `tepui framework video uplink`.
#[derive(Debug, clap::Args)]
pub(super) struct UplinkArgs {
    /// A camera, or a video file that is played at its rate
    #[arg(value_name = "SOURCE")]
    source: Source,
    /// Address to listen at
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// File with `user:password` that readers must have
    #[arg(long, value_name = "FILE")]
    credential_file: Option<PathBuf>,
    /// Begin a file again at its end
    #[arg(long)]
    repeat: bool,
}

/// Runs until the source ends or a signal arrives.
///
/// # Errors
/// The address is in use, a file is invalid, or the source cannot be read to its end.
pub(super) async fn uplink(args: UplinkArgs) -> Result<ExitCode> {
    if args.repeat && args.source.camera().is_some() {
        bail!("--repeat is for files: a camera has no end");
    }
    let credential = args.credential_file.as_deref().map(credential).transpose()?;
    if credential.is_none() && !args.listen.ip().is_loopback() {
        stdio::err!("every host that reaches {} can see the pictures: set --credential-file", args.listen);
    }
    let UplinkArgs { source, listen, repeat, .. } = args;
    let mut uplink = Uplink::start(UplinkOptions { source, repeat, listen, credential }).await?;
    say!("queries read it as video = \"uplink://{}\"; browsers at {}/", uplink.address(), uplink.url());
    tokio::select! {
        ended = uplink.wait() => ended?,
        interrupted = wait_for_end() => interrupted?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a user and a password.
fn credential(path: &std::path::Path) -> Result<(String, String)> {
    let text = std::fs::read_to_string(path).with_context(|| format!("--credential-file={}", path.display()))?;
    match text.trim_end_matches(['\r', '\n']).split_once(':') {
        Some((user, password)) if !user.is_empty() && !password.is_empty() && !password.contains([':', '\n']) => {
            Ok((user.to_owned(), password.to_owned()))
        }
        _ => bail!("--credential-file={}: it must have one line, user:password, with one colon", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_have_one_line_and_one_colon() {
        let path = std::env::temp_dir().join(format!("tepui-uplink-credential-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            credential(&path)
        };
        assert_eq!(read("me:word\n").unwrap(), ("me".to_owned(), "word".to_owned()));
        for text in ["", "me", ":word", "me:", "me:a:b", "me:a\nyou:b\n"] {
            assert!(read(text).unwrap_err().to_string().contains("user:password"), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(credential(&path).is_err());
    }
}
