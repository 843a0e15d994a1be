//! Traces of jobs in CSV: a header, then a job a line. What the header has says which shape it is:
//!
//! - our own, `submit_s,tasks,cpus,mem_mb,duration_s`, in the order of time;
//! - pods of Alibaba's GPU trace of 2023 (`cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time`);
//! - GPU jobs as in Tiresias (`num_gpu,submit_time,duration`) and, from Philly, in Pollux (`timestamp,duration,num_gpus`).
//!
//! Columns may come in any order and others may be between them. A file with a bad row is refused whole. The last two begin with
//! their first job, and may be in any order.

use std::path::Path;
use std::time::Duration;

use super::error::ScenarioError;

/// Rows of one trace.
const MOST_ROWS: usize = 10_000_000;

/// A job of a trace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub submit: Duration,
    pub tasks: u32,
    pub cpus: f64,
    pub mem_mb: f64,
    pub gpus: f64,
    pub duration: Duration,
}

/// What the columns of a trace are.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Own,
    Pods,
    Gpus,
    Philly,
}

/// The shapes by the columns that they need.
const SHAPES: [(Shape, &[&str]); 4] = [
    (Shape::Own, &["submit_s", "tasks", "cpus", "mem_mb", "duration_s"]),
    (
        Shape::Pods,
        &["creation_time", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "deletion_time", "scheduled_time"],
    ),
    (Shape::Gpus, &["submit_time", "num_gpu", "duration"]),
    (Shape::Philly, &["timestamp", "num_gpus", "duration"]),
];

/// What is wrong with a line, and which.
type Wrong = (usize, String);

pub(super) fn read(file: &Path) -> Result<Vec<Row>, ScenarioError> {
    let wrong = |line: usize, rule: String| ScenarioError { file: file.to_owned(), line, rule };
    let text = std::fs::read_to_string(file).map_err(|why| wrong(1, format!("cannot be read: {why}")))?;
    parse(&text).map_err(|(line, rule)| wrong(line, rule))
}

/// The cells of a line that its shape needs, in the order of its columns.
struct Cells<'a> {
    line: usize,
    names: &'static [&'static str],
    cells: Vec<&'a str>,
}

impl Cells<'_> {
    fn number(&self, column: usize, least: f64, most: f64) -> Result<f64, Wrong> {
        let (cell, name) = (self.cells[column], self.names[column]);
        let read = cell.parse::<f64>().ok().filter(|value| (least..=most).contains(value));
        read.ok_or_else(|| (self.line, format!("'{cell}' is no {name}: a number from {least} to {most}")))
    }

    fn seconds(&self, column: usize) -> Result<Duration, Wrong> {
        Ok(Duration::from_secs_f64(self.number(column, 0.0, 1e10)?))
    }

    fn row(&self, shape: Shape) -> Result<Row, Wrong> {
        let plain =
            Row { submit: Duration::ZERO, tasks: 1, cpus: 0.0, mem_mb: 0.0, gpus: 0.0, duration: Duration::ZERO };
        Ok(match shape {
            Shape::Own => Row {
                submit: self.seconds(0)?,
                tasks: self.number(1, 1.0, 1e6)? as u32,
                cpus: self.number(2, 0.0, 1e6)?,
                mem_mb: self.number(3, 0.0, 1e9)?,
                duration: self.seconds(4)?,
                ..plain
            },
            Shape::Pods => {
                let submit = self.seconds(0)?;
                // A pod that was never placed has no time for it: then it works from its creation on.
                let began = if self.cells[6].is_empty() { submit } else { self.seconds(6)? };
                let part = if self.cells[4].is_empty() { 1000.0 } else { self.number(4, 0.0, 1000.0)? };
                Row {
                    submit,
                    cpus: self.number(1, 0.0, 1e9)? / 1000.0,
                    mem_mb: self.number(2, 0.0, 1e9)?,
                    gpus: self.number(3, 0.0, 1e6)? * part / 1000.0,
                    duration: self.seconds(5)?.saturating_sub(began),
                    ..plain
                }
            }
            Shape::Gpus => {
                Row { submit: self.seconds(0)?, gpus: self.number(1, 0.0, 1e6)?, duration: self.seconds(2)?, ..plain }
            }
            Shape::Philly => Row {
                submit: moment(self.cells[0])
                    .ok_or_else(|| (self.line, format!("'{}' is no timestamp: YYYY-MM-DD HH:MM:SS", self.cells[0])))?,
                gpus: self.number(1, 0.0, 1e6)?,
                duration: self.seconds(2)?,
                ..plain
            },
        })
    }
}

