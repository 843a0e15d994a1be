//! Selects an order by its name: a heuristic, or the learned one with its guard. It decides nothing.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::guard::{Guard, GuardedOrder};
use super::weights::Model;
use crate::order::{Heuristic, Policy, UnknownHeuristic};

/// Name of the learned order.
const NAME: &str = "decima";

/// The model that is part of this program; `models/README.md` says how it was trained.
static BUILT_IN: LazyLock<Option<Arc<Model>>> =
    LazyLock::new(|| Model::read(include_bytes!("../../models/decima.safetensors")).ok().map(Arc::new));

/// The order of stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Order {
    /// A heuristic order.
    Heuristic(Heuristic),
    /// A learned order with the default guard.
    Learned(Arc<Model>),
}

impl Order {
    /// Returns the policy of the order.
    pub fn policy(&self) -> Box<dyn Policy + Send> {
        match self {
            Order::Heuristic(heuristic) => Box::new(*heuristic),
            Order::Learned(model) => Box::new(GuardedOrder::new(model.clone(), Guard::default())),
        }
    }

    /// Returns the model that is part of this program.
    pub fn built_in() -> Option<Arc<Model>> {
        BUILT_IN.clone()
    }
}

impl From<Heuristic> for Order {
    fn from(heuristic: Heuristic) -> Order {
        Order::Heuristic(heuristic)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Heuristic(heuristic) => heuristic.fmt(f),
            Order::Learned(_) => f.write_str(NAME),
        }
    }
}

/// The error for a text that names no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownOrder {
    /// The text names neither a heuristic nor the learned order.
    #[error("{0}, or {NAME}")]
    Heuristic(UnknownHeuristic),
    /// The model that is part of this program does not fit its network.
    #[error("this program has no usable model for {NAME}")]
    NoModel,
}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(text: &str) -> Result<Order, UnknownOrder> {
        match text {
            NAME => Order::built_in().map(Order::Learned).ok_or(UnknownOrder::NoModel),
            other => other.parse().map(Order::Heuristic).map_err(UnknownOrder::Heuristic),
        }
    }
}

impl TryFrom<String> for Order {
    type Error = UnknownOrder;

    fn try_from(text: String) -> Result<Order, UnknownOrder> {
        text.parse()
    }
}

impl From<Order> for String {
    fn from(order: Order) -> String {
        order.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_names() {
        let learned: Order = "decima".parse().unwrap();
        assert_eq!((learned.to_string().as_str(), learned.policy().name().as_str()), ("decima", "decima"));
        assert_eq!("weighted -1".parse(), Ok(Order::Heuristic(Heuristic::Weighted(-1.0))));
        let wrong = "best".parse::<Order>().unwrap_err().to_string();
        assert!(wrong.starts_with("'best' is not an order: must be fifo") && wrong.ends_with("or decima"), "{wrong}");
    }
}
