//! The master's routes: they select the endpoint of a request, and pass messages to the master's processes.
//!
//! The responses of an endpoint are in the file of its name.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use authorizer::Action;
use base::Time;
use bytes::Bytes;
use master::{Answer, Input, Message, RequestId, Snapshot};
use protos::mesos;
use wire::http::{BodyRule, Query, Request, Response, StatusCode};
use wire::libprocess::{ConnectionId, Delivery, MessageSink};
use wire::route::Table;

use super::authentication::Authentication;
use super::documents::Documents;
use super::outputs::{Outcome, Shell, TimedMaster};
use super::peers::Peers;
use super::standby::{self, Standby};
use super::views::chunk_cache::ChunkCache;
use super::views::visibility::Visibility;
use super::{MasterParts, explain, legacy, metrics, operator_api, scheduler_api, tepui_calls, views};
use crate::acls::{self, Caller};
use crate::audit;
use crate::common::{self, Common, Shared};
use crate::driver::Driver;
use crate::flags::MasterFlags;
use crate::origin;
use crate::realms::{Realm, Realms};
use crate::senders::{Kind, Senders};

/// An endpoint of the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Shared(Shared),
    Scheduler,
    Operator,
    State,
    StateSummary,
    Slaves,
    Frameworks,
    Tasks,
    Roles,
    Redirect,
    Metrics,
    Prometheus,
    Registry,
    OfferConstraints,
    Legacy(legacy::Endpoint),
}

/// Handles the master's requests and messages.
pub(super) struct Handler {
    pub(super) common: Arc<Common>,
    pub(super) flags: Arc<MasterFlags>,
    pub(super) driver: Driver<TimedMaster>,
    pub(super) shell: Arc<Shell>,
    authentication: Arc<Authentication>,
    senders: Arc<Senders>,
    realms: Realms,
    pub(super) info: Arc<mesos::MasterInfo>,
    pub(super) started: Time,
    pub(super) documents: Documents,
    /// Numbers of invalid acknowledgements that were not passed to the core.
    pub(super) refused: Arc<scheduler_api::Refused>,
    /// Texts of parts of the state that documents share.
    pub(super) chunk_cache: Arc<ChunkCache>,
    routes: Table<Route>,
    /// Routes that `--firewall_rules` disables.
    closed: Vec<Route>,
    /// Knowledge of the leading master; `None` if this master leads.
    pub(super) standby: Option<Arc<Standby>>,
    /// Handle of this master's member in a group of peers.
    pub(super) peers: Arc<OnceLock<Peers>>,
}

impl Handler {
    /// Creates a handler. `standby` is `None` if this master leads.
    pub(super) fn new(
        parts: &MasterParts,
        driver: Driver<TimedMaster>,
        shell: Arc<Shell>,
        (authentication, senders): (Arc<Authentication>, Arc<Senders>),
        realms: Realms,
        standby: Option<Arc<Standby>>,
    ) -> Handler {
        let (common, info, started) = (parts.common.clone(), Arc::new(parts.info.clone()), parts.started);
        let routes = routes();
        Handler {
            closed: common.firewall.closed(&routes, &[Route::Metrics, Route::Prometheus]),
            common,
            flags: parts.flags.clone(),
            driver,
            shell,
            authentication,
            senders,
            realms,
            info,
            started,
            documents: Documents::new(),
            refused: Arc::default(),
            chunk_cache: Arc::default(),
            routes,
            standby,
            peers: parts.peers.clone(),
        }
    }

    /// Returns the state of the cluster after all earlier inputs.
    pub(super) async fn snapshot(&self) -> Arc<Snapshot> {
        self.driver.read(TimedMaster::snapshot).await.0
    }

    /// Returns the core's answer to a call; `None` if the core ends before.
    pub(super) async fn decide(&self, input: impl FnOnce(RequestId) -> Input) -> Option<Answer> {
        let (number, outcome) = self.shell.pending_requests.ask();
        self.driver.handle_now(input(RequestId(number)));
        match outcome.await {
            Ok(Outcome::Answer(answer)) => Some(answer),
            Ok(Outcome::Open) | Err(_) => None,
        }
    }

    /// Returns whether a request may change something.
    fn may_change(&self, request: &Request) -> bool {
        origin::may_change(request, self.routes.find(&request.path).and_then(|found| shared(*found.route)))
    }

