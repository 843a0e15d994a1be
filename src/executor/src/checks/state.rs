//! Derives the state of checks from the outcomes of probes: the rules of EXE-82 and EXE-85, without probes or clocks.

use std::time::{Duration, Instant};

use crate::messages::{CheckStatus, CheckType, CommandCheckStatus, HttpCheckStatus, TcpCheckStatus};

/// A finding of a check, to be reported to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckReport {
    /// The task is healthy or not; `kill` is true if it must be killed.
    Health { healthy: bool, kill: bool },
    /// The result of the check has changed; [`super::Checks::status`] returns it.
    Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    Tell(CheckReport),
}

/// State of a health check.
#[derive(Debug)]
pub(super) struct HealthState {
    allowed_failures: u32,
    grace: Duration,
    /// Time before which failures do not count, as long as there has been no success.
    grace_until: Option<Instant>,
    failures: u32,
    healthy: Option<bool>,
}

impl HealthState {
    pub(super) fn new(allowed_failures: u32, grace: Duration) -> HealthState {
        HealthState { allowed_failures, grace, grace_until: None, failures: 0, healthy: None }
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.grace_until = Some(now + self.grace);
    }

    pub(super) fn on_outcome(&mut self, good: bool, now: Instant) -> Verdict {
        if good {
            self.failures = 0;
            let is_news = self.healthy != Some(true);
            self.healthy = Some(true);
            let report = CheckReport::Health { healthy: true, kill: false };
            return if is_news { Verdict::Tell(report) } else { Verdict::Nothing };
        }
        if self.healthy.is_none() && self.grace_until.is_some_and(|until| now < until) {
            return Verdict::Nothing;
        }
        self.healthy = Some(false);
        self.failures += 1;
        Verdict::Tell(CheckReport::Health { healthy: false, kill: self.failures >= self.allowed_failures })
    }
}

/// State of a check.
#[derive(Debug)]
pub(super) struct StatusState {
    latest: CheckStatus,
}

/// Result of a check's probe; its value is `None` if there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Result {
    Command(Option<i32>),
    Http(Option<u32>),
    Tcp(Option<bool>),
}

impl StatusState {
    pub(super) fn new(r#type: CheckType) -> StatusState {
        let empty = match r#type {
            CheckType::Http => Result::Http(None),
            CheckType::Tcp => Result::Tcp(None),
            CheckType::Command | CheckType::Unknown => Result::Command(None),
        };
        StatusState { latest: status(empty) }
    }

    pub(super) fn latest(&self) -> &CheckStatus {
        &self.latest
    }

    pub(super) fn on_result(&mut self, result: Result) -> Verdict {
        let status = status(result);
        if status == self.latest {
            return Verdict::Nothing;
        }
        self.latest = status;
        Verdict::Tell(CheckReport::Status)
    }
}

fn status(result: Result) -> CheckStatus {
    let mut status = CheckStatus::default();
    let r#type = match result {
        Result::Command(exit_code) => {
            status.command = Some(CommandCheckStatus { exit_code });
            CheckType::Command
        }
        Result::Http(status_code) => {
            status.http = Some(HttpCheckStatus { status_code });
            CheckType::Http
        }
        Result::Tcp(succeeded) => {
            status.tcp = Some(TcpCheckStatus { succeeded });
            CheckType::Tcp
        }
    };
    status.r#type = Some(r#type as i32);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ill(kill: bool) -> Verdict {
        Verdict::Tell(CheckReport::Health { healthy: false, kill })
    }

    const WELL: Verdict = Verdict::Tell(CheckReport::Health { healthy: true, kill: false });

    #[test]
    fn failures_count_from_the_first_success_or_the_end_of_grace() {
        let start = crate::clock::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut health = HealthState::new(2, Duration::from_secs(10));
        health.start(start);
        assert_eq!(health.on_outcome(false, at(1)), Verdict::Nothing);
        assert_eq!(health.on_outcome(false, at(9)), Verdict::Nothing);
        assert_eq!(health.on_outcome(false, at(10)), ill(false));
        assert_eq!(health.on_outcome(false, at(11)), ill(true));
        let mut health = HealthState::new(2, Duration::from_secs(10));
        health.start(start);
        assert_eq!(health.on_outcome(true, at(1)), WELL);
        assert_eq!(health.on_outcome(false, at(2)), ill(false));
    }

    #[test]
    fn only_changes_of_health_are_reported() {
        let now = crate::clock::now();
        let mut health = HealthState::new(2, Duration::ZERO);
        health.start(now);
        assert_eq!(health.on_outcome(true, now), WELL);
        assert_eq!(health.on_outcome(true, now), Verdict::Nothing);
        assert_eq!(health.on_outcome(false, now), ill(false));
        assert_eq!(health.on_outcome(true, now), WELL);
        // The count of failures restarts.
        assert_eq!(health.on_outcome(false, now), ill(false));
        assert_eq!(health.on_outcome(false, now), ill(true));
    }

    #[test]
    fn only_changes_of_a_result_are_reported() {
        let mut state = StatusState::new(CheckType::Command);
        assert_eq!(state.latest().command, Some(CommandCheckStatus { exit_code: None }));
        assert_eq!(state.on_result(Result::Command(None)), Verdict::Nothing);
        assert_eq!(state.on_result(Result::Command(Some(0))), Verdict::Tell(CheckReport::Status));
        assert_eq!(state.on_result(Result::Command(Some(0))), Verdict::Nothing);
        assert_eq!(state.on_result(Result::Command(None)), Verdict::Tell(CheckReport::Status));
        assert_eq!(StatusState::new(CheckType::Tcp).latest().r#type(), CheckType::Tcp);
    }
}
