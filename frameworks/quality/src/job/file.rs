//! Reads job files: TOML with a `[[job]]` table for each job. An invalid file is rejected as a whole, with file, line
//! and rule.

use serde::Deserialize;
use toml::Spanned;

use super::{JOBS_MAX, Job};

/// An error in a job file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {rule}")]
pub struct FileError {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1; for a job that breaks a rule, the line where the job begins.
    pub line: usize,
    /// Rule that the line or the job breaks.
    pub rule: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    job: Vec<Spanned<Job>>,
}

/// Parses the jobs of a file's text; `file` is its name in errors.
///
/// # Errors
/// Returns the first field that breaks a rule.
pub fn parse(file: &str, text: &str) -> Result<Vec<Job>, FileError> {
    let line = |at: usize| 1 + text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count();
    let refuse = |at: usize, rule: String| FileError { file: file.to_owned(), line: line(at), rule };
    let jobs: File = toml::from_str(text)
        .map_err(|error| refuse(error.span().map_or(0, |s| s.start), error.message().to_owned()))?;
    if jobs.job.is_empty() || jobs.job.len() > JOBS_MAX {
        return Err(refuse(0, format!("has {} jobs; between 1 and {JOBS_MAX} are allowed", jobs.job.len())));
    }
    let mut checked: Vec<Job> = Vec::with_capacity(jobs.job.len());
    for spanned in jobs.job {
        let at = spanned.span().start;
        let job = spanned.into_inner();
        job.check().map_err(|error| refuse(at, error.to_string()))?;
        if checked.iter().any(|j| j.name == job.name) {
            return Err(refuse(at, format!("job '{}': name: is used by an earlier job", job.name)));
        }
        checked.push(job);
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Source, Validation};
    use crate::learn::Algorithm;

    const GOOD: &str = r#"
[[job]]
name = "ads"
algorithm = { kind = "logistic-regression", l2 = 0.001 }
data = { generator = "halves", rows = 500, columns = 4, seed = 7 }
priority = 2
target = { accuracy = 0.9, deadline = 60 }

[[job]]
name = "prices"
algorithm = { kind = "boosted-trees", depth = 2 }
data = { file = "prices.csv", label = "first" }
max_cores = 4
"#;

    #[test]
    fn a_good_file_is_read() {
        let jobs = parse("jobs.toml", GOOD).unwrap();
        assert_eq!((jobs[0].priority, jobs[0].iterations, jobs[0].ceiling()), (2.0, 200, 24));
        assert_eq!(jobs[0].target.deadline, Some(60.0));
        assert_eq!(jobs[1].ceiling(), 4);
        let held = |line: &str| parse("j", &format!("{GOOD}{line}\n")).unwrap()[1].validation.clone().unwrap();
        assert_eq!(held("validation = 0.25"), Validation::Share { share: 0.25, seed: 0 });
        assert_eq!(held("validation = { share = 0.5, seed = 7 }"), Validation::Share { share: 0.5, seed: 7 });
        assert_eq!(held("validation = \"new.csv\""), Validation::File("new.csv".to_owned()));
        assert!(matches!(&jobs[1].algorithm, Algorithm::BoostedTrees(o) if o.depth == 2));
        assert!(matches!(&jobs[1].data, Source::File { path, .. } if path == "prices.csv"));
        let json = serde_json::to_string(&jobs[0]).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&json).unwrap(), jobs[0]);
    }

    #[test]
    fn a_bad_file_is_refused_whole_with_file_line_and_rule() {
        let with = |from: &str, to: &str| {
            assert!(GOOD.contains(from), "{from}");
            parse("jobs.toml", &GOOD.replacen(from, to, 1)).unwrap_err().to_string()
        };
        for (from, to, wanted) in [
            ("priority = 2", "prio = 2", "jobs.toml:6: unknown field `prio`"),
            ("priority = 2", "priority = \"high\"", "jobs.toml:6: invalid type: string \"high\""),
            ("priority = 2", "priority = -1", "jobs.toml:2: job 'ads': priority: must be between"),
            ("max_cores = 4", "max_cores = 0", "jobs.toml:9: job 'prices': max_cores: must be at least 1"),
            (
                "max_cores = 4",
                "iterations = 5001",
                "iterations: must be between 1 and 5000 for boosted-trees, not 5001",
            ),
            ("max_cores = 4", "shards = 0", "jobs.toml:9: job 'prices': shards: must be between 1 and 4096"),
            ("accuracy = 0.9", "accuracy = 90", "target.accuracy: must be between 0 and 1, not 90"),
            ("deadline = 60", "deadline = 0", "target.deadline: must be between"),
            (
                "max_cores = 4",
                "validation = 1.5",
                "job 'prices': validation: must be a share between 0.001 and 0.9, not 1.5",
            ),
            ("max_cores = 4", "validation = true", "jobs.toml:13: must be a share such as 0.2, a file's name, or"),
            ("max_cores = 4", "patience = 3", "job 'prices': patience: needs `validation`"),
            ("max_cores = 4", "validation = 0.2\npatience = 0", "patience: must be at least 1"),
            (
                "max_cores = 4",
                "critical_rows = { accuracy_loss = 0.01 }",
                "jobs.toml:9: job 'prices': critical_rows: kind: boosted-trees learns from all rows: this is for linear-regression",
            ),
            (
                "priority = 2",
                "critical_rows = { accuracy_loss = 0.9 }",
                "jobs.toml:2: job 'ads': critical_rows: accuracy_loss: must be between 0.0001 and 0.5, not 0.9",
            ),
            ("priority = 2", "critical_rows = {}", "jobs.toml:6: missing field `accuracy_loss`"),
            ("priority = 2", "critical_rows = { accuracy_loss = 0.1, most = 1 }", "jobs.toml:6: unknown field `most`"),
            ("l2 = 0.001", "l2 = -1", "job 'ads': algorithm: l2: must be between 0"),
            ("l2 = 0.001", "l3 = 1", "jobs.toml:4: unknown field `l3`"),
            ("\"halves\"", "\"bumps\"", "job 'ads': data: generator: makes numbers as labels"),
            ("rows = 500", "rows = 0", "job 'ads': data: rows: there must be at least one"),
            ("\"prices\"", "\"ads\"", "jobs.toml:9: job 'ads': name: is used by an earlier job"),
            ("\"prices\"", "\"a b\"", "name: must be 1 to 64 letters"),
            ("label = \"first\"", "rows = 5", "`rows` is for generators"),
            ("file = \"prices.csv\", label = \"first\"", "", "names neither a `file` nor a `generator`"),
            (
                "data = { file = \"prices.csv\", label = \"first\" }",
                "",
                "job 'prices': data: must name a `file` or a `generator`",
            ),
            (
                "kind = \"boosted-trees\", depth = 2",
                "kind = \"program\", command = [\"x\"]",
                "data: is for algorithms of this framework",
            ),
            ("kind = \"boosted-trees\", depth = 2", "kind = \"program\"", "jobs.toml:11: missing field `command`"),
            (
                "kind = \"boosted-trees\", depth = 2",
                "kind = \"program\", command = []",
                "algorithm: command: names no program",
            ),
            ("logistic-regression", "magic", "jobs.toml:4: unknown variant `magic`"),
            ("[[job]]", "[[jobs]]", "unknown field `jobs`"),
        ] {
            let got = with(from, to);
            assert!(got.contains(wanted), "{to}: {got}");
        }
        assert!(parse("x.toml", "job = []").unwrap_err().to_string().contains("has 0 jobs"));
        assert!(parse("x.toml", "\n\n[[job").unwrap_err().to_string().starts_with("x.toml:3: "));
    }
}
