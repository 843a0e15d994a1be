//! Runs every point of a sweep with every seed, on several threads. Results survive an interruption.
//!
//! Each finished run is a file, and is not run again. If the scenario or a file that it reads has changed, all results
//! in the directory are deleted first.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::bundled::Catalog;
use crate::inputs;
use crate::measure::Outcome;
use crate::report;
use crate::run::run;
use crate::scenario::{MOST_REPETITIONS, Point, Scenario, ScenarioError, Traces, check_bundled, points};

/// Reasons why a campaign did not complete.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The scenario or one of its points is invalid.
    #[error("the scenario cannot be run")]
    Scenario(#[from] ScenarioError),
    /// A file of results could not be read or written.
    #[error("{}", .path.display())]
    File {
        /// Path of the file that could not be read or written.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A file of results does not contain the result of a run.
    #[error("{} is not a result of a run; remove it", .path.display())]
    Result {
        /// Path of the file without a result.
        path: PathBuf,
        /// Error of the JSON reader.
        #[source]
        source: serde_json::Error,
    },
    /// A run failed that is not played in a modelled world.
    #[error("a run failed")]
    Run(#[source] Box<dyn Error + Send + Sync>),
    /// The campaign was interrupted. Results of finished runs are kept.
    #[error("interrupted with {done} of {all} runs finished; run the same command to resume")]
    Interrupted {
        /// Number of finished runs.
        done: usize,
        /// Number of all runs.
        all: usize,
    },
}

/// The runs of a scenario with its sweep, and the directory of their results.
#[derive(Debug)]
pub struct Campaign {
    scenario: Scenario,
    text: String,
    directory: PathBuf,
    traces: PathBuf,
    in_traces: Traces,
    points: Vec<Point>,
    /// Index of the point, and seed, of each run.
    runs: Vec<(usize, u64)>,
    /// A line that names the mode of the runs; empty for modelled worlds.
    mode: String,
    /// Digests of the files that the scenario reads.
    inputs: String,
}

/// A function that performs a run. It receives a scenario, a seed, the directory of its traces, and a callback that
/// receives the progress and may stop the run.
pub type Runner<'a> =
    dyn Fn(&Scenario, u64, &Path, &mut dyn FnMut(f64) -> bool) -> Result<Outcome, CampaignError> + Sync + 'a;

/// A receiver of the progress of a campaign's threads.
pub trait Progress: Sync {
    /// Called when the run of a thread has reached this part, 0 to 1. Returning `false` stops the campaign.
    fn on_progress(&self, thread: usize, part: f64) -> bool;
    /// Called when a run has finished, or was found finished in the directory.
    fn finished(&self, outcome: &Outcome);
}

/// All results of a campaign: the swept values of each point, and the outcomes of its runs.
pub type Results = Vec<(Vec<(String, String)>, Vec<Outcome>)>;

impl Campaign {
    /// Reads a scenario with its sweep. `repetitions` replaces the scenario's own number; the scenario can name the
    /// frameworks of `catalog`.
    ///
    /// # Errors
    /// Returns an error if the scenario or a file that it reads is invalid.
    pub fn new(
        text: &str,
        file: &Path,
        directory: &Path,
        repetitions: Option<u32>,
        catalog: Catalog,
    ) -> Result<Campaign, ScenarioError> {
        let scenario = Scenario::read(text, file)?;
        let mut points = points(text, file)?;
        let traces = file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
        let in_traces = Traces::read(points.iter().map(|point| &point.scenario), &traces)?;
        let mut files = in_traces.files().clone();
        for point in &mut points {
            point.scenario.catalog = catalog;
            files.extend(check_bundled(&point.scenario, text, file)?);
        }
        let inputs = inputs::digests(&files, &traces)?;
        let seeds = repetitions.unwrap_or(scenario.repetitions);
        if !(1..=MOST_REPETITIONS).contains(&seeds) {
            let rule = format!("{seeds} seeds: must be 1 to {MOST_REPETITIONS}");
            return Err(ScenarioError { file: file.to_owned(), line: 1, rule });
        }
        let seeds = u64::from(seeds);
        let seeds_of = |point: &Point| (0..seeds).map(|n| point.scenario.seed.wrapping_add(n)).collect::<Vec<_>>();
        let of_point =
            |(n, point): (usize, &Point)| seeds_of(point).into_iter().map(move |seed| (n, seed)).collect::<Vec<_>>();
        let runs = points.iter().enumerate().flat_map(of_point).collect();
        Ok(Campaign {
            scenario,
            text: text.to_owned(),
            directory: directory.to_owned(),
            traces,
            in_traces,
            points,
            runs,
            mode: String::new(),
            inputs,
        })
    }

    /// Returns the campaign for runs in another mode than in modelled worlds, by [`run_with`](Campaign::run_with).
    /// `mode` names the mode; results of one mode are not used for another.
    #[must_use]
    pub fn in_mode(self, mode: &str) -> Campaign {
        Campaign { mode: format!("# {}\n", mode.replace('\n', " ")), ..self }
    }

    /// Returns warnings about all points of the sweep, each once, with file, line and reason: what can be run but is
    /// probably not intended.
    #[must_use]
    pub fn warnings(&self, file: &Path) -> Vec<ScenarioError> {
        let mut all: Vec<ScenarioError> = Vec::new();
        for warning in self.points.iter().flat_map(|point| point.scenario.warnings(&self.text, file, &self.in_traces)) {
            if !all.contains(&warning) {
                all.push(warning);
            }
        }
        all
    }

    /// Returns the number of runs of the campaign.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Performs the runs that are not finished yet on this many threads, and writes the report.
    ///
    /// # Errors
    /// Returns the first failure; results of finished runs are kept.
    pub fn run(&self, threads: usize, progress: &dyn Progress) -> Result<Results, CampaignError> {
        self.run_with(threads, progress, &|scenario, seed, traces, progress| Ok(run(scenario, seed, traces, progress)?))
    }

    /// Performs the runs with `runner` instead of in modelled worlds, and writes the report.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Campaign::run).
    pub fn run_with(
        &self,
        threads: usize,
        progress: &dyn Progress,
        runner: &Runner<'_>,
    ) -> Result<Results, CampaignError> {
        self.open()?;
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let slots: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; self.runs.len()]);
        let failed: Mutex<Option<CampaignError>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for thread in 0..threads.clamp(1, self.runs.len().max(1)) {
                let (next, stopped, slots, failed) = (&next, &stopped, &slots, &failed);
                scope.spawn(move || {
                    while !stopped.load(Ordering::Relaxed) {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        let Some((point, seed)) = self.runs.get(n).copied() else { return };
                        let mut report = |part: f64| {
                            let goes_on = progress.on_progress(thread, part) && !stopped.load(Ordering::Relaxed);
                            stopped.fetch_or(!goes_on, Ordering::Relaxed);
                            goes_on
                        };
                        match self.one((point, seed), runner, &mut report) {
                            Ok(_) if stopped.load(Ordering::Relaxed) => {}
                            Ok(outcome) => {
                                progress.finished(&outcome);
                                lock(slots)[n] = Some(outcome);
                            }
                            Err(why) => {
                                lock(failed).get_or_insert(why);
                                stopped.store(true, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        if let Some(why) = lock(&failed).take() {
            return Err(why);
        }
        let slots = std::mem::take(&mut *lock(&slots));
        let done = slots.iter().flatten().count();
        if done < self.runs.len() {
            return Err(CampaignError::Interrupted { done, all: self.runs.len() });
        }
        let mut results: Results = self.points.iter().map(|point| (point.values.clone(), Vec::new())).collect();
        for ((point, _), outcome) in self.runs.iter().zip(slots.into_iter().flatten()) {
            results[*point].1.push(outcome);
        }
        self.report(&results)?;
        Ok(results)
    }

    /// Performs one run, or reads its result if it was performed before.
    fn one(
        &self,
        (point, seed): (usize, u64),
        runner: &Runner<'_>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Outcome, CampaignError> {
        let path = self.directory.join("runs").join(format!("{point:04}-{seed}.json"));
        if path.exists() {
            return read_outcome(&path);
        }
        let mut complete = true;
        let outcome = runner(&self.points[point].scenario, seed, &self.traces, &mut |part| {
            complete = progress(part);
            complete
        })?;
        if !complete {
            return Ok(outcome);
        }
        let text = serde_json::to_string(&outcome).unwrap_or_default();
        write(&path, &text)?;
        // Reads what was written, so that a report does not depend on which runs were found finished.
        read_outcome(&path)
    }

    /// Prepares the directory: deletes results of another scenario, or of the same one with other files.
    fn open(&self) -> Result<(), CampaignError> {
        let runs = self.directory.join("runs");
        let known = self.directory.join("scenario.toml");
        let own = format!("{}{}{}", self.mode, self.inputs, self.text);
        let same = std::fs::read_to_string(&known).is_ok_and(|text| text == own);
        if !same && runs.exists() {
            std::fs::remove_dir_all(&runs).map_err(|source| CampaignError::File { path: runs.clone(), source })?;
        }
        std::fs::create_dir_all(&runs).map_err(|source| CampaignError::File { path: runs.clone(), source })?;
        write(&known, &own)
    }

    fn report(&self, results: &Results) -> Result<(), CampaignError> {
        write_report(&self.directory, &self.scenario.name, &self.scenario.about, &self.text, results)
    }
}

/// Writes the results and the report of a single run, replacing the content of the directory.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn save_one(directory: &Path, text: &str, about: &str, outcome: &Outcome) -> Result<(), CampaignError> {
    let runs = directory.join("runs");
    let broken = |source| CampaignError::File { path: runs.clone(), source };
    if runs.exists() {
        std::fs::remove_dir_all(&runs).map_err(broken)?;
    }
    std::fs::create_dir_all(&runs).map_err(broken)?;
    write(&directory.join("scenario.toml"), text)?;
    write(&runs.join(format!("0000-{}.json", outcome.seed)), &serde_json::to_string(outcome).unwrap_or_default())?;
    write_report(directory, &outcome.scenario, about, text, &vec![(Vec::new(), vec![outcome.clone()])])
}

/// Writes the tables (`summary.csv`, `series.csv`) and the page (`report.html`).
fn write_report(directory: &Path, name: &str, about: &str, text: &str, results: &Results) -> Result<(), CampaignError> {
    let all: Vec<_> = results
        .iter()
        .flat_map(|(values, outcomes)| outcomes.iter().map(|outcome| (values.clone(), outcome)))
        .collect();
    write(&directory.join("summary.csv"), &report::summary_csv(&all))?;
    if let Some(first) = results.iter().find_map(|(_, outcomes)| outcomes.first()) {
        write(&directory.join("series.csv"), &report::series_csv(first))?;
    }
    write(&directory.join("report.html"), &report::page(name, about, text, results))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A poisoned lock is no problem: values are stored whole, so a thread that panicked has left no partial one.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write(path: &Path, text: &str) -> Result<(), CampaignError> {
    // Renames a complete file, so that an interruption leaves no partial one.
    let part = path.with_extension("part");
    std::fs::write(&part, text)
        .and_then(|()| std::fs::rename(&part, path))
        .map_err(|source| CampaignError::File { path: path.to_owned(), source })
}

fn read_outcome(path: &Path) -> Result<Outcome, CampaignError> {
    let text = std::fs::read_to_string(path).map_err(|source| CampaignError::File { path: path.to_owned(), source })?;
    serde_json::from_str(&text).map_err(|source| CampaignError::Result { path: path.to_owned(), source })
}

/// Reads a campaign's directory: returns its finished runs by points, with the swept values of each, and the scenario's
/// text.
///
/// # Errors
/// Returns an error if the directory cannot be read, or contains something else.
pub fn read_results(directory: &Path) -> Result<(Results, String), CampaignError> {
    let known = directory.join("scenario.toml");
    let text = std::fs::read_to_string(&known).map_err(|source| CampaignError::File { path: known.clone(), source })?;
    let points = points(&text, &known)?;
    let mut results: Results = points.into_iter().map(|point| (point.values, Vec::new())).collect();
    for (point, outcome) in read_runs(directory)? {
        if let Some((_, outcomes)) = results.get_mut(point) {
            outcomes.push(outcome);
        }
    }
    Ok((results, text))
}

/// Returns the runs in a campaign's directory with the numbers of their points, in the order of points and seeds.
fn read_runs(directory: &Path) -> Result<Vec<(usize, Outcome)>, CampaignError> {
    let runs = directory.join("runs");
    let broken = |source| CampaignError::File { path: runs.clone(), source };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(&runs).map_err(broken)? {
        let path = entry.map_err(broken)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    let mut runs = Vec::new();
    for path in paths {
        let name = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
        let point = name.and_then(|(point, _)| point.parse().ok()).unwrap_or(0);
        runs.push((point, read_outcome(&path)?));
    }
    runs.sort_by_key(|(point, outcome)| (*point, outcome.seed));
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Limited {
        stop_after: usize,
        finished: AtomicUsize,
    }

    impl Progress for Limited {
        fn on_progress(&self, _: usize, _: f64) -> bool {
            self.finished.load(Ordering::Relaxed) < self.stop_after
        }
        fn finished(&self, _: &Outcome) {
            self.finished.fetch_add(1, Ordering::Relaxed);
        }
    }

    const SCENARIO: &str = "name = 'c'\nduration = '1m'\nrepetitions = 2\n[[agents]]\nresources = 'cpus:4;mem:4096'\n\
        [[frameworks]]\nname = 'f'\n[[frameworks.jobs]]\nevery = '1s'\nneeds = 'cpus:1;mem:64'\ntime = '2s'\n\
        [sweep]\n'frameworks.f.conduct.refuse' = ['1s', '10s']\n";

    #[test]
    fn a_bad_trace_is_refused_before_anything_runs() {
        let directory = std::env::temp_dir().join(format!("tepui-lab-trace-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let header = "submit_s,tasks,cpus,mem_mb,duration_s\n";
        std::fs::write(directory.join("good.csv"), format!("{header}0,1,1,64,5\n")).unwrap();
        std::fs::write(directory.join("bad.csv"), format!("{header}0,1,1,64,5\n1,1,-1,64,5\n")).unwrap();
        let text = "name = 'c'\nduration = '1m'\n[[agents]]\nresources = 'cpus:4;mem:4096'\n[[frameworks]]\nname = 'f'\n\
            [[frameworks.jobs]]\ntrace = 'good.csv'\n[sweep]\n'frameworks.f.jobs.0.trace' = ['good.csv', 'bad.csv']\n";
        let why = Campaign::new(text, &directory.join("c.toml"), &directory.join("out"), None, Catalog::default())
            .unwrap_err();
        assert_eq!((why.file.clone(), why.line), (directory.join("bad.csv"), 3));
        assert!(why.rule.contains("cpus"), "{}", why.rule);
        assert!(!directory.join("out").exists());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn results_of_a_changed_trace_are_begun_anew() {
        let directory = std::env::temp_dir().join(format!("tepui-lab-changed-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let text = "name = 'c'\nduration = '1m'\n[[agents]]\nresources = 'cpus:4;mem:4096'\n[[frameworks]]\nname = 'f'\n\
            [[frameworks.jobs]]\ntrace = 'jobs.csv'\n";
        let submitted = |jobs: u32| {
            let rows: String = (0..jobs).map(|at| format!("{at},1,1,64,5\n")).collect();
            let header = "submit_s,tasks,cpus,mem_mb,duration_s\n";
            std::fs::write(directory.join("jobs.csv"), format!("{header}{rows}")).unwrap();
            let (file, out) = (directory.join("c.toml"), directory.join("out"));
            let campaign = Campaign::new(text, &file, &out, None, Catalog::default()).unwrap();
            let progress = Limited { stop_after: 99, finished: AtomicUsize::new(0) };
            let results = campaign.run(1, &progress).unwrap();
            assert_eq!(read_results(&out).unwrap().0.len(), 1, "what stands above the scenario is not part of it");
            results[0].1[0].frameworks[0].submitted
        };
        assert_eq!((submitted(2), submitted(2), submitted(3)), (2, 2, 3));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn an_interrupted_campaign_goes_on() {
        let directory = std::env::temp_dir().join(format!("tepui-lab-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let campaign = Campaign::new(SCENARIO, Path::new("c.toml"), &directory, None, Catalog::default()).unwrap();
        assert_eq!(campaign.runs(), 4);
        let progress = |stop_after| Limited { stop_after, finished: AtomicUsize::new(0) };
        let interrupted = campaign.run(1, &progress(2)).unwrap_err();
        assert!(matches!(interrupted, CampaignError::Interrupted { done: 2, all: 4 }), "{interrupted}");
        assert_eq!(read_results(&directory).unwrap().0.iter().map(|(_, outcomes)| outcomes.len()).sum::<usize>(), 2);
        let results = campaign.run(2, &progress(99)).unwrap();
        assert_eq!(results.iter().map(|(_, outcomes)| outcomes.len()).sum::<usize>(), 4);
        let again =
            Campaign::new(SCENARIO, Path::new("c.toml"), &directory.join("b"), None, Catalog::default()).unwrap();
        let others = again.run(2, &progress(99)).unwrap();
        assert!(format!("{results:?}") == format!("{others:?}"), "results depend on threads or interruptions");
        let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
        assert!(page.contains("<svg") && page.contains("conduct.refuse = 10s"));
        let csv = std::fs::read_to_string(directory.join("summary.csv")).unwrap();
        assert_eq!(csv.lines().count(), 5);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
