//! The systemd slice in which executors outlive the agent's unit, whatever its `KillMode` is
//! (`--systemd_enable_support`, `--systemd_runtime_directory`; AGT-83).
//!
//! On a host whose init is not systemd this does nothing, without a message.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use containers::cgroups::Slice;
use containers::isolation::Isolation;

use crate::credential_helpers;
use crate::external_program::{self, ExternalProgram};

/// Name of the slice, the same as in Mesos.
const SLICE: &str = "mesos_executors.slice";
const UNIT: &str = "[Unit]\nDescription=Executors and tasks that outlive their agent\n";

/// The slice of executors, if this host uses systemd. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Systemd(Option<Arc<Slice>>);

impl Systemd {
    /// Starts the slice with systemd. Errors are logged: an agent without the slice works as well, until its unit is
    /// stopped.
    pub(crate) async fn start(runtime: Option<PathBuf>) -> Systemd {
        let Some(runtime) = runtime else { return Systemd(None) };
        // The call may take long, and an agent may share its thread with others.
        let made = tokio::task::spawn_blocking(move || make(&runtime)).await;
        match made.map_err(anyhow::Error::from).flatten() {
            Ok(slice) => {
                tracing::info!("executors run in the systemd slice {SLICE}");
                Systemd(Some(Arc::new(slice)))
            }
            Err(error) => {
                tracing::warn!(
                    "there is no slice {SLICE} for executors: set KillMode=process in the agent's unit, or stopping it \
                     kills them ({error:#})"
                );
                Systemd(None)
            }
        }
    }

    /// Returns the isolation of a process that outlives the agent, with the slice.
    pub(crate) fn outlive(&self, isolation: Isolation) -> Isolation {
        let Some(slice) = &self.0 else { return isolation };
        match slice.with(isolation.cgroup.clone()) {
            Ok(entry) => Isolation { cgroup: Some(entry), ..isolation },
            Err(error) => {
                tracing::warn!("a container is not in the slice {SLICE}: {:#}", anyhow::Error::from(error));
                isolation
            }
        }
    }
}

/// Creates the slice with systemd. Blocks.
fn make(runtime: &Path) -> anyhow::Result<Slice> {
    make_unit(runtime, &external_program::path())?;
    let slice = Slice::of_this_host(SLICE)?;
    slice.make()?;
    Ok(slice)
}

/// Writes the slice's unit file if it does not exist or differs, and starts the unit with systemd.
fn make_unit(runtime: &Path, path: &std::ffi::OsStr) -> anyhow::Result<()> {
    let systemctl = credential_helpers::look_up("systemctl", path).context("there is no systemctl in PATH")?;
    let run = |words: &[&str]| {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let said = format!("systemctl {}", words.join(" ".as_ref()).to_string_lossy());
        let environment = vec![("PATH".into(), path.to_owned())];
        let ask = ExternalProgram { file: systemctl.clone().into(), words, environment, input: b"" };
        let (status, _) = ask.run()?.with_context(|| format!("'{said}' has not ended in time"))?;
        ensure!(status.success(), "'{said}': {status}");
        Ok(())
    };
    let unit = runtime.join(SLICE);
    if std::fs::read_to_string(&unit).ok().as_deref() != Some(UNIT) {
        store::write_file(&unit, UNIT.as_bytes(), store::Access::All)
            .with_context(|| format!("'{}' cannot be written", unit.display()))?;
        run(&["daemon-reload"])?;
    }
    run(&["start", SLICE])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_systemd_are_left_alone() {
        let isolation = Systemd::default().outlive(Isolation::default());
        assert!(isolation.cgroup.is_none());
    }

    #[test]
    fn the_unit_is_written_once_and_started_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let (bin, runtime, heard) =
            (directory.path().join("bin"), directory.path().join("units"), directory.path().join("heard"));
        std::fs::create_dir_all(&runtime).unwrap();
        assert!(make_unit(&runtime, bin.as_os_str()).unwrap_err().to_string().contains("PATH"));
        std::fs::create_dir_all(&bin).unwrap();
        let systemctl = |script: &str| {
            let file = bin.join("systemctl");
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        systemctl(&format!("echo \"$@\" >> {}", heard.display()));
        for _ in 0..2 {
            make_unit(&runtime, bin.as_os_str()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(runtime.join(SLICE)).unwrap(), UNIT);
        let heard = std::fs::read_to_string(&heard).unwrap();
        assert_eq!(heard, format!("daemon-reload\nstart {SLICE}\nstart {SLICE}\n"));
        systemctl("exit 4");
        let error = make_unit(&runtime, bin.as_os_str()).unwrap_err().to_string();
        assert!(error.contains(&format!("systemctl start {SLICE}")) && error.contains("status 4"), "{error}");
    }
}
