//! The environment for policies of offers, tuned while a scenario of the laboratory runs: how long offers may be held,
//! how long filters last, how finely agents are offered, how much a framework may hold. The cluster is that of `lab`:
//! the real cores of master and agents, and modelled frameworks. Any scenario can be an environment.
//!
//! A step is a period of virtual time. The reward is minus the weighted sum of unfairness, lost shares and waits in it.

mod choices;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use allocator::policies::Policies;
use lab::measure::Series;
use lab::run::Stepped;
use lab::scenario::{Prepared, Scenario, ScenarioError, check_bundled, prepare};
use lab::seeds::Seed;
use resources::Quantities;
use serde::Deserialize;

use crate::environment::{ChosenAction, roll_out};
use crate::error::rules;
use crate::files::Files;
use crate::random::Random;
use crate::space::{Actions, Field, Row, Spaces};
use crate::{Action, Environment, LearningError, Rollout, Step};

/// Default scenario.
const SCENARIO: &str = include_str!("scenario.toml");

/// Maximum number of frameworks of a scenario: the samples of a run have no more.
const MOST_FRAMEWORKS: usize = 40;

/// Number of features of a framework.
const FRAMEWORK: usize = 7;

/// Settings of the environment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// File of a scenario; `None` for one with two frameworks, of which one holds offers.
    pub scenario: Option<String>,
    /// Length of a step in virtual seconds.
    pub period: f64,
    /// Weight of unfairness: the gap between the smallest and the largest share, 0 to 1.
    pub unfairness: f64,
    /// Weight of lost shares: the part of the cluster that frameworks are entitled to and do not have, 0 to 1.
    pub lost: f64,
    /// Weight of each minute of the mean wait of the tasks that started in the period.
    pub waiting: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { scenario: None, period: 30.0, unfairness: 1.0, lost: 1.0, waiting: 0.0 }
    }
}

/// Names of the policies of [`Environment::baseline`].
const POLICIES: &str = "scenario, random, 'constant HOLDING REFUSAL GRANULARITY SHARE' with the numbers of an action";

/// State shared by all environments of a batch.
#[derive(Clone)]
pub struct Shared {
    scenario: Arc<Scenario>,
    directory: PathBuf,
    settings: Settings,
    largest: Quantities,
}

impl Shared {
    /// Reads and checks the scenario.
    ///
    /// # Errors
    /// Returns the first invalid setting, or the error of the scenario.
    pub fn new(settings: Settings, files: &dyn Files) -> Result<Shared, LearningError> {
        let weight = |weight: f64| (0.0..=1e6).contains(&weight);
        rules([
            ("period", (0.1..=1e6).contains(&settings.period), "must be 0.1 to 10^6 seconds"),
            ("unfairness", weight(settings.unfairness), "must be 0 to 10^6"),
            ("lost", weight(settings.lost), "must be 0 to 10^6"),
            ("waiting", weight(settings.waiting), "must be 0 to 10^6"),
        ])?;
        let name = settings.scenario.clone().unwrap_or_else(|| "the scenario of OfferPolicies".to_owned());
        let unusable = |why: Box<dyn std::error::Error + Send + Sync>| LearningError::File { name: name.clone(), why };
        let invalid = |why: ScenarioError| unusable(why.into());
        let text = match &settings.scenario {
            None => SCENARIO.to_owned(),
            Some(file) => {
                let bytes = files.read(file).map_err(|why| unusable(why.into()))?;
                String::from_utf8(bytes).map_err(|why| unusable(why.into()))?
            }
        };
        let file = PathBuf::from(&name);
        let directory = settings.scenario.as_ref().map_or_else(PathBuf::new, |file| files.directory(file));
        let scenario = Scenario::read(&text, &file).map_err(invalid)?.with(files.catalog());
        check_bundled(&scenario, &text, &directory.join("scenario.toml")).map_err(invalid)?;
        let frameworks = scenario.frameworks.iter().map(|part| part.count as usize).sum::<usize>();
        if frameworks > MOST_FRAMEWORKS {
            let rule = format!("must have {MOST_FRAMEWORKS} frameworks or fewer, not {frameworks}");
            return Err(LearningError::setting("scenario", rule));
        }
        let Prepared { setup, .. } = prepare(&scenario, Seed::root(1), &directory).map_err(invalid)?;
        let all = setup.agents.iter().map(|agent| agent.resources.quantities());
        let largest = all.fold(Quantities::new(), |largest, agent| largest.max(&agent));
        Ok(Shared { scenario: Arc::new(scenario), directory, settings, largest })
    }

    fn of_scenario(&self) -> &Policies {
        &self.scenario.master.policies
    }
}

