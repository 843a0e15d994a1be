//! Role names: `*`, or a path of components separated by `/`.

use std::borrow::Borrow;
use std::fmt;

use protos::Text;

/// An error of a text that is not a role. The messages are Mesos's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleError {
    /// The name is empty.
    #[error("Role names cannot be the empty string")]
    Empty,
    /// The name starts with a slash, as in `/a`.
    #[error("Role '{0}' cannot start with a slash")]
    LeadingSlash(String),
    /// The name ends with a slash, as in `a/`.
    #[error("Role '{0}' cannot end with a slash")]
    TrailingSlash(String),
    /// The name has an empty component, as in `a//b`.
    #[error("Role '{0}' cannot contain two adjacent slashes")]
    EmptyComponent(String),
    /// A component is `.` or `..`, or is `*` within a path.
    #[error("Role '{role}' cannot include '{component}' as a component")]
    Reserved {
        /// Whole name of the role.
        role: String,
        /// Invalid component.
        component: String,
    },
    /// A component starts with a dash, like a command line option.
    #[error("Role component '{0}' is invalid because it starts with a dash")]
    Dash(String),
    /// The name contains white space or DEL.
    #[error("Role component '{0}' is invalid because it contains backspace or whitespace")]
    Characters(String),
    /// The name has more bytes than [`Role::MAX_BYTES`].
    #[error("Role names cannot be longer than {max} bytes: '{start}...' has {bytes}", max = Role::MAX_BYTES)]
    TooLong {
        /// First characters of the name.
        start: String,
        /// Length of the name in bytes.
        bytes: usize,
    },
}

/// A valid role name; cheap to clone, and to add to a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role(Text);

impl Role {
    /// Maximum length of a name in bytes. A role's volumes are in a directory of its name, and file systems allow no
    /// more. Mesos has no limit, and the cost of a path grows with the square of its length.
    pub const MAX_BYTES: usize = 255;

    /// Parses the name of a role.
    ///
    /// # Errors
    /// [`RoleError`] names the component and the rule.
    pub fn parse(text: &str) -> Result<Self, RoleError> {
        Self::check(text)?;
        Ok(if text == "*" { Self::star() } else { Self(text.into()) })
    }

    /// Checks the name of a role without creating a `Role`.
    ///
    /// # Errors
    /// As [`Role::parse`].
    pub fn check(text: &str) -> Result<(), RoleError> {
        if text == "*" { Ok(()) } else { check(text) }
    }

    /// Returns the default role `*`, which is that of unreserved resources.
    #[must_use]
    pub fn star() -> Self {
        Self(Text::of("*"))
    }

    /// Returns whether the role is `*`.
    #[must_use]
    pub fn is_star(&self) -> bool {
        &*self.0 == "*"
    }

    /// Returns the whole path as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the role one level up: `a` for `a/b`, `None` for `a` and `*`.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.rfind('/').map(|at| Self(self.0[..at].into()))
    }

    /// Returns an iterator over the roles above this one, nearest first: `a/b`, `a` for `a/b/c`.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        self.0.rmatch_indices('/').map(|(at, _)| Self(self.0[..at].into()))
    }

    /// Returns the role of the first component: `a` for `a/b/c`. Only such roles have quota.
    #[must_use]
    pub fn top_level(&self) -> Self {
        match self.0.find('/') {
            Some(at) => Self(self.0[..at].into()),
            None => self.clone(),
        }
    }

    /// Returns an iterator over the components of the path, outermost first.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns the number of components of the path; 1 for `a`.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.bytes().filter(|&b| b == b'/').count() + 1
    }

    /// Returns whether this role is below `other`. A role is never below itself, and none is below `*`.
    #[must_use]
    pub fn is_strict_subrole_of(&self, other: &Self) -> bool {
        let (own, other) = (self.0.as_bytes(), other.0.as_bytes());
        own.len() > other.len() && own[other.len()] == b'/' && own.starts_with(other)
    }

    /// Returns whether this role is `other` or below it.
    #[must_use]
    pub fn is_same_or_subrole_of(&self, other: &Self) -> bool {
        self == other || self.is_strict_subrole_of(other)
    }
}

