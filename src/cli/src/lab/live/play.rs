//! One run on a cluster that is ready: connects the frameworks, submits jobs at their time, and removes everything at
//! the end.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::lab::live::{Control, LiveFramework, Pace, Session, SessionOptions};
use ::lab::measure::{Live, Outcome, Recorder};
use ::lab::scenario::Scenario;
use anyhow::{Result, bail};
use sdk::driver::{Finished, Options, run};
use sdk::{Ending, Scheduler};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::cluster::LiveCluster;
use crate::execute::user;

/// Interval between calls of `look`.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for the first subscription.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for the frameworks to leave the master.
const END_LIMIT: Duration = Duration::from_secs(10);

/// The state of a run.
pub struct RunState<'a> {
    /// Time of the scenario that has passed.
    pub now: Duration,
    /// Records of the run so far.
    pub recorder: &'a Recorder,
}

/// The results of a run.
pub struct Played {
    /// Outcome in the form of a run under virtual time.
    pub outcome: Outcome,
    /// Times of all tasks.
    pub task_times: TaskTimes,
    /// Names of frameworks whose schedulers did not handle the request to disconnect.
    pub left: Vec<String>,
}

/// The times of tasks of all frameworks, in seconds of the scenario.
#[derive(Debug, Default)]
pub struct TaskTimes {
    /// Times from submission to the report that the task runs.
    pub wait: Vec<f64>,
    /// Times from launch to the report that the task runs.
    pub start: Vec<f64>,
    /// Times from submission to the update that the task has finished.
    pub whole: Vec<f64>,
    /// Times from the beginning to the report that the task runs.
    pub ran: Vec<f64>,
}

impl TaskTimes {
    /// Returns the number of tasks that had started to run by then.
    pub fn started_by(&self, seconds: f64) -> usize {
        self.ran.iter().filter(|at| **at <= seconds).count()
    }

    fn of(recorder: &Recorder) -> TaskTimes {
        let mut task_times = TaskTimes::default();
        for task in (0..recorder.frameworks()).flat_map(|framework| recorder.tasks(framework)) {
            if task.running.is_finite() {
                task_times.wait.push(task.running - task.submitted);
                task_times.ran.push(task.running);
                task_times.start.extend(Some(task.running - task.launched).filter(|time| time.is_finite()));
            }
            if task.finished {
                task_times.whole.push(task.ended - task.submitted);
            }
        }
        task_times
    }
}

impl Played {
    /// Prints warnings about calls that were refused and frameworks that did not leave.
    pub fn warn(&self) {
        if !self.left.is_empty() {
            let names = self.left.join(", ");
            stdio::err!(
                "tepui: no teardown of these frameworks reached the master, which removes them after their failover timeout: {names}"
            );
        }
        let refused = self.outcome.live.as_ref().map(|live| &live.refused);
        if let Some((number, why)) = refused.filter(|(number, _)| *number > 0) {
            stdio::err!("tepui: {number} calls were refused, the last one because: {why}");
        }
    }
}

/// A framework whose driver runs.
struct Member {
    name: String,
    control: Rc<Control>,
    wake_signal: Arc<Notify>,
    driver: JoinHandle<()>,
    driver_state: Rc<RefCell<DriverState>>,
}

/// State of a framework's driver.
#[derive(Debug)]
enum DriverState {
    /// The framework's start time has not come.
    Waits,
    Runs,
    Ended(Ending),
}

impl Member {
    fn runs(&self) -> bool {
        matches!(*self.driver_state.borrow(), DriverState::Runs)
    }

    /// Returns why the framework has ended, in words; `None` if it has not.
    fn ended(&self) -> Option<String> {
        let DriverState::Ended(ending) = &*self.driver_state.borrow() else { return None };
        Some(match ending {
            Ending::Stopped => "its driver has stopped".to_owned(),
            Ending::Error(why) => format!("the master refused it: {why}"),
            Ending::Unreachable(why) => format!("no master could be reached: {why}"),
            Ending::State(why) => why.clone(),
        })
    }
}

