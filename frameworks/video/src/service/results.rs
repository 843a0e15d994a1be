//! Findings of queries: writes them to files, keeps the last ones for the API, and compares them with the ground truth
//! where it is known.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::alert::Alerts;
use super::results_file::{self, ResultsFile};
use super::{Error, io};
use crate::pipeline::{Finding, score, true_findings};
use crate::scene::{Truth, read_truth};
use crate::spec::QuerySpec;

/// Maximum number of findings of a query that are kept in memory.
const RECENT_MAX: usize = 500;
/// Age in seconds at which findings are assumed to have arrived; quality is measured over `MEASURE_SECONDS` before
/// that.
const SETTLE_SECONDS: f64 = 3.0;
const MEASURE_SECONDS: f64 = 60.0;

/// The results of all queries.
#[derive(Debug)]
pub(crate) struct ResultsStore {
    directory: Option<PathBuf>,
    queries: Mutex<BTreeMap<String, QueryResults>>,
    alerts: Option<Alerts>,
}

#[derive(Debug)]
struct QueryResults {
    spec: QuerySpec,
    file: Option<ResultsFile>,
    recent: VecDeque<Finding>,
    truth: Option<Truth>,
    /// Position in the stream from which on findings are complete.
    from: f64,
    /// Whether a picture was requested, and the last one as a PNG file.
    picture_requested: bool,
    picture: Option<Vec<u8>>,
}

impl ResultsStore {
    pub(super) fn new(directory: Option<PathBuf>, alerts: Option<Alerts>) -> Result<ResultsStore, Error> {
        if let Some(directory) = &directory {
            fs::create_dir_all(directory)
                .map_err(io(format!("cannot create the directory {}", directory.display())))?;
        }
        Ok(ResultsStore { directory, queries: Mutex::default(), alerts })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, QueryResults>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the results of a query, if they are not open. The last findings that are already in its file are read, and
    /// new ones appended.
    pub(super) fn open(&self, spec: &QuerySpec) -> Result<(), Error> {
        let mut queries = self.lock();
        if queries.contains_key(&spec.name) {
            return Ok(());
        }
        let (file, recent) = match &self.directory {
            None => (None, VecDeque::new()),
            Some(directory) => {
                let what = format!("cannot write {}", results_file::path(directory, &spec.name).display());
                let (file, recent) = ResultsFile::open(directory, &spec.name, RECENT_MAX).map_err(io(what))?;
                (Some(file), recent)
            }
        };
        let truth = spec.truth.as_ref().and_then(|path| read_truth(path).ok());
        let from = recent.front().map_or(0.0, |f: &Finding| f.at);
        let results =
            QueryResults { spec: spec.clone(), file, recent, truth, from, picture_requested: false, picture: None };
        queries.insert(spec.name.clone(), results);
        Ok(())
    }

    /// Checks whether results of a query could be written.
    pub(super) fn check(&self, spec: &QuerySpec) -> Result<(), Error> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let path = results_file::path(directory, &spec.name);
        results_file::check(directory, &spec.name).map_err(io(format!("cannot write {}", path.display())))
    }

    /// Opens the results of a new query. The file of a former query with this name is renamed, with a number.
    pub(super) fn open_new(&self, spec: &QuerySpec) -> Result<(), Error> {
        self.close(&spec.name);
        if let Some(directory) = &self.directory {
            let path = results_file::path(directory, &spec.name);
            let aside = results_file::set_aside(directory, &spec.name);
            aside.map_err(io(format!("cannot rename {}", path.display())))?;
        }
        self.open(spec)
    }

    /// Closes the results of a query; the file stays.
    pub(super) fn close(&self, query: &str) {
        self.lock().remove(query);
    }

