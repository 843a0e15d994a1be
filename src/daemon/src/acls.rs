//! `--acls`: the access control lists, and the responses to refused requests.
//!
//! The crate `authorizer` decides.

use std::sync::Arc;

use agent::ContainerName;
use authorizer::{Acls, Action, Authorizer, Subject, Verdict};
use protos::mesos;
use wire::http::{Method, Request, Response, StatusCode};

use crate::audit;
use crate::common::{Common, Shared, note_toggle};
use crate::flags::{FlagError, Json};

/// Reads `--acls`. Without the flag everything is allowed. `authorizer` is the name and the value of the flag that
/// selects an authorizer.
///
/// # Errors
/// An unknown authorizer, or the first invalid rule.
pub(crate) fn read(acls: Option<&Json>, authorizer: (&'static str, &str)) -> Result<Authorizer, FlagError> {
    let (name, other) = authorizer;
    if !matches!(other, "" | "local") {
        return Err(FlagError::Refused { name, why: format!("there is no authorizer '{other}': use local") });
    }
    let Some(text) = acls else { return Ok(Authorizer::default()) };
    let acls = Acls::parse(text).map_err(|error| FlagError::Refused { name: "acls", why: error.to_string() })?;
    Ok(acls.into())
}

/// Returns the response to a request that is not authorized: 403.
pub(crate) fn forbidden() -> Response {
    Response::error(StatusCode::FORBIDDEN)
}

/// The sender of a request, and the authorizer that decides what it may do.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) authorizer: Authorizer,
    /// Principal of the sender; `None` if the request was not authenticated.
    pub(crate) principal: Option<Arc<str>>,
    /// Container of the executor that sent its token; `None` for other senders. An executor has no principal, and the
    /// lists allow it nothing.
    pub(crate) executor: Option<ContainerName>,
}

impl Caller {
    /// Creates the sender of a request with this principal; `None` if it is not authenticated.
    pub(crate) fn new(authorizer: Authorizer, principal: Option<Arc<str>>) -> Caller {
        Caller { authorizer, principal, executor: None }
    }

    /// Creates the sender of a request of the executor in this container. It may do what its token implies (SEC-40).
    pub(crate) fn executor(container: ContainerName) -> Caller {
        Caller { authorizer: Authorizer::without_rules(), principal: None, executor: Some(container) }
    }

    fn subject(&self) -> Subject<'_> {
        match &self.executor {
            Some(_) => Subject::Claims,
            None => self.principal.as_deref().into(),
        }
    }

    pub(crate) fn may(&self, action: Action, object: Option<&str>) -> bool {
        self.authorizer.approves(self.subject(), action, object)
    }

    /// Checks that the sender may perform `action` on `object`.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn authorize(&self, action: Action, object: Option<&str>) -> Result<(), Box<Response>> {
        if self.may(action, object) {
            return Ok(());
        }
        let who = match (&self.principal, &self.executor) {
            (Some(principal), _) => principal,
            (None, Some(container)) => container.as_str(),
            (None, None) => "a client without a principal",
        };
        let on = object.map(|object| format!(" for '{object}'")).unwrap_or_default();
        tracing::warn!("Refusing a request of {who}, by '{}'{on} of the access control lists", action.key());
        audit::note_rule(|| format!("{}{on}", action.key()));
        Err(Box::new(forbidden()))
    }

    /// Checks that the sender may perform `action` on every object.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn authorize_all(&self, action: Action) -> Result<(), Box<Response>> {
        match self.authorizer.verdict(self.subject(), action) {
            Verdict::Everything => Ok(()),
            Verdict::Depends | Verdict::Nothing => {
                audit::note_rule(|| action.key().to_owned());
                Err(Box::new(forbidden()))
            }
        }
    }

    /// Returns whether the sender may view all roles of a resource.
    pub(crate) fn may_view_resource(&self, resource: &mesos::Resource) -> bool {
        !self.authorizer.is_on()
            || authorizer::resource_roles(resource).all(|role| self.may(Action::ViewRole, Some(role)))
    }

    /// Returns whether the sender may view the roles of all resources of an operation.
    pub(crate) fn may_view_operation(&self, operation: &mesos::offer::Operation) -> bool {
        let reserve = operation.reserve.iter().flat_map(|body| body.resources.iter().chain(&body.source));
        let unreserve = operation.unreserve.iter().flat_map(|body| &body.resources);
        let volumes = operation.create.iter().flat_map(|body| &body.volumes);
        let volumes = volumes.chain(operation.destroy.iter().flat_map(|body| &body.volumes));
        let grown = operation.grow_volume.iter().flat_map(|body| [&body.volume, &body.addition]);
        let shrunk = operation.shrink_volume.iter().map(|body| &body.volume);
        let mut all = reserve.chain(unreserve).chain(volumes).chain(grown).chain(shrunk);
        all.all(|resource| self.may_view_resource(resource))
    }

    /// Checks that the sender may use an endpoint that both daemons have.
    ///
    /// # Errors
    /// 403; 405 for flags with a method other than GET or HEAD (LEG-07).
    pub(crate) fn authorize_endpoint(&self, endpoint: Shared, request: &Request) -> Result<(), Box<Response>> {
        match endpoint {
            Shared::Flags if !self.authorizer.is_on() => Ok(()),
            Shared::Flags if request.method != Method::GET && request.method != Method::HEAD => {
                Err(Box::new(Response::method_not_allowed(&["GET"], request.method.as_str())))
            }
            Shared::Flags => self.authorize(Action::ViewFlags, None),
            Shared::LoggingToggle => {
                note_toggle(request);
                self.authorize(Action::GetEndpoint, Some("/logging/toggle"))
            }
            Shared::FilesDebug => self.authorize(Action::GetEndpoint, Some("/files/debug")),
            Shared::Health | Shared::Version | Shared::Help | Shared::SystemStats | Shared::Webui(_) => Ok(()),
            // Each path is authorized separately.
            Shared::FilesBrowse | Shared::FilesRead | Shared::FilesDownload => Ok(()),
        }
    }

    /// Checks that the sender may read a file, if it is the daemon's log. Returns `None` for another attached file.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn may_read_log(&self, common: &Common, path: &str) -> Option<Result<(), Box<Response>>> {
        match common.files.attached_above(path).as_deref() {
            Some("/master/log" | "/slave/log") => Some(self.authorize(Action::AccessMesosLog, None)),
            Some(_) => None,
            // The file is not attached, so the response is 404.
            None => Some(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::flags::MasterFlags;

    #[test]
    fn invalid_lists_are_rejected() {
        let read = |name: &str, text: &str| {
            let flags = MasterFlags::with(&[(name, text)]).access;
            let authorizer = super::read(flags.acls.as_ref(), ("authorizers", &flags.authorizers));
            authorizer.map(|authorizer| authorizer.is_on()).map_err(|error| error.to_string())
        };
        assert_eq!(read("authorizers", "local"), Ok(false));
        assert_eq!(read("acls", ""), Ok(false));
        assert_eq!(read("acls", "{}"), Ok(true));
        assert!(read("authorizers", "other").unwrap_err().contains("there is no authorizer 'other'"));
        let error = read("acls", r#"{"register_agent": []}"#).unwrap_err();
        assert_eq!(error, "flag '--acls': the key 'register_agent' is not known, did you mean 'register_agents'?");
        let error = read("acls", r#"{"view_flags": [{"principals": {"type": "ANY"}, "flags": {}}]}"#).unwrap_err();
        assert!(error.starts_with("flag '--acls': rule 1 of 'view_flags'"), "{error}");
    }
}
