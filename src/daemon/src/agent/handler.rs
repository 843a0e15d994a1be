//! The agent's routes: they select the endpoint of a request, and pass messages to the agent's process.
//!
//! The responses of an endpoint are in the file of its name.

use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, AgentState, AuthMessage, Incoming, Input, Snapshot};
use authorizer::{Action, Authorizer};
use base::Time;
use wire::auth::AGENT_EXECUTOR;
use wire::http::{Body, BodyRule, RECORDIO, Request, Response, StatusCode};
use wire::libprocess::{ConnectionId, Delivery, MessageSink};
use wire::route::Table;

use super::outputs::Shell;
use super::{attach, executor_api, metrics, operator_api, realms, views};
use crate::acls::Caller;
use crate::audit;
use crate::common::{self, Common, Shared};
use crate::driver::Driver;
use crate::origin;
use crate::prometheus::{MEDIA_TYPE, Text, add_all};
use crate::realms::{Realm, Realms};
use crate::senders::{Kind, Senders};

/// The libprocess id of the agent.
const PROCESS: &str = "slave(1)";

/// An endpoint of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Shared(Shared),
    Executor,
    Operator,
    State,
    Containers,
    Statistics,
    Metrics,
    Prometheus,
    ContainerizerDebug,
}

/// Handles the agent's requests and messages.
pub(super) struct Handler {
    pub(super) common: Arc<Common>,
    pub(super) driver: Driver<Agent>,
    pub(super) shell: Arc<Shell>,
    /// Interval of heartbeats on streams of attached output.
    pub(super) heartbeat_interval: Duration,
    pub(super) realms: Realms,
    pub(super) senders: Senders,
    /// The access control lists.
    authorizer: Authorizer,
    pub(super) started: Time,
    routes: Table<Route>,
    /// Routes that `--firewall_rules` disables.
    closed: Vec<Route>,
}

impl Handler {
    pub(super) fn new(
        common: Arc<Common>,
        driver: Driver<Agent>,
        shell: Arc<Shell>,
        heartbeat_interval: Duration,
        (realms, senders): (Realms, Senders),
        authorizer: Authorizer,
        started: Time,
    ) -> Handler {
        let routes = routes();
        let closed = common.firewall.closed(&routes, &[Route::Metrics, Route::Prometheus]);
        Handler { common, driver, shell, heartbeat_interval, realms, senders, authorizer, started, routes, closed }
    }

    /// Returns the state of the agent after all earlier inputs.
    pub(super) async fn snapshot(&self) -> Arc<Snapshot> {
        self.driver.read(Agent::snapshot).await
    }

