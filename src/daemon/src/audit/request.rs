//! The facts about an HTTP request that are collected while it is answered: its principal, its call, the rule that
//! refuses it.
//!
//! Each step of the answer notes what it finds, and the line is written when there is an answer. The notes belong to
//! the task of the request, so that the steps need not pass them on. A request without the note of a call is not a
//! change, and has no line.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base::lock;
use wire::http::{Method, Request, Response, StatusCode};

use super::Audit;
use super::calls::RequestedChange;
use super::entry::{Decision, Entry, Target, bounded, now};

tokio::task_local! {
    static NOTES: Notes;
}

/// The notes about a request, shared by the threads that answer it.
pub(crate) type Notes = Arc<Mutex<Noted>>;

/// The facts about a request that were noted so far.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    principal: Option<Arc<str>>,
    requested: Option<RequestedChange>,
    /// Whether the body was decoded. The text of an answer to a request that was not may repeat parts of the body,
    /// which may be secret.
    is_decoded: bool,
    rule: Option<String>,
}

impl Audit {
    /// Answers a request, and writes a line if it asks for a change.
    pub(crate) async fn observe(&self, request: Request, answer: impl AsyncFnOnce(Request) -> Response) -> Response {
        if !self.is_on() {
            return answer(request).await;
        }
        let mut observed = Observed::new(self, &request);
        let response = NOTES.scope(observed.notes.clone(), answer(request)).await;
        observed.is_answered = true;
        observed.write(Some(&response));
        response
    }

    /// Returns the result of the check of a request before its body, and writes a line if it forbids a change: by the
    /// firewall, or as a request of another origin.
    pub(crate) fn admitted<T>(
        &self,
        request: &Request,
        may_change: impl FnOnce(&Request) -> bool,
        checked: Result<T, Box<Response>>,
    ) -> Result<T, Box<Response>> {
        if let Err(refusal) = &checked
            && self.is_on()
        {
            let mut observed = Observed::new(self, request);
            observed.may_change = may_change(request);
            observed.is_answered = true;
            observed.write(Some(refusal));
        }
        checked
    }
}

/// A request that is being answered. If the client disconnects before, the line is written without a status: the change
/// may have been carried out.
struct Observed<'a> {
    audit: &'a Audit,
    notes: Notes,
    peer: SocketAddr,
    method: Method,
    path: String,
    /// Whether the request may change something, as far as is known without its notes.
    may_change: bool,
    is_answered: bool,
}

impl<'a> Observed<'a> {
    fn new(audit: &'a Audit, request: &Request) -> Observed<'a> {
        Observed {
            audit,
            notes: Notes::default(),
            peer: request.peer,
            method: request.method.clone(),
            path: bounded(&request.path),
            may_change: !request.is_get_or_head(),
            is_answered: false,
        }
    }

    fn write(&self, response: Option<&Response>) {
        let noted = std::mem::take(&mut *lock(&self.notes));
        let status = response.map(Response::status);
        let requested = match noted.requested {
            Some(requested) => requested,
            // The request was refused before it was decoded: by the firewall, or as a request of another origin.
            None if status == Some(StatusCode::FORBIDDEN) && self.may_change => path_call(&self.method, &self.path),
            None => return,
        };
        let decision = status.map_or(Decision::Received, Decision::of);
        let rule = noted.rule.or_else(|| match decision {
            Decision::Allowed | Decision::Received => None,
            Decision::Invalid if !noted.is_decoded => Some("the request cannot be decoded".to_owned()),
            Decision::Denied | Decision::Invalid | Decision::Failed => {
                let body = response?.body()?;
                Some(bounded(&String::from_utf8_lossy(&body[..body.len().min(1024)])))
            }
        });
        self.audit.write(Entry {
            time: now(),
            principal: noted.principal.as_deref().map(bounded),
            address: Some(self.peer),
            pid: None,
            call: requested.call.into_owned(),
            target: requested.target,
            decision,
            status: status.map(|status| status.as_u16()),
            rule,
        });
    }
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.write(None);
        }
    }
}

/// Returns a change that is named by the method and path of its request.
fn path_call(method: &Method, path: &str) -> RequestedChange {
    RequestedChange { call: format!("{method} {path}").into(), target: Target::default() }
}

fn note(change: impl FnOnce(&mut Noted)) {
    // An error means that there is no audit log, so there are no notes.
    let _ = NOTES.try_with(|notes| change(&mut lock(notes)));
}

/// Notes the authenticated principal.
pub(crate) fn note_principal(principal: Option<&Arc<str>>) {
    note(|noted| noted.principal = principal.cloned());
}

/// Notes that a request asks a legacy endpoint for a change, before its body is decoded.
pub(crate) fn note_path(method: &str, path: &str) {
    note(|noted| {
        noted.requested = Some(RequestedChange { call: format!("{method} {path}").into(), target: Target::default() });
    });
}

/// Notes the decoded call, if it asks for a change. A legacy endpoint that was noted before keeps its name.
pub(crate) fn note_call(requested: impl FnOnce() -> Option<RequestedChange>) {
    note(|noted| {
        noted.is_decoded = true;
        let Some(requested) = requested() else { return };
        match &mut noted.requested {
            Some(known) => known.target = requested.target,
            none => *none = Some(requested),
        }
    });
}

/// Notes the rule that refuses the request.
pub(crate) fn note_rule(rule: impl FnOnce() -> String) {
    note(|noted| noted.rule = Some(bounded(&rule())));
}

/// Returns the notes of the current request, for another thread.
pub(crate) fn current() -> Option<Notes> {
    NOTES.try_with(Clone::clone).ok()
}

/// Calls `action` on another thread with the notes of a request.
pub(crate) fn within<T>(notes: Option<Notes>, action: impl FnOnce() -> T) -> T {
    match notes {
        Some(notes) => NOTES.sync_scope(notes, action),
        None => action(),
    }
}
