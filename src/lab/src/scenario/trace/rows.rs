//! Reads the job of a line of a trace.

use std::time::Duration;

use super::cells::Cells;
use super::shape::Shape;
use super::{Row, TraceSettings, Wrong};

/// Values of the open-ended buckets of CPUs and gigabytes, as Azure's notebooks read them.
const BUCKETS: [(&str, f64); 2] = [(">24", 30.0), (">64", 70.0)];

/// The most tasks, GPUs and CPUs of a line.
const MOST: f64 = 1e6;

/// Reads the job of a line; returns `None` if the line has nothing that can be run.
pub(super) fn row(shape: Shape, cells: &Cells<'_>, settings: &TraceSettings<'_>) -> Result<Option<Row>, Wrong> {
    Ok(Some(match shape {
        Shape::Own => Row {
            tasks: cells.number("tasks", 1.0, MOST)? as u32,
            cpus: cells.number("cpus", 0.0, MOST)?,
            mem_mb: cells.number("mem_mb", 0.0, 1e9)?,
            duration: Some(cells.seconds("duration_s")?),
            ..Row::at(cells.seconds("submit_s")?)
        },
        Shape::Pods => pod(cells)?,
        Shape::Gpus => gpu_job(cells, "num_gpu", cells.seconds("submit_time")?)?,
        Shape::Blox => gpu_job(cells, "num_gpus", cells.seconds("submit_time")?)?,
        Shape::Philly => gpu_job(cells, "num_gpus", cells.moment("timestamp")?)?,
        Shape::Mix => gang(cells, "num_replicas", cells.seconds("time")?)?,
        Shape::Gavel => gang(cells, "scale_factor", cells.seconds("arrival_time")?)?,
        Shape::Helios => return helios(cells),
        Shape::Batch => return batch(cells, settings),
        Shape::Batch2017 => return batch_2017(cells, settings),
        Shape::Pai => return pai(cells),
        Shape::Services => service(cells)?,
        Shape::Machines => machine(cells)?,
        Shape::Requests => Row::at(cells.moment("TIMESTAMP")?),
        Shape::Images => return image(cells),
        // The lines of these traces are events.
        Shape::Google | Shape::Google2019 => return Ok(None),
    }))
}

/// Reads a job of one task that needs GPUs.
fn gpu_job(cells: &Cells<'_>, gpus: &str, submit: Duration) -> Result<Row, Wrong> {
    let gpus = cells.number(gpus, 0.0, MOST)?;
    Ok(Row { gpus, duration: Some(cells.seconds("duration")?), ..Row::at(submit) })
}

/// Reads a gang of tasks that need a GPU each; the trace has no durations.
fn gang(cells: &Cells<'_>, size: &str, submit: Duration) -> Result<Row, Wrong> {
    Ok(Row { tasks: cells.number(size, 1.0, MOST)? as u32, gpus: 1.0, gang: true, ..Row::at(submit) })
}

/// Reads a pod of Alibaba's trace of 2023.
fn pod(cells: &Cells<'_>) -> Result<Row, Wrong> {
    let submit = cells.seconds("creation_time")?;
    // A pod that was never placed has no time of placement: its duration counts from its creation.
    let unplaced = cells.is_empty("scheduled_time");
    let began = if unplaced { submit } else { cells.seconds("scheduled_time")? };
    let whole = cells.is_empty("gpu_milli");
    let part = if whole { 1000.0 } else { cells.number("gpu_milli", 0.0, 1000.0)? };
    Ok(Row {
        cpus: cells.number("cpu_milli", 0.0, 1e9)? / 1000.0,
        mem_mb: cells.number("memory_mib", 0.0, 1e9)?,
        gpus: cells.number("num_gpu", 0.0, MOST)? * part / 1000.0,
        duration: Some(cells.seconds("deletion_time")?.saturating_sub(began)),
        ..Row::at(submit)
    })
}

/// Reads an instance of a service of Alibaba's trace of 2025. An instance that existed before the trace has no
/// creation, one that outlives it no deletion.
fn service(cells: &Cells<'_>) -> Result<Row, Wrong> {
    let known = |name: &str| if cells.is_empty(name) { Ok(None) } else { cells.seconds(name).map(Some) };
    let submit = known("creation_time")?.unwrap_or_default();
    let began = known("scheduled_time")?.unwrap_or(submit);
    Ok(Row {
        cpus: cells.number("cpu_request", 0.0, MOST)?,
        mem_mb: cells.number("memory_request", 0.0, MOST)? * 1024.0,
        gpus: cells.number("gpu_request", 0.0, MOST)?,
        duration: known("deletion_time")?.map(|deleted| deleted.saturating_sub(began)),
        ..Row::at(submit)
    })
}

