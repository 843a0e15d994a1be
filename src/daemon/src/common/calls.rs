//! The operator calls that master and agent answer in the same way: health, version, flags, metrics, log level, files.
//!
//! The messages of the two daemons have the same fields and no type in common; so a macro sets them.

use std::sync::Arc;
use std::time::Duration;

use protos::mesos;
use wire::http::{Response, StatusCode};

use super::files::on_blocking_thread;
use super::{BUILD, Common, MESOS_VERSION};
use crate::files::{FileInfo, FilesError, Part};

/// Expands to the body of a function that answers such a call: `Ok(None)` if the response has no content. `$api` is
/// `master` or `agent`, `$metrics` a future of the daemon's metrics.
macro_rules! of_the_daemon {
    ($api:ident, $common:expr, $call:expr, $metrics:expr) => {{
        use protos::mesos::$api::{Response, call::Type, response};
        use $crate::common::calls;

        let (common, call) = ($common, $call);
        let mut answer = Response::default();
        match call.r#type() {
            Type::GetHealth => {
                answer.set_type(response::Type::GetHealth);
                answer.get_health = Some(response::GetHealth { healthy: true });
            }
            Type::GetFlags => {
                answer.set_type(response::Type::GetFlags);
                answer.get_flags = Some(response::GetFlags { flags: calls::flags(common) });
            }
            Type::GetVersion => {
                answer.set_type(response::Type::GetVersion);
                answer.get_version = Some(response::GetVersion { version_info: calls::version() });
            }
            Type::GetMetrics => {
                answer.set_type(response::Type::GetMetrics);
                answer.get_metrics = Some(response::GetMetrics { metrics: $metrics.await.messages() });
            }
            Type::GetLoggingLevel => {
                answer.set_type(response::Type::GetLoggingLevel);
                answer.get_logging_level = Some(response::GetLoggingLevel { level: common.log_level.level() });
            }
            Type::SetLoggingLevel => {
                let set = call.set_logging_level.unwrap_or_default();
                calls::set_logging_level(common, set.level, &set.duration);
                return Ok(None);
            }
            Type::ListFiles => {
                let path = call.list_files.unwrap_or_default().path;
                let file_infos = calls::list_files(common, path).await?;
                answer.set_type(response::Type::ListFiles);
                answer.list_files = Some(response::ListFiles { file_infos });
            }
            _ => {
                let read = call.read_file.unwrap_or_default();
                let part = calls::read_file(common, read.path, read.offset, read.length).await?;
                answer.set_type(response::Type::ReadFile);
                answer.read_file = Some(response::ReadFile { size: part.size, data: part.data });
            }
        }
        Ok(Some(answer))
    }};
}
pub(crate) use of_the_daemon;

/// Returns the `VersionInfo` of this build.
pub fn version() -> mesos::VersionInfo {
    mesos::VersionInfo {
        version: MESOS_VERSION.to_owned(),
        build_date: Some(BUILD.date.to_owned()),
        build_time: Some(BUILD.time),
        build_user: Some(BUILD.user.to_owned()),
        git_sha: None,
        git_branch: None,
        git_tag: Some(BUILD.tag.to_owned()),
    }
}

/// Returns all flags that are set.
pub fn flags(common: &Common) -> Vec<mesos::Flag> {
    let flags = common.flags.iter();
    flags.map(|(name, value)| mesos::Flag { name: name.to_owned(), value: Some(value.into_owned()) }).collect()
}

/// Sets the log level for a limited time.
pub fn set_logging_level(common: &Common, level: u32, duration: &mesos::DurationInfo) {
    common.log_level.set(level, Duration::from_nanos(u64::try_from(duration.nanoseconds).unwrap_or(0)));
}

/// Answers LIST_FILES.
pub async fn list_files(common: &Arc<Common>, path: String) -> Result<Vec<mesos::FileInfo>, Box<Response>> {
    let found = on_blocking_thread(common, move |files| files.browse(&path)).await.map_err(refused)?;
    Ok(found.into_iter().map(file_info).collect())
}

/// Answers READ_FILE.
pub async fn read_file(
    common: &Arc<Common>,
    path: String,
    offset: u64,
    length: Option<u64>,
) -> Result<Part, Box<Response>> {
    on_blocking_thread(common, move |files| files.read(&path, Some(offset), length)).await.map_err(refused)
}

fn file_info(info: FileInfo) -> mesos::FileInfo {
    mesos::FileInfo {
        path: info.path,
        nlink: i32::try_from(info.nlink).ok(),
        size: Some(info.size),
        mtime: Some(mesos::TimeInfo { nanoseconds: i64::try_from(info.modified.as_nanos()).unwrap_or(i64::MAX) }),
        mode: Some(info.mode),
        uid: Some(info.user),
        gid: Some(info.group),
    }
}

fn refused(error: FilesError) -> Box<Response> {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Box::new(match error {
        FilesError::NotFound => Response::not_found(),
        other => Response::text(status, other.to_string()),
    })
}