    /// Writes findings. Known ones, which are repeated because an answer was lost, are skipped.
    pub(super) fn add(&self, query: &str, findings: Vec<Finding>) {
        let mut queries = self.lock();
        let Some(results) = queries.get_mut(query) else { return };
        let mut lines = Vec::new();
        for finding in findings {
            if results.recent.contains(&finding) {
                continue;
            }
            if let Some(alerts) = self.alerts.as_ref().filter(|_| results.spec.alert) {
                alerts.raise(query, &finding);
            }
            if results.file.is_some() && serde_json::to_writer(&mut lines, &finding).is_ok() {
                lines.push(b'\n');
            }
            results.recent.push_back(finding);
            if results.recent.len() > RECENT_MAX
                && let Some(gone) = results.recent.pop_front()
            {
                results.from = results.from.max(gone.at);
            }
        }
        if let Some(file) = &mut results.file
            && let Err(error) = file.append(&lines)
        {
            tracing::warn!(%query, %error, "results cannot be written");
        }
    }

    /// Requests a picture from the worker of a query. Returns whether there is such a query.
    pub(super) fn request_picture(&self, query: &str) -> bool {
        let mut queries = self.lock();
        let Some(results) = queries.get_mut(query) else { return false };
        results.picture_requested = true;
        results.picture = None;
        true
    }

    /// Returns whether a picture is requested from the worker of this query.
    pub(super) fn take_picture_request(&self, query: &str) -> bool {
        self.lock().get_mut(query).is_some_and(|results| std::mem::take(&mut results.picture_requested))
    }

    /// Records that a picture has arrived.
    pub(super) fn set_picture(&self, query: &str, picture: Vec<u8>) {
        if let Some(results) = self.lock().get_mut(query) {
            results.picture = Some(picture);
        }
    }

    /// Returns the requested picture; `None` until it has arrived.
    pub(super) fn picture(&self, query: &str) -> Option<Vec<u8>> {
        self.lock().get(query).and_then(|results| results.picture.clone())
    }

    /// Returns the specification of a query whose results are open.
    pub(super) fn spec(&self, query: &str) -> Option<QuerySpec> {
        self.lock().get(query).map(|results| results.spec.clone())
    }

    pub(super) fn recent(&self, query: &str) -> Vec<Finding> {
        self.lock().get(query).map(|p| p.recent.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns the F1 score against the ground truth up to a position of the stream; `None` without a ground truth, or
    /// too early.
    pub(super) fn measured(&self, query: &str, position: f64) -> Option<f64> {
        let queries = self.lock();
        let results = queries.get(query)?;
        let truth = results.truth.as_ref()?;
        let to = position - SETTLE_SECONDS;
        let from = results.from.max(to - MEASURE_SECONDS).max(1.0);
        if to <= from {
            return None;
        }
        let within = |f: &&Finding| f.at >= from && f.at < to;
        let found: Vec<Finding> = results.recent.iter().filter(within).cloned().collect();
        let kind = results.spec.kind;
        Some(score(kind, &found, &true_findings(truth, kind, from, to)).f1())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Rect;
    use crate::media::tests::Directory;

    fn finding(at: f64) -> Finding {
        let (line, direction) = (String::new(), "down".to_owned());
        Finding { at, label: "person".to_owned(), track: 1, line, direction, place: Rect::default() }
    }

    #[test]
    fn findings_survive_a_restart_and_a_new_query_of_the_same_name() {
        let directory = Directory::new("results-store");
        let text = "[[query]]\nname = \"gate\"\nkind = \"people\"\nvideo = \"a.mp4\"\n";
        let spec = crate::spec::parse(text, "q.toml", std::path::Path::new("/v")).unwrap().remove(0);
        let store = || ResultsStore::new(Some(directory.file("found")), None).unwrap();
        let first = store();
        first.check(&spec).unwrap();
        first.open_new(&spec).unwrap();
        first.add("gate", vec![finding(1.0), finding(2.0)]);
        let second = store();
        second.open(&spec).unwrap();
        // One of them is repeated.
        second.add("gate", vec![finding(2.0), finding(3.0)]);
        let all = [finding(1.0), finding(2.0), finding(3.0)];
        assert_eq!(second.recent("gate"), all);
        second.open_new(&spec).unwrap();
        assert!(second.recent("gate").is_empty());
        let former = fs::read_to_string(directory.file("found/gate.1.jsonl")).unwrap();
        let former: Vec<Finding> = former.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(former, all);
    }
}
