//! Visual results: boxes and names drawn into frames, an annotated video, a contact sheet.
//!
//! It detects nothing itself.

mod draw;
mod picture;
mod sheet;

pub use draw::{annotate, draw_scope, grid, outline, segment, text};
pub use picture::{jpeg, png};
pub use sheet::{Sheet, SheetError};
