//! The input of a stage that its tasks divide among themselves, and its field in a job file.
//!
//! It describes the request. [`crate::split`] finds and splits the files.

use std::time::Duration;

use jobs::file::{Fields, Node, Value, seconds};
use serde::{Deserialize, Serialize};

use super::stage::COUNT_MAX;

/// Name of the field.
const FIELD: &str = "input";
/// Limit of the number of files and globs of an input.
const PATTERNS_MAX: usize = 10_000;
/// Longest prefix that marks the start of a record, in bytes.
const RECORD_MAX: usize = 256;

/// The input that the tasks of a stage divide among themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// No input: this many tasks, each with its number.
    Tasks(u32),
    /// Input files.
    Files(FilesInput),
    /// A range of numbers.
    Range(RangeInput),
    /// Outputs of other stages.
    Stages(StagesInput),
}

/// The unit by which files are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitUnit {
    /// Whole files, which are not split.
    Files,
    /// Lines of text.
    Lines,
    /// Records, each of which starts with a line that has a given prefix.
    Records,
    /// Bytes; a part ends at the end of a line.
    Bytes,
}

impl SplitUnit {
    const ALL: [SplitUnit; 4] = [SplitUnit::Files, SplitUnit::Lines, SplitUnit::Records, SplitUnit::Bytes];

    /// Returns the name in job files, which is also that of the unit.
    pub fn name(self) -> &'static str {
        match self {
            SplitUnit::Files => "files",
            SplitUnit::Lines => "lines",
            SplitUnit::Records => "records",
            SplitUnit::Bytes => "bytes",
        }
    }
}

/// The amount of input for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// The amount with which the stage runs fastest (Libra).
    Auto,
    /// A fixed number of units.
    Fixed(u64),
    /// The amount that takes about this long.
    Target(#[serde(with = "seconds")] Duration),
}

/// Files that are divided among tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesInput {
    /// Paths, or patterns with `*`, `?`, `[...]` and `**`.
    pub files: Vec<String>,
    /// Unit by which the files are split.
    pub by: SplitUnit,
    /// Amount of input for a task.
    pub size: Size,
    /// Prefix of the first line of a record.
    pub record: Option<String>,
}

/// Numbers that are divided among tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeInput {
    /// First number of the range.
    pub from: u64,
    /// Number after the last one of the range.
    pub to: u64,
    /// Amount of numbers for a task.
    pub size: Size,
}

/// The grouping of the outputs of stages for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// One task reads all outputs.
    All,
    /// Each task reads the outputs of some tasks of one stage.
    Task,
    /// Each task reads one partition of all outputs.
    Partition,
}

/// Outputs of stages that tasks read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagesInput {
    /// Indices of the stages in the job.
    pub stages: Vec<usize>,
    /// Grouping of the outputs.
    pub by: Grouping,
    /// Number of tasks whose outputs each task reads, with [`Grouping::Task`].
    pub size: u32,
}

