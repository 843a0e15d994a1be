//! Rust names that prost gives to protobuf's packages, messages, fields and enum variants.

use heck::{ToSnakeCase, ToUpperCamelCase};

/// Keywords that prost writes as raw identifiers.
const KEYWORDS: &[&str] = &[
    "as", "break", "const", "continue", "else", "enum", "false", "fn", "for", "if", "impl", "in", "let", "loop",
    "match", "mod", "move", "mut", "pub", "ref", "return", "static", "struct", "trait", "true", "type", "unsafe",
    "use", "where", "while", "dyn", "abstract", "become", "box", "do", "final", "macro", "override", "priv", "typeof",
    "unsized", "virtual", "yield", "async", "await", "try", "gen",
];

/// Returns the Rust name of a field, or of the module that contains a message's nested types.
pub(crate) fn snake(name: &str) -> String {
    let snake = name.to_snake_case();
    if KEYWORDS.contains(&snake.as_str()) {
        format!("r#{snake}")
    } else if matches!(snake.as_str(), "self" | "super" | "extern" | "crate") {
        format!("{snake}_")
    } else {
        snake
    }
}

/// Returns the Rust name of a struct, of an enum, or of a variant.
pub(crate) fn camel(name: &str) -> String {
    let camel = name.to_upper_camel_case();
    if camel == "Self" { "Self_".to_owned() } else { camel }
}

/// Returns the path of the module of `package`, from the crate's root.
pub(crate) fn module(package: &str) -> String {
    let mut path = "crate".to_owned();
    for part in package.split('.').filter(|part| !part.is_empty()) {
        path.push_str("::");
        path.push_str(&snake(part));
    }
    path
}
