//! The access control lists of `--acls` (docs/mesos/security.md).
//!
//! [`Acls::parse`] reads them, [`Authorizer::approves`] decides. Flags, requests, and the effects of actions are
//! elsewhere: a caller asks before it performs an action, and names its object.
#![forbid(unsafe_code)]

mod action;
mod entity;
mod objects;
mod read;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use action::Action;
pub use entity::Subject;
pub use objects::{LaunchRefused, executor_user, launched_user, resource_roles, task_user};
pub use read::AclError;

use entity::{Entity, Objects};

/// One rule: what some may do to something.
#[derive(Debug)]
struct Rule {
    principals: Entity,
    objects: Objects,
}

/// Rules by action, and what holds where none fits.
#[derive(Debug)]
pub struct Acls {
    permissive: bool,
    /// By [`Action`], each in the order in which they were given.
    rules: Box<[Box<[Rule]>]>,
}

/// Decides which actions are allowed; without lists all are, which costs one read of a pointer.
#[derive(Clone, Debug, Default)]
pub struct Authorizer(Option<Arc<Acls>>);

/// What is decided before it is known what an action is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be done to everything.
    Everything,
    /// It may be done to nothing.
    Nothing,
    /// It depends.
    Depends,
}

impl Acls {
    /// The first rule that fits both subject and object decides; without one, `permissive` does. No object means any.
    fn approves(&self, subject: Subject<'_>, action: Action, object: Option<&str>) -> bool {
        if subject == Subject::Claims {
            return false;
        }
        let rules = &self.rules[action as usize];
        let fits = |rule: &&Rule| rule.principals.matches(subject) && rule.objects.matches(object);
        match rules.iter().find(fits) {
            Some(rule) => rule.principals.allows(subject) && rule.objects.allows(object),
            None => self.permissive,
        }
    }

    fn verdict(&self, subject: Subject<'_>, action: Action) -> Verdict {
        if subject == Subject::Claims {
            return Verdict::Nothing;
        }
        // Whether objects have been named that a later rule does not hold for.
        let mut named = false;
        let rules = &self.rules[action as usize];
        for rule in rules.iter().filter(|rule| rule.principals.matches(subject)) {
            match (rule.objects.is_for_all(), named) {
                (None, _) => named = true,
                (Some(_), true) => return Verdict::Depends,
                (Some(allowed), false) => return Verdict::of(allowed && rule.principals.allows(subject)),
            }
        }
        if named { Verdict::Depends } else { Verdict::of(self.permissive) }
    }
}

impl Default for Acls {
    fn default() -> Acls {
        Acls { permissive: true, rules: action::KNOWN.iter().map(|_| Box::default()).collect() }
    }
}

impl Verdict {
    fn of(allowed: bool) -> Verdict {
        if allowed { Verdict::Everything } else { Verdict::Nothing }
    }
}

impl From<Acls> for Authorizer {
    fn from(acls: Acls) -> Authorizer {
        Authorizer(Some(Arc::new(acls)))
    }
}

impl Authorizer {
    /// Lists without rules. They allow everything but to subjects with claims, which have implicit permissions only.
    pub fn without_rules() -> Authorizer {
        Acls::default().into()
    }

    /// Whether there are lists at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether `subject` may do `action` to `object`; `None`: to any. Roles are checked one by one.
    #[inline]
    pub fn approves<'s>(&self, subject: impl Into<Subject<'s>>, action: Action, object: Option<&str>) -> bool {
        match &self.0 {
            None => true,
            Some(acls) => acls.approves(subject.into(), action, object),
        }
    }

    /// Whether `subject` may do `action` to each of `objects`; without objects the value of `permissive` (SEC-22).
    pub fn approves_all<'s, 'o>(
        &self,
        subject: impl Into<Subject<'s>>,
        action: Action,
        objects: impl IntoIterator<Item = &'o str>,
    ) -> Result<(), Option<&'o str>> {
        let Some(acls) = &self.0 else { return Ok(()) };
        let subject = subject.into();
        let mut objects = objects.into_iter().peekable();
        if objects.peek().is_none() && !acls.permissive {
            return Err(None);
        }
        match objects.find(|object| !acls.approves(subject, action, Some(object))) {
            None => Ok(()),
            refused => Err(refused),
        }
    }

    /// Whether `subject` may run something as this user. Without a user it runs as the agent's own, and every user must
    /// be allowed.
    pub fn may_run_as<'s>(&self, subject: impl Into<Subject<'s>>, user: &str) -> bool {
        match user.is_empty() {
            true => self.verdict(subject, Action::RunTask) == Verdict::Everything,
            false => self.approves(subject, Action::RunTask, Some(user)),
        }
    }

    /// The decision about `subject` and `action` for all objects, if it is the same for all.
    pub fn verdict<'s>(&self, subject: impl Into<Subject<'s>>, action: Action) -> Verdict {
        self.0.as_ref().map_or(Verdict::Everything, |acls| acls.verdict(subject.into(), action))
    }
}
