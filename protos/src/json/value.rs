//! Reads any JSON as a value, by picojson's rules.
//!
//! For documents that are not messages, and for error messages about one that is. It keeps keys sorted, as Mesos's own
//! values do, and of a repeated key the last value.

use std::collections::BTreeMap;

use super::JsonError;
use super::lexer::{Lexed, Lexer, MAX_DEPTH, Number};
use super::text;

/// One JSON value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without point and exponent that fits in 64 bits.
    Int(i64),
    /// Any other number; always finite.
    Double(f64),
    /// A string, with its escapes resolved.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// An object: keys and values, sorted by key.
    Object(BTreeMap<String, Value>),
}

impl Value {
    /// Reads one value; whitespace around it is allowed. Bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// # Errors
    /// [`JsonError::Syntax`] with picojson's text: `syntax error at line <n> near: <rest of that line>`,
    /// `Parsed JSON included non-whitespace trailing characters: <rest>`, or `Value out of range`.
    pub fn parse(text: &[u8]) -> Result<Self, JsonError> {
        Self::parse_str(&String::from_utf8_lossy(text))
    }

    pub(crate) fn parse_str(text: &str) -> Result<Self, JsonError> {
        let mut lexer = Lexer::new(text);
        let value = value(&mut lexer, 0).map_err(|error| JsonError::Syntax(lexer.explain(error)))?;
        if lexer.peek().is_some() {
            let rest = &text[lexer.pos..];
            let message = format!("Parsed JSON included non-whitespace trailing characters: {rest}");
            return Err(JsonError::Syntax(message));
        }
        Ok(value)
    }

    /// Returns the value under `key`, if this is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Returns the value at `path`, which is keys separated by dots: `get_state.get_tasks`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(self, |value, key| value.get(key))
    }

    /// Returns the truth value, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(b) = self { Some(*b) } else { None }
    }

    /// Returns the integer, if it is one without a fraction.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Int(n) = self { Some(*n) } else { None }
    }

    /// Returns the number, whether written as an integer or not.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 JSON readers round likewise")]
            Self::Int(n) => Some(*n as f64),
            Self::Double(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns the text, if it is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(s) = self { Some(s) } else { None }
    }

    /// Returns the elements, if it is a list.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// Returns keys and values, if it is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&BTreeMap<String, Value>> {
        if let Self::Object(map) = self { Some(map) } else { None }
    }

    /// Returns whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Appends the value as compact JSON, with keys sorted bytewise.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Int(n) => text::integer(out, *n),
            Self::Double(n) => text::double(out, *n),
            Self::String(s) => text::string(out, s),
            Self::Array(items) => {
                out.push(b'[');
                for item in items {
                    item.write(out);
                    out.push(b',');
                }
                text::close(out, b']');
            }
            Self::Object(map) => {
                out.push(b'{');
                for (key, value) in map {
                    text::string(out, key);
                    out.push(b':');
                    value.write(out);
                    out.push(b',');
                }
                text::close(out, b'}');
            }
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::new();
        self.write(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

fn value(lexer: &mut Lexer<'_>, depth: usize) -> Lexed<Value> {
    match lexer.peek() {
        Some(b'n') => lexer.word("null").map(|()| Value::Null),
        Some(b't') => lexer.word("true").map(|()| Value::Bool(true)),
        Some(b'f') => lexer.word("false").map(|()| Value::Bool(false)),
        Some(b'"') => {
            lexer.pos += 1;
            Ok(Value::String(lexer.string()?.into_owned()))
        }
        Some(b'[') => {
            lexer.pos += 1;
            array(lexer, depth)
        }
        Some(b'{') => {
            lexer.pos += 1;
            object(lexer, depth)
        }
        Some(b'-' | b'0'..=b'9') => Ok(match lexer.number()? {
            Number::Int(n) => Value::Int(n),
            Number::Double(n) => Value::Double(n),
        }),
        _ => Err(lexer.here()),
    }
}

fn array(lexer: &mut Lexer<'_>, depth: usize) -> Lexed<Value> {
    if depth >= MAX_DEPTH {
        return Err(lexer.behind());
    }
    let mut items = Vec::new();
    if lexer.accept(b']') {
        return Ok(Value::Array(items));
    }
    loop {
        items.push(value(lexer, depth + 1)?);
        if !lexer.accept(b',') {
            break;
        }
    }
    lexer.expect(b']')?;
    Ok(Value::Array(items))
}

fn object(lexer: &mut Lexer<'_>, depth: usize) -> Lexed<Value> {
    if depth >= MAX_DEPTH {
        return Err(lexer.behind());
    }
    let mut map = BTreeMap::new();
    if lexer.accept(b'}') {
        return Ok(Value::Object(map));
    }
    loop {
        lexer.expect(b'"')?;
        let key = lexer.string()?.into_owned();
        lexer.expect(b':')?;
        let item = value(lexer, depth + 1)?;
        map.insert(key, item);
        if !lexer.accept(b',') {
            break;
        }
    }
    lexer.expect(b'}')?;
    Ok(Value::Object(map))
}
