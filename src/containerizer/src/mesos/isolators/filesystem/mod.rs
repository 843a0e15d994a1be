//! `filesystem/...` and `volume/...`: the directories that containers see.

pub(crate) mod linux;
pub(crate) mod view;