    async fn answer(&self, route: Route, rest: &str, request: &Request, caller: Caller) -> Response {
        if let Err(refusal) = self.authorize(route, request, &caller).await {
            return *refusal;
        }
        match route {
            Route::Shared(endpoint) => self.common.answer(endpoint, rest, request).await,
            Route::Executor => executor_api::answer(self, request).await,
            Route::Operator => operator_api::answer(self, request, caller).await,
            Route::Metrics => metrics::answer(self, request).await,
            Route::Prometheus => self.prometheus(request).await,
            Route::State => self.state(request, caller).await,
            Route::Containers => {
                let wanted = request.query.get("container_id").map(str::to_owned);
                let write = move |measured: &views::statistics::Measured| {
                    let hidden = caller.hidden_containers(&measured.snapshot);
                    views::statistics::containers(measured, wanted.as_deref(), &hidden)
                };
                self.measured(request, write).await
            }
            Route::Statistics => self.measured(request, views::statistics::write).await,
            Route::ContainerizerDebug => {
                Response::ok_jsonp(r#"{"pending":[]}"#.as_bytes().to_vec(), request.query.get("jsonp"))
            }
        }
    }

    /// Checks that the sender may use an endpoint with this request.
    ///
    /// # Errors
    /// 403.
    async fn authorize(&self, route: Route, request: &Request, caller: &Caller) -> Result<(), Box<Response>> {
        if !caller.authorizer.is_on() {
            return Ok(());
        }
        let path = match route {
            Route::Shared(Shared::FilesBrowse | Shared::FilesRead | Shared::FilesDownload) => {
                return self.authorize_file(request.query.get("path").unwrap_or_default(), caller).await;
            }
            Route::Shared(endpoint) => return caller.authorize_endpoint(endpoint, request),
            Route::Containers => "/containers",
            Route::Statistics => "/monitor/statistics",
            Route::Metrics | Route::Prometheus => "/metrics/snapshot",
            Route::ContainerizerDebug => "/containerizer/debug",
            Route::Executor | Route::Operator | Route::State => return Ok(()),
        };
        caller.authorize(Action::GetEndpoint, Some(path))
    }

    /// Checks that the sender may read a file: the log, or a sandbox, which is authorized by its user.
    ///
    /// # Errors
    /// 403.
    pub(super) async fn authorize_file(&self, path: &str, caller: &Caller) -> Result<(), Box<Response>> {
        if let Some(decided) = caller.may_read_log(&self.common, path) {
            return decided;
        }
        let attached = self.common.files.attached_above(path).unwrap_or_default();
        match self.snapshot().await.sandbox_user(&attached) {
            Some(user) => caller.authorize(Action::AccessSandbox, Some(user)),
            // The file may belong to any user.
            None => caller.authorize_all(Action::AccessSandbox),
        }
    }

    async fn state(&self, request: &Request, caller: Caller) -> Response {
        let snapshot = self.snapshot().await;
        if snapshot.state == AgentState::Recovering {
            return Response::unavailable("Agent has not finished recovery");
        }
        let context = views::Context {
            visible: caller.visible(&snapshot, true),
            snapshot,
            caller,
            common: self.common.clone(),
            started: self.started,
            shell: self.shell.clone(),
        };
        match tokio::task::spawn_blocking(move || views::state::write(&context)).await {
            Ok(body) => Response::ok_jsonp(body, request.query.get("jsonp")),
            Err(error) => Response::internal(error.to_string()),
        }
    }

    /// Writes a document about the containers' usage. Unlike most read endpoints it requires GET.
    async fn measured(
        &self,
        request: &Request,
        write: impl FnOnce(&views::statistics::Measured) -> Vec<u8> + Send + 'static,
    ) -> Response {
        if !request.is_get_or_head() {
            return Response::method_not_allowed(&["GET"], request.method.as_str());
        }
        match self.measure(write).await {
            Ok(body) => Response::ok_jsonp(body, request.query.get("jsonp")),
            Err(error) => Response::internal(error.to_string()),
        }
    }

    /// Answers `/metrics`: the agent's metrics and the usage of its containers, in Prometheus's text format.
    async fn prometheus(&self, request: &Request) -> Response {
        if !request.is_get_or_head() {
            return Response::method_not_allowed(&["GET"], request.method.as_str());
        }
        let mut text = Text::default();
        add_all(&mut text, &metrics::collect(self).await);
        let written = self.measure(move |measured| {
            views::families::add(measured, &mut text);
            text.write()
        });
        match written.await {
            Ok(text) => Response::ok_body(MEDIA_TYPE, text),
            Err(error) => Response::internal(error.to_string()),
        }
    }

    /// Measures the usage of containers, on another thread than the reactor's: reading `/proc` takes time.
    async fn measure<T: Send + 'static>(
        &self,
        write: impl FnOnce(&views::statistics::Measured) -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        let (snapshot, containers) = (self.snapshot().await, self.shell.containers.clone());
        let now = self.driver.now();
        let written = tokio::task::spawn_blocking(move || {
            write(&views::statistics::Measured { snapshot, usage: containers.usage(), now })
        });
        written.await
    }
}

impl Handler {
    /// Waits until requests of this route cannot be answered because the state that they would show is not durable.
    /// Returns the reason.
    async fn not_durable(&self, route: Route) -> String {
        match route {
            Route::Shared(_) | Route::Executor => std::future::pending().await,
            _ => self.shell.checkpoint_writer.refuses().await,
        }
    }
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
        Route::Executor => Realm::Open,
        Route::Operator => Realm::ReadWrite,
        Route::State | Route::Containers | Route::Statistics | Route::ContainerizerDebug => Realm::ReadOnly,
        Route::Metrics | Route::Prometheus => Realm::ReadOnly,
    }
}

fn routes() -> Table<Route> {
    common::add_routes(Table::new(PROCESS), PROCESS, Route::Shared)
        .add(PROCESS, "/api/v1", Route::Operator)
        .add(PROCESS, "/api/v1/executor", Route::Executor)
        .add(PROCESS, "/state", Route::State)
        .add(PROCESS, "/containers", Route::Containers)
        .add(PROCESS, "/containerizer/debug", Route::ContainerizerDebug)
        .add("monitor", "/statistics", Route::Statistics)
        .add(PROCESS, "/monitor/statistics", Route::Statistics)
        .add("metrics", "/snapshot", Route::Metrics)
        .add("metrics", "", Route::Prometheus)
}