/// Means of the samples over the last period.
#[derive(Clone, Debug, Default)]
struct Period {
    frameworks: Vec<[f64; FRAMEWORK]>,
    utilisation: f64,
    offered: f64,
    gap: f64,
    jain: f64,
    lost: f64,
    /// Mean wait of the tasks that started in the period, over all frameworks, in seconds.
    waited: f64,
}

/// The environment for policies of offers.
pub struct OfferPolicies {
    shared: Shared,
    spaces: Spaces,
    run: Option<Stepped>,
    seed: u64,
    now: Duration,
    period: Period,
    chosen: [usize; 4],
    policies: Policies,
    /// Sums over the periods: unfairness, lost shares, waits.
    sums: [f64; 3],
    periods: u32,
}

impl OfferPolicies {
    /// Creates an environment.
    pub fn new(shared: Shared) -> OfferPolicies {
        let frameworks = shared.scenario.frameworks.iter().map(|part| part.count as usize).sum::<usize>();
        let spaces = Spaces {
            observation: vec![
                Field::floats("frameworks", &[frameworks, FRAMEWORK]),
                Field::floats("cluster", &[6]),
                Field::floats("policies", &[4]),
            ],
            action: Actions::Choices(choices::counts()),
            info: vec!["unfairness", "lost", "waited", "time"],
            reward: (f64::NEG_INFINITY, 0.0),
        };
        OfferPolicies {
            policies: shared.of_scenario().clone(),
            spaces,
            run: None,
            seed: 0,
            now: Duration::ZERO,
            period: Period::default(),
            chosen: [0; 4],
            sums: [0.0; 3],
            periods: 0,
            shared,
        }
    }

    /// Computes the means of the period from `since` to now.
    fn look(&mut self, since: Duration) {
        let Some(run) = &mut self.run else { return };
        let series = run.series();
        let from = series.at.partition_point(|at| *at <= since.as_secs_f64() && *at > 0.0);
        let mut period = means(series, from);
        let (from, to) = (since.as_secs_f64(), self.now.as_secs_f64());
        let (mut all, mut count) = (0.0, 0.0);
        for (who, features) in period.frameworks.iter_mut().enumerate() {
            let waits = run.tasks(who).iter().filter(|task| task.running > from && task.running <= to);
            let (sum, tasks) = waits.fold((0.0, 0.0), |(sum, n), task| (sum + task.running - task.submitted, n + 1.0));
            features[FRAMEWORK - 2] = if tasks > 0.0 { sum / tasks } else { 0.0 };
            features[FRAMEWORK - 1] = tasks;
            (all, count) = (all + sum, count + tasks);
        }
        period.waited = if count > 0.0 { all / count } else { 0.0 };
        self.period = period;
    }
}

