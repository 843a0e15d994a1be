//! Isolators `namespaces/...`: namespaces of a container's own. Nested containers share them.

pub(crate) mod ipc;
pub(crate) mod pid;
