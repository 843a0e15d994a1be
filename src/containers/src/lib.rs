//! Starting, watching and ending processes on Linux.
