//! A TOML or JSON document with the position of every value, so that faults can name their places.
//!
//! Beyond this file the two syntaxes do not differ. The meaning of values is not known here.

use std::collections::BTreeSet;

use jsonc_parser::ast::{ObjectPropName, Value as Json};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use toml::de::{DeTable, DeValue};

/// A value with its position in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Position of the first byte.
    pub at: usize,
    /// Value at this position.
    pub value: Value,
}

/// A value of either syntax. A date is represented by its text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`.
    Nothing,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number that is not whole.
    Real(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Vec<Field>),
}

/// A named value of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Position of the name.
    pub at: usize,
    /// Value of the field.
    pub node: Node,
}

impl Value {
    /// Returns the type of the value in words.
    pub fn what(&self) -> &'static str {
        match self {
            Value::Nothing => "null",
            Value::Flag(_) => "true or false",
            Value::Whole(_) | Value::Real(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// The position and the reason of a syntax error.
pub type SyntaxFault = (usize, String);

/// Parses TOML.
pub fn from_toml(text: &str) -> Result<Node, SyntaxFault> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (at, format!("this is not TOML: {}", error.message().replace('\n', ", ")))
    })?;
    let at = table.span().start;
    Ok(Node { at, value: toml_table(table.into_inner())? })
}

fn toml_table(table: DeTable) -> Result<Value, SyntaxFault> {
    let mut fields = Vec::new();
    for (name, value) in table {
        let at = name.span().start;
        fields.push(Field { at, name: name.into_inner().into_owned(), node: toml_node(value)? });
    }
    Ok(Value::Table(fields))
}

fn toml_node(value: toml::Spanned<DeValue>) -> Result<Node, SyntaxFault> {
    let at = value.span().start;
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            let whole = i64::from_str_radix(&digits, number.radix());
            Value::Whole(whole.map_err(|_| (at, format!("{digits} is not a number of 64 bits")))?)
        }
        DeValue::Float(number) => real(number.as_str(), at)?,
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(list) => Value::List(list.into_iter().map(toml_node).collect::<Result<_, _>>()?),
        DeValue::Table(table) => toml_table(table)?,
    };
    Ok(Node { at, value })
}

fn real(text: &str, at: usize) -> Result<Value, SyntaxFault> {
    let number = text.replace('_', "").parse();
    number.map(Value::Real).map_err(|_| (at, format!("{text} is not a number")))
}

/// Options for standard JSON, without the extensions of the parser.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses JSON.
pub fn from_json(text: &str) -> Result<Node, SyntaxFault> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT)
        .map_err(|error| (error.range().start, format!("this is not JSON: {}", error.kind())))?;
    match parsed.value {
        Some(value) => json_node(value),
        None => Err((0, "this is not JSON: the file is empty".to_owned())),
    }
}

fn json_node(value: Json) -> Result<Node, SyntaxFault> {
    let at = value.range().start;
    let value = match value {
        Json::StringLit(text) => Value::Text(text.value.into_owned()),
        Json::NumberLit(number) => match number.value.parse() {
            Ok(whole) => Value::Whole(whole),
            Err(_) => real(number.value, at)?,
        },
        Json::BooleanLit(flag) => Value::Flag(flag.value),
        Json::NullKeyword(_) => Value::Nothing,
        Json::Array(list) => Value::List(list.elements.into_iter().map(json_node).collect::<Result<_, _>>()?),
        Json::Object(object) => {
            let mut fields: Vec<Field> = Vec::new();
            let mut names = BTreeSet::new();
            for property in object.properties {
                let at = property.range.start;
                let name = match property.name {
                    ObjectPropName::String(text) => text.value.into_owned(),
                    ObjectPropName::Word(word) => word.value.to_owned(),
                };
                if !names.insert(name.clone()) {
                    return Err((at, format!("'{name}' occurs twice")));
                }
                fields.push(Field { at, name, node: json_node(property.value)? });
            }
            Value::Table(fields)
        }
    };
    Ok(Node { at, value })
}
