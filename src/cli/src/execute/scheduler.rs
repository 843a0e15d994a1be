//! The scheduler of `tepui execute`: it launches its work once, prints each status, and ends with the last task.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use base::{Text, Time};
use resources::{Role, parse_text};
use sdk::task::to_v1;
use sdk::v1::task_status::{Reason, Source};
use sdk::v1::{ExecutorId, ExecutorInfo, FrameworkId, Offer, TaskState, TaskStatus, executor_info};
use sdk::{Calls, DEFAULT_REFUSAL, Event, Packer, Scheduler, is_terminal};
use tokio::sync::mpsc::UnboundedSender;

use super::task::Work;
use crate::interrupt::Interrupt;

/// Time that an interrupted command waits for a missing master.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);
/// Resources of the executor of a group, as mesos-execute requests them.
pub(super) const GROUP_EXECUTOR: &str = "cpus:0.1;mem:32;disk:32";

/// A message from the scheduler to the shell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Progress {
    /// The framework has this id, and waits for an offer.
    Waiting(String),
    /// The work was launched.
    Launched,
    /// A task has sent the first status that shows that it runs or has ended.
    Started(Box<TaskStatus>),
}

/// The scheduler of one task or group. It prints messages to `out`.
pub(super) struct ExecuteScheduler<W> {
    work: Work,
    kill_after: Option<Duration>,
    interrupt: Interrupt,
    out: W,
    progress: UnboundedSender<Progress>,
    framework_id: FrameworkId,
    launched: bool,
    kill_at: Option<Time>,
    /// Whether there is no master.
    is_disconnected: bool,
    /// Time at which a requested end happens even without a master.
    give_up_at: Option<Time>,
    /// Last state of each task that has ended.
    ended: BTreeMap<Text, TaskState>,
    /// Tasks whose start was sent to `progress`.
    reported_starts: BTreeSet<Text>,
}

impl<W: Write> ExecuteScheduler<W> {
    pub(super) fn new(
        work: Work,
        kill_after: Option<Duration>,
        interrupt: Interrupt,
        out: W,
        progress: UnboundedSender<Progress>,
    ) -> ExecuteScheduler<W> {
        ExecuteScheduler {
            work,
            kill_after,
            interrupt,
            out,
            progress,
            framework_id: FrameworkId::default(),
            launched: false,
            kill_at: None,
            is_disconnected: false,
            give_up_at: None,
            ended: BTreeMap::new(),
            reported_starts: BTreeSet::new(),
        }
    }

    /// Returns whether every task has succeeded.
    pub(super) fn succeeded(&self) -> bool {
        let finished = |id: &Text| self.ended.get(id) == Some(&TaskState::TaskFinished);
        self.work.tasks().iter().all(|task| finished(&task.task_id.value))
    }

    /// Sends a message to the shell, which may have ended already.
    fn send_progress(&self, progress: Progress) {
        let _ = self.progress.send(progress);
    }

    /// Prints a line. A closed output does not stop the work.
    fn say(&mut self, line: &str) {
        let _ = writeln!(self.out, "{line}");
        let _ = self.out.flush();
    }

    fn offers(&mut self, offers: Vec<Offer>, calls: &mut Calls) {
        if self.launched {
            calls.decline(offers.into_iter().map(|o| o.id).collect(), DEFAULT_REFUSAL);
            return;
        }
        match &self.work {
            Work::Task(task) => {
                let mut packer = Packer::new(offers);
                if let Ok(agent) = packer.place((**task).clone()) {
                    self.launched(&agent.value, calls);
                }
                packer.finish(calls, DEFAULT_REFUSAL);
            }
            Work::Group(_) => self.offers_for_group(offers, calls),
        }
    }

