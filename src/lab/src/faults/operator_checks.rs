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

/// What can be promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Limit,
    Guarantee,
    Weight(&'static str),
}

/// What is known of one such thing.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The last call about it.
    last: u64,
    /// The value of that call, in thousandths; `None`: not set.
    wanted: Option<i64>,
    /// That call was answered with success.
    done: bool,
}

/// The memory of it.
#[derive(Debug, Default)]
pub(super) struct OperatorChecks(BTreeMap<What, Known>);

fn thousandths(value: f64) -> i64 {
    (value * 1000.0).round() as i64
}

/// What a call sets.
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
    /// An operator calls.
    pub fn called(&mut self, request: u64, call: &Call) {
        for (what, wanted) in settings(call) {
            self.0.insert(what, Known { last: request, wanted, done: false });
        }
    }

    /// An operator receives the answer. After a refusal its knowledge of the state is as before.
    pub fn answered(&mut self, request: u64, done: bool) {
        self.0.values_mut().filter(|known| known.last == request).for_each(|known| known.done = done);
    }

    /// Checks that a leading master keeps the settings.
    ///
    /// # Errors
    /// The first setting that differs.
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