/// Returns the means of the samples from index `from` on.
fn means(series: &Series, from: usize) -> Period {
    let mean = |all: &[f64]| {
        let all = all.get(from..).unwrap_or_default();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let mut period = Period {
        utilisation: mean(&series.utilisation),
        offered: mean(&series.offered),
        gap: mean(&series.gap),
        jain: mean(&series.jain),
        ..Period::default()
    };
    for track in &series.tracks {
        let missing: Vec<f64> =
            track.share.iter().zip(&track.target).map(|(share, target)| (target - share).max(0.0)).collect();
        period.lost += mean(&missing);
        let declined = track.declined.last().copied().unwrap_or(0.0)
            - from.checked_sub(1).and_then(|before| track.declined.get(before)).copied().unwrap_or(0.0);
        let values = [mean(&track.share), mean(&track.target), mean(&track.held), mean(&track.waiting), declined];
        let mut features = [0.0; FRAMEWORK];
        features[..values.len()].copy_from_slice(&values);
        period.frameworks.push(features);
    }
    period
}

impl Environment for OfferPolicies {
    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) -> Result<(), LearningError> {
        let Shared { scenario, directory, .. } = &self.shared;
        let unusable = |why: ScenarioError| LearningError::File { name: scenario.name.clone(), why: why.into() };
        let mut run = Stepped::new(scenario, seed, directory).map_err(unusable)?;
        // The master leads after that time; before that it has no policies to set.
        run.run_until(Duration::from_millis(5));
        self.run = Some(run);
        (self.seed, self.now, self.chosen) = (seed, Duration::ZERO, [0; 4]);
        self.policies = self.shared.of_scenario().clone();
        (self.sums, self.periods) = ([0.0; 3], 0);
        self.look(Duration::ZERO);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, LearningError> {
        let Some(run) = &mut self.run else { return Err(LearningError::NoEpisode(0)) };
        let policies = choices::policies(self.shared.of_scenario(), action, &self.shared.largest);
        if policies != self.policies {
            policies.check().map_err(|why| LearningError::setting("policies", why.to_string()))?;
            run.set_policies(policies.clone());
            self.policies = policies;
        }
        self.chosen = [0, 1, 2, 3].map(|at| action.choice(at));
        let since = self.now;
        let end = self.shared.scenario.duration.0;
        self.now = (since + Duration::from_secs_f64(self.shared.settings.period)).min(end);
        run.run_until(self.now);
        let terminated = run.is_over() || self.now >= end;
        self.look(since);
        let Settings { unfairness, lost, waiting, .. } = self.shared.settings;
        let parts = [self.period.gap, self.period.lost, self.period.waited];
        (0..3).for_each(|at| self.sums[at] += parts[at]);
        self.periods += 1;
        let reward = -(unfairness * parts[0] + lost * parts[1] + waiting * parts[2] / 60.0);
        Ok(Step { reward, terminated, truncated: false })
    }

    fn observe(&self, row: &mut Row<'_>) {
        let period = &self.period;
        for (at, features) in period.frameworks.iter().enumerate() {
            row.floats(0, at * FRAMEWORK, features.iter().map(|value| *value as f32));
        }
        let time = self.now.as_secs_f64() / self.shared.scenario.duration.0.as_secs_f64();
        let cluster = [period.utilisation, period.offered, period.gap, period.jain, period.lost, time];
        row.floats(1, 0, cluster.map(|value| value as f32));
        row.floats(2, 0, self.chosen.iter().map(|chosen| *chosen as f32));
    }

    fn info(&self, values: &mut [f64]) {
        let means = self.sums.map(|sum| sum / f64::from(self.periods.max(1)));
        values.copy_from_slice(&[means[0], means[1], means[2], self.now.as_secs_f64()]);
    }

    fn policies(&self) -> &'static str {
        POLICIES
    }

    fn baseline(&mut self, policy: &str, seed: u64) -> Result<Rollout, LearningError> {
        let counts = choices::counts();
        let mut random = Random::new(seed, "policy");
        let constant = policy.strip_prefix("constant ").and_then(|numbers| {
            let all = numbers.split(' ').map(|one| one.parse::<i32>().ok()).collect::<Option<Vec<i32>>>()?;
            let fits = |(one, count): (&i32, &u32)| u32::try_from(*one).is_ok_and(|one| one < *count);
            (all.len() == counts.len() && all.iter().zip(&counts).all(fits)).then_some(all)
        });
        match (policy, constant) {
            ("scenario", _) => roll_out(self, seed, |_| ChosenAction::Choices(vec![0; counts.len()])),
            ("random", _) => roll_out(self, seed, |_| {
                ChosenAction::Choices(counts.iter().map(|count| random.below(*count as usize) as i32).collect())
            }),
            (_, Some(all)) => roll_out(self, seed, |_| ChosenAction::Choices(all.clone())),
            _ => Err(LearningError::Policy { policy: policy.to_owned(), known: POLICIES }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NoFiles;

    fn environment(settings: Settings) -> OfferPolicies {
        OfferPolicies::new(Shared::new(settings, &NoFiles).unwrap())
    }

    #[test]
    fn a_run_that_is_left_alone_is_that_of_the_laboratory() {
        let mut env = environment(Settings { period: 45.0, ..Settings::default() });
        env.baseline("scenario", 3).unwrap();
        let stepped = env.run.take().unwrap().finish();
        let scenario = Scenario::read(SCENARIO, std::path::Path::new("s")).unwrap();
        let whole = lab::run::run(&scenario, 3, std::path::Path::new(""), &mut |_| true).unwrap();
        assert_eq!((stepped.digest, stepped.events), (whole.digest, whole.events));
        assert_eq!(stepped.series.gap, whole.series.gap);
    }

    #[test]
    fn shorter_holding_is_fairer_and_a_random_episode_can_be_had_again() {
        let mut env = environment(Settings::default());
        let free = env.baseline("scenario", 1).unwrap();
        let short = env.baseline("constant 2 0 0 0", 1).unwrap();
        assert!(short.total > free.total, "{short:?} {free:?}");
        assert_eq!(env.baseline("random", 1).unwrap(), env.baseline("random", 1).unwrap());
        assert!(env.baseline("constant 9 0 0 0", 1).is_err());
        assert!(env.baseline("constant 1", 1).is_err());
    }

    #[test]
    fn settings_are_checked() {
        let refused = |settings| Shared::new(settings, &NoFiles).err().unwrap().to_string();
        assert_eq!(
            refused(Settings { period: 0.0, ..Settings::default() }),
            "invalid 'period': must be 0.1 to 10^6 seconds"
        );
        let missing = Settings { scenario: Some("no.toml".into()), ..Settings::default() };
        assert_eq!(refused(missing), "no.toml cannot be used");
    }
}