    /// Launches the group on the first offer that is large enough for all of it.
    fn offers_for_group(&mut self, offers: Vec<Offer>, calls: &mut Calls) {
        let Work::Group(group) = self.work.clone() else { return };
        let own = parse_text(GROUP_EXECUTOR, &Role::star()).unwrap_or_default();
        let mut unused = Vec::new();
        for offer in offers {
            let mut packer = Packer::new([offer.clone()]);
            let executor = sdk::v1::TaskInfo { resources: to_v1(&own), ..Default::default() };
            let fits = |packer: &mut Packer, task: &sdk::v1::TaskInfo| packer.place(task.clone()).is_ok();
            if self.launched || !fits(&mut packer, &executor) || !group.tasks.iter().all(|t| fits(&mut packer, t)) {
                unused.push(offer.id);
                continue;
            }
            let placed = packer.bins()[0].tasks();
            let executor = ExecutorInfo {
                r#type: Some(executor_info::Type::Default as i32),
                executor_id: ExecutorId { value: "default-executor".into() },
                framework_id: Some(self.framework_id.clone()),
                resources: placed[0].resources.clone(),
                ..Default::default()
            };
            let tasks = placed[1..].to_vec();
            self.launched(&offer.agent_id.value, calls);
            calls.launch_group(&offer, executor, tasks, DEFAULT_REFUSAL);
        }
        calls.decline(unused, DEFAULT_REFUSAL);
    }

    fn launched(&mut self, agent: &str, calls: &mut Calls) {
        self.launched = true;
        self.send_progress(Progress::Launched);
        calls.suppress();
        let names: Vec<String> = self.work.tasks().iter().map(|t| format!("'{}'", t.task_id.value)).collect();
        let noun = if names.len() == 1 { "task" } else { "tasks" };
        self.say(&format!("Submitted {noun} {} to agent '{agent}'", names.join(", ")));
    }

    fn update(&mut self, status: &TaskStatus, now: Time, calls: &mut Calls) {
        let (id, state) = (&status.task_id.value, status.state());
        self.say(&text(status));
        if (state == TaskState::TaskRunning || is_terminal(state)) && self.reported_starts.insert(id.clone()) {
            self.send_progress(Progress::Started(Box::new(status.clone())));
        }
        if state == TaskState::TaskRunning
            && self.kill_at.is_none()
            && let Some(after) = self.kill_after
        {
            self.kill_at = Some(now + after);
            calls.wake_at(now + after);
        }
        if is_terminal(state) {
            self.ended.insert(id.clone(), state);
            if self.work.tasks().iter().all(|t| self.ended.contains_key(&t.task_id.value)) {
                calls.teardown();
            }
        }
    }

    /// Kills the tasks at their time limit, or when the user interrupts.
    fn wake(&mut self, now: Time, calls: &mut Calls) {
        let interrupted = self.interrupt.is_set();
        if interrupted && !self.launched {
            calls.teardown();
            return;
        }
        if interrupted && self.is_disconnected {
            return self.give_up(now, calls);
        }
        if !interrupted && self.kill_at.is_none_or(|at| at > now) {
            return;
        }
        self.kill_at = Some(Time::NEVER);
        self.say(if interrupted {
            "Interrupted: ending the work"
        } else {
            "The time limit has passed: ending the work"
        });
        let ids: Vec<String> = calls.tasks().iter().map(|(id, _)| id.to_owned()).collect();
        for id in ids {
            calls.kill(&id, None);
        }
    }

    /// Ends without a master after some time; until then nothing can be killed, and the tasks are left to the master.
    fn give_up(&mut self, now: Time, calls: &mut Calls) {
        match self.give_up_at {
            Some(at) if at <= now => {
                self.say("No master can be reached to end the work; it ends after the framework's failover timeout");
                calls.stop();
            }
            Some(at) => calls.wake_at(at),
            None => {
                self.say("Interrupted: waiting for a master to end the work");
                self.give_up_at = Some(now + GIVE_UP_AFTER);
                calls.wake_at(now + GIVE_UP_AFTER);
            }
        }
    }
}

