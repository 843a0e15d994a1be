//! The kinds of queries.

use serde::{Deserialize, Serialize};

/// The kinds of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryKind {
    /// Vehicles that cross the line.
    Cars,
    /// People that cross the line.
    People,
    /// The plate of each vehicle that crosses the line.
    Plates,
    /// The kind (car, van, truck, bus, person) of each that crosses the line.
    Kinds,
    /// Where everything is, each second.
    Tracks,
}

impl QueryKind {
    /// All kinds.
    pub const ALL: [QueryKind; 5] =
        [QueryKind::Cars, QueryKind::People, QueryKind::Plates, QueryKind::Kinds, QueryKind::Tracks];

    /// The kind's name.
    pub fn name(self) -> &'static str {
        match self {
            QueryKind::Cars => "cars",
            QueryKind::People => "people",
            QueryKind::Plates => "plates",
            QueryKind::Kinds => "kinds",
            QueryKind::Tracks => "tracks",
        }
    }
}

/// A text that names no kind of query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of query: cars, people, plates, kinds, tracks")]
pub struct UnknownKind(String);

impl std::str::FromStr for QueryKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<QueryKind, UnknownKind> {
        let found = QueryKind::ALL.into_iter().find(|k| k.name() == text);
        found.ok_or_else(|| UnknownKind(text.to_owned()))
    }
}
