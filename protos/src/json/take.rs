//! Building blocks of the generated readers: one function for each kind and label of field.
//!
//! When a function is called, the field's value is next in the text. `null` leaves the field unchanged; a value of a
//! wrong type ends the pass.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::lexer::Number;
use super::parser::Parser;
pub(crate) use super::parser::{Fail, Outcome, Seen};
use super::{Value, base64};
use crate::Shared;
use crate::schema::EnumTable;

/// A message's generated reader.
pub(crate) trait Read: Default {
    /// Reads the fields and the closing brace of an object whose opening brace is consumed.
    fn fields<const D: u8>(&mut self, p: &mut Parser<'_>) -> Outcome<()>;
}

impl<T: Read> Read for Box<T> {
    #[inline]
    fn fields<const D: u8>(&mut self, p: &mut Parser<'_>) -> Outcome<()> {
        (**self).fields::<D>(p)
    }
}

impl<T: Read + Clone> Read for Shared<T> {
    #[inline]
    fn fields<const D: u8>(&mut self, p: &mut Parser<'_>) -> Outcome<()> {
        self.own().fields::<D>(p)
    }
}

pub(crate) fn opt_string<T: From<String>>(p: &mut Parser<'_>, s: &mut Seen, to: &mut Option<T>) -> Outcome<()> {
    if p.lexer.peek() != Some(b'"') {
        return p.null(s);
    }
    *to = Some(text(p)?.into_owned().into());
    s.give();
    Ok(())
}

/// Reads a string whose opening quote is next.
#[inline]
fn text<'a>(p: &mut Parser<'a>) -> Outcome<Cow<'a, str>> {
    p.lexer.pos += 1;
    Parser::lex(p.lexer.string())
}

pub(crate) fn opt_bytes(p: &mut Parser<'_>, s: &mut Seen, to: &mut Option<Vec<u8>>) -> Outcome<()> {
    if p.lexer.peek() != Some(b'"') {
        return p.null(s);
    }
    match base64::decode(&text(p)?) {
        Ok(bytes) => *to = Some(bytes),
        Err(why) => {
            return Err(p.fail(|| format!("Failed to base64 decode bytes field '{}': {why}", s.name())));
        }
    }
    s.give();
    Ok(())
}

pub(crate) fn opt_bool(p: &mut Parser<'_>, s: &mut Seen, to: &mut Option<bool>) -> Outcome<()> {
    let value = match p.lexer.peek() {
        Some(b't') => {
            Parser::lex(p.lexer.word("true"))?;
            true
        }
        Some(b'f') => {
            Parser::lex(p.lexer.word("false"))?;
            false
        }
        Some(b'"') => {
            let text = text(p)?;
            match quoted(&text, |value| value.as_bool()) {
                Ok(value) => value,
                Err(why) => {
                    return Err(p.fail(|| {
                        format!("Failed to parse '{text}' as a JSON boolean for field '{}': {why}", s.name())
                    }));
                }
            }
        }
        _ => return p.null(s),
    };
    *to = Some(value);
    s.give();
    Ok(())
}

/// Parses the text of a string as JSON, and returns the value that `pick` selects.
fn quoted<T>(text: &str, pick: impl Fn(&Value) -> Option<T>) -> Result<T, String> {
    let value = Value::parse_str(text).map_err(|error| error.to_string())?;
    pick(&value).ok_or_else(|| "Unexpected JSON type parsed".to_owned())
}

/// Reads a number, bare or in a string; `None` for `null`.
#[inline]
fn number(p: &mut Parser<'_>, s: &mut Seen, infinite: bool) -> Outcome<Option<Number>> {
    match p.lexer.peek() {
        Some(b'-' | b'0'..=b'9') => {
            s.give();
            p.number().map(Some)
        }
        Some(b'"') => {
            s.give();
            let text = text(p)?;
            match &*text {
                "Infinity" if infinite => return Ok(Some(Number::Double(f64::INFINITY))),
                "-Infinity" if infinite => return Ok(Some(Number::Double(f64::NEG_INFINITY))),
                _ => {}
            }
            let pick = |value: &Value| match value {
                Value::Int(n) => Some(Number::Int(*n)),
                Value::Double(n) => Some(Number::Double(*n)),
                _ => None,
            };
            match quoted(&text, pick) {
                Ok(number) => Ok(Some(number)),
                Err(why) => {
                    Err(p.fail(|| format!("Failed to parse '{text}' as a JSON number for field '{}': {why}", s.name())))
                }
            }
        }
        _ => p.null(s).map(|()| None),
    }
}

/// Converts a double to 64 bits as x86-64's own conversion does: everything out of range becomes the smallest number.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn cut(n: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n) { n as i64 } else { i64::MIN }
}

