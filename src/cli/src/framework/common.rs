//! The flags that every bundled framework has, and their conversion to options of the library that drives it.
//!
//! It knows no framework: a command flattens [`FrameworkArgs`] into its own flags.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sdk::driver::{Encoding, Options};
use sdk::state::File;
use sdk::v1::FrameworkInfo;

use crate::execute::{capabilities, user};

/// Failover timeout without a state directory: long enough to reconnect.
const SHORT_FAILOVER: Duration = Duration::from_secs(60);
/// Failover timeout with a state directory, with which the next start continues the tasks.
const LONG_FAILOVER: Duration = Duration::from_secs(7 * 24 * 3600);

/// Flags of every command that runs a framework.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Framework")]
pub struct FrameworkArgs {
    /// The master: host[:port], a list of masters separated by commas, or zk://[user:password@]host:port,.../path
    #[arg(long, short, env = "TEPUI_MASTER", default_value = "127.0.0.1:5050", value_name = "MASTER")]
    pub master: String,
    /// Name of the framework [default: the command's name]
    #[arg(long)]
    pub name: Option<String>,
    /// The role whose resources are used
    #[arg(long, default_value = "*")]
    pub role: String,
    /// User of the tasks [default: the current user]
    #[arg(long)]
    pub user: Option<String>,
    /// Principal, if the master authenticates frameworks
    #[arg(long, requires = "secret_file")]
    pub principal: Option<String>,
    /// A file with the principal's secret
    #[arg(long, requires = "principal", value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Directory for the state of the framework; restarted with it, the framework continues with its tasks
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Where to serve the framework's HTTP API; port 0 takes any free one, which is printed
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// How long tasks keep running without this process [default: 1weeks with --state-dir, else 1mins]
    #[arg(long, value_name = "DURATION", value_parser = base::parse_duration)]
    pub failover_timeout: Option<Duration>,
    /// How calls and events are written: protobuf or json
    #[arg(long, default_value = "protobuf", value_parser = ["protobuf", "json"], value_name = "TYPE")]
    pub encoding: String,
}

impl FrameworkArgs {
    /// Returns the options of the driver; `name` is the framework's default name.
    ///
    /// # Errors
    /// A flag is invalid, or the secret or the state cannot be read.
    pub fn options(&self, name: &str) -> Result<Options> {
        let mut options = Options::new(&self.master, self.framework(name)?).context("--master")?;
        options.encoding = if self.encoding == "json" { Encoding::Json } else { Encoding::Protobuf };
        options.credential = self.credential()?;
        if let Some(directory) = &self.state_dir {
            let file = File::open(directory).context("--state-dir; is the framework running already?")?;
            options.state = Some(Box::new(file));
        }
        Ok(options)
    }

    fn framework(&self, name: &str) -> Result<FrameworkInfo> {
        let failover = if self.state_dir.is_some() { LONG_FAILOVER } else { SHORT_FAILOVER };
        Ok(FrameworkInfo {
            user: self.user.clone().unwrap_or_else(user),
            name: self.name.clone().unwrap_or_else(|| name.to_owned()),
            roles: vec![self.role.clone()],
            checkpoint: Some(true),
            failover_timeout: Some(self.failover_timeout.unwrap_or(failover).as_secs_f64()),
            principal: self.principal.clone(),
            capabilities: capabilities(&["MULTI_ROLE", "RESERVATION_REFINEMENT", "PARTITION_AWARE"])?,
            ..Default::default()
        })
    }

    /// Returns the principal with its secret, without the line end after the secret.
    fn credential(&self) -> Result<Option<(String, String)>> {
        let (Some(principal), Some(file)) = (&self.principal, &self.secret_file) else { return Ok(None) };
        let text = std::fs::read_to_string(file).with_context(|| format!("--secret-file={}", file.display()))?;
        let secret = text.trim_end_matches(['\r', '\n']);
        if secret.is_empty() {
            bail!("--secret-file={}: the file holds no secret", file.display());
        }
        Ok(Some((principal.clone(), secret.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        framework: FrameworkArgs,
    }

    fn options(arguments: &[&str]) -> Result<Options> {
        let words = std::iter::once("x").chain(arguments.iter().copied());
        Flags::try_parse_from(words)?.framework.options("trial")
    }

    #[test]
    fn flags_become_options() {
        let plain = options(&[]).unwrap();
        assert_eq!(plain.settings.framework.name, "trial");
        assert_eq!(plain.settings.framework.roles, ["*"]);
        assert_eq!(plain.settings.framework.failover_timeout, Some(60.0));
        assert!(plain.state.is_none() && plain.credential.is_none());
        assert!(options(&["--master=zk://u:p@a:2181,b:2181/mesos"]).is_ok());
        let words = ["--name=n", "--role=a/b", "--user=u", "--failover-timeout=2hrs", "--encoding=json", "-mh:1,i:2"];
        let other = options(&words).unwrap();
        assert_eq!(other.settings.framework.name, "n");
        assert_eq!(other.settings.framework.user, "u");
        assert_eq!(other.settings.framework.failover_timeout, Some(7200.0));
        assert_eq!(other.encoding, Encoding::Json);
    }

    #[test]
    fn wrong_flags_are_named() {
        for (flag, words) in [
            ("--master", &["--master=zk://u:p@a:2181"][..]),
            ("--failover-timeout", &["--failover-timeout=soon"]),
            ("--master", &["--master=no where"]),
            ("--encoding", &["--encoding=xml"]),
            ("--secret-file", &["--principal=p"]),
            ("--secret-file", &["--principal=p", "--secret-file=/dev/null"]),
            ("--listen", &["--listen=here"]),
        ] {
            let error = options(words).unwrap_err();
            assert!(format!("{error:#}").contains(flag), "{flag}: {error:#}");
        }
    }
}
