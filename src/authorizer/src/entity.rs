//! The subjects and objects of a rule: all, none, or those that the rule names (SEC-21).

/// The subject of an action: the principal that requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A subject that was not authenticated.
    Unauthenticated,
    /// A principal or a user with this name.
    Principal(&'a str),
    /// A subject with claims and without a name. Access control lists allow it nothing (SEC-25).
    Claims,
}

impl<'a> From<Option<&'a str>> for Subject<'a> {
    fn from(principal: Option<&'a str>) -> Subject<'a> {
        principal.map_or(Subject::Unauthenticated, Subject::Principal)
    }
}

impl<'a> Subject<'a> {
    fn name(self) -> Option<&'a str> {
        match self {
            Subject::Principal(name) => Some(name),
            Subject::Unauthenticated | Subject::Claims => None,
        }
    }
}

/// The subjects or the objects of a rule. A request without a name matches only `Any` and `None`.
#[derive(Debug)]
pub(crate) enum Entity {
    Any,
    None,
    /// The subjects or objects with these names, which are sorted.
    Some(Box<[Box<str>]>),
}

impl Entity {
    fn has(&self, name: &str) -> bool {
        matches!(self, Entity::Some(names) if names.binary_search_by(|known| (**known).cmp(name)).is_ok())
    }

    pub(crate) fn matches(&self, subject: Subject<'_>) -> bool {
        match self {
            Entity::Any | Entity::None => true,
            Entity::Some(_) => subject.name().is_some_and(|name| self.has(name)),
        }
    }

    /// Returns whether a rule with these subjects allows the subject, which must match.
    pub(crate) fn allows(&self, subject: Subject<'_>) -> bool {
        match self {
            Entity::Any => true,
            Entity::None => false,
            Entity::Some(_) => self.matches(subject),
        }
    }
}

/// The objects of a rule: names, and prefixes of roles.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) names: Entity,
    /// Prefixes of the roles that the rule includes: `a/` for all roles below `a`.
    pub(crate) above: Box<[Box<str>]>,
}

impl Objects {
    pub(crate) fn matches(&self, object: Option<&str>) -> bool {
        match (&self.names, object) {
            (Entity::Any | Entity::None, _) => true,
            (Entity::Some(_), None) => false,
            (Entity::Some(_), Some(object)) => {
                let below = |above: &str| object.len() > above.len() && object.starts_with(above);
                self.names.has(object) || self.above.iter().any(|above| below(above))
            }
        }
    }

    /// Returns whether a rule with these objects allows the object, which must match.
    pub(crate) fn allows(&self, object: Option<&str>) -> bool {
        match self.names {
            Entity::Any => true,
            Entity::None => false,
            Entity::Some(_) => self.matches(object),
        }
    }

    /// Returns whether the rule allows all objects or none; `None` if it depends on the object.
    pub(crate) fn is_for_all(&self) -> Option<bool> {
        match self.names {
            Entity::Any => Some(true),
            Entity::None => Some(false),
            Entity::Some(_) => None,
        }
    }
}
