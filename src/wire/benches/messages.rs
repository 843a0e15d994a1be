//! Messages and calls per second over loopback sockets, and what they cost.

fn main() {}
