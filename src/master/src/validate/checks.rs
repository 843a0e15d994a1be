//! Validation of checks and health checks (EXE-81).

use protos::mesos::{CheckInfo, HealthCheck, check_info, health_check};

use super::command;

fn times<const N: usize>(values: [(&str, f64); N]) -> Result<(), String> {
    match values.iter().find(|(_, value)| value.is_nan() || *value < 0.0) {
        Some((name, _)) => Err(format!("Expecting '{name}' to be non-negative")),
        None => Ok(()),
    }
}

fn path(path: Option<&str>) -> Result<(), String> {
    match path {
        Some(path) if !path.starts_with('/') => Err(format!("The path '{path}' of HTTP check must start with '/'")),
        _ => Ok(()),
    }
}

fn shell(info: &protos::mesos::CommandInfo) -> Result<(), String> {
    if info.value.is_none() {
        let what = if info.shell() { "Shell command is not specified" } else { "Executable path is not specified" };
        return Err(what.to_owned());
    }
    command::command(info).map_err(|why| why.to_string())
}

pub(crate) fn health_check(check: &HealthCheck) -> Result<(), String> {
    use health_check::Type;
    let missing = |field| format!("Expecting '{field}' to be set for {field} health check");
    match check.r#type {
        None => return Err("HealthCheck must specify 'type'".to_owned()),
        Some(number) => match Type::try_from(number).unwrap_or(Type::Unknown) {
            Type::Command => shell(check.command.as_ref().ok_or_else(|| missing("command"))?)?,
            Type::Http => {
                let http = check.http.as_ref().ok_or_else(|| missing("http"))?;
                if let Some(scheme) = http.scheme.as_deref().filter(|scheme| !matches!(*scheme, "http" | "https")) {
                    return Err(format!("Unsupported HTTP health check scheme: '{scheme}'"));
                }
                path(http.path.as_deref())?;
            }
            Type::Tcp => {
                check.tcp.as_ref().ok_or_else(|| missing("tcp"))?;
            }
            Type::Unknown => return Err("'UNKNOWN' is not a valid health check type".to_owned()),
        },
    }
    times([
        ("delay_seconds", check.delay_seconds()),
        ("grace_period_seconds", check.grace_period_seconds()),
        ("interval_seconds", check.interval_seconds()),
        ("timeout_seconds", check.timeout_seconds()),
    ])
}

pub(crate) fn check(check: &CheckInfo) -> Result<(), String> {
    use check_info::Type;
    let missing = |field| format!("Expecting '{field}' to be set for {field} check");
    match check.r#type {
        None => return Err("CheckInfo must specify 'type'".to_owned()),
        Some(number) => match Type::try_from(number).unwrap_or(Type::Unknown) {
            Type::Command => shell(&check.command.as_ref().ok_or_else(|| missing("command"))?.command)?,
            Type::Http => path(check.http.as_ref().ok_or_else(|| missing("http"))?.path.as_deref())?,
            Type::Tcp => {
                check.tcp.as_ref().ok_or_else(|| missing("tcp"))?;
            }
            Type::Unknown => return Err("'UNKNOWN' is not a valid check type".to_owned()),
        },
    }
    times([
        ("delay_seconds", check.delay_seconds()),
        ("interval_seconds", check.interval_seconds()),
        ("timeout_seconds", check.timeout_seconds()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::CommandInfo;

    #[test]
    fn words() {
        let http = |scheme: Option<&str>, path: Option<&str>| HealthCheck {
            r#type: Some(health_check::Type::Http as i32),
            http: Some(health_check::HttpCheckInfo {
                scheme: scheme.map(str::to_owned),
                path: path.map(str::to_owned),
                port: 80,
                ..Default::default()
            }),
            ..Default::default()
        };
        let shell = HealthCheck {
            r#type: Some(health_check::Type::Command as i32),
            command: Some(CommandInfo::default()),
            ..Default::default()
        };
        for (given, words) in [
            (HealthCheck::default(), "HealthCheck must specify 'type'"),
            (http(Some("ftp"), None), "Unsupported HTTP health check scheme: 'ftp'"),
            (http(None, Some("x")), "The path 'x' of HTTP check must start with '/'"),
            (
                HealthCheck { delay_seconds: Some(-1.0), ..http(None, None) },
                "Expecting 'delay_seconds' to be non-negative",
            ),
            (
                HealthCheck { timeout_seconds: Some(f64::NAN), ..http(None, None) },
                "Expecting 'timeout_seconds' to be non-negative",
            ),
            (shell, "Shell command is not specified"),
        ] {
            assert_eq!(health_check(&given), Err(words.to_owned()));
        }
        assert_eq!(health_check(&http(Some("https"), Some("/x"))), Ok(()));
        assert_eq!(check(&CheckInfo::default()), Err("CheckInfo must specify 'type'".to_owned()));
        let of = |kind: check_info::Type| CheckInfo { r#type: Some(kind as i32), ..Default::default() };
        let http = check_info::Http { path: Some("x".to_owned()), ..Default::default() };
        let tcp = || CheckInfo { tcp: Some(check_info::Tcp::default()), ..of(check_info::Type::Tcp) };
        let shell = check_info::Command::default();
        for (given, words) in [
            (of(check_info::Type::Tcp), "Expecting 'tcp' to be set for tcp check"),
            (of(check_info::Type::Http), "Expecting 'http' to be set for http check"),
            (of(check_info::Type::Command), "Expecting 'command' to be set for command check"),
            (of(check_info::Type::Unknown), "'UNKNOWN' is not a valid check type"),
            (CheckInfo { command: Some(shell), ..of(check_info::Type::Command) }, "Shell command is not specified"),
            (
                CheckInfo { http: Some(http), ..of(check_info::Type::Http) },
                "The path 'x' of HTTP check must start with '/'",
            ),
            (CheckInfo { interval_seconds: Some(-1.0), ..tcp() }, "Expecting 'interval_seconds' to be non-negative"),
            (CheckInfo { timeout_seconds: Some(f64::NAN), ..tcp() }, "Expecting 'timeout_seconds' to be non-negative"),
        ] {
            assert_eq!(check(&given), Err(words.to_owned()));
        }
        assert_eq!(check(&tcp()), Ok(()));
    }
}
