//! Plots as SVG, and self-contained HTML pages, for reports that need no network.
//!
//! Equal data gives equal bytes. The crate does not depend on what is plotted, and does no I/O.
#![forbid(unsafe_code)]

mod lines;
mod packed;
mod page;
mod small;
mod strips;
mod table;

pub use lines::{Line, Lines};
pub use page::{Page, escape};
pub use small::{Small, sparkline};
pub use strips::{Strip, Strips};
pub use table::{Cell, Column, Table};

/// Colours that are distinguishable, also for most people with colour blindness, in the order of their use.
pub const COLOURS: [(u8, u8, u8); 10] = [
    (31, 119, 180),
    (214, 39, 40),
    (44, 160, 44),
    (148, 103, 189),
    (255, 127, 14),
    (23, 190, 207),
    (140, 86, 75),
    (227, 119, 194),
    (127, 127, 127),
    (188, 189, 34),
];

/// Returns the CSS class of a colour in a page's style sheet.
pub(crate) fn colour_class(number: usize) -> String {
    format!("c{}", number % COLOURS.len())
}

/// Returns the colour of a line or owner with this number. Colours repeat after the last one.
pub fn colour(number: usize) -> (u8, u8, u8) {
    COLOURS[number % COLOURS.len()]
}
