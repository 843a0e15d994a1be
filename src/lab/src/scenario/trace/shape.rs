//! The shapes of traces: their columns, how a file's shape is told, and what job a line is.

use super::cells::Cells;
use super::{Row, Told, Wrong};

/// What the columns of a trace are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Our own, in the order of time.
    Own,
    /// Pods of Alibaba's GPU trace of 2023.
    Pods,
    /// GPU jobs as in Tiresias.
    Gpus,
    /// Philly's GPU jobs as in Pollux.
    Philly,
    /// Pollux's mixes of training jobs: arrivals and sizes.
    Mix,
    /// `batch_task.csv` of Alibaba's trace of 2018. A line is a task of so many instances; what depends on what is in when they
    /// began, which is when they arrive here.
    Batch,
    /// `vmtable.csv` of Azure's traces of 2017 and 2019.
    Machines,
    /// Azure's requests to language models: arrivals only.
    Requests,
    /// `task_events` of Google's trace of 2011; see `events.rs`.
    Google,
}

const SHAPES: [Shape; 9] = [
    Shape::Own,
    Shape::Pods,
    Shape::Gpus,
    Shape::Philly,
    Shape::Mix,
    Shape::Batch,
    Shape::Machines,
    Shape::Requests,
    Shape::Google,
];

/// The names of the shapes whose files have no header.
pub(crate) const NAMES: [&str; 3] = ["alibaba-2018", "azure-vm", "google-2011"];

/// Azure's notebooks read the open ends of the buckets of CPUs and gigabytes so.
const BUCKETS: [(&str, f64); 2] = [(">24", 30.0), (">64", 70.0)];

/// The shape that a first line tells, and where its columns are, if that is a header; else the one that is named.
pub(super) fn find(first: &[&str], named: Option<&str>) -> Result<(Shape, Option<Vec<usize>>), String> {
    let place = |name: &&str| first.iter().position(|column| column == name);
    let places = |shape: &Shape| shape.columns().iter().map(place).collect::<Option<Vec<usize>>>();
    let of_name = SHAPES.into_iter().find(|shape| named.is_some() && shape.name() == named);
    if let Some(shape) = of_name {
        return Ok((shape, places(&shape)));
    }
    let known = SHAPES.iter().find_map(|shape| Some((*shape, Some(places(shape)?))));
    known.ok_or_else(|| {
        let headed = SHAPES.iter().filter(|shape| shape.name().is_none());
        let all: Vec<String> = headed.map(|shape| shape.columns().join(",")).collect();
        let (all, names) = (all.join(", or "), NAMES.join(", "));
        format!("the header is of no known shape; it wants {all}; of a file without a header `shape` tells it: {names}")
    })
}

