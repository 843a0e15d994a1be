//! Who is offered what: role tree, dominant resource fairness, filters, the allocation cycle.
#![forbid(unsafe_code)]
