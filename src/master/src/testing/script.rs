//! Runs a script line by line, and records the outputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use allocator::policies::Policies;
use base::{Pid, Time};
use cores::Core;
use protos::mesos::internal::Registry;
use protos::mesos::{self, scheduler};

use super::words::{Words, duration};
use super::{build, describe, operator};
use crate::invariants;
use crate::{Config, Input, Master, Message, Outbox, Output, RequestId, StreamId};

/// Time at which scripts start.
const BEGIN: Time = Time::from_secs(1000);

/// A master that runs a script. Its registry survives restarts, and agents and frameworks have names.
pub struct Script {
    config: Config,
    registry: Registry,
    master: Option<Master>,
    masters: u32,
    now: Time,
    requests: u64,
    out: Outbox,
    /// Streams of frameworks and operators by name.
    streams: BTreeMap<String, StreamId>,
    pub(super) agents: BTreeMap<String, Pid>,
    pub(super) agent_ids: BTreeMap<String, String>,
    pub(super) agent_resources: BTreeMap<String, String>,
    pub(super) framework_ids: BTreeMap<String, String>,
    pub(super) framework_infos: BTreeMap<String, mesos::FrameworkInfo>,
    drivers: BTreeMap<String, Pid>,
    lines: Vec<String>,
    quiet: bool,
    /// Whether heartbeats and pings are recorded.
    beats: bool,
}

/// Runs a scenario. Returns its text with the outputs of each line below it.
pub fn run(text: &str) -> String {
    let mut script = Script::new();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        found.push(line.to_owned());
        if !(line.is_empty() || line.starts_with('#')) {
            found.extend(script.line(line).into_iter().map(|line| format!("  {line}")));
        }
    }
    found.push(String::new());
    found.join("\n")
}

impl Default for Script {
    fn default() -> Script {
        Script::new()
    }
}

impl Script {
    /// Creates a script before its first line.
    pub fn new() -> Script {
        Script {
            config: Config::default(),
            registry: Registry::default(),
            master: None,
            masters: 0,
            now: BEGIN,
            requests: 0,
            out: Outbox::default(),
            streams: BTreeMap::new(),
            agents: BTreeMap::new(),
            agent_ids: BTreeMap::new(),
            agent_resources: BTreeMap::new(),
            framework_ids: BTreeMap::new(),
            framework_infos: BTreeMap::new(),
            drivers: BTreeMap::new(),
            lines: Vec::new(),
            quiet: true,
            beats: false,
        }
    }

    /// Executes one line. Returns its results, a line each; an invalid line results in an error.
    pub fn line(&mut self, line: &str) -> Vec<String> {
        let words = Words::new(line);
        let done = match words.at(0) {
            "config" => self.configure(&words),
            "log" => {
                self.quiet = false;
                Ok(())
            }
            "beats" => {
                self.beats = true;
                Ok(())
            }
            "restart" => {
                self.master = None;
                self.start();
                self.settle();
                Ok(())
            }
            "after" => self.pass(&words),
            _ => self.input(&words),
        };
        if let Err(why) = done {
            self.lines.push(format!("?? {why}"));
        }
        std::mem::take(&mut self.lines)
    }

    /// Returns the master, which is started first if necessary.
    pub fn master(&mut self) -> &mut Master {
        if self.master.is_none() {
            self.start();
        }
        match &mut self.master {
            Some(master) => master,
            None => unreachable!("started above"),
        }
    }

    fn configure(&mut self, words: &Words<'_>) -> Result<(), String> {
        let config = &mut self.config;
        let span = |name: &str| words.get(name).and_then(duration);
        config.policies.offer_timeout = span("offer_timeout").or(config.policies.offer_timeout);
        config.agent_ping_timeout = span("agent_ping_timeout").unwrap_or(config.agent_ping_timeout);
        config.agent_reregister_timeout = span("agent_reregister_timeout").unwrap_or(config.agent_reregister_timeout);
        config.allocation_interval = span("allocation_interval").unwrap_or(config.allocation_interval);
        config.registry_gc_interval = span("registry_gc_interval").unwrap_or(config.registry_gc_interval);
        config.registry_max_agent_age = span("registry_max_agent_age").unwrap_or(config.registry_max_agent_age);
        let number = |name: &str, old: usize| words.number(name).map_or(old, |number| number as usize);
        config.max_completed_frameworks = number("max_completed_frameworks", config.max_completed_frameworks);
        config.max_completed_tasks_per_framework =
            number("max_completed_tasks", config.max_completed_tasks_per_framework);
        config.max_unreachable_tasks_per_framework =
            number("max_unreachable_tasks", config.max_unreachable_tasks_per_framework);
        config.max_operator_event_stream_subscribers =
            number("max_subscribers", config.max_operator_event_stream_subscribers);
        config.max_agent_ping_timeouts =
            words.number("max_agent_ping_timeouts").map_or(config.max_agent_ping_timeouts, |n| n as u32);
        config.recovery_agent_removal_limit =
            words.number("recovery_agent_removal_limit").unwrap_or(config.recovery_agent_removal_limit);
        config.authenticate_agents |= words.has("authenticate_agents");
        config.authenticate_frameworks |= words.has("authenticate_frameworks");
        if let Some(text) = words.get("acls") {
            config.authorizer = authorizer::Acls::parse(text).map_err(|why| why.to_string())?.into();
        }
        if words.has("no_root") {
            config.root_submissions = false;
        }
        if let Some((count, span)) = words.get("agent_removal_rate_limit").and_then(|text| text.split_once('/')) {
            config.agent_removal_rate_limit = count.parse().ok().zip(duration(span));
        }
        if let Some((span, capacity)) = words.get("rate_limit").and_then(|text| text.split_once('/')) {
            let limit = duration(span).map(|interval| crate::RateLimit { interval, capacity: capacity.parse().ok() });
            config.rate_limits = Some(crate::RateLimits { others: limit, ..Default::default() });
        }
        if words.get("roles").is_some() {
            config.roles = Some(words.list("roles").into_iter().map(str::to_owned).collect());
        }
        Ok(())
    }

