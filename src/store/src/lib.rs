//! What must survive a crash: the registry and the agent checkpoints.
#![forbid(unsafe_code)]