impl<W: Write> Scheduler for ExecuteScheduler<W> {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        match event {
            Event::Subscribed { framework_id, again, .. } => {
                let word = if again { "Subscribed again" } else { "Subscribed" };
                self.say(&format!("{word} with ID {}", framework_id.value));
                self.framework_id = framework_id;
                if !self.launched {
                    self.send_progress(Progress::Waiting(self.framework_id.value.to_string()));
                }
                self.is_disconnected = false;
                if self.give_up_at.take().is_some() {
                    self.wake(now, calls);
                }
            }
            Event::Offers(offers) => self.offers(offers, calls),
            Event::Update(status) => self.update(&status, now, calls),
            Event::Wake => self.wake(now, calls),
            Event::Disconnected { why } => {
                self.is_disconnected = true;
                self.say(&format!("Disconnected from the master ({why}), trying again"));
                if self.interrupt.is_set() {
                    self.wake(now, calls);
                }
            }
            Event::Refused { why, .. } => self.say(&format!("The master refused a call: {why}")),
            _ => {}
        }
    }
}

/// Formats a status as mesos-execute prints it.
fn text(status: &TaskStatus) -> String {
    let mut text =
        format!("Received status update {} for task '{}'", status.state().as_str_name(), status.task_id.value);
    if let Some(message) = &status.message {
        text.push_str(&format!("\n  message: '{message}'"));
    }
    if let Some(source) = status.source.and_then(|s| Source::try_from(s).ok()) {
        text.push_str(&format!("\n  source: {}", source.as_str_name()));
    }
    if let Some(reason) = status.reason.and_then(|r| Reason::try_from(r).ok()) {
        text.push_str(&format!("\n  reason: {}", reason.as_str_name()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use resources::Resources;
    use sdk::task::shell;
    use sdk::v1::scheduler::call::Type;
    use sdk::v1::{AgentId, OfferId, TaskGroupInfo, TaskId};
    use sdk::{Input, Output, Session, Settings};

    fn resources(text: &str) -> Resources {
        parse_text(text, &Role::star()).unwrap()
    }

    fn offers(cpus: &str) -> sdk::v1::scheduler::Event {
        let offer = Offer {
            id: OfferId { value: "O1".into() },
            agent_id: AgentId { value: "S0".into() },
            resources: to_v1(&resources(cpus)),
            ..Default::default()
        };
        sdk::v1::scheduler::Event {
            r#type: Some(sdk::v1::scheduler::event::Type::Offers as i32),
            offers: Some(sdk::v1::scheduler::event::Offers { offers: vec![offer] }),
            ..Default::default()
        }
    }

    fn update(id: &str, state: TaskState) -> sdk::v1::scheduler::Event {
        let status = TaskStatus { task_id: TaskId { value: id.into() }, state: state as i32, ..Default::default() };
        sdk::v1::scheduler::Event {
            r#type: Some(sdk::v1::scheduler::event::Type::Update as i32),
            update: Some(sdk::v1::scheduler::event::Update { status }),
            ..Default::default()
        }
    }

    struct Bench<'a> {
        session: Session<&'a mut ExecuteScheduler<Vec<u8>>>,
        now: Time,
    }

    impl<'a> Bench<'a> {
        fn new(execute: &'a mut ExecuteScheduler<Vec<u8>>) -> Bench<'a> {
            let now = Time::from_secs(9);
            let mut bench = Bench { session: Session::new(execute, Settings::new(Default::default()), now), now };
            bench.put(Input::Wake);
            let subscribed = sdk::v1::scheduler::Event {
                r#type: Some(sdk::v1::scheduler::event::Type::Subscribed as i32),
                subscribed: Some(Default::default()),
                ..Default::default()
            };
            bench.put(Input::Event(Box::new(subscribed)));
            bench
        }

        fn put(&mut self, input: Input) -> Vec<Type> {
            let mut outputs = Vec::new();
            self.session.handle(input, self.now, &mut outputs);
            let kind = |output: &Output| match output {
                Output::Send(call) => Some(call.r#type()),
                _ => None,
            };
            outputs.iter().filter_map(kind).collect()
        }

        fn event(&mut self, event: sdk::v1::scheduler::Event) -> Vec<Type> {
            self.put(Input::Event(Box::new(event)))
        }
    }

    /// Returns a channel whose receiver is closed.
    fn progress() -> UnboundedSender<Progress> {
        tokio::sync::mpsc::unbounded_channel().0
    }

    fn one() -> Work {
        Work::Task(Box::new(shell("t", "true", &resources("cpus:1;mem:128"))))
    }

    #[test]
    fn waits_for_a_fitting_offer_launches_once_and_ends_with_the_task() {
        let mut execute = ExecuteScheduler::new(one(), None, Interrupt::default(), Vec::new(), progress());
        let mut bench = Bench::new(&mut execute);
        assert_eq!(bench.event(offers("cpus:0.5;mem:512")), [Type::Decline]);
        assert_eq!(bench.event(offers("cpus:2;mem:512")), [Type::Suppress, Type::Accept]);
        assert_eq!(bench.event(offers("cpus:2;mem:512")), [Type::Decline]);
        assert_eq!(bench.event(update("t", TaskState::TaskRunning)), []);
        assert_eq!(bench.event(update("t", TaskState::TaskFinished)), [Type::Teardown]);
        assert!(execute.succeeded());
        let said = String::from_utf8(execute.out).unwrap();
        assert!(said.contains("Submitted task 't' to agent 'S0'"), "{said}");
        assert!(said.contains("Received status update TASK_FINISHED for task 't'"), "{said}");
    }

    #[test]
    fn a_group_is_launched_whole() {
        let tasks = vec![shell("a", "true", &resources("cpus:1")), shell("b", "true", &resources("cpus:1"))];
        let work = Work::Group(TaskGroupInfo { tasks });
        let mut execute = ExecuteScheduler::new(work, None, Interrupt::default(), Vec::new(), progress());
        let mut bench = Bench::new(&mut execute);
        assert_eq!(bench.event(offers("cpus:2;mem:512;disk:512")), [Type::Decline]);
        assert_eq!(bench.event(offers("cpus:3;mem:512;disk:512")), [Type::Suppress, Type::Accept]);
        assert_eq!(bench.event(update("a", TaskState::TaskFinished)), []);
        assert_eq!(bench.event(update("b", TaskState::TaskFailed)), [Type::Teardown]);
        assert!(!execute.succeeded());
    }

    #[test]
    fn a_task_is_killed_when_its_time_is_over() {
        let mut execute =
            ExecuteScheduler::new(one(), Some(Duration::from_secs(3)), Interrupt::default(), Vec::new(), progress());
        let mut bench = Bench::new(&mut execute);
        bench.event(offers("cpus:2;mem:512"));
        bench.event(update("t", TaskState::TaskRunning));
        bench.now = bench.now + Duration::from_secs(3);
        assert_eq!(bench.put(Input::Wake), [Type::Kill]);
        assert_eq!(bench.put(Input::WakeSignal), []);
        assert_eq!(bench.event(update("t", TaskState::TaskKilled)), [Type::Teardown]);
    }

    #[test]
    fn an_interrupt_does_not_wait_forever_for_a_master() {
        let interrupt = Interrupt::default();
        let mut execute = ExecuteScheduler::new(one(), None, interrupt.clone(), Vec::new(), progress());
        let mut bench = Bench::new(&mut execute);
        bench.event(offers("cpus:2;mem:512"));
        bench.put(Input::Disconnected("gone".to_owned()));
        interrupt.set();
        bench.put(Input::WakeSignal);
        bench.now = bench.now + GIVE_UP_AFTER;
        bench.put(Input::Wake);
        let said = String::from_utf8(execute.out).unwrap();
        assert!(said.contains("No master can be reached to end the work"), "{said}");
    }
}