/// The time since 1970 of `YYYY-MM-DD HH:MM:SS`.
fn moment(text: &str) -> Option<Duration> {
    let numbers: Vec<u64> = text.split(['-', ' ', ':']).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day, hour, minute, second] = numbers[..] else { return None };
    let sane = (1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sane || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years begin with March, so that the day that some years have more is their last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1;
    // The first of January 1970 by the same count.
    const FIRST: u64 = 719_468;
    Some(Duration::from_secs((days - FIRST) * 86_400 + hour * 3600 + minute * 60 + second))
}

fn parse(text: &str) -> Result<Vec<Row>, Wrong> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header: Vec<&str> = lines.next().map(|(_, line)| line.split(',').map(str::trim).collect()).unwrap_or_default();
    let known = SHAPES.iter().find(|(_, names)| names.iter().all(|name| header.contains(name)));
    let Some((shape, names)) = known else {
        let all: Vec<String> = SHAPES.iter().map(|(_, names)| names.join(",")).collect();
        return Err((1, format!("the header is of no known shape; it wants {}", all.join(", or "))));
    };
    let place = |name: &&str| header.iter().position(|column| column == name).unwrap_or(usize::MAX);
    let places: Vec<usize> = names.iter().map(place).collect();
    let mut rows: Vec<Row> = Vec::new();
    for (n, line) in lines {
        let all: Vec<&str> = line.split(',').map(str::trim).collect();
        let cells = places.iter().map(|place| all.get(*place).copied().unwrap_or_default()).collect();
        let row = Cells { line: n + 1, names, cells }.row(*shape)?;
        if row.cpus + row.mem_mb + row.gpus <= 0.0 {
            if matches!(shape, Shape::Own) {
                return Err((n + 1, "a task needs cpus or mem_mb".to_owned()));
            }
            continue;
        }
        if matches!(shape, Shape::Own) && rows.last().is_some_and(|before| before.submit > row.submit) {
            return Err((n + 1, "rows must be in the order of submit_s".to_owned()));
        }
        if rows.len() == MOST_ROWS {
            return Err((n + 1, format!("a trace has at most {MOST_ROWS} rows")));
        }
        rows.push(row);
    }
    if !matches!(shape, Shape::Own) {
        rows.sort_by_key(|row| row.submit);
        let first = rows.first().map_or(Duration::ZERO, |row| row.submit);
        rows.iter_mut().for_each(|row| row.submit -= first);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_or_refused() {
        let rows = parse("tasks,submit_s,x,cpus,mem_mb,duration_s\n2,1.5,?,1,512,60\n").unwrap();
        assert_eq!(rows[0].submit, Duration::from_millis(1500));
        assert_eq!(rows[0].tasks, 2);
        let header = SHAPES[0].1.join(",");
        for (text, line, word) in [
            ("a,b\n".to_owned(), 1, "submit_s"),
            (format!("{header}\n1,1,1,1,1\n0,1,1,1,1"), 3, "order"),
            (format!("{header}\n1,0,1,1,1"), 2, "tasks"),
            (format!("{header}\n1,1,nan,1,1"), 2, "cpus"),
            (format!("{header}\n1,1,1,1"), 2, "duration_s"),
            (format!("{header}\n1,1,0,0,1"), 2, "needs"),
        ] {
            let (at, rule) = parse(&text).unwrap_err();
            assert!(at == line && rule.contains(word), "{text}: {at} {rule}");
        }
    }

    #[test]
    fn traces_of_others_begin_with_their_first_job() {
        let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
            p1,3152,5600,1,590,,BE,Failed,12900505,12900526,12900506\np0,16000,32768,2,1000,,LS,Running,12897160,12900786,\n";
        let rows = parse(pods).unwrap();
        let seconds: Vec<(u64, u64)> = rows.iter().map(|row| (row.submit.as_secs(), row.duration.as_secs())).collect();
        assert_eq!(seconds, [(0, 3626), (3345, 20)]);
        assert_eq!((rows[0].cpus, rows[0].mem_mb, rows[0].gpus, rows[1].gpus), (16.0, 32768.0, 2.0, 0.59));
        let tiresias = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n";
        let rows = parse(tiresias).unwrap();
        assert_eq!((rows[1].submit.as_secs(), rows[1].gpus, rows[1].duration.as_secs()), (30, 8.0, 147));
        let philly = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-11-08 08:22:11,78.0,1,78.0,x\n2017-11-07 08:22:10,57.0,4,57.0,x\n";
        let rows = parse(philly).unwrap();
        assert_eq!((rows[0].gpus, rows[1].submit.as_secs()), (4.0, 86_401));
        assert_eq!(moment("2000-03-01 00:00:00").unwrap().as_secs(), 951_868_800);
        assert!(parse("timestamp,duration,num_gpus\nyesterday,1,1\n").unwrap_err().1.contains("timestamp"));
    }
}
