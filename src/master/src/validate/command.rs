//! Commands: their environment (mesos-features.md TSK-16).

use protos::mesos::environment::{Variable, variable};
use protos::mesos::{CommandInfo, Secret, secret};

pub(crate) fn command(info: &CommandInfo) -> Result<(), String> {
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
