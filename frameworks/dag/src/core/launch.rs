//! Launches tasks: their environment, their arguments, and their `TaskInfo`.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Time;
use jobs::launch::{command, duration, launch};
use sdk::v1::{AgentId, Environment, TaskId, TaskInfo};
use sdk::{Calls, task};

use super::Core;
use super::container::container;
use super::lineage::tasks_read;
use super::record::{LiveState, Machine, Phase, Record, Task};
use super::round::{Placed, Plan};
use crate::job::template::Values;
use crate::job::{Grouping, Input, SplitUnit, Stage, volumes};
use crate::split::{Extent, Part};
use crate::task::{INPUT, OUTPUT, SharedSource, Sources, Spec, VARIABLE, attempt_directory, stage_directory};

/// Information about a task that is being launched.
struct Launch<'a> {
    record: &'a Record,
    stage: usize,
    index: u32,
    attempt: u32,
    part: Part,
    id: String,
    machine: &'a Machine,
}

impl Core {
    /// Launches the placed tasks. Resources without a task stay among the held offers.
    pub(super) fn launch(&mut self, mut plan: Plan, now: Time, calls: &mut Calls) {
        let mut tasks: BTreeMap<usize, Vec<TaskInfo>> = BTreeMap::new();
        for one in std::mem::take(&mut plan.placed) {
            let room = one.room;
            if let Some(task) = self.launch_one(&plan, one, now) {
                tasks.entry(room).or_default().push(task);
            }
        }
        for (room, tasks) in tasks {
            let refuse = self.settings.refuse;
            let room = &mut plan.rooms[room];
            self.known_agents.left(&room.identity.agent_id, room.free());
            self.offer_state.refused |= !refuse.is_zero();
            self.totals.launched += tasks.len() as u64;
            calls.accept(std::mem::take(&mut room.offers), vec![launch(tasks)], refuse);
        }
        self.offers.set(plan.rooms);
    }

    fn launch_one(&mut self, plan: &Plan, placed: Placed, now: Time) -> Option<TaskInfo> {
        let Placed { serial, stage, index, part, room, taken } = placed;
        let room = &plan.rooms[room];
        let machine = self.machine(&room.identity.agent_id, &room.identity.host, &room.identity.address);
        // An agent that cannot apply limits drops a task that has one, so the task runs there without.
        let limits = !self.without_limits.contains(&machine.id);
        let extra = if limits { self.sprint((serial, stage, index), now) } else { 0 };
        self.name_directory(serial);
        let record = self.records.get_mut(&serial)?;
        let phase =
            Phase::Live { step: LiveState::Staging, launched: now, running: None, stopping: false, sprint: extra };
        let run = &mut record.stages[stage];
        match part {
            Some(part) => run.insert(index, first_attempt(phase, part, machine.clone())),
            None => {
                run.change(index, |task| {
                    task.attempts += 1;
                    task.machine = machine.clone();
                    task.phase = phase;
                    task.value = None;
                });
            }
        }
        self.changed.tasks.insert((serial, stage, index));
        let record = self.records.get(&serial)?;
        let (attempt, part) = record.stages[stage].tasks().get(&index).map(|task| (task.attempts, task.part))?;
        let id = record.task_id(stage, index, attempt);
        let launch = Launch { record, stage, index, attempt, part, id, machine: &machine };
        let mut info = self.task_info(&launch, extra);
        info.resources = room.messages(&taken);
        Some(info)
    }