    /// Checks a request before its body is read.
    fn check(&self, request: &mut Request) -> Result<BodyRule, Box<Response>> {
        let found = self.routes.find(&request.path);
        self.common.firewall.check(&self.closed, &request.path, found.as_ref())?;
        let Some(found) = found else { return Err(Box::new(Response::error(StatusCode::NOT_FOUND))) };
        origin::check(request, shared(*found.route), self.common.jsonp)?;
        request.principal = self.realms.principal(realm(*found.route), request)?;
        Ok(BodyRule::Whole { limit: body_limit(*found.route) })
    }

    async fn respond(&self, request: &Request) -> Response {
        match self.routes.find(&request.path) {
            Some(found) => self.answer(*found.route, found.rest, request).await,
            None => Response::error(StatusCode::NOT_FOUND),
        }
    }

    async fn answer(&self, route: Route, rest: &str, request: &Request) -> Response {
        let principal = request.principal.clone();
        audit::note_principal(principal.as_ref());
        if let Some(standby) = self.standby.as_ref().filter(|_| is_leaders(route)) {
            return match route {
                Route::Redirect if !rest.is_empty() => Response::not_found(),
                Route::Redirect => standby.name(request).await,
                // GET_MASTERS is needed above all while no master leads.
                Route::Operator if tepui_calls::is_answered_by_all(request) => {
                    operator_api::answer(self, request, Caller::new(self.shell.authorizer.clone(), principal)).await
                }
                _ => standby.redirect(request),
            };
        }
        let caller = Caller::new(self.shell.authorizer.clone(), principal.clone());
        if let Err(refusal) = self.authorize(route, request, &caller) {
            return *refusal;
        }
        match route {
            Route::Shared(endpoint) => self.common.answer(endpoint, rest, request).await,
            Route::Scheduler => scheduler_api::answer(self, request, principal).await,
            Route::Operator => operator_api::answer(self, request, caller).await,
            Route::Redirect if rest.is_empty() => self.redirect(),
            Route::Redirect => Response::not_found(),
            Route::Metrics => metrics::answer(self, request).await,
            Route::Prometheus => metrics::prometheus(self, request).await,
            Route::Legacy(endpoint) => legacy::answer(self, endpoint, rest, request, caller).await,
            Route::Registry => self.registry(request).await,
            Route::OfferConstraints => {
                let document = explain::constraints(&self.driver.read(TimedMaster::constraints).await);
                Response::ok_jsonp(document.to_string(), request.query.get("jsonp"))
            }
            Route::State => self.view(route, request, caller, views::state::write).await,
            Route::StateSummary => self.view(route, request, caller, views::summary::write).await,
            Route::Slaves => self.view(route, request, caller, views::slaves::write).await,
            Route::Frameworks => self.view(route, request, caller, views::frameworks::write).await,
            Route::Tasks => self.view(route, request, caller, views::tasks::write).await,
            Route::Roles => self.view(route, request, caller, views::roles::write).await,
        }
    }

