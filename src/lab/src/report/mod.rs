//! What a researcher reads of runs: numbers by name, CSV, JSON, and one HTML page that stands by itself.

mod html;
mod metrics;
mod series;

pub use html::{Course, comparison_page, course, page, passed};
pub use metrics::{Metric, Spread, metrics, number, spreads, with_interval};
pub use series::{series_csv, summary_csv};
