//! Isolators `gpu/...`: GPUs, and their driver in containers with an image.

mod driver;
pub(crate) mod nvidia;