    /// Checks that the sender may use an endpoint with this request.
    ///
    /// # Errors
    /// 403.
    fn authorize(&self, route: Route, request: &Request, caller: &Caller) -> Result<(), Box<Response>> {
        if !caller.authorizer.is_on() {
            return Ok(());
        }
        match route {
            Route::Shared(Shared::FilesBrowse | Shared::FilesRead | Shared::FilesDownload) => {
                self.authorize_file(request.query.get("path").unwrap_or_default(), caller)
            }
            Route::Shared(endpoint) => caller.authorize_endpoint(endpoint, request),
            Route::Metrics | Route::Prometheus => caller.authorize(Action::GetEndpoint, Some("/metrics/snapshot")),
            // These documents show all frameworks or roles, and cannot leave some out.
            Route::Registry | Route::OfferConstraints => {
                let visibility = Visibility::of(caller.clone());
                // The registry has the maintenance schedule and states of machines, too.
                let whole = route != Route::Registry || visibility.maintenance() == (true, true);
                if visibility.is_unrestricted() && whole { Ok(()) } else { Err(Box::new(acls::forbidden())) }
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of refused messages, and the numbers of log-ins that failed or had to wait.
    pub(super) fn refusals(&self) -> (u64, (u64, u64)) {
        let [(failed, held_up), (messages, held_up_messages)] =
            [self.realms.failures(), self.authentication.failures()];
        (self.senders.refused(), (failed + messages, held_up + held_up_messages))
    }

    /// Checks that the sender may read a file. A master serves only its log.
    ///
    /// # Errors
    /// 403.
    pub(super) fn authorize_file(&self, path: &str, caller: &Caller) -> Result<(), Box<Response>> {
        caller.may_read_log(&self.common, path).unwrap_or(Ok(()))
    }

    /// Writes a line to the audit log about a message that asks for a change.
    fn audit_message(&self, message: &wire::libprocess::Message, decoded: &Message) {
        if !self.common.audit.is_on() {
            return;
        }
        if let Some(asked) = audit::master_message(decoded) {
            let principal = self.driver.read_undurable(|live| live.principal(&message.from));
            self.common.audit.message(asked, &message.from, message.origin.peer, principal.as_deref());
        }
    }

    /// Answers with a document, which is written on another thread than the reactor's.
    async fn view(
        &self,
        route: Route,
        request: &Request,
        caller: Caller,
        write: fn(&views::Context, &mut Vec<u8>),
    ) -> Response {
        let query = &request.query;
        let written = self
            .document(format!("{route:?} {query:?}"), query.clone(), caller, move |context| context.document(write));
        match written.await {
            Ok(parts) => Response::ok_jsonp_parts(parts.iter().cloned(), request.query.get("jsonp")),
            Err(why) => Response::internal(why),
        }
    }

    /// Returns the document `name` for a principal: the result of `write`, now or for an earlier reader of the same
    /// state.
    ///
    /// # Errors
    /// If writing the document has failed.
    pub(super) async fn document(
        &self,
        name: String,
        query: Query,
        caller: Caller,
        write: impl FnOnce(views::Context) -> Vec<Bytes> + Send + 'static,
    ) -> Result<Arc<[Bytes]>, String> {
        let (common, flags) = (self.common.clone(), self.flags.clone());
        let (started, chunk_cache) = (self.started, self.chunk_cache.clone());
        let visibility = Visibility::of(caller);
        let name = format!("{name}{}", visibility.name());
        let write = move |snapshot| {
            write(views::Context {
                snapshot,
                common,
                flags,
                started,
                query,
                visibility,
                chunk_cache,
                splices: RefCell::default(),
            })
        };
        self.documents.get(name, self.snapshot(), write).await
    }

    fn redirect(&self) -> Response {
        let host = self.info.hostname.as_deref().unwrap_or_default();
        let port = u16::try_from(self.info.port).unwrap_or_default();
        let pid = self.info.pid.as_deref().unwrap_or_default();
        standby::named(pid, pid, host, port)
    }

    async fn registry(&self, request: &Request) -> Response {
        let shell = self.shell.clone();
        let json = tokio::task::spawn_blocking(move || base::lock(&shell.registry).json()).await;
        match json {
            Ok(Ok(json)) => Response::ok_jsonp(json, request.query.get("jsonp")),
            Ok(Err(error)) => Response::internal(format!("The registry cannot be read: {error}")),
            Err(error) => Response::internal(error.to_string()),
        }
    }
}

/// Returns the routes of the master's paths.
fn routes() -> Table<Route> {
    let routes = common::add_routes(Table::new("master"), "master", Route::Shared)
        .add("master", "/app", Route::Shared(Shared::Webui("app")))
        .add("master", "/node_modules", Route::Shared(Shared::Webui("node_modules")))
        .add("master", "/api/v1", Route::Operator)
        .add("master", "/api/v1/scheduler", Route::Scheduler)
        .add("master", "/state", Route::State)
        .add("master", "/state-summary", Route::StateSummary)
        .add("master", "/slaves", Route::Slaves)
        .add("master", "/frameworks", Route::Frameworks)
        .add("master", "/tasks", Route::Tasks)
        .add("master", "/roles", Route::Roles)
        .add("master", "/redirect", Route::Redirect)
        .add("metrics", "/snapshot", Route::Metrics)
        .add("metrics", "", Route::Prometheus)
        .add("registrar(1)", "/registry", Route::Registry)
        .add("allocator", "/offer_constraints_debug", Route::OfferConstraints);
    legacy::Endpoint::ALL
        .iter()
        .fold(routes, |routes, endpoint| routes.add("master", endpoint.path(), Route::Legacy(*endpoint)))
}

/// Returns whether only the leading master can answer requests for a route (docs/mesos/clients.md).
fn is_leaders(route: Route) -> bool {
    let own = [Route::Metrics, Route::Prometheus, Route::Registry, Route::OfferConstraints];
    !matches!(route, Route::Shared(_)) && !own.contains(&route)
}

/// Returns the endpoint of a route if both daemons have it.
fn shared(route: Route) -> Option<Shared> {
    match route {
        Route::Shared(shared) => Some(shared),
        _ => None,
    }
}

/// Returns the authentication realm of a route (docs/mesos/security.md).
fn realm(route: Route) -> Realm {
    match route {
        Route::Shared(shared) => Realm::of(shared),
        Route::Redirect => Realm::Open,
        Route::Scheduler => Realm::Scheduler,
        Route::Legacy(legacy::Endpoint::MaintenanceStatus) => Realm::ReadOnly,
        Route::Operator | Route::Legacy(_) => Realm::ReadWrite,
        Route::State | Route::StateSummary | Route::Slaves | Route::Frameworks | Route::Tasks | Route::Roles => {
            Realm::ReadOnly
        }
        Route::Metrics | Route::Prometheus | Route::Registry | Route::OfferConstraints => Realm::ReadOnly,
    }
}

/// Returns the maximum length of a request's body, in bytes. Launches of many tasks are the longest.
fn body_limit(route: Route) -> usize {
    match route {
        Route::Scheduler => 64 << 20,
        // A maintenance schedule may name all machines of a cluster.
        Route::Operator | Route::Legacy(legacy::Endpoint::MaintenanceSchedule) => 16 << 20,
        _ => 1 << 20,
    }
}

impl wire::http::Handler for Handler {
    fn admit(&self, request: &mut Request) -> Result<BodyRule, Box<Response>> {
        let checked = self.check(request);
        self.common.audit.admitted(request, |request| self.may_change(request), checked)
    }

    async fn handle(&self, request: Request) -> Response {
        self.common.audit.observe(request, async |request| self.respond(&request).await).await
    }
}

impl MessageSink for Handler {
    fn require_peer_address_match(&self) -> bool {
        self.common.strict_peers
    }

    fn closed(&self, connection: ConnectionId) {
        self.senders.closed(connection);
        self.authentication.closed(connection);
        self.realms.closed(connection);
    }

    fn deliver(&self, message: wire::libprocess::Message) -> Delivery {
        if let Some(standby) = &self.standby {
            let known = Message::is_process(&message.to) || self.routes.has_process(&message.to);
            if message.to == "master" {
                standby.drop_message(&message);
            }
            return if known { Delivery::Ignored } else { Delivery::NoSuchProcess };
        }
        if self.authentication.handle_message(&message) {
            return Delivery::Accepted;
        }
        if !Message::is_process(&message.to) {
            return if self.routes.has_process(&message.to) { Delivery::Ignored } else { Delivery::NoSuchProcess };
        }
        match Message::decode(&message.to, &message.name, &message.body) {
            Ok(Some(decoded)) => {
                let kind = if decoded.asks_for_admission() { Kind::Registers } else { Kind::Other };
                if !self.senders.admit(&message.from, &message.origin, kind) {
                    return Delivery::Forged;
                }
                self.audit_message(&message, &decoded);
                self.driver.submit(Input::Message { from: message.from, message: decoded });
                return Delivery::Accepted;
            }
            Ok(None) => tracing::debug!(from = %message.from, "no process handles {}: dropped", message.name),
            Err(error) => tracing::warn!(from = %message.from, "message dropped: {error}"),
        }
        Delivery::Ignored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    #[test]
    fn the_help_page_is_whole() {
        assert_eq!(common::gaps(Part::Master, &routes()), (vec![], vec![]));
    }

    #[test]
    fn realms_of_routes() {
        let routes = routes();
        let of = |path: &str| routes.find(path).map(|found| realm(*found.route));
        for path in
            ["/health", "/master/health", "/version", "/redirect", "/master/redirect", "/help", "/", "/assets/x"]
        {
            assert_eq!(of(path), Some(Realm::Open), "{path}");
        }
        let read_only = [
            "/state",
            "/master/state",
            "/state-summary",
            "/slaves",
            "/frameworks",
            "/tasks",
            "/roles",
            "/flags",
            "/metrics/snapshot",
            "/metrics",
            "/system/stats.json",
            "/files/browse",
            "/files/read",
            "/files/download",
            "/files/debug",
            "/registrar(1)/registry",
            "/maintenance/status",
            "/allocator/offer_constraints_debug",
        ];
        for path in read_only {
            assert_eq!(of(path), Some(Realm::ReadOnly), "{path}");
        }
        let read_write = [
            "/api/v1",
            "/master/api/v1",
            "/teardown",
            "/reserve",
            "/unreserve",
            "/create-volumes",
            "/destroy-volumes",
            "/weights",
            "/quota",
            "/maintenance/schedule",
            "/machine/down",
            "/machine/up",
            "/logging/toggle",
        ];
        for path in read_write {
            assert_eq!(of(path), Some(Realm::ReadWrite), "{path}");
        }
        for path in ["/api/v1/scheduler", "/master/api/v1/scheduler"] {
            assert_eq!(of(path), Some(Realm::Scheduler), "{path}");
        }
    }
}
