//! `namespaces/...`: namespaces that a container has of its own. Those inside it share them.

pub(crate) mod ipc;
pub(crate) mod pid;
