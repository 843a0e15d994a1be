//! Changes the Rust type of some fields of prost's types: `Text` for short texts, `Shared` for parts that many messages
//! have in common.
//!
//! It works on the syntax tree of the generated code. The documentation of these types has their costs and savings.

use syn::punctuated::Punctuated;
use syn::{Attribute, Field, File, Item, ItemStruct, Meta, Token, parse_quote};

type Failure = Box<dyn std::error::Error>;

/// New type of a field.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A `Text`, which is copied at no cost; as strings these fields took most of the memory that a busy master
    /// allocated.
    Text,
    /// A `Shared`, whose copies share one message.
    Shared,
}

/// The message within its package's module, the field, and its new type.
type Change = (&'static str, &'static str, Kind);

/// Changes by package.
pub(crate) const CHANGES: &[(&str, &[Change])] = &[
    (
        "mesos",
        &[
            ("FrameworkId", "value", Kind::Text),
            ("OfferId", "value", Kind::Text),
            ("SlaveId", "value", Kind::Text),
            ("TaskId", "value", Kind::Text),
            ("ExecutorId", "value", Kind::Text),
            ("Resource", "name", Kind::Text),
            ("Resource", "role", Kind::Text),
            ("resource::AllocationInfo", "role", Kind::Text),
        ],
    ),
    (
        "mesos.v1",
        &[
            ("FrameworkId", "value", Kind::Text),
            ("OfferId", "value", Kind::Text),
            ("AgentId", "value", Kind::Text),
            ("TaskId", "value", Kind::Text),
            ("ExecutorId", "value", Kind::Text),
            ("Resource", "name", Kind::Text),
            ("Resource", "role", Kind::Text),
            ("resource::AllocationInfo", "role", Kind::Text),
        ],
    ),
    (
        "mesos.internal",
        &[("RunTaskMessage", "framework", Kind::Shared), ("RunTaskGroupMessage", "framework", Kind::Shared)],
    ),
    (
        "mesos.executor",
        &[
            ("event::Subscribed", "executor_info", Kind::Shared),
            ("event::Subscribed", "framework_info", Kind::Shared),
            ("event::Subscribed", "slave_info", Kind::Shared),
        ],
    ),
];

/// Changes the type of `field` of `message`.
pub(crate) fn change(file: &mut File, message: &str, field: &str, kind: Kind) -> Result<(), Failure> {
    let path: Vec<&str> = message.split("::").collect();
    let message = find(&mut file.items, &path).ok_or("no such message")?;
    let field = message.fields.iter_mut().find(|f| f.ident.as_ref().is_some_and(|name| name == field));
    let field = field.ok_or("no such field")?;
    match kind {
        Kind::Text => {
            if make_text(field)? {
                // prost's own `Debug` would use the types of optional texts.
                message.attrs.push(parse_quote!(#[derive(Debug)]));
                message.attrs.push(parse_quote!(#[prost(skip_debug)]));
            }
        }
        Kind::Shared => {
            let inner = &field.ty;
            field.ty = parse_quote!(crate::Shared<#inner>);
        }
    }
    Ok(())
}

/// Changes a string to a `Text`. Returns whether it is an optional one.
fn make_text(field: &mut Field) -> Result<bool, Failure> {
    let is_prost = |attribute: &&mut Attribute| attribute.path().is_ident("prost");
    let attribute = field.attrs.iter_mut().find(is_prost).ok_or("no field of prost's")?;
    let mut parts = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
    if parts.iter().any(|part| part.path().is_ident("optional")) {
        field.ty = parse_quote!(::core::option::Option<crate::Text>);
        return Ok(true);
    }
    // For the derive required texts are bytes, since it would initialise required strings with `String`. See
    // `src/wireform.rs`.
    let string = parts.iter_mut().find(|part| part.path().is_ident("string"));
    *string.ok_or("no string")? = parse_quote!(bytes = "vec");
    *attribute = parse_quote!(#[prost(#parts)]);
    field.ty = parse_quote!(crate::Text);
    Ok(false)
}

/// Returns the struct at a path of modules.
fn find<'i>(items: &'i mut [Item], path: &[&str]) -> Option<&'i mut ItemStruct> {
    let (first, rest) = path.split_first()?;
    items.iter_mut().find_map(|item| match item {
        Item::Struct(found) if rest.is_empty() && found.ident == first => Some(found),
        Item::Mod(found) if !rest.is_empty() && found.ident == first => find(&mut found.content.as_mut()?.1, rest),
        _ => None,
    })
}
