//! Descriptions of flags, the types of their values, and the macro that defines groups of flags.
//!
//! The groups define the names of flags.

use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

/// The description of a flag of a daemon, as of Mesos 1.11.
#[derive(Debug)]
pub struct Flag {
    /// Name, without the dashes.
    pub name: &'static str,
    /// Older names, which are accepted with a warning.
    pub aliases: &'static [&'static str],
    /// Default text; `None` means unset.
    pub default: Option<&'static str>,
    /// Form of the text.
    pub kind: Kind,
    /// Help text, one line.
    pub help: &'static str,
    /// What the value is used for.
    pub(crate) effect: Effect,
}

/// A group of flags about one subject.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The subject, as a title.
    pub about: &'static str,
    /// Descriptions of the flags in the group.
    pub flags: &'static [Flag],
}

/// The use of the value of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The value is read as a field of a group of flags.
    Read,
    /// The value is used while the flags are loaded.
    Loader,
    /// Another value than the default is an error.
    Unsupported,
    /// The value has no effect, for this reason. Another value than the default is named in the log.
    None(&'static str),
}

impl Flag {
    const fn new(
        name: &'static str,
        kind: Kind,
        default: Option<&'static str>,
        help: &'static str,
        effect: Effect,
    ) -> Flag {
        Flag { name, aliases: &[], default, kind, help, effect }
    }

    /// Describes a flag that is used while the flags are loaded.
    pub(super) const fn of_loader(
        name: &'static str,
        kind: Kind,
        default: Option<&'static str>,
        help: &'static str,
    ) -> Flag {
        Flag::new(name, kind, default, help, Effect::Loader)
    }

    /// Describes a flag that must have its default.
    pub(super) const fn unsupported(
        name: &'static str,
        kind: Kind,
        default: Option<&'static str>,
        help: &'static str,
    ) -> Flag {
        Flag::new(name, kind, default, help, Effect::Unsupported)
    }

    /// Describes a flag without effect, for the reason `why`.
    pub(super) const fn without_effect(
        name: &'static str,
        kind: Kind,
        default: Option<&'static str>,
        help: &'static str,
        why: &'static str,
    ) -> Flag {
        Flag::new(name, kind, default, help, Effect::None(why))
    }

    /// Returns the flag with older names.
    pub(super) const fn with_aliases(self, aliases: &'static [&'static str]) -> Flag {
        Flag { aliases, ..self }
    }

    /// Returns the help with the default, and a note about a flag that is not read.
    pub fn described(&self) -> String {
        let default = self.default.map(|default| format!(" [{default}]")).unwrap_or_default();
        let note = self.note().map(|note| format!(" ({note})")).unwrap_or_default();
        format!("{}{default}{note}", self.help.trim())
    }

    /// Returns the note for `--help` about a flag that is not read; `None` for others.
    pub fn note(&self) -> Option<&'static str> {
        match self.effect {
            Effect::Read | Effect::Loader => None,
            Effect::Unsupported => Some("not supported"),
            Effect::None(_) => Some("has no effect"),
        }
    }
}

