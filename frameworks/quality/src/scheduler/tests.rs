//! Scripted runs of the scheduler: the script sends offers and updates, and checks the calls.

use std::time::Duration;

use sdk::base::Time;
use sdk::v1::scheduler::{Call, call};
use sdk::v1::{AgentId, FrameworkId, Offer, OfferId, TaskId, TaskState, TaskStatus};
use sdk::{Event, Input, Output, Requester, Session};

use super::*;
use crate::job::parse;

/// A scheduler in a session whose requests and clock a script controls.
pub(super) struct World {
    session: Session<Quality>,
    requester: Requester<Question, Answer>,
    now: Time,
    offers: u32,
    calls: Vec<Call>,
    /// Entries that the scheduler has saved.
    store: BTreeMap<String, Vec<u8>>,
}

const JOBS: &str = r#"
[[job]]
name = "a"
algorithm = { kind = "linear-regression" }
data = { generator = "linear", rows = 100, columns = 2 }

[[job]]
name = "b"
algorithm = { kind = "linear-regression" }
data = { generator = "linear", rows = 100, columns = 2 }
max_cores = 3
"#;

impl World {
    pub(super) fn new(policy: Policy) -> World {
        World::on(BTreeMap::new(), policy, Time::from_secs(100))
    }

    pub(super) fn on(store: BTreeMap<String, Vec<u8>>, policy: Policy, now: Time) -> World {
        let (requester, requests) = sdk::requests();
        let worker = Worker {
            command: vec!["/tepui".into(), "worker".into()],
            driver: "127.0.0.1:9".into(),
            cores: 1,
            mem: 32,
            pace: None,
        };
        let settings = Settings { policy, epoch: Duration::from_secs(1), workers_max: 6, worker };
        let info = sdk::v1::FrameworkInfo { name: "q".into(), user: "u".into(), ..Default::default() };
        let session = Session::new(Quality::new(settings, requests), sdk::Settings::new(info), now);
        let mut world = World { session, requester, now, offers: 0, calls: Vec::new(), store: store.clone() };
        let mut outputs = Vec::new();
        world.session.restore(store, now, &mut outputs).unwrap();
        world.done(outputs);
        world.input(Input::Wake);
        let subscribed = sdk::v1::scheduler::event::Subscribed {
            framework_id: FrameworkId { value: "f".into() },
            ..Default::default()
        };
        world.event(sdk::v1::scheduler::Event {
            r#type: Some(sdk::v1::scheduler::event::Type::Subscribed as i32),
            subscribed: Some(Box::new(subscribed)),
            ..Default::default()
        });
        world
    }

    pub(super) fn input(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.session.handle(input, self.now, &mut outputs);
        self.done(outputs);
    }