/// Runs a scenario until its end, or until `look` returns `false`.
pub(super) async fn play(
    scenario: &Scenario,
    seed: u64,
    directory: &Path,
    cluster: &LiveCluster,
    pace: Pace,
    look: &mut dyn FnMut(&RunState<'_>) -> bool,
) -> Result<Played> {
    LocalSet::new().run_until(play_locally(scenario, seed, directory, cluster, pace, look)).await
}

async fn play_locally(
    scenario: &Scenario,
    seed: u64,
    directory: &Path,
    cluster: &LiveCluster,
    pace: Pace,
    look: &mut dyn FnMut(&RunState<'_>) -> bool,
) -> Result<Played> {
    let began = now();
    let clock = move || pace.simulated(began.elapsed());
    let setting = SessionOptions {
        scenario,
        seed,
        directory,
        total: cluster.total.clone(),
        pace,
        user: user(),
        clock: Rc::new(clock),
    };
    let (mut session, live_frameworks) = Session::new(setting)?;
    // Jobs that arrive at time zero are present when the frameworks subscribe, as under virtual time.
    session.step(Duration::ZERO);
    let members: Vec<Member> = live_frameworks
        .into_iter()
        .map(|live_framework| member(live_framework, cluster, pace))
        .collect::<Result<_>>()?;
    let result = perform(&mut session, &members, pace, &clock, look).await;
    let end = clock().min(scenario.duration.0);
    let task_times = TaskTimes::of(&session.recorder());
    let left = leave(&members).await;
    result?;
    let refused = members.iter().map(|member| member.control.refused());
    let refused = refused.reduce(|a, b| (a.0 + b.0, if b.0 > 0 { b.1 } else { a.1 })).unwrap_or_default();
    let live = Live {
        speed: pace.speed,
        burn: pace.burn,
        agents: cluster.agents,
        master: cluster.foreign.then(|| cluster.reader.master.clone()),
        refused,
    };
    Ok(Played { outcome: session.outcome(end, live), task_times, left })
}

#[expect(clippy::disallowed_methods, reason = "a live run takes real time")]
fn now() -> Instant {
    Instant::now()
}

/// Starts a task that runs the driver of a framework at the framework's start time.
fn member(live_framework: LiveFramework, cluster: &LiveCluster, pace: Pace) -> Result<Member> {
    let LiveFramework { start, info, scheduler, control } = live_framework;
    let (name, wake_signal) = (info.name.clone(), Arc::new(Notify::new()));
    let info = sdk::v1::FrameworkInfo { principal: cluster.reader.principal.clone(), ..info };
    let mut options = Options::new(&cluster.reader.master, info)?;
    options.credential = cluster.reader.credential();
    options.give_up_after = Some(SUBSCRIBE_TIMEOUT);
    options.wake_signal = Some(Arc::clone(&wake_signal));
    let driver_state = Rc::new(RefCell::new(DriverState::Waits));
    let driver = spawn_local(drive(scheduler, options, pace.real(start), Rc::clone(&driver_state)));
    Ok(Member { name, control, wake_signal, driver, driver_state })
}

async fn drive(scheduler: impl Scheduler, options: Options, start: Duration, driver_state: Rc<RefCell<DriverState>>) {
    tokio::time::sleep(start).await;
    driver_state.replace(DriverState::Runs);
    let Finished { ending, .. } = run(scheduler, options).await;
    driver_state.replace(DriverState::Ended(ending));
}

/// Runs the events of the session at their time, until the run ends.
async fn perform(
    session: &mut Session,
    members: &[Member],
    pace: Pace,
    clock: &dyn Fn() -> Duration,
    look: &mut dyn FnMut(&RunState<'_>) -> bool,
) -> Result<()> {
    while let Some(next) = session.next_at() {
        let passed = clock();
        if next <= passed {
            session.step(passed).into_iter().for_each(|framework| members[framework].wake_signal.notify_one());
        }
        if let Some((name, why)) = members.iter().find_map(|member| Some((&member.name, member.ended()?))) {
            bail!("the framework {name} has ended: {why}");
        }
        if session.is_over() || !look(&RunState { now: passed, recorder: &session.recorder() }) {
            break;
        }
        let next = session.next_at().map_or(Duration::ZERO, |next| pace.real(next.saturating_sub(clock())));
        tokio::time::sleep(next.min(CHECK_INTERVAL)).await;
    }
    Ok(())
}

/// Makes all frameworks end their tasks and leave the master. Returns the names of those that could not.
async fn leave(members: &[Member]) -> Vec<String> {
    for member in members {
        member.control.leave();
        member.wake_signal.notify_one();
    }
    let all_left = async {
        while members.iter().any(Member::runs) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // Frameworks that have not left by then are named in the result.
    let _ = tokio::time::timeout(END_LIMIT, all_left).await;
    members.iter().for_each(|member| member.driver.abort());
    members.iter().filter(|member| member.runs()).map(|member| member.name.clone()).collect()
}
