//! Scales the calls of a modelled scheduler to a real cluster: durations of offer filters and of tasks.

use std::time::Duration;

use sdk::v1::scheduler::Call;
use sdk::v1::{CommandInfo, Filters, TaskInfo};

use super::Pace;
use crate::seeds::Seed;
use crate::span::parse_span;
use crate::work::{FailureRates, WORK};

/// Converts the calls of one framework to real time.
#[derive(Debug)]
pub(super) struct Translator {
    pub pace: Pace,
    pub failure_rates: FailureRates,
    /// Seed of the failures and stragglers among the framework's tasks.
    pub seed: Seed,
}

impl Translator {
    /// Converts the durations in a call from the scenario's time to real time.
    pub fn call(&self, call: &mut Call) {
        if let Some(decline) = &mut call.decline {
            self.filters(&mut decline.filters);
        }
        let Some(accept) = &mut call.accept else { return };
        self.filters(&mut accept.filters);
        let launches = accept.operations.iter_mut().filter_map(|operation| operation.launch.as_mut());
        launches.flat_map(|launch| &mut launch.task_infos).for_each(|task| self.task(task));
    }

    fn filters(&self, filters: &mut Option<Filters>) {
        if let Some(seconds) = filters.as_mut().and_then(|filters| filters.refuse_seconds.as_mut()) {
            *seconds /= self.pace.speed;
        }
    }

    fn task(&self, task: &mut TaskInfo) {
        let labels = task.labels.iter().flat_map(|labels| &labels.labels);
        let said = labels.filter(|label| label.key == WORK).find_map(|label| label.value.as_deref());
        let Some(span) = said.and_then(|text| parse_span(text).ok()) else { return };
        let (span, fails) = self.failure_rates.draw(span, || self.seed.child(&task.task_id.value));
        task.command = Some(command(self.pace.real(span), fails, self.pace.burn));
    }
}

/// Returns a command that takes `span` and then exits with 1 if it `fails`, otherwise with 0.
fn command(span: Duration, fails: bool, burn: bool) -> CommandInfo {
    // `timeout(1)` takes 0 for no timeout.
    let seconds = format!("{:.3}", span.as_secs_f64().max(0.001));
    if !fails && !burn {
        return CommandInfo {
            shell: Some(false),
            value: Some("sleep".to_owned()),
            arguments: vec!["sleep".to_owned(), seconds],
            ..CommandInfo::default()
        };
    }
    let work = if burn { format!("timeout {seconds} sh -c 'while :; do :; done'") } else { format!("sleep {seconds}") };
    let value = format!("{work}; exit {}", u8::from(fails));
    CommandInfo { shell: Some(true), value: Some(value), ..CommandInfo::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdk::v1::TaskId;

    #[test]
    fn tasks_take_their_time_at_the_runs_pace() {
        let mut translator = Translator {
            pace: Pace { speed: 10.0, burn: false },
            failure_rates: FailureRates { failures: 0.0, stragglers: 1.0, straggling: 2.0 },
            seed: Seed::root(1),
        };
        let task = TaskInfo {
            task_id: TaskId { value: "t1".into() },
            labels: Some(sdk::task::labels([(WORK, "15s")])),
            ..TaskInfo::default()
        };
        let dressed = |translator: &Translator| {
            let mut task = task.clone();
            translator.task(&mut task);
            task.command.unwrap()
        };
        assert_eq!(dressed(&translator).arguments, ["sleep", "3.000"]);
        translator.failure_rates = FailureRates { failures: 1.0, ..FailureRates::default() };
        let failing = dressed(&translator).value.unwrap();
        assert!(failing.starts_with("sleep ") && failing.ends_with("; exit 1"), "{failing}");
        (translator.failure_rates, translator.pace.burn) = (FailureRates::default(), true);
        assert_eq!(dressed(&translator).value.unwrap(), "timeout 1.500 sh -c 'while :; do :; done'; exit 0");
    }
}
