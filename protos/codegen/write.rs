//! Generates `emit::Write` for every message: one call per field, in declaration order.

use std::fmt::Write as _;

use crate::model::{DIALECTS, Field, Kind, Label, Model, Shown};

pub(crate) fn generate(model: &Model) -> String {
    let mut out = String::new();
    for message in &model.messages {
        let is_v1 = message.name.starts_with("mesos.v1.") || message.name.starts_with("google.");
        writeln!(out, "impl e::Write for {} {{", message.rust).unwrap();
        writeln!(out, "#[inline]\nfn fields<const D: u8>(&self, o: &mut Vec<u8>) {{").unwrap();
        if message.fields.is_empty() {
            out.push_str("let _ = o;");
        }
        for field in &message.fields {
            out.push_str(&by_dialect(|dialect| {
                model.shown(message, field, dialect).map(|shown| statement(model, field, &shown, dialect))
            }));
        }
        out.push_str("}\n}\n");
        let sensitive = message.sensitive && !is_v1;
        writeln!(out, "impl ToJson for {} {{", message.rust).unwrap();
        let call = if sensitive { "e::by_dialect(self, dialect, out)" } else { "e::plain(self, dialect, out)" };
        writeln!(out, "#[inline]\nfn to_json(&self, dialect: Dialect, out: &mut Vec<u8>) {{ {call} }}\n}}").unwrap();
    }
    out
}

/// Returns the statement if it is equal in all dialects, otherwise a choice by `D`.
pub(crate) fn by_dialect(statement: impl Fn(u8) -> Option<String>) -> String {
    let texts = DIALECTS.map(|d| statement(d).unwrap_or_default());
    if texts.iter().all(|t| *t == texts[0]) {
        return format!("{}\n", texts[0]);
    }
    let mut out = String::new();
    if texts[0] == texts[2] {
        writeln!(out, "if D == 1 {{ {} }} else {{ {} }}", texts[1], texts[0]).unwrap();
    } else if texts[1] == texts[2] {
        writeln!(out, "if D == 0 {{ {} }} else {{ {} }}", texts[0], texts[1]).unwrap();
    } else {
        let [a, b, c] = texts;
        writeln!(out, "if D == 0 {{ {a} }} else if D == 1 {{ {b} }} else {{ {c} }}").unwrap();
    }
    out
}

/// Returns `D` if the dialect matters for a value, otherwise `0`, so that one copy of the code serves all dialects.
pub(crate) fn dialect_below(model: &Model, kind: Kind) -> &'static str {
    match kind {
        Kind::Message(m) if model.messages[m].sensitive => "D",
        _ => "0",
    }
}

/// Returns the part of a helper's name for the type that it writes or reads.
pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Bytes => "bytes",
        Kind::Double => "double",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Uint32 => "uint32",
        Kind::Uint64 => "uint64",
        Kind::Text => "string",
        Kind::Enum(_) => "name",
        Kind::Message(_) => "message",
    }
}

/// Returns the name of the table of an enum's names in `dialect`.
pub(crate) fn enum_table(model: &Model, index: usize, dialect: u8) -> String {
    let item = &model.enums[index];
    let same = |d| model.shown_values(item, d) == model.shown_values(item, dialect);
    let first = DIALECTS.into_iter().find(|d| same(*d)).unwrap_or(dialect);
    format!("E{index}_{first}")
}

fn statement(model: &Model, field: &Field, shown: &Shown<'_>, dialect: u8) -> String {
    let key = format!("{:?}", format!("\"{}\":", shown.name));
    let rust = &field.rust;
    let word = word(field.kind);
    let names = match field.kind {
        Kind::Enum(index) => format!(", &{}", enum_table(model, index, dialect)),
        _ => String::new(),
    };
    let generics = match field.kind {
        Kind::Message(_) => format!("::<_, {}>", dialect_below(model, field.kind)),
        _ => String::new(),
    };
    let copied = !matches!(field.kind, Kind::Text | Kind::Bytes | Kind::Message(_));
    let by = if copied { "" } else { "&" };
    if shown.duration {
        return format!("e::opt_duration(o, {key}, &self.{rust});");
    }
    if let Some(oneof) = &field.oneof {
        let star = if copied { "*" } else { "" };
        return format!(
            "if let Some({}::{rust}(v)) = &self.{} {{ e::{word}{generics}(o, {key}, {star}v{names}); }}",
            oneof.path, oneof.rust
        );
    }
    match (field.label, shown.default) {
        (Label::Required, _) => format!("e::{word}{generics}(o, {key}, {by}self.{rust}{names});"),
        (Label::Optional, Some(default)) => with_default(field, default, &key, &names),
        (Label::Optional, None) => format!("e::opt_{word}{generics}(o, {key}, {by}self.{rust}{names});"),
        (Label::Implicit, _) => {
            format!("if !e::is_zero(&self.{rust}) {{ e::{word}{generics}(o, {key}, {by}self.{rust}{names}); }}")
        }
        (Label::Repeated, _) => format!("e::all_{word}{generics}(o, {key}, &self.{rust}{names});"),
        (Label::Map, _) => format!("e::map_{word}{generics}(o, {key}, &self.{rust}{names});"),
    }
}

/// Returns the statement for an optional field that is written with its default when unset.
fn with_default(field: &Field, default: &str, key: &str, names: &str) -> String {
    let rust = &field.rust;
    match field.kind {
        Kind::Text => format!("e::string(o, {key}, self.{rust}.as_deref().unwrap_or({default:?}));"),
        Kind::Enum(_) => format!("e::name_or(o, {key}, self.{rust}{names}, {default:?});"),
        Kind::Double => format!("e::double(o, {key}, self.{rust}.unwrap_or({default}f64));"),
        Kind::Bytes | Kind::Message(_) => panic!("{}: a default of this kind is not supported", field.name),
        kind => format!("e::{}(o, {key}, self.{rust}.unwrap_or({default}));", word(kind)),
    }
}