impl From<&Role> for Text {
    fn from(role: &Role) -> Self {
        role.0.clone()
    }
}

fn check(text: &str) -> Result<(), RoleError> {
    if text.is_empty() {
        return Err(RoleError::Empty);
    }
    if text.len() > Role::MAX_BYTES {
        return Err(RoleError::TooLong { start: text.chars().take(32).collect(), bytes: text.len() });
    }
    if text.starts_with('/') {
        return Err(RoleError::LeadingSlash(text.to_owned()));
    }
    if text.ends_with('/') {
        return Err(RoleError::TrailingSlash(text.to_owned()));
    }
    if text.contains("//") {
        return Err(RoleError::EmptyComponent(text.to_owned()));
    }
    text.split('/').try_for_each(|component| check_component(text, component))
}

fn check_component(role: &str, component: &str) -> Result<(), RoleError> {
    if matches!(component, "." | ".." | "*") {
        return Err(RoleError::Reserved { role: role.to_owned(), component: component.to_owned() });
    }
    if component.starts_with('-') {
        return Err(RoleError::Dash(component.to_owned()));
    }
    if component.bytes().any(|b| matches!(b, 0x09..=0x0d | 0x20 | 0x7f)) {
        return Err(RoleError::Characters(component.to_owned()));
    }
    Ok(())
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Role {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Role {
    type Err = RoleError;
    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(text: &str) -> Role {
        Role::parse(text).unwrap()
    }

    #[test]
    fn accepts_and_refuses() {
        for good in ["*", "a", "a/b", "a-b", "a.b", "...", "a/..b", "ä/ö", "a*"] {
            assert_eq!(role(good).as_str(), good);
        }
        for (bad, why) in [
            ("", "Role names cannot be the empty string"),
            ("/a", "Role '/a' cannot start with a slash"),
            ("a/", "Role 'a/' cannot end with a slash"),
            ("a//b", "Role 'a//b' cannot contain two adjacent slashes"),
            (".", "Role '.' cannot include '.' as a component"),
            ("a/..", "Role 'a/..' cannot include '..' as a component"),
            ("a/*", "Role 'a/*' cannot include '*' as a component"),
            ("a/-b", "Role component '-b' is invalid because it starts with a dash"),
            ("a b", "Role component 'a b' is invalid because it contains backspace or whitespace"),
            ("a\u{7f}", "Role component 'a\u{7f}' is invalid because it contains backspace or whitespace"),
        ] {
            assert_eq!(Role::parse(bad).unwrap_err().to_string(), why, "{bad:?}");
        }
    }

    #[test]
    fn a_name_fits_a_directory() {
        let long = format!("a/{}", "b".repeat(Role::MAX_BYTES - 2));
        assert_eq!(role(&long).depth(), 2);
        let why = "Role names cannot be longer than 255 bytes: 'a/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb...' has 256";
        assert_eq!(Role::parse(&format!("{long}b")).unwrap_err().to_string(), why);
    }

    #[test]
    fn knows_its_place() {
        let deep = role("a/b/c");
        assert_eq!(deep.parent(), Some(role("a/b")));
        assert_eq!(deep.ancestors().map(|r| r.to_string()).collect::<Vec<_>>(), ["a/b", "a"]);
        assert_eq!((deep.top_level(), deep.depth()), (role("a"), 3));
        assert!(deep.is_strict_subrole_of(&role("a")) && deep.is_strict_subrole_of(&role("a/b")));
        assert!(!deep.is_strict_subrole_of(&deep) && deep.is_same_or_subrole_of(&deep));
        assert!(!role("ab").is_strict_subrole_of(&role("a")));
        assert!(!role("a").is_strict_subrole_of(&Role::star()));
        assert_eq!(role("a").parent(), None);
    }
}
