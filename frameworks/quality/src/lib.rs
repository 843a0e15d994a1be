//! Machine learning that trains by the quality it gains: a framework after SLAQ (SoCC'17).
//!
//! - [`learn`]: algorithms that train over parts of their data, and the models that come out.
//!
//! Nothing here does I/O, reads a clock or draws an unseeded number.
#![forbid(unsafe_code)]

pub mod learn;
