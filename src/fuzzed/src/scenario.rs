//! Checks scenarios of the laboratory.

use std::path::Path;

use lab::scenario::{Arrivals, Scenario, Traces};
use lab::seeds::Seed;

/// Number of arrivals of each kind of job that are checked.
const ARRIVALS: usize = 20;

/// Parses a scenario. An accepted one can be checked for warnings, and its arrivals are in the order of time.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let file = Path::new("/nowhere/scenario.toml");
    let Ok(scenario) = Scenario::read(text, file) else { return };
    let kinds = scenario.frameworks.iter().flat_map(|framework| &framework.jobs);
    if kinds.clone().any(|kind| kind.trace.is_some()) {
        return;
    }
    let _ = scenario.warnings(text, file, &Traces::default());
    for kind in kinds.filter(|kind| kind.tasks <= 1000 && kind.tasks_mean.is_none_or(|mean| mean < 100.0)) {
        let arrivals = Arrivals::new(kind, Seed::root(scenario.seed), Path::new("/nowhere")).expect("no trace is read");
        let times: Vec<_> = arrivals.take(ARRIVALS).map(|arrival| arrival.at).collect();
        assert!(times.is_sorted(), "{times:?}");
    }
}
