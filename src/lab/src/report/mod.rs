//! Reports of runs: numbers by name, CSV, JSON, and one self-contained HTML page.

mod compare;
mod html;
mod metrics;
mod series;

pub use compare::{Pair, changed_lines, pairs};
pub use html::{Course, comparison_page, course, page, passed};
pub use metrics::{Metric, Spread, metrics, number, spreads, with_interval};
pub use series::{series_csv, summary_csv};
