//! Results for eyes: boxes and names drawn into frames, an annotated video, a sheet of pictures.
//!
//! It finds nothing itself.

mod draw;
mod sheet;

pub use draw::{annotate, outline, text};
pub use sheet::{Sheet, SheetError};
