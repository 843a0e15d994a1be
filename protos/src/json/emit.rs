//! Building blocks of the generated writers: one function for each kind and label of field.
//!
//! A function appends `"key":value,`; the comma after the last member is replaced by the closing bracket.

use std::collections::BTreeMap;

use super::text::{self, close};
use super::{Dialect, base64};
use crate::Shared;
use crate::schema::EnumTable;

/// A message's generated writer.
pub(crate) trait Write {
    /// Appends the members, each followed by a comma.
    fn fields<const D: u8>(&self, o: &mut Vec<u8>);
}

impl<T: Write> Write for Box<T> {
    #[inline]
    fn fields<const D: u8>(&self, o: &mut Vec<u8>) {
        (**self).fields::<D>(o);
    }
}

impl<T: Write> Write for Shared<T> {
    #[inline]
    fn fields<const D: u8>(&self, o: &mut Vec<u8>) {
        (**self).fields::<D>(o);
    }
}

/// Writes a message whose names depend on the dialect.
pub(crate) fn by_dialect<T: Write>(value: &T, dialect: Dialect, out: &mut Vec<u8>) {
    match dialect {
        Dialect::V0 => object::<T, 0>(out, value),
        Dialect::V1 => object::<T, 1>(out, value),
        Dialect::Evolved => object::<T, 2>(out, value),
    }
}

/// Writes a message that is the same in all dialects.
pub(crate) fn plain<T: Write>(value: &T, _dialect: Dialect, out: &mut Vec<u8>) {
    object::<T, 0>(out, value);
}

#[inline]
fn object<T: Write, const D: u8>(o: &mut Vec<u8>, value: &T) {
    o.push(b'{');
    value.fields::<D>(o);
    close(o, b'}');
}

#[inline]
fn label(o: &mut Vec<u8>, key: &str) {
    o.extend_from_slice(key.as_bytes());
}

pub(crate) fn string(o: &mut Vec<u8>, key: &str, value: &str) {
    label(o, key);
    text::string(o, value);
    o.push(b',');
}

pub(crate) fn bytes(o: &mut Vec<u8>, key: &str, value: &[u8]) {
    label(o, key);
    quoted_bytes(o, value);
    o.push(b',');
}

fn quoted_bytes(o: &mut Vec<u8>, value: &[u8]) {
    o.push(b'"');
    base64::encode(value, o);
    o.push(b'"');
}

pub(crate) fn double(o: &mut Vec<u8>, key: &str, value: f64) {
    label(o, key);
    text::double(o, value);
    o.push(b',');
}

pub(crate) fn bool(o: &mut Vec<u8>, key: &str, value: bool) {
    label(o, key);
    o.extend_from_slice(if value { b"true," } else { b"false," });
}

/// Appends an enum by name; a number without a name counts as unset.
pub(crate) fn name(o: &mut Vec<u8>, key: &str, value: i32, table: &EnumTable) {
    opt_name(o, key, Some(value), table);
}

pub(crate) fn opt_name(o: &mut Vec<u8>, key: &str, value: Option<i32>, table: &EnumTable) {
    if let Some(name) = value.and_then(|number| table.name(number)) {
        plain_string(o, key, name);
    }
}

pub(crate) fn name_or(o: &mut Vec<u8>, key: &str, value: Option<i32>, table: &EnumTable, default: &str) {
    plain_string(o, key, value.and_then(|number| table.name(number)).unwrap_or(default));
}

/// Appends a string that is known to need no escapes.
fn plain_string(o: &mut Vec<u8>, key: &str, value: &str) {
    label(o, key);
    o.push(b'"');
    o.extend_from_slice(value.as_bytes());
    o.extend_from_slice(b"\",");
}

#[inline]
pub(crate) fn message<T: Write, const D: u8>(o: &mut Vec<u8>, key: &str, value: &T) {
    label(o, key);
    object::<T, D>(o, value);
    o.push(b',');
}

#[inline]
pub(crate) fn opt_message<T: Write, const D: u8>(o: &mut Vec<u8>, key: &str, value: &Option<T>) {
    if let Some(value) = value {
        message::<T, D>(o, key, value);
    }
}

