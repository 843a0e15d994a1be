//! Isolators `filesystem/...` and `volume/...`: the directories that are visible in containers.

pub(crate) mod linux;
pub(crate) mod view;
