//! The live shells of master and agent: sockets, clocks and processes around the cores.
#![forbid(unsafe_code)]
