//! Isolators `network/...`: the networks of containers, and the ports that they listen on.

pub(crate) mod cni;
pub(crate) mod ports;
