//! The kinds of queries.

use serde::{Deserialize, Serialize};

/// The kind of a query: what it counts or reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryKind {
    /// Vehicles that cross the line.
    Cars,
    /// People that cross the line.
    People,
    /// The plate of each vehicle that crosses the line.
    Plates,
    /// The kind (car, van, truck, bus, person) of each object that crosses the line.
    Kinds,
    /// The position of every object, each second.
    Tracks,
}

impl QueryKind {
    /// All kinds of queries.
    pub const ALL: [QueryKind; 5] =
        [QueryKind::Cars, QueryKind::People, QueryKind::Plates, QueryKind::Kinds, QueryKind::Tracks];

    /// Returns the highest rung of an uplink that a query of this kind has a use for; `None` for all of them. Counting
    /// finds as much on rung 3 as on higher ones (docs/papers/bitrate.md).
    pub fn highest_rung(self) -> Option<usize> {
        match self {
            QueryKind::Cars | QueryKind::People => Some(3),
            QueryKind::Plates | QueryKind::Kinds | QueryKind::Tracks => None,
        }
    }

    /// Returns the name of the kind.
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

/// The error of a text that is not a kind of query.
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
