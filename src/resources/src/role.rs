//! Role names: `*`, or a path of components separated by `/`.

use std::borrow::Borrow;
use std::fmt;

use protos::Text;

/// Why a text cannot be a role. The words are those that Mesos answers with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleError {
    /// No characters at all.
    #[error("Role names cannot be the empty string")]
    Empty,
    /// `/a`.
    #[error("Role '{0}' cannot start with a slash")]
    LeadingSlash(String),
    /// `a/`.
    #[error("Role '{0}' cannot end with a slash")]
    TrailingSlash(String),
    /// `a//b`.
    #[error("Role '{0}' cannot contain two adjacent slashes")]
    EmptyComponent(String),
    /// `.`, `..`, or `*` within a path.
    #[error("Role '{role}' cannot include '{component}' as a component")]
    Reserved {
        /// The whole name.
        role: String,
        /// The component.
        component: String,
    },
    /// A component that looks like a command line option.
    #[error("Role component '{0}' is invalid because it starts with a dash")]
    Dash(String),
    /// White space or DEL.
    #[error("Role component '{0}' is invalid because it contains backspace or whitespace")]
    Characters(String),
    /// More bytes than [`Role::MAX_BYTES`].
    #[error("Role names cannot be longer than {max} bytes: '{start}...' has {bytes}", max = Role::MAX_BYTES)]
    TooLong {
        /// The first characters of the name.
        start: String,
        /// Its length.
        bytes: usize,
    },
}

/// A valid role name; cheap to clone, and to put into a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role(Text);

impl Role {
    /// Length limit of a name in bytes. A role's volumes are in a directory of its name, and file systems allow no
    /// more. Mesos has no limit, and the cost of a path grows with the square of its length.
    pub const MAX_BYTES: usize = 255;

    /// Checks a role's name.
    ///
    /// # Errors
    /// [`RoleError`] names the component and the rule.
    pub fn parse(text: &str) -> Result<Self, RoleError> {
        Self::check(text)?;
        Ok(if text == "*" { Self::star() } else { Self(text.into()) })
    }

    /// Checks a role's name without making a role of it.
    ///
    /// # Errors
    /// As [`Role::parse`].
    pub fn check(text: &str) -> Result<(), RoleError> {
        if text == "*" { Ok(()) } else { check(text) }
    }

    /// The default role, `*`: whatever is not reserved.
    #[must_use]
    pub fn star() -> Self {
        Self(Text::of("*"))
    }

    /// Is this `*`?
    #[must_use]
    pub fn is_star(&self) -> bool {
        &*self.0 == "*"
    }

    /// The whole path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The role one level up: `a` for `a/b`, none for `a` and `*`.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.rfind('/').map(|at| Self(self.0[..at].into()))
    }

    /// The roles above this one, nearest first: `a/b`, `a` for `a/b/c`.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        self.0.rmatch_indices('/').map(|(at, _)| Self(self.0[..at].into()))
    }

    /// The first component: `a` for `a/b/c`. Quota is kept for these only.
    #[must_use]
    pub fn top_level(&self) -> Self {
        match self.0.find('/') {
            Some(at) => Self(self.0[..at].into()),
            None => self.clone(),
        }
    }

    /// The path's components, outermost first.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// How many components the path has; 1 for `a`.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.bytes().filter(|&b| b == b'/').count() + 1
    }

    /// Is this role somewhere below `other`? Never below itself, and nothing is below `*`.
    #[must_use]
    pub fn is_strict_subrole_of(&self, other: &Self) -> bool {
        let (own, other) = (self.0.as_bytes(), other.0.as_bytes());
        own.len() > other.len() && own[other.len()] == b'/' && own.starts_with(other)
    }

    /// Is this role `other` or somewhere below it?
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