    pub(super) fn done(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send(call) => self.calls.push(*call),
                Output::Answer(answer) => answer.deliver(),
                Output::Save(changes) => changes.into_iter().for_each(|change| match change.value {
                    Some(value) => drop(self.store.insert(change.key, value)),
                    None => drop(self.store.remove(&change.key)),
                }),
                _ => {}
            }
        }
    }

    pub(super) fn event(&mut self, event: sdk::v1::scheduler::Event) {
        self.input(Input::Event(Box::new(event)));
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.input(Input::Wake);
        self.input(Input::WakeSignal);
    }

    pub(super) fn ask(&mut self, question: Question) -> Answer {
        let requester = self.requester.clone();
        let mut asking = Box::pin(requester.ask(question));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(asking.as_mut().poll(&mut cx).is_pending());
        self.input(Input::WakeSignal);
        match asking.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(Ok(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn submit(&mut self, name: &str) {
        self.submit_as(name, name);
    }

    /// Submits a job of the file under another name.
    pub(super) fn submit_as(&mut self, name: &str, other: &str) {
        let mut job = parse("j", JOBS).unwrap().into_iter().find(|j| j.name == name).unwrap();
        job.name = other.to_owned();
        assert_eq!(self.take(vec![job]), Ok(()));
    }

    pub(super) fn take(&mut self, jobs: Vec<crate::job::Job>) -> Result<(), String> {
        let submissions = jobs.into_iter().map(|job| Submission { job, token: "secret".into() });
        match self.ask(Question::Submit(submissions.collect())) {
            Answer::Submitted(taken) => taken.map_err(|why| why.to_string()),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn offer(&mut self, cpus: u32) {
        self.offer_all(&[("s", cpus)]);
    }

    /// Sends offers of several agents at once.
    pub(super) fn offer_all(&mut self, agents: &[(&str, u32)]) {
        let offers = agents.iter().map(|(agent, cpus)| self.offer_of(agent, *cpus)).collect();
        self.event(sdk::v1::scheduler::Event {
            r#type: Some(sdk::v1::scheduler::event::Type::Offers as i32),
            offers: Some(sdk::v1::scheduler::event::Offers { offers }),
            ..Default::default()
        });
    }

    fn offer_of(&mut self, agent: &str, cpus: u32) -> Offer {
        self.offers += 1;
        let text = format!("cpus:{cpus};mem:1000");
        let resources = resources::parse_text(&text, &resources::Role::star()).unwrap();
        Offer {
            id: OfferId { value: format!("o{}", self.offers).into() },
            agent_id: AgentId { value: agent.into() },
            hostname: "h".into(),
            resources: sdk::task::to_v1(&resources),
            ..Default::default()
        }
    }

    pub(super) fn update(&mut self, task: &str, state: TaskState) {
        let status = TaskStatus {
            task_id: TaskId { value: task.into() },
            agent_id: Some(AgentId { value: "s".into() }),
            state: state as i32,
            ..Default::default()
        };
        self.event(sdk::v1::scheduler::Event {
            r#type: Some(sdk::v1::scheduler::event::Type::Update as i32),
            update: Some(sdk::v1::scheduler::event::Update { status }),
            ..Default::default()
        });
    }

    /// Returns the tasks launched since the last call, and the ids of those killed.
    pub(super) fn look(&mut self) -> (Vec<sdk::v1::TaskInfo>, Vec<String>) {
        let calls = std::mem::take(&mut self.calls);
        let accepts = calls.iter().filter_map(|c| c.accept.as_ref()).flat_map(|a| &a.operations);
        let launched = accepts.filter_map(|o| o.launch.as_ref()).flat_map(|l| l.task_infos.clone()).collect();
        let kills = calls.iter().filter(|c| c.r#type() == call::Type::Kill).filter_map(|c| c.kill.as_ref());
        (launched, kills.map(|k| k.task_id.value.to_string()).collect())
    }

    pub(super) fn status(&mut self) -> Status {
        match self.ask(Question::Status) {
            Answer::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn iterate(&mut self, job: &str, number: u64, loss: f64) -> Directive {
        self.free(job, number, loss, &[])
    }

    /// Reports an iteration after which these workers have nothing to do.
    pub(super) fn free(&mut self, job: &str, number: u64, loss: f64, free: &[String]) -> Directive {
        let iteration = Iteration {
            number,
            loss,
            accuracy: Some(0.5),
            seconds: 0.5,
            workers: 2.0,
            busy: 0.9,
            ..Iteration::default()
        };
        self.progress(Progress {
            job: job.into(),
            iteration: Some(iteration),
            free: free.to_vec(),
            ..Progress::default()
        })
    }

    pub(super) fn end(&mut self, job: &str, free: &[String]) -> Directive {
        let outcome = Outcome::Finished("done".into());
        match self.ask(Question::Ended { job: job.into(), outcome, free: free.to_vec() }) {
            Answer::Directive(directive) => directive,
            other => panic!("{other:?}"),
        }
    }

    /// Launches as many workers as fit on these CPUs, and reports them as running.
    pub(super) fn launch_workers(&mut self, cpus: u32) -> Vec<String> {
        self.offer(cpus);
        let launched: Vec<String> = self.look().0.into_iter().map(|t| t.task_id.value.into()).collect();
        launched.iter().for_each(|task| self.update(task, TaskState::TaskRunning));
        launched
    }

    pub(super) fn progress(&mut self, progress: Progress) -> Directive {
        match self.ask(Question::Progress(Box::new(progress))) {
            Answer::Directive(directive) => directive,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn job(&mut self, name: &str) -> JobStatus {
        self.status().jobs.into_iter().find(|j| j.name == name).unwrap()
    }

    /// Kills and restarts the scheduler.
    pub(super) fn restarted(self) -> World {
        World::on(self.store, Policy::Slaq, self.now + Duration::from_secs(3))
    }
}

#[test]
fn workers_are_launched_where_there_is_room_and_shared() {
    let mut world = World::new(Policy::Fair);
    world.submit("a");
    world.offer(4);
    let (launched, _) = world.look();
    assert_eq!(launched.len(), 4);
    let command = launched[0].command.as_ref().unwrap();
    assert_eq!(&command.arguments[..2], ["/tepui", "worker"]);
    let job = |task: &sdk::v1::TaskInfo| {
        let variables = &task.command.as_ref().unwrap().environment.as_ref().unwrap().variables;
        variables.iter().find(|v| v.name == JOB_VARIABLE).unwrap().value.clone()
    };
    assert_eq!(job(&launched[0]).as_deref(), Some("a"));
    assert!(!command.arguments.iter().any(|w| w.contains("secret")), "other users can read the arguments of a process");
    for task in &launched {
        world.update(&task.task_id.value, TaskState::TaskRunning);
    }
    // With a second job half of the workers must leave; one dies before the end of the iteration, one is late and is
    // killed.
    world.submit("b");
    world.pass(Duration::from_millis(20));
    world.iterate("a", 0, 1.0);
    let newest = launched[3].task_id.value.to_string();
    world.update(&newest, TaskState::TaskFinished);
    world.offer(1);
    let (more, killed) = world.look();
    assert_eq!((more.len(), job(&more[0]).as_deref()), (1, Some("b")));
    assert_eq!(killed, Vec::<String>::new());
    for _ in 0..8 {
        world.pass(Duration::from_secs(1));
    }
    assert_eq!(world.look().1, [launched[2].task_id.value.to_string()]);
    let status = world.status();
    assert_eq!((status.policy, status.jobs[1].name.as_str(), status.jobs[0].iteration), ("fair", "b", Some(0)));
}

/// Returns the jobs to which these workers are sent.
fn moved(directive: &Directive) -> Vec<(&str, &str)> {
    directive.moves.iter().map(|m| (m.task.as_str(), m.job.as_str())).collect()
}

#[test]
fn a_worker_that_one_job_lets_go_works_for_the_other_in_the_same_task() {
    let mut world = World::new(Policy::Fair);
    world.submit("a");
    let tasks = world.launch_workers(4);
    world.submit("b");
    world.pass(Duration::from_millis(20));
    // Only workers without work can be released.
    let directive = world.free("a", 0, 1.0, &tasks[3..]);
    assert_eq!((moved(&directive), directive.leave.len()), (vec![(tasks[3].as_str(), "b")], 0));
    assert_eq!(directive.moves[0].token, "secret");
    let directive = world.free("a", 1, 0.9, &tasks[..3]);
    assert_eq!(moved(&directive), [(tasks[2].as_str(), "b")]);
    assert_eq!((world.job("a").tasks, world.job("b").tasks), (tasks[..2].to_vec(), tasks[2..].to_vec()));
    assert_eq!((world.job("a").cores, world.job("b").cores), (2, 2));
    assert_eq!(world.look().0.len(), 0, "nothing is launched for it");
    // A worker that its old driver still has is sent there again, and is counted once.
    let directive = world.free("a", 2, 0.8, &tasks);
    assert_eq!(moved(&directive), [(tasks[2].as_str(), "b"), (tasks[3].as_str(), "b")]);
    assert_eq!(world.status().workers, 4);
    // The first job ends. The second one gets the worker that it can use; the other worker ends with its job.
    let directive = world.end("a", &tasks[..2]);
    assert_eq!((moved(&directive), &directive.leave[..]), (vec![(tasks[0].as_str(), "b")], &tasks[1..2]));
    // A failure of that worker now counts for the second job.
    world.update(&tasks[0], TaskState::TaskFailed);
    assert_eq!(world.job("b").tasks, tasks[2..]);
}

#[test]
fn workers_are_restored_with_their_new_job_after_a_restart() {
    let mut world = World::new(Policy::Fair);
    world.submit("a");
    let tasks = world.launch_workers(4);
    world.submit("b");
    world.pass(Duration::from_millis(20));
    assert_eq!(world.free("a", 0, 1.0, &tasks).moves.len(), 2);
    let mut world = world.restarted();
    assert_eq!((world.job("a").tasks, world.job("b").tasks), (tasks[..2].to_vec(), tasks[2..].to_vec()));
    // The scheduler was killed before it told this worker, which is still connected to its former job's driver and
    // continues from there.
    let directive = world.free("a", 1, 0.9, &tasks[..3]);
    assert_eq!(moved(&directive), [(tasks[2].as_str(), "b")]);
    for task in &tasks {
        world.update(task, TaskState::TaskFinished);
    }
    assert!(!world.store.keys().any(|k| k.starts_with("worker/")), "nothing is kept of what has ended");
}

#[test]
fn a_worker_that_dies_is_replaced_and_the_limits_are_kept() {
    let mut world = World::new(Policy::Slaq);
    world.submit("b");
    world.offer(10);
    let (launched, _) = world.look();
    assert_eq!(launched.len(), 3, "its job wants three at most");
    world.submit("a");
    world.offer(7);
    let (more, _) = world.look();
    assert!(more.len() <= 3, "six workers at most: {}", more.len());
    let victim = launched[0].task_id.value.to_string();
    world.update(&victim, TaskState::TaskRunning);
    world.update(&victim, TaskState::TaskFailed);
    world.offer(5);
    let (replaced, _) = world.look();
    assert!(!replaced.is_empty() && replaced.iter().all(|t| t.task_id.value != victim));
    assert!(world.status().workers <= 6);
}

#[test]
fn workers_that_cannot_run_fail_their_job_in_the_end() {
    let mut world = World::new(Policy::Slaq);
    world.submit("a");
    let mut failed = 0;
    for _ in 0..40 {
        world.pass(Duration::from_secs(11));
        world.offer(1);
        for task in world.look().0 {
            world.update(&task.task_id.value, TaskState::TaskFailed);
            failed += 1;
        }
        let progress = Progress { job: "a".into(), ..Progress::default() };
        if let Answer::Directive(Directive { give_up: Some(why), .. }) =
            world.ask(Question::Progress(Box::new(progress)))
        {
            assert!(why.contains("TASK_FAILED") && failed == 8, "{failed}: {why}");
            return;
        }
    }
    panic!("it is tried for ever: {failed} failures");
}

#[test]
fn workers_that_are_lost_at_once_count_as_one() {
    let mut world = World::new(Policy::Slaq);
    world.submit("a");
    let mut failed = 0;
    for _ in 0..4 {
        world.pass(Duration::from_secs(11));
        world.offer(6);
        let launched = world.look().0;
        launched.iter().for_each(|task| world.update(&task.task_id.value, TaskState::TaskRunning));
        world.pass(Duration::from_secs(1));
        launched.iter().for_each(|task| world.update(&task.task_id.value, TaskState::TaskKilled));
        failed += launched.len();
    }
    let progress = Question::Progress(Box::new(Progress { job: "a".into(), ..Progress::default() }));
    let Answer::Directive(directive) = world.ask(progress) else { panic!("no directive") };
    assert!(failed > 16 && directive.give_up.is_none(), "{failed}: {directive:?}");
}

#[test]
fn an_ended_job_lets_its_workers_go_and_can_be_forgotten() {
    let mut world = World::new(Policy::Slaq);
    world.submit("a");
    world.offer(2);
    let (launched, _) = world.look();
    assert_eq!(world.end("a", &[]), Directive::default());
    world.pass(Duration::from_secs(1));
    // These workers do not even run, so nothing is lost by killing them.
    assert_eq!(world.look().1.len(), launched.len());
    assert!(matches!(world.ask(Question::Forget("a".into())), Answer::Submitted(Err(_))));
    for task in &launched {
        world.update(&task.task_id.value, TaskState::TaskKilled);
    }
    assert!(matches!(world.ask(Question::Forget("a".into())), Answer::Submitted(Ok(()))));
    assert!(world.status().jobs.is_empty());
    world.submit("b");
    // Either all jobs are accepted or none.
    assert_eq!(world.take(parse("j", JOBS).unwrap()), Err("there is a job 'b' already".to_owned()));
    assert_eq!(world.status().jobs.len(), 1);
    let twice = parse("j", JOBS).unwrap().remove(0);
    assert_eq!(world.take(vec![twice.clone(), twice]), Err("there is a job 'a' already".to_owned()));
    assert_eq!(world.status().jobs.len(), 1);
}

#[test]
fn a_job_with_a_time_to_come_begins_then_also_after_a_restart() {
    let mut world = World::new(Policy::Slaq);
    let mut jobs = parse("j", JOBS).unwrap();
    jobs[0].after = 30.0;
    world.take(jobs).unwrap();
    assert_eq!(world.launch_workers(10).len(), 3, "only the other job's");
    let mut world = world.restarted();
    let Answer::Restored { jobs, lost } = world.ask(Question::Restored) else { panic!("jobs") };
    let ages: Vec<f64> = jobs.iter().map(|j| j.age).collect();
    assert!((ages[0] + 27.0).abs() < 1e-6 && (ages[1] - 3.0).abs() < 1e-6 && lost.is_empty(), "{ages:?}");
    assert_eq!(world.job("a").wanted_cores, 0);
    world.pass(Duration::from_secs(26));
    world.offer(10);
    assert_eq!(world.look().0.len(), 0);
    assert!(world.session.next_wake().is_some_and(|at| at <= Time::from_secs(130)));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.launch_workers(10).len(), 3, "six workers at most");
    // The name is in use all the time, and the job can be stopped before it starts.
    assert!(world.job("a").seconds < 1.0);
}

#[test]
fn jobs_and_their_tasks_are_restored_after_a_restart() {
    let mut memory = BTreeMap::new();
    let job = parse("j", JOBS).unwrap().remove(0);
    let kept = serde_json::json!({
        "job": job, "token": "t", "number": 4, "submitted": 99.0, "state": "running", "reason": "",
    });
    memory.insert("job/a".to_owned(), serde_json::to_vec(&kept).unwrap());
    memory.insert("job/broken".to_owned(), b"nonsense".to_vec());
    memory.insert("run".to_owned(), b"6".to_vec());
    let (_, requests) = sdk::requests();
    let mut scheduler = Quality::new(settings_of(), requests);
    let mut calls = sdk::Calls::default();
    sdk::Scheduler::on_event(&mut scheduler, Event::Restored(memory), Time::from_secs(200), &mut calls);
    assert_eq!(scheduler.run, 7);
    assert_eq!(scheduler.active(Time::from_secs(200)), ["a"]);
    assert_eq!(scheduler.lost.len(), 1);
    assert!(scheduler.lost[0].starts_with("'job/broken' cannot be read, the job is forgotten"), "{:?}", scheduler.lost);
    assert_eq!(scheduler.jobs["a"].number, 4);
    assert_eq!(scheduler.jobs["a"].submitted, Time::from_secs(99));
}

#[test]
fn results_of_an_ended_job_are_restored_after_a_restart() {
    let mut world = World::new(Policy::Slaq);
    world.submit("a");
    for number in 0..20_u32 {
        world.iterate("a", u64::from(number), 0.5 + 1.0 / f64::from(number + 1));
        world.pass(Duration::from_millis(400));
    }
    world.end("a", &[]);
    let before = world.job("a");
    assert_eq!((before.iteration, before.accuracy, before.history.len()), (Some(19), Some(0.5), 20));
    assert!(before.normalised_loss.is_some() && before.prediction_error.is_some());
    let after = world.restarted().job("a");
    let shown = |j: &JobStatus| (j.state, j.reason.clone(), j.iteration, j.loss, j.accuracy, j.normalised_loss);
    assert_eq!(shown(&after), shown(&before));
    assert_eq!((&after.history, after.prediction_error), (&before.history, before.prediction_error));
    assert!(
        (after.seconds - before.seconds).abs() < 1e-6,
        "its time has stopped: {} {}",
        after.seconds,
        before.seconds
    );
}

#[test]
fn a_job_that_goes_on_after_a_restart_keeps_what_was_not_lost_and_one_that_begins_anew_does_not() {
    let losses: Vec<f64> = (0..12_u32).map(|k| 0.5 + 1.0 / f64::from(k + 1)).collect();
    for checkpoint in [Some(8), None] {
        let mut world = World::new(Policy::Slaq);
        world.submit("a");
        for (number, loss) in (0..).zip(&losses) {
            world.iterate("a", number, *loss);
            world.pass(Duration::from_millis(400));
        }
        let before = world.job("a");
        let mut world = world.restarted();
        let next = checkpoint.map_or(0, |last| last + 1);
        if let Some(number) = checkpoint {
            let known = &losses[..=number as usize];
            let last = Iteration { number, loss: known[known.len() - 1], accuracy: Some(0.25), ..Iteration::default() };
            let earlier = Some(Earlier { losses: known[4..].to_vec(), last: Some(last) });
            world.progress(Progress { job: "a".into(), earlier, ..Progress::default() });
            let after = world.job("a");
            let shown = (after.state, after.iteration, after.loss, after.accuracy);
            assert_eq!(shown, (State::Running, Some(8), Some(last.loss), Some(0.25)));
            assert_eq!(after.history[..], before.history[..9]);
            // The loss is normalised by the one with which the job began, and not by the oldest that is still known.
            assert!(after.normalised_loss.unwrap() < 0.2, "{after:?}");
        }
        world.iterate("a", next, losses[next as usize]);
        let history = world.job("a").history;
        let numbers: Vec<u64> = history.iter().map(|p| p.iteration).collect();
        assert_eq!(numbers, (0..=next).collect::<Vec<_>>());
        assert!(history.windows(2).all(|w| w[0].seconds < w[1].seconds), "{history:?}");
    }
}

fn settings_of() -> Settings {
    let worker = Worker { command: vec!["x".into()], driver: "x".into(), cores: 1, mem: 1, pace: None };
    Settings { policy: Policy::Slaq, epoch: Duration::from_secs(1), workers_max: 1, worker }
}

#[test]
fn workers_of_a_lost_agent_are_replaced_and_ended_if_they_come_back() {
    let mut world = World::new(Policy::Slaq);
    world.submit("b");
    let tasks = world.launch_workers(1);
    assert_eq!(world.job("b").tasks, tasks);
    world.update(&tasks[0], TaskState::TaskUnreachable);
    assert_eq!((world.status().workers, world.job("b").cores), (0, 0));
    // The master can only say again that the task is unreachable, which is no reason to ask once more.
    world.update(&tasks[0], TaskState::TaskUnreachable);
    assert_eq!(world.look().1, tasks);
    let others = world.launch_workers(2);
    assert_eq!((others.len(), world.job("b").tasks), (2, others.clone()));
    // The process may be alive and connect to the driver, which tells it to end.
    let directive = world.free("b", 0, 1.0, &[tasks.clone(), others.clone()].concat());
    assert_eq!((directive.leave, directive.moves.len()), (tasks.clone(), 0));
    world.update(&tasks[0], TaskState::TaskRunning);
    assert_eq!(world.job("b").tasks, others);
    // Otherwise the last worker of an ended job would keep the framework from ending.
    world.end("b", &[]);
    world.update(&others[0], TaskState::TaskUnknown);
    world.update(&others[1], TaskState::TaskUnreachable);
    assert_eq!(world.status().workers, 0);
    let mut world = world.restarted();
    assert_eq!(world.status().workers, 0);
}

#[test]
fn a_worker_that_was_to_leave_stays_if_its_job_should_have_it_after_all() {
    let mut world = World::new(Policy::Fair);
    world.submit("a");
    let tasks = world.launch_workers(4);
    world.iterate("a", 0, 1.0);
    world.submit("b");
    world.pass(Duration::from_millis(20));
    assert_eq!(world.job("a").wanted_cores, 2);
    // The other job ends before the iteration does.
    world.end("b", &[]);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.job("a").wanted_cores, 4);
    let directive = world.free("a", 1, 0.9, &tasks);
    assert_eq!(directive, Directive::default());
    for _ in 0..10 {
        world.pass(Duration::from_secs(1));
    }
    let (launched, killed) = world.look();
    assert_eq!((launched.len(), killed.len()), (0, 0));
    assert_eq!(world.job("a").tasks, tasks);
    // Two workers are to leave, and one of those that stay dies: one of the two takes its place at once.
    world.submit_as("a", "c");
    world.pass(Duration::from_millis(20));
    assert_eq!(world.job("a").wanted_cores, 2);
    world.update(&tasks[0], TaskState::TaskFinished);
    let c = world.ask(Question::Ended { job: "c".into(), outcome: Outcome::Stopped, free: Vec::new() });
    assert!(matches!(c, Answer::Directive(_)));
    let directive = world.free("a", 2, 0.8, &tasks[1..]);
    assert_eq!(directive, Directive::default());
}

#[test]
fn a_worker_is_not_killed_in_the_middle_of_an_iteration_that_takes_longer_with_fewer() {
    let mut world = World::new(Policy::Fair);
    world.submit("a");
    let tasks = world.launch_workers(6);
    // The iteration has six seconds of work, shared by six workers.
    let iteration = Iteration { loss: 1.0, seconds: 1.0, workers: 6.0, busy: 6.0, ..Iteration::default() };
    world.progress(Progress { job: "a".into(), iteration: Some(iteration), ..Progress::default() });
    for task in &tasks[..5] {
        world.update(task, TaskState::TaskFinished);
    }
    world.end("a", &[]);
    // The one worker that is left takes six seconds for the iteration, and not one.
    for _ in 0..15 {
        world.pass(Duration::from_secs(1));
        assert_eq!(world.look().1, Vec::<String>::new());
    }
    for _ in 0..5 {
        world.pass(Duration::from_secs(1));
    }
    assert_eq!(world.look().1, tasks[5..]);
}

#[test]
fn a_worker_of_a_job_without_iterations_is_given_a_minute() {
    let mut world = World::new(Policy::Fair);
    world.submit("a");
    let tasks = world.launch_workers(1);
    world.end("a", &[]);
    for _ in 0..58 {
        world.pass(Duration::from_secs(1));
        assert_eq!(world.look().1, Vec::<String>::new());
    }
    (0..4).for_each(|_| world.pass(Duration::from_secs(1)));
    assert_eq!(world.look().1, tasks);
}

#[test]
fn a_deadline_that_can_be_kept_gets_its_cores_and_one_that_cannot_does_not() {
    for (deadline, floor) in [(15.0, 2..=4), (0.5, 1..=1), (1e6, 1..=1)] {
        let mut job = parse("j", JOBS).unwrap().remove(0);
        job.target = crate::job::Target { loss: Some(0.6), deadline: Some(deadline), ..Default::default() };
        let mut entry = Entry::new(job, String::new(), 0, Time::from_secs(100));
        for k in 0..10_u32 {
            entry.forecaster.observe(0.5 + 0.9_f64.powi(k as i32));
            entry.forecaster.observe_time(2.0, 1, 2.0);
        }
        // These are 13 iterations of two seconds.
        let bid = entry.bid(Time::from_secs(100), 1);
        assert!(floor.contains(&bid.floor), "{deadline}: {}", bid.floor);
    }
}

#[test]
fn the_length_of_a_job_that_follows_no_curve_is_that_of_its_iterations() {
    let job = parse("j", JOBS).unwrap().remove(0);
    let mut entry = Entry::new(job, String::new(), 0, Time::from_secs(100));
    assert_eq!(entry.bid(Time::from_secs(100), 1).remaining, None);
    for k in 0..20_u32 {
        entry.forecaster.observe(1.0 + f64::from(k * 7 % 5));
        entry.forecaster.observe_time(2.5, 1, 2.0);
    }
    entry.results.iteration = Some(20);
    assert_eq!(entry.bid(Time::from_secs(100), 1).remaining, Some(180.0 * 2.5));
}

#[test]
fn a_job_waits_until_a_worker_is_there_and_not_until_one_is_promised() {
    let mut world = World::new(Policy::Slaq);
    world.submit("a");
    let tasks = world.launch_workers(1);
    world.submit_as("a", "c");
    let mut epochs = 0;
    while world.job("c").wanted_cores == 0 {
        world.pass(Duration::from_secs(1));
        epochs += 1;
    }
    assert!(epochs >= crate::allocate::MAX_EPOCHS_WAITING, "{epochs}");
    // The job is to have the worker, which arrives only at the end of an iteration, however many epochs that takes.
    for _ in 0..9 {
        world.pass(Duration::from_secs(1));
        assert_eq!((world.job("c").wanted_cores, world.job("a").wanted_cores), (1, 0));
    }
    assert_eq!(moved(&world.free("a", 0, 1.0, &tasks)), [(tasks[0].as_str(), "c")]);
    // Then the job keeps it for its turn: until it has done an iteration.
    for _ in 0..9 {
        world.pass(Duration::from_secs(1));
        assert_eq!(world.job("c").wanted_cores, 1);
    }
}

#[test]
fn rows_are_skipped_while_cores_are_short_and_predictions_count_shorter_iterations() {
    let mut world = World::new(Policy::Slaq);
    // The job could use 24 workers, and there are 6; the other job could use 3.
    for (name, most) in [("a", 24), ("b", 3)] {
        let mut job = parse("j", JOBS).unwrap().into_iter().find(|job| job.name == name).unwrap();
        job.critical_rows = Some(crate::learn::CriticalRows { accuracy_loss: 0.01, least: 0.05 });
        job.max_cores = Some(most);
        assert_eq!(world.take(vec![job]), Ok(()));
    }
    world.launch_workers(6);
    let done = |number, rows: Option<crate::learn::RowShares>| {
        let busy = 4.0 * rows.map_or(1.0, |rows| rows.now);
        Iteration {
            number,
            loss: 1.0 / (number + 1) as f64,
            seconds: busy + 0.1,
            workers: 1.0,
            busy,
            rows,
            ..Iteration::default()
        }
    };
    let mut least = None;
    for number in 0..6 {
        let rows = (number > 0).then_some(crate::learn::RowShares { now: 0.25, mean: 0.25 });
        let (job, iteration) = ("a".to_owned(), Some(done(number, rows)));
        least = world.progress(Progress { job, iteration, ..Progress::default() }).least_rows;
    }
    assert!(least.is_some_and(|least| least < 250), "{least:?}");
    let job = world.job("a");
    assert!(job.rows == Some(0.25) && (job.iteration_seconds[0] - 4.0).abs() < 1e-9, "{job:?}");
    // Alone the job has all workers that it can use.
    let outcome = Outcome::Finished("done".into());
    world.ask(Question::Ended { job: "a".into(), outcome, free: Vec::new() });
    world.launch_workers(6);
    world.pass(Duration::from_millis(1001));
    let iteration = Some(done(0, None));
    let least = world.progress(Progress { job: "b".into(), iteration, ..Progress::default() }).least_rows;
    assert_eq!((world.job("b").wanted_cores, least), (3, Some(1000)));
}
