//! What the tests share: the real allocator beside the naive one, checked against each other after every step.

pub mod oracle;
pub mod world;
