//! Pictures as SVG, and HTML pages that stand by themselves: for reports that are looked at without a network.
//!
//! Equal data give equal bytes. It knows nothing of what is shown, and reads and writes no files.
#![forbid(unsafe_code)]

mod lines;
mod page;
mod strips;

pub use lines::{Line, Lines};
pub use page::{Page, escape};
pub use strips::{Strip, Strips};

/// Colours that can be told apart, also by most who see few; used in their order.
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

/// The colour of the thing of this number.
pub fn colour(number: usize) -> (u8, u8, u8) {
    COLOURS[number % COLOURS.len()]
}
