//! Reports of runs: metrics by name, CSV, JSON, self-contained HTML pages, and comparisons.

mod compare;
mod html;
mod metrics;
mod pictures;
mod points;
mod series;
mod summary;
mod sweep;
mod tables;
mod terms;

pub use compare::{Pair, changed_lines, pairs};
pub use html::{comparison_page, page};
pub use metrics::{Metric, Spread, Unit, in_unit, metrics, number, spreads, with_interval};
pub use pictures::{Course, course};
pub use points::passed;
pub use series::{series_csv, summary_csv};
pub use summary::{Compared, summary};
