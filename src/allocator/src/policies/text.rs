//! Serialization of durations, amounts and roles as the texts that operators write.

/// Serialization of `Option<Duration>` as `5secs` or `5s`.
pub(super) mod span {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => to.serialize_str(&base::format_duration(*span)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        base::parse_span(&text).map(Some).map_err(serde::de::Error::custom)
    }
}

/// Serialization of `Duration` as `5secs` or `5s`.
pub(super) mod plain_span {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base::format_duration(*span))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        base::parse_span(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

/// Serialization of quantities as `cpus:4;mem:8192`.
pub(super) mod amounts {
    use resources::Quantities;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(amounts: &Option<Quantities>, to: S) -> Result<S::Ok, S::Error> {
        match amounts {
            Some(amounts) => to.serialize_str(&amounts.to_string()),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Quantities>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        resources::parse_quantities(&text).map(Some).map_err(serde::de::Error::custom)
    }
}

/// Serialization of a table by role.
pub(super) mod by_role {
    use std::collections::BTreeMap;

    use resources::Role;
    use serde::ser::SerializeMap;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::policies::RolePolicies;

    pub(crate) fn serialize<S: Serializer>(table: &BTreeMap<Role, RolePolicies>, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(table.len()))?;
        for (role, policies) in table {
            map.serialize_entry(role.as_str(), policies)?;
        }
        map.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Role, RolePolicies>, D::Error> {
        let table = BTreeMap::<String, RolePolicies>::deserialize(from)?;
        let read = |(name, policies): (String, RolePolicies)| {
            let role = Role::parse(&name).map_err(|why| serde::de::Error::custom(format!("role '{name}': {why}")))?;
            Ok((role, policies))
        };
        table.into_iter().map(read).collect()
    }
}
