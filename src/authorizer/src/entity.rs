//! The subjects and objects of a rule: all, none, or those that it names (SEC-21).

/// The subject of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A subject that was not authenticated.
    Unauthenticated,
    /// A principal or user of this name.
    Principal(&'a str),
    /// A subject with claims and without a name: lists allow nothing (SEC-25).
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

/// The subjects or objects of a rule. A request for any of them matches only rules for all or for none.
#[derive(Debug)]
pub(crate) enum Entity {
    Any,
    None,
    /// Sorted.
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

    /// Only of what matches.
    pub(crate) fn allows(&self, subject: Subject<'_>) -> bool {
        match self {
            Entity::Any => true,
            Entity::None => false,
            Entity::Some(_) => self.matches(subject),
        }
    }
}

/// What a rule is for: names, and roles by what is above them.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) names: Entity,
    /// What roles begin with that are meant: `a/` for all roles below `a`.
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

    /// Only of what matches.
    pub(crate) fn allows(&self, object: Option<&str>) -> bool {
        match self.names {
            Entity::Any => true,
            Entity::None => false,
            Entity::Some(_) => self.matches(object),
        }
    }

    /// Whether it allows everything, or nothing; none if it depends.
    pub(crate) fn is_for_all(&self) -> Option<bool> {
        match self.names {
            Entity::Any => Some(true),
            Entity::None => Some(false),
            Entity::Some(_) => None,
        }
    }
}