    fn task_info(&self, launch: &Launch<'_>, extra: u32) -> TaskInfo {
        let stage = launch.record.stage(launch.stage);
        let run = &launch.record.stages[launch.stage];
        let extents = match &stage.input {
            Input::Files(_) => run.pieces.extents(launch.part),
            _ => Vec::new(),
        };
        let directory = self.directory(launch.record, launch.stage);
        let output = directory.as_ref().map(|directory| attempt_directory(directory, launch.index, launch.attempt));
        let output = output.unwrap_or_else(|| OUTPUT.to_owned());
        let facts = Facts::of(launch, stage, &extents, output);
        let paths: Vec<&str> = extents.iter().map(|extent| extent.path.as_str()).collect();
        let filled = facts.values().run(&stage.run, &paths);
        let mut environment = facts.environment(launch, stage);
        let program = if stage.needs_runner() {
            let spec = Spec {
                id: launch.id.clone(),
                index: launch.index,
                attempt: launch.attempt,
                run: filled,
                sources: self.sources_of(launch, stage),
                extents,
                stdin: stage.stdin,
                lines: matches!(&stage.input, Input::Files(files) if files.by != SplitUnit::Files),
                outputs: stage.outputs.clone(),
                partitions: stage.partitions,
                directory,
                value: stage.approximate.as_ref().and_then(|approximate| approximate.value.clone()),
                api: self.settings.api.clone(),
            };
            let text = serde_json::to_string(&spec).unwrap_or_default();
            environment.push((VARIABLE.to_owned(), text));
            jobs::Run::Program([self.settings.runner.as_str(), "framework", "dag-task"].map(str::to_owned).to_vec())
        } else {
            filled
        };
        let environment: Environment = task::environment(environment.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        let volumes = volumes(stage, &self.settings.runner, self.shared(launch.record).map(String::as_str));
        let command = command(&program, &stage.uris, stage.user.clone(), environment);
        let (command, container) = container(stage, command, volumes);
        TaskInfo {
            name: format!("{}.{}.{}", launch.record.name(), stage.name, launch.index),
            task_id: TaskId { value: launch.id.as_str().into() },
            agent_id: AgentId { value: launch.machine.id.as_str().into() },
            command: Some(command),
            container: container.map(Box::new),
            max_completion_time: stage.time_limit.map(duration),
            limits: super::approximate::limits(stage, extra),
            ..Default::default()
        }
    }

    /// Returns the directory for a stage's outputs, if all agents share one.
    pub(super) fn directory(&self, record: &Record, stage: usize) -> Option<String> {
        let shared = self.shared(record)?;
        Some(stage_directory(shared, record.directory.as_ref()?, &record.stage(stage).name))
    }

    fn sources_of(&self, launch: &Launch<'_>, stage: &Stage) -> Option<Sources> {
        let Input::Stages(input) = &stage.input else { return None };
        let partition = (input.by == Grouping::Partition).then_some(launch.index);
        let shared = |&source: &usize| {
            let run = &launch.record.stages[source];
            let read = tasks_read(input, launch.part);
            let last = read.end.min(run.next);
            let dropped = run.tasks().range(read.start..last.max(read.start));
            let dropped = dropped.filter(|(_, task)| task.phase == Phase::Dropped).map(|(index, _)| *index).collect();
            Some(SharedSource {
                stage: launch.record.stage(source).name.clone(),
                directory: self.directory(launch.record, source)?,
                first: read.start,
                count: last.saturating_sub(read.start),
                dropped,
            })
        };
        Some(Sources { shared: input.stages.iter().filter_map(shared).collect(), partition })
    }
}

fn first_attempt(phase: Phase, part: Part, machine: Arc<Machine>) -> Task {
    Task { phase, attempts: 1, failures: 0, losses: 0, part, machine, value: None, message: None }
}

/// Properties of a task's part for its environment and arguments, as texts.
struct Facts {
    input: Option<String>,
    inputs: Option<String>,
    offset: Option<String>,
    length: Option<String>,
    index: String,
    count: Option<String>,
    partition: Option<String>,
    output: Option<String>,
}

impl Facts {
    fn of(launch: &Launch<'_>, stage: &Stage, extents: &[Extent], output: String) -> Facts {
        let (first, length) = match (&stage.input, extents) {
            (Input::Range(range), _) => (Some(range.from + launch.part.0), Some(launch.part.1)),
            (Input::Files(_), [one]) => (Some(one.offset), Some(one.length)),
            _ => (None, None),
        };
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let input = match &stage.input {
            Input::Files(_) => extents.first().map(|extent| extent.path.clone()),
            Input::Stages(_) => Some(INPUT.to_owned()),
            Input::Tasks(_) | Input::Range(_) => None,
        };
        let several =
            (extents.len() > 1).then(|| extents.iter().map(|e| e.path.as_str()).collect::<Vec<_>>().join("\n"));
        let by_partition = matches!(&stage.input, Input::Stages(input) if input.by == Grouping::Partition);
        Facts {
            inputs: several.or_else(|| input.clone()),
            input,
            offset: text(first),
            length: text(length),
            index: launch.index.to_string(),
            // `None` where sizes are chosen while the stage runs.
            count: launch.record.stages[launch.stage].head.total.map(|total| total.to_string()),
            partition: by_partition.then(|| launch.index.to_string()),
            output: (!stage.outputs.is_empty()).then_some(output),
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let known = [
            ("input", &self.input),
            ("offset", &self.offset),
            ("length", &self.length),
            ("count", &self.count),
            ("partition", &self.partition),
            ("output", &self.output),
        ];
        known
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .chain([("index", self.index.as_str())])
    }

    fn values(&self) -> Values<'_> {
        Values(self.pairs().collect())
    }

    fn environment(&self, launch: &Launch<'_>, stage: &Stage) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = vec![
            ("HOST".into(), launch.machine.host.clone()),
            ("TEPUI_JOB".into(), launch.record.name().to_owned()),
            ("TEPUI_STAGE".into(), stage.name.clone()),
            ("TEPUI_ATTEMPT".into(), launch.attempt.to_string()),
        ];
        all.extend(
            self.pairs().map(|(name, value)| (format!("TEPUI_{}", name.to_ascii_uppercase()), value.to_owned())),
        );
        all.extend(self.inputs.iter().map(|inputs| ("TEPUI_INPUTS".to_owned(), inputs.clone())));
        all.extend(stage.partitions.map(|partitions| ("TEPUI_PARTITIONS".to_owned(), partitions.to_string())));
        // The stage's own variables come last and override the others.
        all.extend(stage.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }
}