/// An input as in the file, where stages are named.
#[derive(Debug)]
pub(super) enum Draft<'a> {
    Ready(Input),
    Stages { names: Vec<(&'a str, usize)>, by: Grouping, size: u32, at: usize },
}

/// Reads the fields `tasks` and `input` of a stage.
pub(super) fn read<'a>(stage: &mut Fields<'a, '_>) -> Draft<'a> {
    let tasks_at = stage.take("tasks").map(|node| node.at);
    let tasks = stage.whole("tasks", 1, i64::from(COUNT_MAX));
    let count = tasks.and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let Some(node) = stage.take(FIELD) else { return Draft::Ready(Input::Tasks(count)) };
    if let Some(at) = tasks_at {
        stage.faults.add(at, "a stage has either a number of tasks or an input that is shared among them, not both");
    }
    let fallback = Draft::Ready(Input::Tasks(1));
    let Some(mut fields) = Fields::of(FIELD, node, stage.faults) else { return fallback };
    let before = fields.faults.len();
    let sources = [fields.take("files"), fields.take("range"), fields.take("stage")];
    let draft = match sources {
        [Some(_), None, None] => files(&mut fields),
        [None, Some(range), None] => range_input(&mut fields, range),
        [None, None, Some(stages)] => stages_input(&mut fields, stages),
        _ => {
            fields.faults.add(node.at, "an input has one of files, range and stage");
            fields.take("by");
            fields.take("size");
            None
        }
    };
    fields.finish(|_| None);
    let _ = before;
    draft.unwrap_or(fallback)
}

fn files<'a>(fields: &mut Fields<'a, '_>) -> Option<Draft<'a>> {
    let at = fields.at();
    let node = fields.take("files")?;
    // A single file needs no list.
    let files: Vec<(&str, usize)> = match &node.value {
        Value::Text(_) => fields.text("files").into_iter().collect(),
        _ => fields.texts("files"),
    };
    if files.is_empty() || files.len() > PATTERNS_MAX {
        let rule = format!("files must be 1 to {PATTERNS_MAX} paths or globs, and these are {}", files.len());
        fields.faults.add(node.at, rule);
    }
    for (file, at) in &files {
        if !file.starts_with('/') {
            let rule = format!("'{file}' must be an absolute path: tasks have directories of their own");
            fields.faults.add(*at, rule);
        } else if let Err(error) = glob::Pattern::new(file) {
            fields.faults.add(*at, format!("'{file}' is not a pattern: {}", error.msg));
        }
    }
    let by = match fields.text("by") {
        None => SplitUnit::Files,
        Some((text, at)) => SplitUnit::ALL.into_iter().find(|by| by.name() == text).unwrap_or_else(|| {
            fields.faults.add(at, format!("by must be files, lines, records or bytes, and this is \"{text}\""));
            SplitUnit::Files
        }),
    };
    let record = fields.text("record");
    match (by, record) {
        (SplitUnit::Records, None) => {
            fields.faults.add(at, "records need record = \"...\": what the first line of each begins with");
        }
        (SplitUnit::Records, Some((mark, at))) if mark.len() > RECORD_MAX || mark.contains('\n') => {
            fields.faults.add(at, format!("record must be in one line and have {RECORD_MAX} bytes at most"));
        }
        (SplitUnit::Files | SplitUnit::Lines | SplitUnit::Bytes, Some((_, at))) => {
            fields.faults.add(at, format!("record is for by = \"records\", and this is by = \"{}\"", by.name()));
        }
        _ => {}
    }
    let default = if by == SplitUnit::Files { Size::Fixed(1) } else { Size::Auto };
    let input = FilesInput {
        files: files.into_iter().map(|(file, _)| file.to_owned()).collect(),
        by,
        size: size(fields, default, by == SplitUnit::Bytes),
        record: record.map(|(mark, _)| mark.to_owned()),
    };
    Some(Draft::Ready(Input::Files(input)))
}

fn range_input<'a>(fields: &mut Fields<'a, '_>, node: &'a Node) -> Option<Draft<'a>> {
    let size = size(fields, Size::Fixed(1), false);
    let number = |node: &Node| match node.value {
        Value::Whole(number) => u64::try_from(number).ok(),
        _ => None,
    };
    let bounds = match &node.value {
        Value::List(list) => list.iter().map(number).collect::<Option<Vec<u64>>>(),
        _ => None,
    };
    let (from, to) = match bounds.as_deref() {
        Some([from, to]) if from < to => (*from, *to),
        _ => {
            fields.faults.add(node.at, "range must be [FROM, TO]: whole numbers from 0, the first below the second");
            return None;
        }
    };
    if let Size::Fixed(size) = size
        && (to - from).div_ceil(size) > u64::from(COUNT_MAX)
    {
        let rule = format!("a stage has at most {COUNT_MAX} tasks, and this range has {}", (to - from).div_ceil(size));
        fields.faults.add(node.at, rule);
    }
    Some(Draft::Ready(Input::Range(RangeInput { from, to, size })))
}

fn stages_input<'a>(fields: &mut Fields<'a, '_>, node: &'a Node) -> Option<Draft<'a>> {
    let names: Vec<(&str, usize)> = match &node.value {
        Value::Text(_) => fields.text("stage").into_iter().collect(),
        _ => fields.texts("stage"),
    };
    if names.is_empty() {
        fields.faults.add(node.at, "stage must name a stage, or several in a list");
    }
    let by = match fields.text("by") {
        None | Some(("all", _)) => Grouping::All,
        Some(("task", _)) => Grouping::Task,
        Some(("partition", _)) => Grouping::Partition,
        Some((text, at)) => {
            fields.faults.add(at, format!("by must be all, task or partition, and this is \"{text}\""));
            Grouping::All
        }
    };
    let size_at = fields.take("size").map(|node| node.at);
    let size = fields.whole("size", 1, i64::from(COUNT_MAX)).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    if let (Some(at), Grouping::All | Grouping::Partition) = (size_at, by) {
        fields.faults.add(at, "size is for by = \"task\": how many tasks' outputs one task reads");
    }
    Some(Draft::Stages { names, by, size, at: node.at })
}

/// Reads the field `size`.
fn size(fields: &mut Fields<'_, '_>, default: Size, bytes: bool) -> Size {
    let Some(node) = fields.take("size") else { return default };
    let size = match &node.value {
        Value::Whole(number) => u64::try_from(*number).ok().filter(|n| *n > 0).map(Size::Fixed),
        Value::Text(text) if text == "auto" => Some(Size::Auto),
        Value::Text(text) => {
            let amount = base::parse_bytes(text).filter(|b| bytes && *b > 0).map(Size::Fixed);
            let time = seconds::parse(text).filter(|t| !t.is_zero() && text.parse::<f64>().is_err());
            amount.or(time.map(Size::Target))
        }
        _ => None,
    };
    size.unwrap_or_else(|| {
        let units = if bytes { "a number of bytes (also \"64MB\")" } else { "a number above 0" };
        fields.faults.add(node.at, format!("size must be {units}, \"auto\", or how long a task is to take (\"30s\")"));
        default
    })
}
