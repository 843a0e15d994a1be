//! The access control lists of `--acls` (docs/mesos/security.md).
//!
//! [`Acls::parse`] reads them, [`Authorizer::approves`] decides. Flags, requests, and the effects of actions are
//! elsewhere: a caller asks before it performs an action, and names the object of the action.
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

/// A rule: whether its subjects may perform an action on its objects.
#[derive(Debug)]
struct Rule {
    principals: Entity,
    objects: Objects,
}

/// Access control lists: the rules of each action, and the decision where no rule matches.
#[derive(Debug)]
pub struct Acls {
    permissive: bool,
    /// Rules of each action, indexed by [`Action`], in the order of the lists.
    rules: Box<[Box<[Rule]>]>,
}

/// Decides which actions are allowed. Without access control lists all are; that costs one read of a pointer.
#[derive(Clone, Debug, Default)]
pub struct Authorizer(Option<Arc<Acls>>);

/// A decision about an action before its object is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The action is allowed on every object.
    Everything,
    /// The action is allowed on no object.
    Nothing,
    /// The decision depends on the object.
    Depends,
}

impl Acls {
    /// Returns the decision of the first rule that matches subject and object, or `permissive` without such a rule. No
    /// object means any.
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
        // Whether an earlier rule names objects: later rules do not decide about those.
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
    /// Returns an authorizer with lists without rules. They allow everything except to subjects with claims, which have
    /// implicit permissions only.
    pub fn without_rules() -> Authorizer {
        Acls::default().into()
    }

    /// Returns whether there are access control lists.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether `subject` may perform `action` on `object`; `None` stands for any object. Roles are checked one
    /// by one.
    #[inline]
    pub fn approves<'s>(&self, subject: impl Into<Subject<'s>>, action: Action, object: Option<&str>) -> bool {
        match &self.0 {
            None => true,
            Some(acls) => acls.approves(subject.into(), action, object),
        }
    }

    /// Checks that `subject` may perform `action` on each of `objects`. Without objects, `permissive` decides (SEC-22).
    ///
    /// # Errors
    /// The first object that is denied; `None` if there are no objects.
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

    /// Returns whether `subject` may run a task or an executor as `user`. An empty `user` stands for the agent's own;
    /// then every user must be allowed.
    pub fn may_run_as<'s>(&self, subject: impl Into<Subject<'s>>, user: &str) -> bool {
        match user.is_empty() {
            true => self.verdict(subject, Action::RunTask) == Verdict::Everything,
            false => self.approves(subject, Action::RunTask, Some(user)),
        }
    }

    /// Returns the decision about `subject` and `action` for all objects, if it is the same for all.
    pub fn verdict<'s>(&self, subject: impl Into<Subject<'s>>, action: Action) -> Verdict {
        self.0.as_ref().map_or(Verdict::Everything, |acls| acls.verdict(subject.into(), action))
    }
}
