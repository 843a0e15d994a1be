//! Commands: their environment (mesos-features.md TSK-16).

use protos::mesos::environment::{Variable, variable};
use protos::mesos::{CommandInfo, Secret, secret};

/// Checks a command's variables.
///
/// # Errors
/// The rule that one of them breaks.
pub fn command(info: &CommandInfo) -> Result<(), String> {
    info.environment.iter().flat_map(|environment| &environment.variables).try_for_each(self::variable)
}

fn variable(variable: &Variable) -> Result<(), String> {
    let name = &variable.name;
    if name.contains('\0') {
        return Err("Environment variable names must not contain null bytes".to_owned());
    }
    let kind = variable.r#type.map_or(Ok(variable::Type::Value), variable::Type::try_from);
    match kind.unwrap_or(variable::Type::Unknown) {
        variable::Type::Secret => {
            let secret = variable
                .secret
                .as_ref()
                .ok_or_else(|| format!("Environment variable '{name}' of type 'SECRET' must have a secret set"))?;
            if variable.value.is_some() {
                return Err(format!("Environment variable '{name}' of type 'SECRET' must not have a value set"));
            }
            self::secret(secret)
                .map_err(|why| format!("Environment variable '{name}' specifies an invalid secret: {why}"))
        }
        variable::Type::Value => match (&variable.value, &variable.secret) {
            (None, _) => Err(format!("Environment variable '{name}' of type 'VALUE' must have a value set")),
            (_, Some(_)) => Err(format!("Environment variable '{name}' of type 'VALUE' must not have a secret set")),
            (Some(value), None) if value.contains('\0') => {
                Err(format!("Environment variable '{name}' has a value that contains null bytes"))
            }
            (Some(_), None) => Ok(()),
        },
        variable::Type::Unknown => Err("Environment variable of type 'UNKNOWN' is not allowed".to_owned()),
    }
}

/// Exactly the field that its type names.
pub(crate) fn secret(secret: &Secret) -> Result<(), String> {
    match (secret.r#type(), &secret.reference, &secret.value) {
        (secret::Type::Reference, Some(_), None) | (secret::Type::Value, None, Some(_)) => Ok(()),
        (secret::Type::Reference, None, _) => {
            Err("Secret of type REFERENCE must have the 'reference' field set".to_owned())
        }
        (secret::Type::Reference, Some(_), Some(_)) => {
            Err("Secret of type REFERENCE must not have the 'value' field set".to_owned())
        }
        (secret::Type::Value, _, None) => Err("Secret of type VALUE must have the 'value' field set".to_owned()),
        (secret::Type::Value, Some(_), Some(_)) => {
            Err("Secret of type VALUE must not have the 'reference' field set".to_owned())
        }
        (secret::Type::Unknown, _, _) => Err("Secret of type UNKNOWN is not allowed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::Environment;
    use protos::mesos::secret::{Reference, Type, Value};

    fn of(kind: Option<variable::Type>, value: Option<&str>, secret: Option<Secret>) -> Result<(), String> {
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
            assert_eq!(given, Err(words));
        }
        let name = Variable { name: "A\0".to_owned(), value: Some(String::new()), ..Variable::default() };
        assert_eq!(self::variable(&name), Err("Environment variable names must not contain null bytes".to_owned()));
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
            assert_eq!(secret(&secret_of(kind, reference, value)), Err(words.to_owned()));
        }
    }
}
