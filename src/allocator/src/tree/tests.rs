//! The order of the tree, and what survives in it.
