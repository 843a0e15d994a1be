//! Validation of commands: their environment (TSK-16).

use protos::mesos::environment::{Variable, variable};
use protos::mesos::{CommandInfo, Secret, secret};

/// Reasons why a command is invalid. `Display` is the whole text of the wire, so no variant has a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandInvalid {
    /// The name of a variable contains a null byte.
    #[error("Environment variable names must not contain null bytes")]
    NullInName,
    /// A variable of type SECRET has no secret.
    #[error("Environment variable '{0}' of type 'SECRET' must have a secret set")]
    NoSecret(String),
    /// A variable of type SECRET has a value.
    #[error("Environment variable '{0}' of type 'SECRET' must not have a value set")]
    SecretWithValue(String),
    /// The secret of a variable is invalid.
    #[error("Environment variable '{0}' specifies an invalid secret: {1}")]
    Secret(String, SecretInvalid),
    /// A variable of type VALUE has no value.
    #[error("Environment variable '{0}' of type 'VALUE' must have a value set")]
    NoValue(String),
    /// A variable of type VALUE has a secret.
    #[error("Environment variable '{0}' of type 'VALUE' must not have a secret set")]
    ValueWithSecret(String),
    /// The value of a variable contains a null byte.
    #[error("Environment variable '{0}' has a value that contains null bytes")]
    NullInValue(String),
    /// The type of a variable is unknown.
    #[error("Environment variable of type 'UNKNOWN' is not allowed")]
    UnknownType,
}

/// Reasons why a secret is invalid: it must have the field that its type names, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretInvalid {
    /// The field that the secret's type names is missing.
    #[error("Secret of type {0} must have the '{1}' field set")]
    Missing(&'static str, &'static str),
    /// The secret has the field of another type.
    #[error("Secret of type {0} must not have the '{1}' field set")]
    Other(&'static str, &'static str),
    /// The type of the secret is unknown.
    #[error("Secret of type UNKNOWN is not allowed")]
    UnknownType,
}

/// Checks the environment variables of a command.
///
/// # Errors
/// The first rule that one of them breaks.
pub fn command(info: &CommandInfo) -> Result<(), CommandInvalid> {
    info.environment.iter().flat_map(|environment| &environment.variables).try_for_each(self::variable)
}

fn variable(variable: &Variable) -> Result<(), CommandInvalid> {
    let name = &*variable.name;
    if name.contains('\0') {
        return Err(CommandInvalid::NullInName);
    }
    let kind = variable.r#type.map_or(Ok(variable::Type::Value), variable::Type::try_from);
    match kind.unwrap_or(variable::Type::Unknown) {
        variable::Type::Secret => {
            let secret = variable.secret.as_ref().ok_or_else(|| CommandInvalid::NoSecret(name.into()))?;
            if variable.value.is_some() {
                return Err(CommandInvalid::SecretWithValue(name.into()));
            }
            self::secret(secret).map_err(|why| CommandInvalid::Secret(name.into(), why))
        }
        variable::Type::Value => match (&variable.value, &variable.secret) {
            (None, _) => Err(CommandInvalid::NoValue(name.into())),
            (_, Some(_)) => Err(CommandInvalid::ValueWithSecret(name.into())),
            (Some(value), None) if value.contains('\0') => Err(CommandInvalid::NullInValue(name.into())),
            (Some(_), None) => Ok(()),
        },
        variable::Type::Unknown => Err(CommandInvalid::UnknownType),
    }
}

/// Checks that a secret has exactly the field that its type names.
pub(crate) fn secret(secret: &Secret) -> Result<(), SecretInvalid> {
    let (own, other, names) = match secret.r#type() {
        secret::Type::Reference => (secret.reference.is_some(), secret.value.is_some(), ["reference", "value"]),
        secret::Type::Value => (secret.value.is_some(), secret.reference.is_some(), ["value", "reference"]),
        secret::Type::Unknown => return Err(SecretInvalid::UnknownType),
    };
    let kind = secret.r#type().as_str_name();
    match (own, other) {
        (false, _) => Err(SecretInvalid::Missing(kind, names[0])),
        (true, true) => Err(SecretInvalid::Other(kind, names[1])),
        (true, false) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::Environment;
    use protos::mesos::secret::{Reference, Type, Value};

    fn of(kind: Option<variable::Type>, value: Option<&str>, secret: Option<Secret>) -> Result<(), CommandInvalid> {
        let (name, value) = ("A".to_owned(), value.map(str::to_owned));
        let variable = Variable { name, r#type: kind.map(|kind| kind as i32), value, secret };
        command(&CommandInfo { environment: Some(Environment { variables: vec![variable] }), ..CommandInfo::default() })
    }

    fn secret_of(kind: Type, reference: bool, value: bool) -> Secret {
        let reference = reference.then(|| Reference { name: "r".to_owned(), key: None });
        let value = value.then(|| Value { data: b"v".to_vec() });
        Secret { r#type: Some(kind as i32), reference, value }
    }

    #[test]
    fn variables() {
        use variable::Type as Kind;
        let good = || Some(secret_of(Type::Value, false, true));
        assert_eq!(of(None, Some(""), None), Ok(()));
        assert_eq!(of(Some(Kind::Secret), None, good()), Ok(()));
        assert_eq!(of(Some(Kind::Secret), None, Some(secret_of(Type::Reference, true, false))), Ok(()));
        let variable = "Environment variable 'A' of type";
        for (given, words) in [
            (of(None, None, None), format!("{variable} 'VALUE' must have a value set")),
            (of(Some(Kind::Value), None, good()), format!("{variable} 'VALUE' must have a value set")),
            (of(Some(Kind::Value), Some("x"), good()), format!("{variable} 'VALUE' must not have a secret set")),
            (of(Some(Kind::Secret), None, None), format!("{variable} 'SECRET' must have a secret set")),
            (of(Some(Kind::Secret), Some("x"), good()), format!("{variable} 'SECRET' must not have a value set")),
            (of(Some(Kind::Unknown), Some("x"), None), "Environment variable of type 'UNKNOWN' is not allowed".to_owned()),
            (of(None, Some("a\0b"), None), "Environment variable 'A' has a value that contains null bytes".to_owned()),
            (
                of(Some(Kind::Secret), None, Some(secret_of(Type::Value, false, false))),
                "Environment variable 'A' specifies an invalid secret: Secret of type VALUE must have the 'value' field \
                 set"
                    .to_owned(),
            ),
        ] {
            assert_eq!(given.unwrap_err().to_string(), words);
        }
        let name = Variable { name: "A\0".to_owned(), value: Some(String::new()), ..Variable::default() };
        assert_eq!(self::variable(&name), Err(CommandInvalid::NullInName));
    }

    #[test]
    fn secrets_have_what_their_type_names() {
        for (kind, reference, value, words) in [
            (Type::Reference, false, true, "Secret of type REFERENCE must have the 'reference' field set"),
            (Type::Reference, true, true, "Secret of type REFERENCE must not have the 'value' field set"),
            (Type::Value, true, false, "Secret of type VALUE must have the 'value' field set"),
            (Type::Value, true, true, "Secret of type VALUE must not have the 'reference' field set"),
            (Type::Unknown, false, true, "Secret of type UNKNOWN is not allowed"),
        ] {
            assert_eq!(secret(&secret_of(kind, reference, value)).unwrap_err().to_string(), words);
        }
    }
}
