//! Generates `take::Read` for every message: one arm per field.

use std::fmt::Write as _;

use crate::model::{Field, Kind, Label, Message, Model};
use crate::tables::names_table;
use crate::write::{by_dialect, dialect_below, enum_table, word};

pub(crate) fn generate(model: &Model) -> String {
    let mut out = String::new();
    for (index, message) in model.messages.iter().enumerate() {
        writeln!(out, "impl t::Read for {} {{", message.rust).unwrap();
        out.push_str("#[inline]\nfn fields<const D: u8>(&mut self, p: &mut Parser<'_>) -> t::Outcome<()> {\n");
        let names: Vec<String> = [0, 1].iter().map(|d| names_table(model, index, *d)).collect();
        let names = if names[0] == names[1] {
            names[0].clone()
        } else {
            format!("if D == 0 {{ {} }} else {{ {} }}", names[0], names[1])
        };
        writeln!(out, "let mut s = t::Seen::new({names});").unwrap();
        if message.fields.is_empty() {
            out.push_str("while p.key(&mut s)?.is_some() {}\n");
        } else {
            out.push_str("while let Some(index) = p.key(&mut s)? {\nmatch index {\n");
            for (i, field) in message.fields.iter().enumerate() {
                write!(out, "{i} => {{ {} }}", arm(model, message, field).trim_end()).unwrap();
                out.push('\n');
            }
            out.push_str("_ => {}\n}\n}\n");
        }
        if message.name == "mesos.SlaveInfo" {
            out.push_str("if D == 1 { self.checkpoint = Some(true); }\n");
        }
        writeln!(out, "p.required(&s, {});\nOk(())\n}}\n}}", required_mask(message)).unwrap();
        let sensitive = message.sensitive && !message.name.starts_with("mesos.v1.");
        let call = if sensitive { "by_dialect" } else { "plain" };
        writeln!(out, "impl FromJson for {} {{", message.rust).unwrap();
        out.push_str("#[inline]\nfn from_json(text: &[u8], dialect: Dialect) -> Result<Self, JsonError> {\n");
        writeln!(out, "document::{call}(text, dialect)\n}}\n}}").unwrap();
    }
    out
}

fn required_mask(message: &Message) -> String {
    let mut mask = 0u64;
    for (i, field) in message.fields.iter().enumerate() {
        if field.label == Label::Required {
            mask |= 1 << i;
        }
    }
    format!("{mask:#x}")
}

fn arm(model: &Model, message: &Message, field: &Field) -> String {
    by_dialect(|dialect| {
        let shown = model.shown(message, field, dialect.min(1));
        Some(match shown {
            None => String::new(),
            Some(shown) if shown.duration => format!("t::opt_duration(p, &mut s, &mut self.{})?;", field.rust),
            Some(_) => take(model, message, field, dialect.min(1)),
        })
    })
}

fn take(model: &Model, message: &Message, field: &Field, dialect: u8) -> String {
    let word = word(field.kind);
    let rust = &field.rust;
    let generics = match field.kind {
        Kind::Message(_) => format!("::<_, {}>", dialect_below(model, field.kind)),
        _ => String::new(),
    };
    let names = match field.kind {
        Kind::Enum(index) => format!(", &{}", enum_table(model, index, dialect)),
        _ => String::new(),
    };
    if let Some(oneof) = &field.oneof {
        let mut mask = 0u64;
        for (i, other) in message.fields.iter().enumerate() {
            if other.name != field.name && other.oneof.as_ref().is_some_and(|o| o.index == oneof.index) {
                mask |= 1 << i;
            }
        }
        return format!(
            "p.alone(&s, {mask:#x})?; let mut v = None; t::opt_{word}{generics}(p, &mut s, &mut v{names})?; \
             if let Some(v) = v {{ self.{} = Some({}::{rust}(v)); }}",
            oneof.rust, oneof.path
        );
    }
    let prefix = match field.label {
        Label::Required => "",
        // An unset field of proto3 has its default, so its absence need not be recorded.
        Label::Implicit if matches!(field.kind, Kind::Enum(_)) => "implicit_",
        Label::Implicit => "",
        Label::Optional => "opt_",
        Label::Repeated => "all_",
        Label::Map => "map_",
    };
    format!("t::{prefix}{word}{generics}(p, &mut s, &mut self.{rust}{names})?;")
}
