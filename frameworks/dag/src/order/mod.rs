//! Which stage runs next, and how many tasks a job may run at once. It does not know offers.
