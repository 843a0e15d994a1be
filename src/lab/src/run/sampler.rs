//! Samples the records at regular times, and summarizes them at the end of a run.

use std::time::Duration;

use allocator::fairness::{Competitor, fill};
use resources::{Name, Quantities};

use crate::bundled::{Measure, Sum};
use crate::measure::{
    FrameworkOutcome, FrameworkState, Live, Outcome, OwnTrack, Recorder, Series, Summary, Track, Unfairness,
    WindowOutcome, WindowSums,
};
use crate::scenario::{PreparedFramework, Scenario, Window};
use crate::span::Span;

use super::source::Sources;

/// The most frameworks that have a track of their own in the series.
const TRACKS: usize = 40;

/// The general fields of an outcome.
pub(crate) struct OutcomeHeader {
    pub scenario: String,
    pub seed: u64,
    pub digest: String,
    pub events: u64,
    pub seconds: f64,
    pub done: bool,
    pub live: Option<Live>,
}

/// Returns the empty track of a framework.
fn track(framework: &PreparedFramework) -> Track {
    let over_time = framework.measures.iter().filter(|measure| measure.of == Sum::Time);
    let own = |measure: &Measure| OwnTrack { title: measure.title.to_owned(), ..OwnTrack::default() };
    Track { own: over_time.map(own).collect(), ..Track::default() }
}

/// Samples the records of a run.
pub(super) struct Sampler {
    names: Vec<(String, String)>,
    weights: Vec<f64>,
    /// Own measures of each framework.
    measures: Vec<&'static [Measure]>,
    /// Total resources of the agents.
    total: Quantities,
    windows: Vec<(Window, WindowSums)>,
    series: Series,
}

impl Sampler {
    /// Creates a sampler. `total` are the resources of all agents.
    pub fn new(scenario: &Scenario, total: Quantities, frameworks: &[PreparedFramework]) -> Sampler {
        // Frameworks of one role share its weight.
        let of_role = |role: &str| frameworks.iter().filter(|framework| framework.role == role).count().max(1) as f64;
        let weight = |role: &str| scenario.roles.get(role).and_then(|part| part.weight).unwrap_or(1.0);
        let weights = frameworks.iter().map(|framework| weight(&framework.role) / of_role(&framework.role)).collect();
        let whole = Window { name: "whole".to_owned(), from: Span(Duration::ZERO), to: scenario.duration };
        let windows = if scenario.windows.is_empty() { vec![whole] } else { scenario.windows.clone() };
        Sampler {
            names: frameworks.iter().map(|framework| (framework.name.clone(), framework.role.clone())).collect(),
            weights,
            measures: frameworks.iter().map(|framework| framework.measures).collect(),
            total,
            windows: windows.into_iter().map(|window| (window, WindowSums::new(frameworks.len()))).collect(),
            series: Series { tracks: frameworks.iter().take(TRACKS).map(track).collect(), ..Series::default() },
        }
    }

    /// Returns the times at which windows begin and end.
    pub fn edges(&self) -> Vec<Duration> {
        self.windows.iter().flat_map(|(window, _)| [window.from.0, window.to.0]).collect()
    }

