//! The scheduler against a small cluster without I/O.