/// Reads a job of Helios: its GPUs and CPUs are spread over its nodes, and all tasks start together.
fn helios(cells: &Cells<'_>) -> Result<Option<Row>, Wrong> {
    let nodes = cells.number("node_num", 0.0, MOST)?;
    if nodes < 1.0 {
        return Ok(None);
    }
    Ok(Some(Row {
        tasks: nodes as u32,
        cpus: cells.number("cpu_num", 0.0, MOST)? / nodes,
        gpus: cells.number("gpu_num", 0.0, MOST)? / nodes,
        duration: Some(cells.seconds("duration")?),
        gang: nodes > 1.0,
        ..Row::at(cells.moment("submit_time")?)
    }))
}

/// Reads a task of Alibaba's trace of 2018. Times of 0 are outside of the trace; memory of -1 or 101 is unknown.
fn batch(cells: &Cells<'_>, settings: &TraceSettings<'_>) -> Result<Option<Row>, Wrong> {
    let tasks = cells.number_or_zero("instance_num", -1.0, MOST)?;
    let cpus = cells.number_or_zero("plan_cpu", -1.0, MOST)?.max(0.0) / 100.0;
    let mem = Some(cells.number_or_zero("plan_mem", -1.0, 101.0)?).filter(|mem| (0.0..=100.0).contains(mem));
    let mem_mb = mem.unwrap_or_default() / 100.0 * settings.machine().1;
    instances(cells, ["start_time", "end_time"], tasks, Row { cpus, mem_mb, ..Row::default() })
}

/// Reads a task of Alibaba's trace of 2017. It arrives when it was created, and runs until its state last changed.
fn batch_2017(cells: &Cells<'_>, settings: &TraceSettings<'_>) -> Result<Option<Row>, Wrong> {
    let tasks = cells.number_or_zero("instance_num", 0.0, MOST)?;
    let cpus = cells.number_or_zero("plan_cpu", 0.0, MOST)?;
    let mem_mb = cells.number_or_zero("plan_mem", 0.0, 1.0)? * settings.machine().1;
    if cells.text("status") != "Terminated" {
        return Ok(None);
    }
    instances(cells, ["create_timestamp", "modify_timestamp"], tasks, Row { cpus, mem_mb, ..Row::default() })
}

/// Reads a task of Alibaba's GPU trace of 2020: CPUs and GPUs in hundredths, memory in gigabytes.
fn pai(cells: &Cells<'_>) -> Result<Option<Row>, Wrong> {
    let tasks = cells.number_or_zero("inst_num", 0.0, MOST)?;
    let amounts = Row {
        cpus: cells.number_or_zero("plan_cpu", 0.0, 1e8)? / 100.0,
        mem_mb: cells.number_or_zero("plan_mem", 0.0, MOST)? * 1024.0,
        gpus: cells.number_or_zero("plan_gpu", 0.0, 1e8)? / 100.0,
        ..Row::default()
    };
    if cells.is_empty("start_time") || cells.is_empty("end_time") {
        return Ok(None);
    }
    instances(cells, ["start_time", "end_time"], tasks, amounts)
}

/// Returns a job of this many tasks with these amounts, between the times of two columns; `None` if it did not begin or
/// end within the trace.
fn instances(cells: &Cells<'_>, [begin, end]: [&str; 2], tasks: f64, amounts: Row) -> Result<Option<Row>, Wrong> {
    let (begin, end) = (cells.seconds(begin)?, cells.seconds(end)?);
    if begin.is_zero() || end < begin || tasks < 1.0 {
        return Ok(None);
    }
    Ok(Some(Row { submit: begin, tasks: tasks as u32, duration: Some(end - begin), ..amounts }))
}

/// Reads a virtual machine of Azure's traces.
fn machine(cells: &Cells<'_>) -> Result<Row, Wrong> {
    let (created, deleted) = (cells.seconds("vmcreated")?, cells.seconds("vmdeleted")?);
    Ok(Row {
        cpus: bucket(cells, "vmcorecountbucket")?,
        mem_mb: bucket(cells, "vmmemorybucket")? * 1024.0,
        duration: Some(deleted.saturating_sub(created)),
        ..Row::at(created)
    })
}

fn bucket(cells: &Cells<'_>, name: &str) -> Result<f64, Wrong> {
    match BUCKETS.iter().find(|(text, _)| *text == cells.text(name)) {
        Some((_, amount)) => Ok(*amount),
        None => cells.number(name, 0.0, MOST),
    }
}

/// Reads a request for images; returns `None` if it has not ended, because it has no duration then.
fn image(cells: &Cells<'_>) -> Result<Option<Row>, Wrong> {
    let submit = cells.moment("gmt_create")?;
    if cells.is_empty("exec_time_seconds") {
        return Ok(None);
    }
    Ok(Some(Row { duration: Some(cells.seconds("exec_time_seconds")?), ..Row::at(submit) }))
}