impl wire::http::Handler for Handler {
    fn admit(&self, request: &mut Request) -> Result<BodyRule, Box<Response>> {
        let checked = self.check(request);
        self.common.audit.admitted(request, |request| self.may_change(request), checked)
    }

    async fn handle(&self, request: Request) -> Response {
        self.common.audit.observe(request, async |request| self.respond(request).await).await
    }
}

impl Handler {
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
        request.principal = match *found.route {
            Route::Operator => realms::operator(&self.realms, &self.shell.tokens, request)?,
            Route::Executor => self.check_token(request).map(|()| None)?,
            route => self.realms.principal(realm(route), request)?,
        };
        Ok(match (*found.route, request.header("content-type")) {
            (Route::Operator, Some(RECORDIO)) => BodyRule::Stream,
            // The bodies contain tasks and their environments.
            (Route::Operator | Route::Executor, _) => BodyRule::Whole { limit: 16 << 20 },
            _ => BodyRule::Whole { limit: 1 << 20 },
        })
    }

    /// Checks the token of a request to `/api/v1/executor`, before its body is read.
    ///
    /// # Errors
    /// 401.
    fn check_token(&self, request: &Request) -> Result<(), Box<Response>> {
        let header = request.header("authorization");
        match self.shell.tokens.proof(header) {
            Ok(_) => Ok(()),
            Err(refusal) => {
                self.common.audit.failed_http_login(header, request.peer, AGENT_EXECUTOR, refusal.status());
                Err(refusal)
            }
        }
    }

    async fn respond(&self, request: Request) -> Response {
        let Some(found) = self.routes.find(&request.path) else { return Response::error(StatusCode::NOT_FOUND) };
        audit::note_principal(request.principal.as_ref());
        let caller = match realms::executor(&self.shell.tokens, &request) {
            Some(container) if *found.route == Route::Operator => Caller::executor(container),
            _ => Caller::new(self.authorizer.clone(), request.principal.clone()),
        };
        if !matches!(request.body, Body::Stream(_)) {
            return tokio::select! {
                biased;
                answer = self.answer(*found.route, found.rest, &request, caller) => answer,
                why = self.not_durable(*found.route) => Response::unavailable(format!(
                    "The agent cannot write its checkpoints: {why}. It shows only state that is durable"
                )),
            };
        }
        if self.snapshot().await.state == AgentState::Recovering {
            return Response::unavailable("Agent has not finished recovery");
        }
        attach::input(self, request, &caller).await
    }
}

impl MessageSink for Handler {
    fn require_peer_address_match(&self) -> bool {
        self.common.strict_peers
    }

    fn closed(&self, connection: ConnectionId) {
        self.senders.closed(connection);
        self.realms.closed(connection);
    }

    fn deliver(&self, message: wire::libprocess::Message) -> Delivery {
        if let Some((attempt, said)) = AuthMessage::decode(&message.to, &message.name, &message.body) {
            if !self.senders.admit(&message.from, &message.origin, Kind::Other) {
                return Delivery::Forged;
            }
            self.driver.submit(Input::Authentication { attempt, from: message.from, message: said });
            return Delivery::Accepted;
        }
        if message.to != PROCESS {
            return if self.routes.has_process(&message.to) { Delivery::Ignored } else { Delivery::NoSuchProcess };
        }
        match Incoming::decode(&message.name, &message.body) {
            Ok(decoded) => {
                if !self.senders.admit(&message.from, &message.origin, kind(&decoded)) {
                    return Delivery::Forged;
                }
                if let Incoming::PingSlave(ping) = &decoded
                    && ping.connected
                {
                    self.shell.leader_activity.record(message.from.address());
                }
                self.driver.submit(Input::Message { from: message.from, message: Box::new(decoded) });
                Delivery::Accepted
            }
            Err(error) => {
                tracing::warn!(from = %message.from, "message dropped: {error}");
                Delivery::Ignored
            }
        }
    }
}

/// Returns whether a message registers its sender, a master or a v0 executor: the first messages of these bind its
/// address.
fn kind(message: &Incoming) -> Kind {
    match message {
        Incoming::SlaveRegistered(_)
        | Incoming::SlaveReregistered(_)
        | Incoming::RegisterExecutor(_)
        | Incoming::ReregisterExecutor(_) => Kind::Registers,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    #[test]
    fn the_help_page_is_whole() {
        assert_eq!(common::gaps(Part::Agent, &routes()), (vec![], vec![]));
    }
}
