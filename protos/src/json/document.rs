//! Reads a whole document as a message: first in one pass, and if that fails, a second time in sorted order.
//!
//! [`super::parser`] describes the passes, [`super::take`] what they do for each field.

use std::borrow::Cow;

use super::parser::{Fail, Outcome, Parser};
use super::take::Read;
use super::{Dialect, FromJson, JsonError, Value, missing};
use crate::schema::Described;

/// Reads a message whose names depend on the dialect.
pub(crate) fn by_dialect<T: Read + Described + FromJson>(text: &[u8], dialect: Dialect) -> Result<T, JsonError> {
    match dialect {
        Dialect::V0 => whole::<T, 0>(text),
        Dialect::V1 | Dialect::Evolved => whole::<T, 1>(text),
    }
}

/// Reads a message that has the same names in all dialects.
pub(crate) fn plain<T: Read + Described + FromJson>(text: &[u8], _dialect: Dialect) -> Result<T, JsonError> {
    whole::<T, 0>(text)
}

fn whole<T: Read + Described, const D: u8>(text: &[u8]) -> Result<T, JsonError> {
    // Nearly all texts are UTF-8, and checking that is much faster than searching for invalid bytes.
    let text = std::str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed);
    let budget = (text.len().saturating_mul(64)).max(16 << 20);
    let mut parser = Parser::new(&text, false, budget);
    if let Ok(message) = document::<T, D>(&mut parser)
        && !parser.missing
    {
        return Ok(message);
    }
    again::<T, D>(&text, budget)
}

/// Does the second pass, over the same document with sorted keys, each once.
#[cold]
fn again<T: Read + Described, const D: u8>(text: &str, budget: usize) -> Result<T, JsonError> {
    let value = Value::parse_str(text)?;
    let Value::Object(object) = &value else {
        return Err(JsonError::Convert("Expecting a JSON object".to_owned()));
    };
    let sorted = value.to_string();
    let mut parser = Parser::new(&sorted, true, budget);
    match document::<T, D>(&mut parser) {
        Ok(message) if !parser.missing => Ok(message),
        Ok(message) => {
            let paths = missing::paths(T::INDEX, D == 1, object);
            if paths.is_empty() {
                return Ok(message);
            }
            Err(JsonError::Convert(format!("Missing required fields: {}", paths.join(", "))))
        }
        Err(Fail) => Err(parser.error.map_or(JsonError::TooLarge(budget), JsonError::Convert)),
    }
}

fn document<T: Read, const D: u8>(p: &mut Parser<'_>) -> Outcome<T> {
    let mut message = T::default();
    if p.lexer.peek() != Some(b'{') {
        return Err(Fail);
    }
    p.enter()?;
    message.fields::<D>(p)?;
    p.leave();
    if p.lexer.peek().is_some() { Err(Fail) } else { Ok(message) }
}
