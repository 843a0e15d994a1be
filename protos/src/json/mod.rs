//! Mesos's JSON: writes and reads every message, and hand-written documents.
//!
//! It is not protobuf's own JSON mapping: field names stay as in the `.proto` files, 64-bit numbers are numbers, unset
//! fields with a default are written. [`ToJson`] and [`FromJson`] are generated for every message at build time.
//! [`Writer`] writes documents that are not messages, [`Value`] reads any JSON as picojson does. The callers define the
//! meaning of a document, and the HTTP status of an invalid one.

mod base64;
mod document;
mod emit;
mod error;
mod lexer;
mod missing;
mod parser;
mod take;
mod text;
mod unknown;
mod value;
mod writer;

pub use error::JsonError;
pub use unknown::{UnknownKey, unknown_key};
pub use value::Value;
pub use writer::Writer;

/// Generated readers, writers and tables.
#[allow(clippy::all)]
pub(crate) mod generated {
    use super::parser::Parser;
    use super::{Dialect, FromJson, JsonError, ToJson, document, emit as e, take as t};
    use crate::evolve::Evolve;
    use crate::schema::{Described, EnumTable, FieldInfo, Kind, Label, MessageInfo};
    include!(concat!(env!("OUT_DIR"), "/dialect.rs"));
}

/// Names in the JSON of a v0 type. v1 types have one form only and ignore it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// v0 names: `slave_id`, `REASON_SLAVE_REMOVED`. For ZooKeeper, flags, and the older endpoints.
    V0,
    /// The JSON of the v1 type of the same message: `agent_id`, `REASON_AGENT_REMOVED`, without what v1 does not have
    /// (`SlaveInfo.checkpoint`, `MasterInfo`'s QUOTA_V2, `Subscribe.force`), and with v1's form of
    /// `DrainAgent.max_grace_period`.
    V1,
    /// v0's fields with `agent` for `slave` in every name, without omissions. The big v1 responses (GET_STATE,
    /// GET_AGENTS, GET_TASKS, ...) have this form. Reading is the same as with [`Dialect::V1`].
    Evolved,
}

/// A message that can be written as compact JSON, with fields in declaration order.
pub trait ToJson {
    /// Appends the object. An optional field that is unset but has a default is written with it unless it is
    /// deprecated; required fields are always written; empty lists and enum numbers without a name are omitted.
    fn to_json(&self, dialect: Dialect, out: &mut Vec<u8>);

    /// Returns the object as a text of its own.
    fn json(&self, dialect: Dialect) -> Vec<u8> {
        let mut out = Vec::new();
        self.to_json(dialect, &mut out);
        out
    }
}

/// A message that can be read from JSON with Mesos's leniency and its error messages.
pub trait FromJson: Sized {
    /// Reads one JSON object; whitespace around it is allowed. Unknown keys and unknown enum names in optional fields
    /// are ignored; `null` counts as absent; numbers and booleans may be strings; one value may stand for a list.
    ///
    /// # Errors
    /// [`JsonError::Syntax`] if the text is not JSON, [`JsonError::Convert`] if it is not this message.
    fn from_json(text: &[u8], dialect: Dialect) -> Result<Self, JsonError>;
}