    /// Returns the samples so far.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Begins and ends the windows that begin or end at this time.
    pub fn edge(&mut self, at: Duration, recorder: &Recorder) {
        for (window, sums) in &mut self.windows {
            if window.from.0 == at {
                sums.begins(recorder.areas(at.as_secs_f64()));
            }
            if window.to.0 == at {
                sums.ends(recorder.areas(at.as_secs_f64()));
            }
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self, at: Duration, recorder: &Recorder) {
        let states: Vec<FrameworkState> = (0..self.names.len()).map(|framework| recorder.state(framework)).collect();
        let competitors: Vec<Competitor> =
            states.iter().zip(&self.weights).map(|(state, weight)| self.competitor(state, *weight)).collect();
        let demands: f64 = competitors.iter().map(|one| one.demand).sum();
        let targets = fill(1.0, &competitors);
        let shares: Vec<f64> = states.iter().map(|state| state.used.ratio(&self.total)).collect();
        let held: Vec<f64> = states.iter().map(|state| state.held.ratio(&self.total)).collect();
        let (mut used, mut offered) = (Quantities::new(), Quantities::new());
        for state in &states {
            used += &state.used;
            offered += &state.held;
        }
        let wanting = competitors.iter().filter(|one| one.demand > 0.0).count();
        // There is contention if a framework's fair share is less than its demand.
        let short = targets.iter().zip(&competitors).any(|(target, one)| *target < one.demand - 1e-9);
        let contended = wanting >= 2 && short && demands > 0.0;
        for (window, sums) in &mut self.windows {
            if (window.from.0..window.to.0).contains(&at) {
                sums.add(&shares, &targets, contended);
            }
        }
        let now =
            if contended { Unfairness::at(&shares, &targets) } else { Unfairness { jain: 1.0, ..Default::default() } };
        self.series.gap.push(now.gap);
        self.series.jain.push(now.jain);
        self.series.at.push(at.as_secs_f64());
        self.series.utilisation.push(used.ratio(&self.total));
        self.series.offered.push(offered.ratio(&self.total));
        for (framework, track) in self.series.tracks.iter_mut().enumerate() {
            track.share.push(shares[framework]);
            track.target.push(targets[framework]);
            track.waiting.push(states[framework].waiting_tasks as f64);
            track.held.push(held[framework]);
            track.declined.push(states[framework].offers_declined as f64);
            let over_time = self.measures[framework].iter().enumerate().filter(|(_, measure)| measure.of == Sum::Time);
            for ((measure, _), own) in over_time.zip(&mut track.own) {
                own.values.push(recorder.level(framework, measure));
            }
        }
    }

    /// Returns a framework's demand, for water-filling.
    fn competitor(&self, state: &FrameworkState, weight: f64) -> Competitor {
        let mut wanted = state.used.clone();
        wanted += &state.waiting;
        let demand = wanted.ratio(&self.total);
        let mix = self.total.iter().map(|(name, all)| match demand > 0.0 {
            true => wanted.get(&name).ratio_of(all) / demand,
            false => 0.0,
        });
        Competitor { weight, demand, mix: mix.collect() }
    }

    /// Ends the windows and returns the outcome of the run.
    pub fn outcome(mut self, head: OutcomeHeader, recorder: &Recorder, sources: &Sources) -> Outcome {
        let names: Vec<Name> = self.total.iter().map(|(name, _)| name).collect();
        let windows = std::mem::take(&mut self.windows);
        let all = self.total.iter().map(|(_, all)| all.to_f64().max(f64::MIN_POSITIVE)).collect::<Vec<_>>();
        let part = |((name, all), used): ((&Name, &f64), f64)| (name.to_string(), used / all);
        let ended = |(window, mut sums): (Window, WindowSums)| {
            sums.ends(recorder.areas(head.seconds));
            (window, sums)
        };
        let windows = windows.into_iter().map(ended).map(|(window, sums)| WindowOutcome {
            unfairness: sums.unfairness(),
            utilisation: names.iter().zip(&all).zip(sums.used()).map(part).collect(),
            offered: sums.offered(),
            shares: sums.shares(),
            targets: sums.targets(),
            from: window.from.0.as_secs_f64(),
            to: window.to.0.as_secs_f64(),
            name: window.name,
        });
        let windows = windows.collect();
        Outcome {
            scenario: head.scenario,
            seed: head.seed,
            digest: head.digest,
            events: head.events,
            seconds: head.seconds,
            done: head.done,
            live: head.live,
            frameworks: (0..self.names.len())
                .map(|framework| self.framework(framework, recorder, sources, head.seconds))
                .collect(),
            windows,
            series: self.series,
            strips: recorder.strips().to_vec(),
        }
    }

    /// Returns the means of a framework's own measures, by name.
    fn own(&self, framework: usize, recorder: &Recorder, now: f64) -> Vec<(String, Option<f64>)> {
        let mean = |(n, measure): (usize, &Measure)| (measure.name.to_owned(), recorder.mean_of(framework, n, now));
        self.measures[framework].iter().enumerate().map(mean).collect()
    }

    fn framework(&self, framework: usize, recorder: &Recorder, sources: &Sources, now: f64) -> FrameworkOutcome {
        let tasks = recorder.tasks(framework);
        let over = |from: fn(&crate::measure::TaskRecord) -> f64, to: fn(&crate::measure::TaskRecord) -> f64| {
            Summary::of(tasks.iter().map(|task| to(task) - from(task)).filter(|time| time.is_finite()).collect())
        };
        let state = recorder.state(framework);
        let ended = tasks.iter().filter(|task| task.ended.is_finite()).count() as u64;
        FrameworkOutcome {
            name: self.names[framework].0.clone(),
            role: self.names[framework].1.clone(),
            submitted: tasks.len() as u64,
            finished: tasks.iter().filter(|task| task.finished).count() as u64,
            failed: state.failed,
            left: tasks.len() as u64 - ended,
            wait: over(|task| task.submitted, |task| task.running),
            start: over(|task| task.launched, |task| task.running),
            job: Summary::of(recorder.job_times(framework)),
            kinds: sources.kinds(framework, recorder),
            own: self.own(framework, recorder, now),
            own_titles: self.measures[framework]
                .iter()
                .map(|one| (one.name.to_owned(), one.title.to_owned()))
                .collect(),
            offers_received: state.offers_received,
            offers_accepted: state.offers_accepted,
            offers_declined: state.offers_declined,
            offers_rescinded: state.offers_rescinded,
            offer_held: state.offer_held,
        }
    }
}
