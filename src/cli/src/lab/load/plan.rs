//! The parameters of a load, and the scenario that is generated from them.

use std::fmt::Write as _;
use std::time::Duration;

use ::lab::dist::Dist;
use ::lab::live::MOST_TASKS;
use ::lab::span::show_span;
use ::lab::users::Preset;
use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use resources::{Role, parse_quantities, parse_text};

/// Maximum number of tasks of one load.
const MOST: f64 = 1_000_000.0;
/// Minimum time for which the run waits for submitted tasks.
const GRACE: Duration = Duration::from_secs(60);

/// How tasks arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Arrivals {
    /// At random moments.
    Poisson,
    /// Evenly.
    Even,
}

/// Reads the name of a [`Preset`].
pub(super) fn preset() -> impl TypedValueParser<Value = Preset> {
    let named = |name: String| Preset::ALL.into_iter().find(|preset| preset.name() == name).unwrap_or_default();
    PossibleValuesParser::new(Preset::ALL.map(Preset::name)).map(named)
}

/// Parses the number of tasks that are submitted in a second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let read = text.parse().ok().filter(|rate| (0.01..=2000.0).contains(rate));
    read.ok_or_else(|| format!("'{text}' is not a rate: a number of tasks in a second, from 0.01 to 2000"))
}

/// The parameters of a load.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub rate: f64,
    pub duration: Duration,
    pub frameworks: u32,
    pub time: Dist,
    pub needs: String,
    pub arrivals: Arrivals,
    pub like: Option<Preset>,
    pub role: String,
    pub seed: u64,
    pub agents: u32,
    pub resources: String,
}

impl Plan {
    /// Rejects harmful loads. `own` is true if a cluster is started for the load.
    pub fn check(&self, own: bool) -> Result<()> {
        let tasks = self.rate * self.duration.as_secs_f64();
        if self.duration < Duration::from_secs(1) {
            bail!("--duration must be at least 1s");
        }
        if tasks > MOST {
            bail!("the load has {tasks:.0} tasks, and may have {MOST:.0} at most: lower --rate or --duration");
        }
        let needs = parse_quantities(&self.needs).context("--needs")?;
        Role::parse(&self.role).context("--role")?;
        if own {
            let all = parse_text(&self.resources, &Role::star()).context("--resources")?.quantities();
            if !all.contains(&needs) {
                bail!("a task needs {needs}, and an agent has {all}: no task could run");
            }
        }
        let Some(mean) = self.time.mean() else { bail!("--time must have a mean") };
        let at_once = self.rate * mean.as_secs_f64();
        if own && at_once > MOST_TASKS as f64 {
            bail!("about {at_once:.0} tasks would run at once; {MOST_TASKS} may: lower --rate or --time");
        }
        Ok(())
    }

    /// Returns the maximum duration of a run.
    pub fn longest(&self) -> Duration {
        self.duration + GRACE + self.time.mean().unwrap_or_default().saturating_mul(10)
    }

    /// Returns the scenario as TOML.
    pub fn scenario(&self) -> String {
        let like = self.like.unwrap_or_default().name();
        let conduct = if self.like.is_none() { "conduct = { revive = true }\n" } else { "" };
        let interval = Duration::from_secs_f64(f64::from(self.frameworks) / self.rate);
        let interval = show_span(Duration::from_nanos(interval.as_nanos() as u64));
        let way = match self.arrivals {
            Arrivals::Poisson => "poisson",
            Arrivals::Even => "every",
        };
        let until = show_span(self.duration);
        let mut text = format!(
            "name = \"load\"\nabout = \"{} tasks a second for {until}, of {}\"\nseed = {}\nduration = \"{}\"\n\
             until_done = true\nsample = \"500ms\"\n\n[[agents]]\ncount = {}\nresources = {}\n\n[[frameworks]]\nname = \"load\"\n\
             count = {}\nrole = {}\nlike = \"{like}\"\n{conduct}",
            self.rate,
            self.time,
            self.seed,
            show_span(self.longest()),
            self.agents,
            quoted(&self.resources),
            self.frameworks,
            quoted(&self.role),
        );
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[frameworks.jobs]]\n{way} = \"{interval}\"\nuntil = \"{until}\"\nneeds = {}\ntime = \"{}\"\n\n[[windows]]\n\
             name = \"load\"\nfrom = \"0s\"\nto = \"{until}\"\n",
            quoted(&self.needs),
            self.time,
        );
        text
    }
}

/// Quotes a text for TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
pub(super) fn plan() -> Plan {
    Plan {
        rate: 30.0,
        duration: Duration::from_secs(10),
        frameworks: 3,
        time: "exponential 2s".parse().unwrap(),
        needs: "cpus:0.1;mem:32".to_owned(),
        arrivals: Arrivals::Poisson,
        like: None,
        role: "*".to_owned(),
        seed: 7,
        agents: 4,
        resources: "cpus:16;mem:16384".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use ::lab::scenario::Scenario;

    #[test]
    fn a_load_is_a_scenario() {
        for arrivals in [Arrivals::Poisson, Arrivals::Even] {
            for like in [None, Some(Preset::Marathon)] {
                let text = Plan { arrivals, like, ..plan() }.scenario();
                let scenario = Scenario::read(&text, Path::new("load.toml")).unwrap();
                let outcome = ::lab::run::run(&scenario, 7, Path::new("."), &mut |_| true).unwrap();
                let submitted: u64 = outcome.frameworks.iter().map(|framework| framework.submitted).sum();
                assert!((240..360).contains(&submitted) && outcome.done, "{submitted}: {text}");
            }
        }
    }

    #[test]
    fn loads_beyond_the_limits_are_rejected() {
        plan().check(true).unwrap();
        for (plan, word) in [
            (Plan { duration: Duration::from_secs(864_000), ..plan() }, "1000000 at most"),
            (Plan { time: "1h".parse().unwrap(), ..plan() }, "at once"),
            (Plan { time: "pareto 1s 0.9".parse().unwrap(), ..plan() }, "mean"),
            (Plan { duration: Duration::from_millis(10), ..plan() }, "--duration"),
            (Plan { needs: "cpus".to_owned(), ..plan() }, "--needs"),
            (Plan { needs: "cpus:17".to_owned(), ..plan() }, "no task could run"),
            (Plan { role: "a b".to_owned(), ..plan() }, "--role"),
        ] {
            assert!(plan.check(true).unwrap_err().to_string().contains(word), "{word}");
        }
        assert!(rate("0").is_err() && rate("nan").is_err() && rate("12.5") == Ok(12.5));
    }
}
