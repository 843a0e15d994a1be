//! Parses a line of `batch_task.csv`: its nine fields, and the rules that they satisfy.
//!
//! The trace marks unknown values with -1, with 101 for memory, or with an empty field.

use crate::order::Amounts;

/// Names of the columns, in the order of the trace.
pub(super) const COLUMNS: &str =
    "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem";

/// Largest number of instances of a task.
const INSTANCES_MAX: f64 = 1e6;
/// Largest time in seconds; the trace spans eight days.
const SECONDS_MAX: f64 = 1e9;
/// Largest number of hundredths of a CPU.
const CPU_MAX: f64 = 1e6;
/// Value of `plan_mem` that marks it as unknown.
const MEM_UNKNOWN: f64 = 101.0;
/// Demand of a task whose plan is unknown: a CPU, and half a hundredth of a machine's memory, as of most tasks.
const USUAL: (f64, f64) = (100.0, 0.5);

/// A parsed line of the trace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// Name of the task.
    pub(super) task: &'a str,
    /// Name of the task's job.
    pub(super) job: &'a str,
    /// Whether the task has ended successfully.
    pub(super) ended: bool,
    /// Number of instances of the task; 0 if it is unknown.
    pub(super) instances: u32,
    /// Start and end of the task, in seconds; 0 if it was outside of the trace.
    pub(super) times: (u64, u64),
    /// Demand of an instance: CPUs in thousandths, memory in thousandths of a hundredth of a machine's.
    pub(super) demand: Amounts,
}

impl<'a> Line<'a> {
    /// Parses a line.
    ///
    /// # Errors
    /// The rule that the line breaks.
    pub(super) fn read(text: &'a str) -> Result<Line<'a>, String> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let [task, instances, job, _, status, start, end, cpu, mem] = fields[..] else {
            return Err(format!("must have nine fields, and has {}: {COLUMNS}", fields.len()));
        };
        if let Some((name, _)) = [("task_name", task), ("job_name", job)].into_iter().find(|(_, text)| text.is_empty())
        {
            return Err(format!("{name} must not be empty"));
        }
        let cpu = number("plan_cpu", cpu, CPU_MAX)?.filter(|cpu| *cpu > 0.0).unwrap_or(USUAL.0);
        let mem = number("plan_mem", mem, MEM_UNKNOWN)?.filter(|mem| *mem > 0.0 && *mem < MEM_UNKNOWN);
        Ok(Line {
            task,
            job,
            ended: status == "Terminated",
            instances: whole("instance_num", instances, INSTANCES_MAX)? as u32,
            times: (whole("start_time", start, SECONDS_MAX)?, whole("end_time", end, SECONDS_MAX)?),
            demand: Amounts {
                // 100 stands for one CPU, and for all memory of a machine.
                cpus: ((cpu * 10.0) as u64).max(1),
                mem: ((mem.unwrap_or(USUAL.1) * 1000.0) as u64).max(1),
                gpus: 0,
            },
        })
    }
}

/// Parses a number; `None` if it is unknown.
fn number(name: &str, text: &str, most: f64) -> Result<Option<f64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(number) if (0.0..=most).contains(&number) => Ok(Some(number)),
        Ok(-1.0) => Ok(None),
        _ => Err(format!("{name} must be a number from 0 to {most}, -1 or empty, and this is '{text}'")),
    }
}

/// Parses an integer; 0 if it is unknown. Some tools write `3.0` for 3.
fn whole(name: &str, text: &str, most: f64) -> Result<u64, String> {
    match number(name, text, most)? {
        Some(number) if number.fract() != 0.0 => Err(format!("{name} must be a whole number, and this is '{text}'")),
        known => Ok(known.unwrap_or(0.0) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_usual() {
        let line = Line::read("M1,12846.0,j_3,1,Terminated,157213,157295,50,0.3").unwrap();
        assert_eq!((line.task, line.job, line.ended, line.instances), ("M1", "j_3", true, 12_846));
        assert_eq!((line.times, line.demand.cpus, line.demand.mem), ((157_213, 157_295), 500, 300));
        let usual = Amounts { cpus: 1000, mem: 500, gpus: 0 };
        for unknown in ["M1,,j,1,Failed,0,,,", "M1,-1,j,1,Failed,0,0,-1,101", "M1,0,j,1,Failed,0,0,0,-1"] {
            let line = Line::read(unknown).unwrap();
            assert_eq!((line.ended, line.instances, line.times, line.demand), (false, 0, (0, 0), usual), "{unknown}");
        }
    }

    #[test]
    fn each_rule_is_named() {
        for (text, rule) in [
            ("a,b", "must have nine fields, and has 2: task_name,"),
            (",1,j,1,T,1,2,1,1", "task_name must not be empty"),
            ("M1,1,,1,T,1,2,1,1", "job_name must not be empty"),
            ("M1,x,j,1,T,1,2,1,1", "instance_num must be a number from 0 to 1000000, -1 or empty, and this is 'x'"),
            ("M1,1.5,j,1,T,1,2,1,1", "instance_num must be a whole number, and this is '1.5'"),
            ("M1,1,j,1,T,-2,2,1,1", "start_time must be a number from 0 to 1000000000"),
            ("M1,1,j,1,T,1,2.5,1,1", "end_time must be a whole number"),
            ("M1,1,j,1,T,1,2,inf,1", "plan_cpu must be a number"),
            ("M1,1,j,1,T,1,2,1,102", "plan_mem must be a number from 0 to 101"),
            ("M1,1,j,1,T,1,2,1,NaN", "plan_mem must be a number"),
        ] {
            let said = Line::read(text).unwrap_err();
            assert!(said.starts_with(rule), "{text}: {said}");
        }
    }
}