/// Appends v0's `DurationInfo` as v1's `google.protobuf.Duration`.
pub(crate) fn opt_duration(o: &mut Vec<u8>, key: &str, value: &Option<crate::mesos::DurationInfo>) {
    opt_message::<_, 0>(o, key, &value.as_ref().map(crate::evolve::to_duration));
}

/// Appends a list, unless it is empty; `item` appends one value without a comma.
#[inline]
fn list<T>(o: &mut Vec<u8>, key: &str, values: &[T], mut item: impl FnMut(&mut Vec<u8>, &T)) {
    if values.is_empty() {
        return;
    }
    label(o, key);
    o.push(b'[');
    for value in values {
        item(o, value);
        o.push(b',');
    }
    close(o, b']');
    o.push(b',');
}

#[inline]
pub(crate) fn all_message<T: Write, const D: u8>(o: &mut Vec<u8>, key: &str, values: &[T]) {
    list(o, key, values, object::<T, D>);
}

pub(crate) fn all_string(o: &mut Vec<u8>, key: &str, values: &[String]) {
    list(o, key, values, |o, value| text::string(o, value));
}

pub(crate) fn all_int32(o: &mut Vec<u8>, key: &str, values: &[i32]) {
    list(o, key, values, |o, value| text::integer(o, *value));
}

pub(crate) fn all_uint32(o: &mut Vec<u8>, key: &str, values: &[u32]) {
    list(o, key, values, |o, value| text::integer(o, *value));
}

/// Appends a list of enums by name. Numbers without a name are dropped, and so is the list if none is left.
pub(crate) fn all_name(o: &mut Vec<u8>, key: &str, values: &[i32], table: &EnumTable) {
    let names: Vec<&str> = values.iter().filter_map(|number| table.name(*number)).collect();
    list(o, key, &names, |o, name| {
        o.push(b'"');
        o.extend_from_slice(name.as_bytes());
        o.push(b'"');
    });
}

pub(crate) fn map_string(o: &mut Vec<u8>, key: &str, values: &BTreeMap<String, String>) {
    map(o, key, values, |o, value| text::string(o, value));
}

#[inline]
pub(crate) fn map_message<T: Write, const D: u8>(o: &mut Vec<u8>, key: &str, values: &BTreeMap<String, T>) {
    map(o, key, values, object::<T, D>);
}

#[inline]
fn map<T>(o: &mut Vec<u8>, key: &str, values: &BTreeMap<String, T>, mut item: impl FnMut(&mut Vec<u8>, &T)) {
    if values.is_empty() {
        return;
    }
    label(o, key);
    o.push(b'{');
    for (name, value) in values {
        text::string(o, name);
        o.push(b':');
        item(o, value);
        o.push(b',');
    }
    close(o, b'}');
    o.push(b',');
}

macro_rules! integers {
    ($($one:ident $kind:ty;)*) => {$(
        pub(crate) fn $one(o: &mut Vec<u8>, key: &str, value: $kind) {
            label(o, key);
            text::integer(o, value);
            o.push(b',');
        }
    )*};
}

integers! {
    int32 i32;
    int64 i64;
    uint32 u32;
    uint64 u64;
}

macro_rules! optional {
    ($($opt:ident $one:ident $kind:ty;)*) => {$(
        #[inline]
        pub(crate) fn $opt(o: &mut Vec<u8>, key: &str, value: Option<$kind>) {
            if let Some(value) = value {
                $one(o, key, value);
            }
        }
    )*};
}

optional! {
    opt_bool bool bool;
    opt_double double f64;
    opt_int32 int32 i32;
    opt_int64 int64 i64;
    opt_uint32 uint32 u32;
    opt_uint64 uint64 u64;
}

#[inline]
pub(crate) fn opt_string<T: AsRef<str>>(o: &mut Vec<u8>, key: &str, value: &Option<T>) {
    if let Some(value) = value {
        string(o, key, value.as_ref());
    }
}

#[inline]
pub(crate) fn opt_bytes(o: &mut Vec<u8>, key: &str, value: &Option<Vec<u8>>) {
    if let Some(value) = value {
        bytes(o, key, value);
    }
}

/// Returns whether a proto3 field without presence counts as unset.
#[inline]
pub(crate) fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
