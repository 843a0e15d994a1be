//! Checks traces of jobs that scenarios of the laboratory replay.

use std::path::Path;
use std::time::Duration;

use lab::scenario::{JobKind, trace_of_text};

use crate::pieces::Pieces;

const SHAPES: [&str; 7] = ["", "alibaba-2017", "alibaba-2018", "alibaba-gpu-2020", "azure-vm", "gavel", "google-2011"];

/// Checks an input whose first line has the scenario's settings for the trace, and whose rest is its text. The jobs are
/// in the order of time and have amounts that a scheduler can use.
pub fn trace(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    let settings_line = pieces.line();
    let Ok(text) = std::str::from_utf8(pieces.rest()) else { return };
    let flag = |at: usize| settings_line.get(at).is_some_and(|byte| *byte == b'1');
    let shape = SHAPES[usize::from(settings_line.get(3).copied().unwrap_or(b'0').wrapping_sub(b'0')) % SHAPES.len()];
    let mut settings = toml::Table::new();
    let given = [
        (flag(0), "machine", "cpus:32;mem:131072"),
        (flag(1), "needs", "cpus:1;mem:64"),
        (flag(2), "time", "5s"),
        (!shape.is_empty(), "shape", shape),
        (true, "trace", "trace.csv"),
    ];
    settings.extend(
        given.into_iter().filter(|(is_given, ..)| *is_given).map(|(_, name, value)| (name.into(), value.into())),
    );
    let kind: JobKind = settings.try_into().expect("a kind of job");
    let Ok(rows) = trace_of_text(text, Path::new("trace.csv"), &kind) else { return };
    assert!(rows.len() <= text.lines().count());
    assert!(rows.is_sorted_by_key(|row| row.submit));
    for row in &rows {
        assert!([row.cpus, row.mem_mb, row.gpus].iter().all(|amount| amount.is_finite() && *amount >= 0.0), "{row:?}");
        assert!(row.tasks >= 1, "{row:?}");
        // Scenarios add their own times to these.
        assert!(row.submit + row.duration.unwrap_or_default() < Duration::MAX / 4, "{row:?}");
        assert!(kind.needs.is_some() || !row.needs().is_empty(), "{row:?} needs nothing");
    }
}