    /// Starts a new master, which leads with the content of the registry.
    fn start(&mut self) {
        self.masters += 1;
        let info = build::master_info(self.masters);
        self.streams.clear();
        self.drivers.clear();
        self.master = Some(Master::new(self.config.clone(), info, &self.registry, 1, self.now));
    }

    /// Advances the time, and wakes the master whenever it asks for that.
    fn pass(&mut self, words: &Words<'_>) -> Result<(), String> {
        let span = duration(words.at(1)).ok_or("after how long?")?;
        let end = self.now + span;
        while let Some(at) = self.master().next_wake().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            self.feed(Input::Wake);
        }
        self.now = end;
        Ok(())
    }

    fn input(&mut self, words: &Words<'_>) -> Result<(), String> {
        let (command, name) = (words.at(0), words.at(1));
        self.requests += 1;
        let request = RequestId(self.requests);
        let input = match command {
            "state" => {
                self.describe_state();
                return Ok(());
            }
            "subscribe" if name == "operator" => {
                let stream = self.stream(words.at(2));
                Input::OperatorSubscribe { request, stream, principal: principal(words) }
            }
            "subscribe" => {
                let call = Box::new(build::subscribe(self, words));
                let stream = self.stream(name);
                let stream_text = Arc::from(format!("stream-{}", stream.0));
                Input::Subscribe { request, stream, stream_text, call, principal: principal(words) }
            }
            "close" => Input::StreamClosed { stream: self.streams.get(name).copied().ok_or("no such stream")? },
            "exited" => {
                let pid = self.agents.get(name).or(self.drivers.get(name)).cloned();
                Input::Exited { pid: pid.ok_or("no such process")? }
            }
            "authenticate" => Input::Authenticating { pid: self.peer(words), attempt: self.requests },
            "authenticated" => {
                let attempt = words.number("attempt").map_or(self.requests - 1, |number| number as u64);
                Input::Authenticated { pid: self.peer(words), attempt, principal: words.get("as").map(Arc::from) }
            }
            "driver" => {
                let from = self.driver(name, words);
                Input::Message { from, message: Message::Call(Box::new(build::subscribe(self, words))) }
            }
            "whitelist" => {
                let hostnames = words.from(1).into_iter().map(str::to_owned).collect();
                Input::Whitelist { hostnames: (!words.has("*")).then_some(hostnames) }
            }
            "policies" => Input::UpdatePolicies { request, policies: Box::new(policies(words)?) },
            "operator" if words.at(1) == "kill" => {
                let kill = Box::new(operator::kill(self, words)?);
                Input::KillTask { request, kill, principal: principal(words) }
            }
            "operator" => {
                let call = Box::new(operator::operator(self, words)?);
                Input::OperatorCall { request, call, principal: principal(words) }
            }
            _ => match build::agent_message(self, words)? {
                Some((from, message)) => Input::Message { from, message },
                None => self.call(request, words)?,
            },
        };
        self.feed(input);
        Ok(())
    }

    fn call(&mut self, request: RequestId, words: &Words<'_>) -> Result<Input, String> {
        let name = words.at(1);
        let call = build::call(self, words)?;
        crate::validate_call(&call).map_err(|why| format!("Failed to validate scheduler::Call: {why}"))?;
        let call: Box<scheduler::Call> = Box::new(call);
        if let Some(from) = self.drivers.get(name).cloned() {
            return Ok(Input::Message { from, message: Message::Call(call) });
        }
        let own = self.streams.get(name).map(|stream| format!("stream-{}", stream.0));
        let stream_id = match words.get("stream") {
            Some("none") => None,
            Some(text) => Some(text.into()),
            None => own.map(Into::into),
        };
        Ok(Input::SchedulerCall { request, stream_id, call, principal: principal(words) })
    }

    fn stream(&mut self, name: &str) -> StreamId {
        let stream = StreamId(self.requests);
        self.streams.insert(name.to_owned(), stream);
        stream
    }

    /// Returns the process of an agent, which need not have registered, or that of a driver if the line has the word
    /// `driver`.
    fn peer(&mut self, words: &Words<'_>) -> Pid {
        let name = words.at(1);
        if words.has("driver") { self.driver(name, words) } else { build::agent_pid(self, words) }
    }

    fn driver(&mut self, name: &str, words: &Words<'_>) -> Pid {
        let number = self.drivers.len() + 1;
        let process = words.get("process").unwrap_or(name);
        let made = || Pid::parse_lenient(&format!("scheduler-{process}@10.0.1.{number}:4000"));
        let pid = self.drivers.get(process).cloned().unwrap_or_else(made);
        self.drivers.insert(process.to_owned(), pid.clone());
        self.drivers.insert(name.to_owned(), pid.clone());
        pid
    }

    fn feed(&mut self, input: Input) {
        let now = self.now;
        let mut out = std::mem::take(&mut self.out);
        self.master().handle(input, now, &mut out);
        self.out = out;
        self.settle();
    }

    /// Ends the batch: its results are carried out and recorded.
    fn settle(&mut self) {
        let now = self.now;
        let mut out = std::mem::take(&mut self.out);
        self.master().end_batch(now, &mut out);
        for op in &out.persist {
            op.apply(&mut self.registry);
            let line = describe::describe_op(op);
            self.lines.push(self.named(&line));
        }
        for output in &out.outputs {
            self.learn(output);
            let line = describe::describe_output(output);
            let line = self.named(&line);
            if self.beats || !(line.ends_with(" HEARTBEAT") || line.contains(" PingSlave ")) {
                self.lines.push(line);
            }
        }
        for line in out.log.iter().filter(|_| !self.quiet) {
            self.lines.push(self.named(&format!("log {:?} {}", line.level, line.text)));
        }
        out.clear();
        self.out = out;
        if let Err(why) = invariants::check_invariants(self.master()) {
            self.lines.push(format!("BROKEN: {why}"));
        }
    }

    /// Records the names of generated ids by their owners.
    fn learn(&mut self, output: &Output) {
        match output {
            Output::Send { to, message, .. } => {
                let agent = self.agents.iter().find(|(_, pid)| *pid == to).map(|(name, _)| name.clone());
                if let (Some(agent), crate::Outgoing::SlaveRegistered(answer)) = (agent, message) {
                    self.agent_ids.insert(agent, answer.slave_id.value.to_string());
                }
                let driver = self.drivers.iter().find(|(_, pid)| *pid == to).map(|(name, _)| name.clone());
                if let (Some(driver), crate::Outgoing::FrameworkRegistered(answer)) = (driver, message) {
                    self.framework_ids.insert(driver, answer.framework_id.value.to_string());
                }
            }
            Output::SchedulerEvent { stream, event } => {
                let name = self.streams.iter().find(|(_, other)| *other == stream).map(|(name, _)| name.clone());
                if let (Some(name), Some(subscribed)) = (name, &event.subscribed) {
                    self.framework_ids.insert(name, subscribed.framework_id.value.to_string());
                }
            }
            _ => {}
        }
    }

    /// Replaces pids and streams by the names that the script gave them.
    fn named(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (name, pid) in self.agents.iter().chain(&self.drivers) {
            line = line.replace(&format!("<{pid}>"), name);
        }
        for (name, stream) in &self.streams {
            line = line.replace(&format!("<stream {}>", stream.0), name);
        }
        line
    }

    fn describe_state(&mut self) {
        let snapshot = self.master().snapshot();
        let lines = describe::describe_state(&snapshot);
        self.lines.extend(lines);
    }
}