/// Defines a group of flags: a struct with a field for each flag, and the table of their names, defaults and help.
///
/// A flag is written as `name (older_name): Type = "default"`, with its help as documentation comment. A flag without a
/// default has the type `Option<Type>`. The compiler reports a flag whose field nothing reads.
macro_rules! flags {
    ($(#[doc = $about:literal])+ $group:ident {
        $($(#[doc = $help:literal])+ $name:ident $(($($alias:ident),+))?: $type:ty $(= $default:literal)?,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub struct $group {
            $($(#[doc = $help])+ pub(crate) $name: $type,)+
        }

        impl $group {
            /// The flags of the group.
            pub(crate) const GROUP: $crate::flags::Group = $crate::flags::Group { about: concat!($($about),+), flags: &[$($crate::flags::Flag {
                name: stringify!($name),
                aliases: &[$($(stringify!($alias)),+)?],
                default: {
                    #[allow(unused_mut, unused_assignments)]
                    let mut default = None;
                    $(default = Some($default);)?
                    default
                },
                kind: <$type as $crate::flags::spec::FlagValue>::KIND,
                help: concat!($($help),+),
                effect: $crate::flags::spec::Effect::Read,
            }),+] };

            /// Converts the texts of the group's flags.
            ///
            /// # Errors
            /// The first value that does not have the type of its flag.
            pub(crate) fn read(given: &$crate::flags::Flags) -> Result<$group, $crate::flags::FlagError> {
                Ok($group { $($name: given.value(stringify!($name))?),+ })
            }
        }
    };
}
pub(super) use flags;

/// The type of a flag's value.
pub(crate) trait FlagValue: Sized {
    /// Form of the flag's text.
    const KIND: Kind;

    /// Converts the text of a flag; `None` if it is not set.
    ///
    /// # Errors
    /// The text does not have the form.
    fn read(text: Option<&str>) -> Result<Self, ValueError>;
}

/// The type of a flag's value that is always set; `Option` of it is a flag that may be unset.
pub(crate) trait Parse: Sized {
    const KIND: Kind;
    /// Whether the empty text means that the flag is not set.
    const EMPTY_IS_UNSET: bool = false;

    fn parse(text: &str) -> Result<Self, ValueError>;
}

impl<T: Parse> FlagValue for T {
    const KIND: Kind = T::KIND;

    fn read(text: Option<&str>) -> Result<T, ValueError> {
        T::parse(text.unwrap_or_default())
    }
}

impl<T: Parse> FlagValue for Option<T> {
    const KIND: Kind = T::KIND;

    fn read(text: Option<&str>) -> Result<Option<T>, ValueError> {
        text.filter(|text| !(T::EMPTY_IS_UNSET && text.is_empty())).map(T::parse).transpose()
    }
}

/// The value of a flag that is a JSON document.
#[derive(Clone, Debug)]
pub(crate) struct Json(String);

/// The value of a flag that is the path of a file or the address of a server.
#[derive(Clone, Debug)]
pub(crate) struct Address(String);

/// The value of a flag that is an amount of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(pub u64);

impl Deref for Json {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Deref for Address {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Parse for bool {
    const KIND: Kind = Kind::Bool;

    fn parse(text: &str) -> Result<bool, ValueError> {
        parse_bool(text)
    }
}

impl Parse for String {
    const KIND: Kind = Kind::Text;

    fn parse(text: &str) -> Result<String, ValueError> {
        Ok(text.to_owned())
    }
}

impl Parse for Json {
    const KIND: Kind = Kind::Json;
    const EMPTY_IS_UNSET: bool = true;

    fn parse(text: &str) -> Result<Json, ValueError> {
        Ok(Json(text.to_owned()))
    }
}

impl Parse for PathBuf {
    const KIND: Kind = Kind::Path;
    const EMPTY_IS_UNSET: bool = true;

    fn parse(text: &str) -> Result<PathBuf, ValueError> {
        Ok(PathBuf::from(text))
    }
}

impl Parse for Address {
    const KIND: Kind = Kind::Path;
    const EMPTY_IS_UNSET: bool = true;

    fn parse(text: &str) -> Result<Address, ValueError> {
        Ok(Address(text.to_owned()))
    }
}

impl Parse for Duration {
    const KIND: Kind = Kind::Duration;

    fn parse(text: &str) -> Result<Duration, ValueError> {
        parse_duration(text)
    }
}

impl Parse for Bytes {
    const KIND: Kind = Kind::Bytes;

    fn parse(text: &str) -> Result<Bytes, ValueError> {
        parse_bytes(text).map(Bytes)
    }
}

impl Parse for u64 {
    const KIND: Kind = Kind::Count;

    fn parse(text: &str) -> Result<u64, ValueError> {
        text.parse().map_err(|_| ValueError::Count(text.to_owned()))
    }
}

impl Parse for f64 {
    const KIND: Kind = Kind::Number;

    fn parse(text: &str) -> Result<f64, ValueError> {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(ValueError::Number(text.to_owned())),
        }
    }
}

/// The form of a flag's text (FLG-01 to FLG-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true`, `false`, `1`, `0`; `--name` and `--no-name` are enough.
    Bool,
    /// Any text; `file:///path` stands for the file's content.
    Text,
    /// JSON: an object or a list as text; anything else is the path of a file with it.
    Json,
    /// Any text, of which `file://` stays a part: the flag names a file or an address.
    Path,
    /// A duration, such as `15secs`.
    Duration,
    /// An amount of bytes: an integer with `B`, `KB`, `MB`, `GB` or `TB`, in steps of 1024.
    Bytes,
    /// An integer that is not negative.
    Count,
    /// A decimal number.
    Number,
}

/// The error for a text that does not have the form of its flag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The text is none of `true`, `false`, `1`, `0`.
    #[error("'{0}' is not a boolean: use true, false, 1 or 0")]
    Bool(String),
    /// The text is not a duration.
    #[error(transparent)]
    Duration(#[from] base::DurationTextError),
    /// The text is not an amount of bytes.
    #[error("'{0}' is not an amount of bytes: write for example 512MB")]
    Bytes(String),
    /// The text is not an integer, or is negative.
    #[error("'{0}' is not a whole number")]
    Count(String),
    /// The text is not a number.
    #[error("'{0}' is not a number")]
    Number(String),
}

impl Kind {
    /// Checks `text` and returns the form in which `/flags` shows it: `60secs` becomes `1mins`.
    ///
    /// # Errors
    /// Names the text and the rule.
    pub fn normalise(self, text: &str) -> Result<String, ValueError> {
        match self {
            Kind::Bool => Ok(parse_bool(text)?.to_string()),
            Kind::Text | Kind::Json | Kind::Path => Ok(text.to_owned()),
            Kind::Duration => Ok(base::format_duration(parse_duration(text)?)),
            Kind::Bytes => Ok(base::format_bytes(parse_bytes(text)?)),
            Kind::Count => Ok(u64::parse(text)?.to_string()),
            Kind::Number => f64::parse(text).map(|_| text.to_owned()),
        }
    }
}

/// Parses the text of a boolean flag.
///
/// # Errors
/// Any text but `true`, `false`, `1`, `0`.
fn parse_bool(text: &str) -> Result<bool, ValueError> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(ValueError::Bool(text.to_owned())),
    }
}

/// Parses the text of a duration flag.
///
/// # Errors
/// See [`base::parse_duration`].
fn parse_duration(text: &str) -> Result<Duration, ValueError> {
    Ok(base::parse_duration(text)?)
}

/// Parses an amount of bytes: an integer and a unit, without a space between.
///
/// # Errors
/// See [`base::parse_bytes`].
fn parse_bytes(text: &str) -> Result<u64, ValueError> {
    base::parse_bytes(text).ok_or_else(|| ValueError::Bytes(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_forms() {
        for (kind, text, shown) in [
            (Kind::Duration, "60secs", "1mins"),
            (Kind::Bytes, "4096B", "4KB"),
            (Kind::Bytes, "0B", "0B"),
            (Kind::Bool, "1", "true"),
            (Kind::Count, "007", "7"),
            (Kind::Number, "0.8", "0.8"),
        ] {
            assert_eq!(kind.normalise(text).as_deref(), Ok(shown), "{text}");
        }
    }

    #[test]
    fn refused() {
        for (kind, text) in [
            (Kind::Duration, "60"),
            (Kind::Bytes, "1.5GB"),
            (Kind::Bytes, "99999999999TB"),
            (Kind::Bool, "yes"),
            (Kind::Count, "-1"),
            (Kind::Number, "NaN"),
        ] {
            assert!(kind.normalise(text).is_err(), "{text}");
        }
    }
}
