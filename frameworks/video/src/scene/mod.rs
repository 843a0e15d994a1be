//! Traffic scenes that are made, not filmed, so that their truth is known: cars, vans, trucks and buses with plates on
//! a road of four lanes, people on two pavements.
//!
//! A scene repeats itself without a seam: its last frame leads to its first, so a loop of the file is a live stream
//! whose truth is known for ever. The same options give the same bytes. Nothing here looks at pictures.

mod plan;
mod render;
mod sprite;
mod write;

pub use plan::{Kind, Object, SceneError, SceneOptions, Truth};
pub use render::Renderer;
pub use write::{GenerateError, generate, read_truth};

#[cfg(test)]
mod tests;
