//! Tokens by which executors authenticate to this agent: its keys, and the header `Authorization` (SEC-12).
//!
//! The core compares claims with the executor of a call (`agent::Proof`).

use std::path::{Path, PathBuf};

use agent::{Claims, ContainerName, ContainerSpec, Proof};
use anyhow::Context;
use wire::auth::AGENT_EXECUTOR;
use wire::http::Response;

use super::jwt::{Key, TokenError};
use crate::credentials;
use crate::flags::FlagError;
use crate::flags::agent::AccessFlags;

/// File name of the agent's own secret, in one of the agent's directories. Only the agent's user may read it.
const FILE: &str = "executor_secret";
/// Length of the secret, in bytes: that of the signature's hash.
const SECRET_BYTES: usize = 32;

/// The values of the flags for executors' tokens.
pub(super) struct TokenFlags {
    /// Content of the file of `--jwt_secret_key`.
    secret: Option<Vec<u8>>,
    /// Value of `--authenticate_http_executors`.
    required: bool,
}

/// The keys with which an agent signs and verifies executors' tokens.
pub(super) struct ExecutorTokens {
    /// Key that signs the tokens of new executors.
    key: Key,
    /// Key that has signed the tokens of earlier executors, before `--jwt_secret_key` was set.
    earlier: Option<Key>,
    /// Whether every call of an executor needs a token.
    pub(super) required: bool,
}

/// The error when a token does not authenticate a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum BearerError {
    #[error("Malformed 'Authorization' header")]
    Malformed,
    #[error("Scheme '{0}' unsupported")]
    Scheme(String),
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Reads the flags for executors' tokens.
///
/// # Errors
/// The key's file is missing or invalid.
pub(super) fn read(flags: &AccessFlags) -> Result<TokenFlags, FlagError> {
    let required = flags.authenticate_http_executors;
    let secret = credentials::key("jwt_secret_key", flags.jwt_secret_key.as_deref())?;
    if required && secret.is_none() {
        let why = "--jwt_secret_key must be specified when --authenticate_http_executors is set to true".to_owned();
        return Err(FlagError::Refused { name: "authenticate_http_executors", why });
    }
    Ok(TokenFlags { secret, required })
}

impl ExecutorTokens {
    /// Opens the keys of an agent. Without `--jwt_secret_key` it generates a secret at its first start, and stores it
    /// in the first of these directories that it can write to.
    ///
    /// # Errors
    /// An existing secret cannot be read.
    pub(super) fn open(flags: TokenFlags, directories: [&Path; 2]) -> anyhow::Result<ExecutorTokens> {
        let files = directories.map(|directory| directory.join(FILE));
        let mut own = None;
        for file in &files {
            let read = own_secret(file).with_context(|| format!("cannot read '{}'", file.display()))?;
            own = own.or(read);
        }
        let earlier = own.as_deref().map(Key::new);
        Ok(match (flags.secret, earlier) {
            (Some(secret), earlier) => ExecutorTokens { key: Key::new(&secret), earlier, required: flags.required },
            (None, Some(key)) => ExecutorTokens { key, earlier: None, required: flags.required },
            (None, None) => ExecutorTokens { key: new_key(&files), earlier: None, required: flags.required },
        })
    }

    /// Adds a token to the environment of an executor that is about to start.
    pub(super) fn give(&self, container: &ContainerName, spec: &mut ContainerSpec) {
        let Some(executor) = &spec.executor else { return };
        let claims = Claims {
            framework: executor.framework.clone(),
            executor: executor.executor.clone(),
            container: container.as_str().to_owned(),
        };
        match self.key.sign(&claims) {
            Ok(token) => {
                spec.environment.retain(|(name, _)| name != agent::TOKEN);
                spec.environment.push((agent::TOKEN.to_owned(), token));
            }
            Err(error) => tracing::error!(%container, "cannot create a token for the executor: {error}"),
        }
    }

