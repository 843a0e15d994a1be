//! Generated traffic scenes with known ground truth: cars, vans, trucks and buses with plates on a road of four lanes,
//! people on two pavements; and a square where people walk in all directions.
//!
//! A scene loops without a seam: its last frame leads to its first, so a loop of the file is a live stream with known
//! truth. The same options generate the same bytes.

mod plan;
mod render;
mod sprite;
mod square;
mod write;

pub use plan::{Kind, Object, SceneError, SceneOptions, Truth};
pub use render::Renderer;
pub use square::{SQUARE_FPS, SQUARE_SIZE, Square, TrueBox};
pub use write::{GenerateError, generate, read_truth};

#[cfg(test)]
mod tests;
