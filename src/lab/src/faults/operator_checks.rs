//! Checks that acknowledged operator calls are in effect: quotas and weights have the values set last, whichever master
//! leads.
//!
//! A call without an answer may have had an effect or not; its object is not checked until the next answer.

use std::collections::BTreeMap;

use master::Snapshot;
use protos::mesos::master::Call;
use protos::mesos::quota::QuotaConfig;
use resources::{Name, Role};

use super::operate::LIMITED;

/// A setting that an operator call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Limit,
    Guarantee,
    Weight(&'static str),
}

/// The last known call about a setting.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Number of the last call about the setting.
    last: u64,
    /// Value that the call set, in thousandths; `None` if it removed the setting.
    wanted: Option<i64>,
    /// Whether the call was answered with success.
    done: bool,
}

/// The settings that operator calls have changed.
#[derive(Debug, Default)]
pub(super) struct OperatorChecks(BTreeMap<What, Known>);

fn thousandths(value: f64) -> i64 {
    (value * 1000.0).round() as i64
}

/// Returns the settings that a call changes, with their values in thousandths.
fn settings(call: &Call) -> Vec<(What, Option<i64>)> {
    let mut all = Vec::new();
    let cpus = |amounts: &BTreeMap<String, protos::mesos::value::Scalar>| {
        amounts.get("cpus").map(|scalar| thousandths(scalar.value))
    };
    let configs = call.update_quota.iter().flat_map(|update| &update.quota_configs);
    let config = |config: &QuotaConfig| match config.role == LIMITED {
        true => (What::Limit, cpus(&config.limits)),
        false => (What::Guarantee, cpus(&config.guarantees)),
    };
    all.extend(configs.map(config));
    for weight in call.update_weights.iter().flat_map(|update| &update.weight_infos) {
        let role = if weight.role.as_deref() == Some(LIMITED) { LIMITED } else { super::operate::GUARANTEED };
        all.push((What::Weight(role), Some(thousandths(weight.weight))));
    }
    all
}

impl OperatorChecks {
    /// Records an operator call.
    pub fn called(&mut self, request: u64, call: &Call) {
        for (what, wanted) in settings(call) {
            self.0.insert(what, Known { last: request, wanted, done: false });
        }
    }

    /// Records the answer to an operator call. A setting whose call was refused is not checked until the next answer.
    pub fn answered(&mut self, request: u64, done: bool) {
        self.0.values_mut().filter(|known| known.last == request).for_each(|known| known.done = done);
    }

    /// Checks that a leading master has the acknowledged settings.
    ///
    /// # Errors
    /// Returns the first setting that differs.
    pub fn check(&self, snapshot: &Snapshot) -> Result<(), String> {
        for (what, known) in self.0.iter().filter(|(_, known)| known.done) {
            let quota = |role: &str| snapshot.quotas.get(&Role::parse(role).ok()?);
            let has = match what {
                What::Limit => {
                    quota(LIMITED).and_then(|quota| quota.limits.get(&Name::Cpus)).map(|cpus| cpus.thousandths())
                }
                What::Guarantee => quota(super::operate::GUARANTEED)
                    .map(|quota| quota.guarantees.get(&Name::Cpus).thousandths())
                    .filter(|cpus| *cpus > 0),
                What::Weight(role) => snapshot.weights.get(*role).map(|weight| thousandths(*weight)),
            };
            if has != known.wanted.filter(|wanted| *wanted > 0 || *what == What::Limit) {
                return Err(format!("{what:?} was set to {:?} thousandths, but is {has:?}", known.wanted));
            }
        }
        Ok(())
    }
}