    /// Returns the proof of an executor's identity in the header `Authorization` of its call. Schemes other than
    /// `Bearer` prove nothing.
    ///
    /// # Errors
    /// 401: the token is invalid, or a token is required.
    pub(super) fn proof(&self, authorization: Option<&str>) -> Result<Proof, Box<Response>> {
        let header = authorization.filter(|header| self.required || is_bearer(header));
        match header {
            None if self.required => Err(Box::new(Response::unauthorized(&challenge(AGENT_EXECUTOR, None)))),
            None => Ok(Proof::None),
            Some(header) => match self.bearer(header) {
                Ok(claims) => Ok(Proof::Token(claims)),
                Err(error) => Err(Box::new(Response::unauthorized(&challenge(AGENT_EXECUTOR, Some(&error))))),
            },
        }
    }

    /// Returns the claims of the token in a header `Authorization`.
    ///
    /// # Errors
    /// The header has no token, or an invalid one.
    pub(super) fn bearer(&self, header: &str) -> Result<Claims, BearerError> {
        let (scheme, token) = header.split_once(' ').ok_or(BearerError::Malformed)?;
        if token.contains(' ') {
            return Err(BearerError::Malformed);
        }
        if scheme != "Bearer" {
            return Err(BearerError::Scheme(scheme.to_owned()));
        }
        let verified = self.key.verify(token);
        match (&verified, &self.earlier) {
            (Err(TokenError::Invalid(_)), Some(earlier)) => Ok(earlier.verify(token).or(verified)?),
            _ => Ok(verified?),
        }
    }
}

/// Returns whether a header `Authorization` has a token.
pub(super) fn is_bearer(header: &str) -> bool {
    header == "Bearer" || header.starts_with("Bearer ")
}

/// Returns the challenge of a realm. It has no error for a request without credentials (RFC 6750, section 3.1).
pub(super) fn challenge(realm: &str, error: Option<&BearerError>) -> String {
    match error {
        None => format!("Bearer realm=\"{realm}\""),
        Some(error) => format!("Bearer realm=\"{realm}\", error=\"invalid_token\", error_description=\"{error}\""),
    }
}

/// Generates a secret, stores it, and returns its key.
fn new_key(files: &[PathBuf]) -> Key {
    let secret: [u8; SECRET_BYTES] = crate::random::bytes();
    let mut refused = None;
    for file in files {
        match store::replace_file(file, &secret) {
            Ok(()) => return Key::new(&secret),
            Err(error) => refused = Some(error),
        }
    }
    if let Some(error) = refused {
        let error = anyhow::Error::from(error);
        tracing::warn!(
            "executors cannot reconnect after a restart of this agent: the secret of their tokens cannot be saved: \
             {error:#}"
        );
    }
    Key::new(&secret)
}

