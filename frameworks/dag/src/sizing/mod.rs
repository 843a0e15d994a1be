//! How much input each task of a stage gets. It does not read the input.