macro_rules! integers {
    ($($name:ident $kind:ty, $from_double:expr;)*) => {$(
        pub(crate) fn $name(p: &mut Parser<'_>, s: &mut Seen, to: &mut Option<$kind>) -> Outcome<()> {
            // The casts wrap, as C++'s do.
            match number(p, s, false)? {
                Some(Number::Int(n)) => *to = Some(n as $kind),
                Some(Number::Double(n)) => *to = Some($from_double(n)),
                None => {}
            }
            Ok(())
        }
    )*};
}

integers! {
    opt_int32 i32, |n: f64| i32::try_from(cut(n)).unwrap_or(i32::MIN);
    opt_int64 i64, cut;
    opt_uint32 u32, |n: f64| cut(n) as u32;
    opt_uint64 u64, |n: f64| if n < TWO_63 { cut(n) as u64 } else { cut(n - TWO_63) as u64 ^ (1 << 63) };
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;

pub(crate) fn opt_double(p: &mut Parser<'_>, s: &mut Seen, to: &mut Option<f64>) -> Outcome<()> {
    match number(p, s, true)? {
        #[expect(clippy::cast_precision_loss, reason = "an integer for a double is rounded as in C++")]
        Some(Number::Int(n)) => *to = Some(n as f64),
        Some(Number::Double(n)) => *to = Some(n),
        None => {}
    }
    Ok(())
}

/// Reads the enum of an optional field: an unknown name leaves the field unset.
pub(crate) fn opt_name(p: &mut Parser<'_>, s: &mut Seen, to: &mut Option<i32>, table: &EnumTable) -> Outcome<()> {
    if p.lexer.peek() != Some(b'"') {
        return p.null(s);
    }
    if let Some(number) = table.number(&text(p)?) {
        *to = Some(number);
        s.give();
    }
    Ok(())
}

/// Reads the enum of a required field: an unknown name is an error.
pub(crate) fn name(p: &mut Parser<'_>, s: &mut Seen, to: &mut i32, table: &EnumTable) -> Outcome<()> {
    if p.lexer.peek() != Some(b'"') {
        return p.null(s);
    }
    let text = text(p)?;
    let Some(number) = table.number(&text) else {
        return Err(p.fail(|| format!("Failed to find enum for '{text}'")));
    };
    *to = number;
    s.give();
    Ok(())
}

pub(crate) fn implicit_name(p: &mut Parser<'_>, s: &mut Seen, to: &mut i32, table: &EnumTable) -> Outcome<()> {
    let mut value = None;
    opt_name(p, s, &mut value, table)?;
    *to = value.unwrap_or(*to);
    Ok(())
}

#[inline]
pub(crate) fn message<T: Read, const D: u8>(p: &mut Parser<'_>, s: &mut Seen, to: &mut T) -> Outcome<()> {
    if p.lexer.peek() != Some(b'{') {
        return p.null(s);
    }
    p.enter()?;
    to.fields::<D>(p)?;
    p.leave();
    s.give();
    Ok(())
}

#[inline]
pub(crate) fn opt_message<T: Read, const D: u8>(p: &mut Parser<'_>, s: &mut Seen, to: &mut Option<T>) -> Outcome<()> {
    if p.lexer.peek() != Some(b'{') {
        return p.null(s);
    }
    message::<T, D>(p, s, to.insert(T::default()))
}

/// Reads v1's `google.protobuf.Duration` into v0's `DurationInfo`.
pub(crate) fn opt_duration(
    p: &mut Parser<'_>,
    s: &mut Seen,
    to: &mut Option<crate::mesos::DurationInfo>,
) -> Outcome<()> {
    let mut duration: Option<crate::google::protobuf::Duration> = None;
    opt_message::<_, 0>(p, s, &mut duration)?;
    if let Some(duration) = duration {
        *to = Some(crate::evolve::to_duration_info(&duration));
    }
    Ok(())
}

/// Calls `item` for each value of a list and of the lists in it, or for a single value that stands for a list.
#[inline]
fn each<F: FnMut(&mut Parser<'_>) -> Outcome<()>>(p: &mut Parser<'_>, item: &mut F) -> Outcome<()> {
    if p.lexer.peek() == Some(b'[') { p.items(&mut |p| inner(p, item)) } else { item(p) }
}

/// Calls `item` for an element, or for each of its elements if it is a list.
fn inner<F: FnMut(&mut Parser<'_>) -> Outcome<()>>(p: &mut Parser<'_>, item: &mut F) -> Outcome<()> {
    if p.lexer.peek() != Some(b'[') {
        return item(p);
    }
    let mut flat: &mut dyn FnMut(&mut Parser<'_>) -> Outcome<()> = item;
    nested(p, &mut flat)
}

fn nested(p: &mut Parser<'_>, item: &mut &mut dyn FnMut(&mut Parser<'_>) -> Outcome<()>) -> Outcome<()> {
    p.items(&mut |p| if p.lexer.peek() == Some(b'[') { nested(p, item) } else { item(p) })
}

/// Appends the value that `take` reads.
#[inline]
fn push<T>(
    p: &mut Parser<'_>,
    to: &mut Vec<T>,
    mut take: impl FnMut(&mut Parser<'_>, &mut Option<T>) -> Outcome<()>,
) -> Outcome<()> {
    each(p, &mut |p| {
        let mut value = None;
        take(p, &mut value)?;
        if let Some(value) = value {
            p.charge(size_of::<T>())?;
            to.push(value);
        }
        Ok(())
    })
}

pub(crate) fn all_name(p: &mut Parser<'_>, s: &mut Seen, to: &mut Vec<i32>, table: &EnumTable) -> Outcome<()> {
    push(p, to, |p, value| opt_name(p, s, value, table))
}

#[inline]
pub(crate) fn all_message<T: Read, const D: u8>(p: &mut Parser<'_>, s: &mut Seen, to: &mut Vec<T>) -> Outcome<()> {
    each(p, &mut |p| {
        if p.lexer.peek() != Some(b'{') {
            return p.null(s);
        }
        p.charge(size_of::<T>())?;
        to.push(T::default());
        match to.last_mut() {
            Some(last) => message::<T, D>(p, s, last),
            None => Ok(()),
        }
    })
}

/// Reads a map: an object, or a list of objects.
#[inline]
fn map<T: Default>(
    p: &mut Parser<'_>,
    s: &mut Seen,
    to: &mut BTreeMap<String, T>,
    take: impl Fn(&mut Parser<'_>, &mut Seen, &mut Option<T>) -> Outcome<()>,
) -> Outcome<()> {
    each(p, &mut |p| {
        if p.lexer.peek() != Some(b'{') {
            return p.null(s);
        }
        s.give();
        p.enter()?;
        if !p.lexer.accept(b'}') {
            loop {
                Parser::lex(p.lexer.expect(b'"'))?;
                let key = Parser::lex(p.lexer.string())?.into_owned();
                Parser::lex(p.lexer.expect(b':'))?;
                p.charge(size_of::<T>())?;
                let mut value = None;
                take(p, &mut Seen::map_value(), &mut value)?;
                if to.insert(key, value.unwrap_or_default()).is_some() && !p.ordered {
                    return Err(Fail);
                }
                if !p.lexer.accept(b',') {
                    break;
                }
            }
            Parser::lex(p.lexer.expect(b'}'))?;
        }
        p.leave();
        Ok(())
    })
}

pub(crate) fn map_string(p: &mut Parser<'_>, s: &mut Seen, to: &mut BTreeMap<String, String>) -> Outcome<()> {
    map(p, s, to, opt_string)
}

pub(crate) fn map_message<T: Read, const D: u8>(
    p: &mut Parser<'_>,
    s: &mut Seen,
    to: &mut BTreeMap<String, T>,
) -> Outcome<()> {
    map(p, s, to, |p, s, value| {
        // A value that is `null` is an empty message, which may lack required fields.
        if p.lexer.peek() == Some(b'n') {
            p.missing = true;
        }
        opt_message::<T, D>(p, s, value)
    })
}

macro_rules! plain {
    ($($required:ident $optional:ident $kind:ty;)*) => {$(
        pub(crate) fn $required(p: &mut Parser<'_>, s: &mut Seen, to: &mut $kind) -> Outcome<()> {
            let mut value = None;
            $optional(p, s, &mut value)?;
            if let Some(value) = value {
                *to = value;
            }
            Ok(())
        }
    )*};
}

pub(crate) fn string<T: From<String>>(p: &mut Parser<'_>, s: &mut Seen, to: &mut T) -> Outcome<()> {
    let mut value = None;
    opt_string(p, s, &mut value)?;
    if let Some(value) = value {
        *to = value;
    }
    Ok(())
}

plain! {
    bytes opt_bytes Vec<u8>;
    bool opt_bool bool;
    int32 opt_int32 i32;
    int64 opt_int64 i64;
    uint32 opt_uint32 u32;
    uint64 opt_uint64 u64;
    double opt_double f64;
}

macro_rules! lists {
    ($($repeated:ident $optional:ident $kind:ty;)*) => {$(
        pub(crate) fn $repeated(p: &mut Parser<'_>, s: &mut Seen, to: &mut Vec<$kind>) -> Outcome<()> {
            push(p, to, |p, value| $optional(p, s, value))
        }
    )*};
}

// Lists of other scalars do not occur.
lists! {
    all_string opt_string String;
    all_int32 opt_int32 i32;
    all_uint32 opt_uint32 u32;
}