fn principal(words: &Words<'_>) -> Option<Arc<str>> {
    words.get("authenticated").map(Arc::from)
}

/// Builds policies; `role` and `framework` are timeouts of a role's and a framework's offers.
///
/// ```text
/// policies offer_timeout=T refuse_min=T refuse_max=T refuse_default=T timed_out=T share=N granularity=AMOUNTS
///     role=R:T framework=F:T
/// ```
fn policies(words: &Words<'_>) -> Result<Policies, String> {
    let span = |name: &str| words.get(name).and_then(duration);
    let mut policies = Policies { offer_timeout: span("offer_timeout"), ..Policies::default() };
    policies.refusal.default = span("refuse_default");
    policies.refusal.min = span("refuse_min");
    policies.refusal.max = span("refuse_max");
    policies.refusal.timed_out = span("timed_out");
    policies.max_offered_share = words.number("share");
    let granularity = words.get("granularity").map(resources::parse_quantities).transpose();
    policies.offer_granularity = granularity.map_err(|why| why.to_string())?;
    if let Some((role, span)) = words.get("role").and_then(|text| text.split_once(':')) {
        let role = resources::Role::parse(role).map_err(|why| why.to_string())?;
        policies.roles.entry(role).or_default().offer_timeout = duration(span);
    }
    if let Some((framework, span)) = words.get("framework").and_then(|text| text.split_once(':')) {
        policies.frameworks.entry(framework.to_owned()).or_default().offer_timeout = duration(span);
    }
    Ok(policies)
}
