//! Keys of the core's rows: numbers that a master never uses twice.
//!
//! They are not on the wire.

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    };
}

key!(/// An agent's row.
    AgentKey);
key!(/// A framework's row.
    FrameworkKey);
key!(/// A task's row among its framework's tasks.
    TaskKey);
key!(/// An offer's row; the number in its id.
    OfferKey);
