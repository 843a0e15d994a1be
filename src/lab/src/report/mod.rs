//! What a researcher reads of runs: numbers by name, CSV, JSON, and one HTML page that stands by itself.

mod html;
mod metrics;
mod series;

pub use html::{comparison_page, page};
pub use metrics::{Metric, Spread, metrics, spreads};
pub use series::{series_csv, summary_csv};
