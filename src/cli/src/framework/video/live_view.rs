//! `tepui framework video live`: prints the address of the live view of a query, or measures what a viewer sees over a
//! link.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use video::bitrate::Trace;
use video::viewer;

use crate::connect::MasterArgs;
use crate::say::say;
use crate::service::{Service, encode};

/// Flags of `tepui framework video live`.
#[derive(Debug, clap::Args)]
pub(super) struct LiveArgs {
    /// The query
    #[arg(value_name = "QUERY")]
    query: String,
    #[command(flatten)]
    master: MasterArgs,
    /// The framework's API, as host:port; if not given, the master is asked
    #[arg(long, short, value_name = "ADDRESS")]
    service: Option<String>,
    /// Name of the framework, if there are several
    #[arg(long, default_value = "video", value_name = "NAME")]
    framework: String,
    /// Watch for this time and report what a viewer sees
    #[arg(long, value_name = "DURATION", value_parser = base::parse_duration)]
    watch: Option<Duration>,
    /// With --watch: bandwidth of the modelled link in Mbit/s, or a file with lines of seconds and Mbit/s
    #[arg(long, value_name = "MBITS|FILE", requires = "watch")]
    link: Option<String>,
    /// Policy that chooses pictures, for comparisons: linear, predictive, rate, buffer, or a rung from 0
    #[arg(long, value_name = "POLICY")]
    choose: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn live(args: &LiveArgs) -> Result<ExitCode> {
    let service = args.service.as_deref();
    let service = Service::find(&args.master, service, &args.framework, "tepui framework video").await?;
    // The framework's answer tells whether the query exists.
    service.get(&format!("/queries/{}", encode(&args.query))).await?;
    let choose = args.choose.as_ref().map_or_else(String::new, |policy| format!("?policy={}", encode(policy)));
    let path = format!("/queries/{}/live{choose}", encode(&args.query));
    let Some(time) = args.watch else {
        say!("{}{path}", service.url());
        return Ok(ExitCode::SUCCESS);
    };
    let link = args.link.as_deref().map(trace).transpose()?;
    let seen = viewer::watch(service.address(), &path, link, time.as_secs_f64(), |_| {}).await?;
    if args.json {
        say!("{}", serde_json::to_string(&seen)?);
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{} pictures in {:.1} s, {} skipped; {:.2} Mbit/s; mean rung {:.2}, {} changes; stalled for {:.1} s; 95 % of the \
         pictures at most {:.2} s late",
        seen.pictures,
        seen.seconds,
        seen.left_out,
        seen.megabits,
        seen.rung,
        seen.changes,
        seen.stands,
        seen.delay_95
    );
    Ok(ExitCode::SUCCESS)
}

/// Reads the bandwidth of a link: a number, or a file.
fn trace(text: &str) -> Result<Arc<Trace>> {
    if let Ok(megabits) = text.parse::<f64>() {
        return Ok(Arc::new(Trace::new(&[(1.0, megabits)]).context("--link")?));
    }
    let path = Path::new(text);
    let lines = std::fs::read_to_string(path).with_context(|| format!("--link: cannot read {}", path.display()))?;
    Ok(Arc::new(Trace::read(&lines).with_context(|| format!("--link: {} is not a trace", path.display()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_numbers_or_files() {
        assert!((trace("1.5").unwrap().megabits(7.0) - 1.5).abs() < 1e-9);
        let error = format!("{:#}", trace("/nowhere").unwrap_err());
        assert!(error.starts_with("--link: cannot read /nowhere"), "{error}");
        assert!(trace("0").is_err());
    }
}
