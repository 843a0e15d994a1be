//! The shapes of traces: their columns, the detection of a file's shape, and the settings that the scenario must have.
//! The job of a line is in `rows.rs`.

use super::TraceSettings;

/// The format of a trace: which columns it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Tepui's own format, with rows in the order of time.
    Own,
    /// Pods of Alibaba's GPU trace of 2023.
    Pods,
    /// GPU jobs as in Tiresias.
    Gpus,
    /// Philly's GPU jobs as in Pollux.
    Philly,
    /// Pollux's mixes of training jobs: arrivals and sizes.
    Mix,
    /// `batch_task.csv` of Alibaba's trace of 2018. A line is a task of several instances. Dependencies between tasks
    /// are contained only in the times when they began, which are used as arrivals.
    Batch,
    /// `vmtable.csv` of Azure's traces of 2017 and 2019.
    Machines,
    /// Azure's requests to language models: arrivals only.
    Requests,
    /// Requests for images of Alibaba's trace of 2026, with their durations.
    Images,
    /// Alibaba's services of 2025, on CPU and GPU nodes.
    Services,
    /// `cluster_log.csv` of Helios: jobs on several nodes.
    Helios,
    /// GPU jobs as in Blox.
    Blox,
    /// Gavel's training jobs: arrivals and sizes. The columns are separated by tabs.
    Gavel,
    /// `batch_task.csv` of Alibaba's trace of 2017.
    Batch2017,
    /// `pai_task_table.csv` of Alibaba's GPU trace of 2020. A line is a task of several instances, as in `Batch`.
    Pai,
    /// `task_events` of Google's trace of 2011; see `events.rs`.
    Google,
    /// `instance_events` of Google's trace of 2019, reduced to the needed columns; see `events.rs`.
    Google2019,
}

const SHAPES: [Shape; 17] = [
    Shape::Own,
    Shape::Pods,
    Shape::Gpus,
    Shape::Philly,
    Shape::Mix,
    Shape::Batch,
    Shape::Machines,
    Shape::Requests,
    Shape::Images,
    Shape::Services,
    Shape::Helios,
    Shape::Blox,
    Shape::Gavel,
    Shape::Batch2017,
    Shape::Pai,
    Shape::Google,
    Shape::Google2019,
];

/// Names of the shapes whose files have no header.
pub(crate) const NAMES: [&str; 6] =
    ["alibaba-2017", "alibaba-2018", "alibaba-gpu-2020", "azure-vm", "gavel", "google-2011"];

/// Returns the shape that a header indicates, with the positions of its columns; without a header, the named one.
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
        format!("the header matches no known shape: must be {all}; for a file without a header, set `shape` to {names}")
    })
}

impl Shape {
    /// Returns the name of the shape, if its files have no header.
    fn name(self) -> Option<&'static str> {
        match self {
            Shape::Batch2017 => Some(NAMES[0]),
            Shape::Batch => Some(NAMES[1]),
            Shape::Pai => Some(NAMES[2]),
            Shape::Machines => Some(NAMES[3]),
            Shape::Gavel => Some(NAMES[4]),
            Shape::Google => Some(NAMES[5]),
            _ => None,
        }
    }

    /// Returns the separator of columns.
    pub fn separator(self) -> char {
        if self == Shape::Gavel { '\t' } else { ',' }
    }

    /// Returns the columns that the shape needs; all columns in their order, if its files have no header.
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
            Shape::Images => &["gmt_create", "exec_time_seconds"],
            Shape::Services => {
                &["cpu_request", "gpu_request", "memory_request", "creation_time", "scheduled_time", "deletion_time"]
            }
            Shape::Helios => &["submit_time", "gpu_num", "cpu_num", "node_num", "duration"],
            Shape::Blox => &["submit_time", "num_gpus", "duration"],
            Shape::Gavel => &[
                "job_type",
                "command",
                "steps_argument",
                "needs_data_dir",
                "total_steps",
                "arrival_time",
                "scale_factor",
            ],
            Shape::Batch2017 => &[
                "create_timestamp",
                "modify_timestamp",
                "job_id",
                "task_id",
                "instance_num",
                "status",
                "plan_cpu",
                "plan_mem",
            ],
            Shape::Pai => &[
                "job_name",
                "task_name",
                "inst_num",
                "status",
                "start_time",
                "end_time",
                "plan_cpu",
                "plan_mem",
                "plan_gpu",
                "gpu_type",
            ],
            Shape::Google2019 => &["time", "type", "collection_id", "instance_index", "cpus", "memory"],
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

    /// Checks that the scenario sets what the trace lacks.
    pub fn accepts(self, settings: &TraceSettings<'_>) -> Result<(), String> {
        let (cpus, mem) = settings.machine();
        let rule = match self {
            Shape::Batch if mem <= 0.0 && !settings.needs => {
                "plan_mem is in hundredths of the largest machine's memory: set `machine` to its resources, as in \
                 `machine = \"mem:393216\"`"
            }
            Shape::Batch2017 if mem <= 0.0 && !settings.needs => {
                "plan_mem is a share of the largest machine's memory: set `machine` to its resources, as in \
                 `machine = \"mem:393216\"`"
            }
            Shape::Google | Shape::Google2019 if (cpus <= 0.0 || mem <= 0.0) && !settings.needs => {
                "requests are shares of the largest machine: set `machine` to its resources, as in \
                 `machine = \"cpus:32;mem:131072\"`"
            }
            Shape::Requests if !(settings.needs && settings.time) => {
                "this trace has arrivals only: set `needs` and `time` to the resources and the duration of a task"
            }
            Shape::Images if !settings.needs => "this trace has no amounts: set `needs` to the resources of a task",
            Shape::Mix | Shape::Gavel if !settings.time => {
                "this trace has no durations: set `time` to the duration of a task"
            }
            _ => return Ok(()),
        };
        Err(rule.to_owned())
    }
}