/// Reads the secret of an earlier start; `None` if there is none.
fn own_secret(file: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::read(file) {
        // An empty file would be a secret that everybody knows.
        Ok(secret) if secret.len() == SECRET_BYTES => Ok(Some(secret)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use agent::ExecutorKey;
    use base::ContainerId;

    use super::*;
    use crate::flags::AgentFlags;

    fn with(flags: &[(&str, &str)]) -> Result<TokenFlags, String> {
        read(&AgentFlags::with(flags).access).map_err(|error| error.to_string())
    }

    fn container() -> ContainerName {
        ContainerName::top(&ContainerId::new("c").unwrap())
    }

    fn token(tokens: &ExecutorTokens) -> String {
        let executor = Some(ExecutorKey { framework: "f".into(), executor: "e".into() });
        let environment = vec![(agent::TOKEN.to_owned(), "the framework's".to_owned())];
        let mut spec = ContainerSpec { executor, environment, ..ContainerSpec::default() };
        tokens.give(&container(), &mut spec);
        let [(name, token)] = &spec.environment[..] else { panic!("{:?}", spec.environment) };
        assert_eq!(name, agent::TOKEN);
        token.clone()
    }

    #[test]
    fn the_secret_is_made_once_and_private() {
        let meta = tempfile::tempdir().unwrap();
        let open = || ExecutorTokens::open(with(&[]).unwrap(), [meta.path(); 2]).unwrap();
        let first = token(&open());
        assert_eq!(token(&open()), first);
        let file = meta.path().join(FILE);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        // A file that a crash has emptied is not a secret.
        std::fs::write(&file, "").unwrap();
        assert!(open().bearer(&format!("Bearer {first}")).is_err());
        assert_ne!(token(&open()), first);
        // If the first directory cannot be written, the second one has the secret.
        let unusable = Path::new("/proc/nowhere");
        let other = tempfile::tempdir().unwrap();
        let open_there = || ExecutorTokens::open(with(&[]).unwrap(), [unusable, other.path()]).unwrap();
        assert_eq!(token(&open_there()), token(&open_there()));
        let mut nested = ContainerSpec::default();
        open().give(&container(), &mut nested);
        assert_eq!(nested.environment, []);
    }

    #[test]
    fn a_key_in_a_file() {
        let said = with(&[("authenticate_http_executors", "true")]).err().unwrap();
        assert!(said.contains("--jwt_secret_key must be specified when"), "{said}");
        let directory = tempfile::tempdir().unwrap();
        let own = ExecutorTokens::open(with(&[]).unwrap(), [directory.path(); 2]).unwrap();
        let key = directory.path().join("key");
        let flags = [("authenticate_http_executors", "true"), ("jwt_secret_key", key.to_str().unwrap())];
        assert!(with(&flags).err().unwrap().contains("'--jwt_secret_key'"));
        std::fs::write(&key, "").unwrap();
        assert!(with(&flags).err().unwrap().contains("is empty"));
        std::fs::write(&key, [0xff, b'k', b'\n']).unwrap();
        let tokens = ExecutorTokens::open(with(&flags).unwrap(), [directory.path(); 2]).unwrap();
        // As in Mesos the whole file is the key.
        let claims = Claims { framework: "f".into(), executor: "e".into(), container: "c".into() };
        assert_eq!(token(&tokens), Key::new(&[0xff, b'k', b'\n']).sign(&claims).unwrap());
        // Tokens of executors that were started before stay valid.
        let proof = |tokens: &ExecutorTokens, header: &str| tokens.proof(Some(header)).unwrap();
        assert_eq!(proof(&tokens, &format!("Bearer {}", token(&own))), Proof::Token(claims));
        assert!(own.proof(Some(&format!("Bearer {}", token(&tokens)))).is_err());
    }

    #[test]
    fn what_a_header_proves() {
        let meta = tempfile::tempdir().unwrap();
        let mut tokens = ExecutorTokens::open(with(&[]).unwrap(), [meta.path(); 2]).unwrap();
        let good = format!("Bearer {}", token(&tokens));
        let said = |tokens: &ExecutorTokens, header: Option<&str>| match tokens.proof(header) {
            Ok(Proof::Token(claims)) => format!("{}/{}/{}", claims.framework, claims.executor, claims.container),
            Ok(proof) => format!("{proof:?}"),
            Err(response) => {
                assert_eq!(response.status(), 401);
                response.headers()["www-authenticate"].to_str().unwrap().to_owned()
            }
        };
        let error = |why: &str| {
            format!("Bearer realm=\"mesos-agent-executor\", error=\"invalid_token\", error_description=\"{why}\"")
        };
        assert_eq!(said(&tokens, Some(&good)), "f/e/c");
        assert_eq!(said(&tokens, None), "None");
        assert_eq!(said(&tokens, Some("Basic YTpi")), "None");
        assert_eq!(said(&tokens, Some("Bearer")), error("Malformed 'Authorization' header"));
        assert_eq!(said(&tokens, Some("Bearer a b")), error("Malformed 'Authorization' header"));
        let components = "Invalid JWT: Expected 3 components in token, got 1";
        assert_eq!(said(&tokens, Some("Bearer x")), error(components));
        tokens.required = true;
        assert_eq!(said(&tokens, Some(&good)), "f/e/c");
        assert_eq!(said(&tokens, None), "Bearer realm=\"mesos-agent-executor\"");
        assert_eq!(said(&tokens, Some("Basic YTpi")), error("Scheme 'Basic' unsupported"));
        assert_eq!(said(&tokens, Some("x")), error("Malformed 'Authorization' header"));
    }
}