impl Shape {
    /// Its name, if its files have no header.
    fn name(self) -> Option<&'static str> {
        match self {
            Shape::Batch => Some(NAMES[0]),
            Shape::Machines => Some(NAMES[1]),
            Shape::Google => Some(NAMES[2]),
            _ => None,
        }
    }

    /// The columns that it needs; all of them, in their order, if its files have no header.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Shape::Own => &["submit_s", "tasks", "cpus", "mem_mb", "duration_s"],
            Shape::Pods => {
                &["creation_time", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "deletion_time", "scheduled_time"]
            }
            Shape::Gpus => &["submit_time", "num_gpu", "duration"],
            Shape::Philly => &["timestamp", "num_gpus", "duration"],
            Shape::Mix => &["time", "application", "num_replicas"],
            Shape::Batch => &[
                "task_name",
                "instance_num",
                "job_name",
                "task_type",
                "status",
                "start_time",
                "end_time",
                "plan_cpu",
                "plan_mem",
            ],
            Shape::Machines => &[
                "vmid",
                "subscriptionid",
                "deploymentid",
                "vmcreated",
                "vmdeleted",
                "maxcpu",
                "avgcpu",
                "p95maxcpu",
                "vmcategory",
                "vmcorecountbucket",
                "vmmemorybucket",
            ],
            Shape::Requests => &["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
            Shape::Google => &[
                "timestamp",
                "missing_info",
                "job_id",
                "task_index",
                "machine_id",
                "event_type",
                "user",
                "scheduling_class",
                "priority",
                "cpu_request",
                "memory_request",
                "disk_space_request",
                "different_machines",
            ],
        }
    }

    /// Whether the scenario says what the trace does not.
    pub fn accepts(self, told: &Told<'_>) -> Result<(), String> {
        let (cpus, mem) = told.machine();
        match self {
            Shape::Batch if mem <= 0.0 && !told.needs => {
                Err("plan_mem is in hundredths of the largest machine's memory: \
                                                              `machine` must say what that has, as in \
                                                              `machine = \"mem:393216\"`"
                    .to_owned())
            }
            Shape::Google if (cpus <= 0.0 || mem <= 0.0) && !told.needs => {
                Err("requests are shares of the largest machine: `machine` must say what that has, as in \
                     `machine = \"cpus:32;mem:131072\"`"
                    .to_owned())
            }
            Shape::Requests if !(told.needs && told.time) => Err(
                "this trace has arrivals only: `needs` and `time` must say what each task needs and how long it works"
                    .to_owned(),
            ),
            Shape::Mix if !told.time => {
                Err("this trace has no durations: `time` must say how long each task works".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The job of a line; none if there is nothing in it that could be run.
    pub fn row(self, cells: &Cells<'_>, told: &Told<'_>) -> Result<Option<Row>, Wrong> {
        Ok(Some(match self {
            Shape::Own => Row {
                tasks: cells.number("tasks", 1.0, 1e6)? as u32,
                cpus: cells.number("cpus", 0.0, 1e6)?,
                mem_mb: cells.number("mem_mb", 0.0, 1e9)?,
                duration: Some(cells.seconds("duration_s")?),
                ..Row::at(cells.seconds("submit_s")?)
            },
            Shape::Pods => {
                let submit = cells.seconds("creation_time")?;
                // A pod that was never placed has no time for it: then it works from its creation on.
                let unplaced = cells.is_empty("scheduled_time");
                let began = if unplaced { submit } else { cells.seconds("scheduled_time")? };
                let whole = cells.is_empty("gpu_milli");
                let part = if whole { 1000.0 } else { cells.number("gpu_milli", 0.0, 1000.0)? };
                Row {
                    cpus: cells.number("cpu_milli", 0.0, 1e9)? / 1000.0,
                    mem_mb: cells.number("memory_mib", 0.0, 1e9)?,
                    gpus: cells.number("num_gpu", 0.0, 1e6)? * part / 1000.0,
                    duration: Some(cells.seconds("deletion_time")?.saturating_sub(began)),
                    ..Row::at(submit)
                }
            }
            Shape::Gpus => Row {
                gpus: cells.number("num_gpu", 0.0, 1e6)?,
                duration: Some(cells.seconds("duration")?),
                ..Row::at(cells.seconds("submit_time")?)
            },
            Shape::Philly => Row {
                gpus: cells.number("num_gpus", 0.0, 1e6)?,
                duration: Some(cells.seconds("duration")?),
                ..Row::at(cells.moment("timestamp")?)
            },
            Shape::Mix => Row {
                tasks: cells.number("num_replicas", 1.0, 1e6)? as u32,
                gpus: 1.0,
                gang: true,
                ..Row::at(cells.seconds("time")?)
            },
            Shape::Batch => return batch(cells, told),
            Shape::Machines => {
                let (created, deleted) = (cells.seconds("vmcreated")?, cells.seconds("vmdeleted")?);
                Row {
                    cpus: bucket(cells, "vmcorecountbucket")?,
                    mem_mb: bucket(cells, "vmmemorybucket")? * 1024.0,
                    duration: Some(deleted.saturating_sub(created)),
                    ..Row::at(created)
                }
            }
            Shape::Requests => Row::at(cells.moment("TIMESTAMP")?),
            // Its lines are events.
            Shape::Google => return Ok(None),
        }))
    }
}

/// A task of Alibaba's trace of 2018. Times of 0 are outside of the trace; memory of -1 or 101 is not known.
fn batch(cells: &Cells<'_>, told: &Told<'_>) -> Result<Option<Row>, Wrong> {
    let zero_if_empty = |name: &str, most: f64| match cells.is_empty(name) {
        true => Ok(0.0),
        false => cells.number(name, -1.0, most),
    };
    let (begin, end) = (cells.seconds("start_time")?, cells.seconds("end_time")?);
    let tasks = zero_if_empty("instance_num", 1e6)?;
    let cpus = zero_if_empty("plan_cpu", 1e6)?.max(0.0) / 100.0;
    let mem = Some(zero_if_empty("plan_mem", 101.0)?).filter(|mem| (0.0..=100.0).contains(mem));
    if begin.is_zero() || end < begin || tasks < 1.0 {
        return Ok(None);
    }
    let mem_mb = mem.unwrap_or_default() / 100.0 * told.machine().1;
    Ok(Some(Row { tasks: tasks as u32, cpus, mem_mb, duration: Some(end - begin), ..Row::at(begin) }))
}

fn bucket(cells: &Cells<'_>, name: &str) -> Result<f64, Wrong> {
    match BUCKETS.iter().find(|(text, _)| *text == cells.text(name)) {
        Some((_, amount)) => Ok(*amount),
        None => cells.number(name, 0.0, 1e6),
    }
}
