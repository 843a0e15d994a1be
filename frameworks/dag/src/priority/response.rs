//! Predicts response times of classes in an engine that runs one job at a time and evicts none: an M/PH/1 queue with
//! priorities that do not pre-empt (Cobham, 1954). It chooses nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::drop::DropRatio;
use super::service::Phases;

/// A model of the jobs of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassModel {
    /// Arrival rate, in jobs per second.
    pub arrivals: f64,
    /// Numbers of tasks of a job, with their probabilities.
    pub tasks: Vec<(u32, f64)>,
    /// Time of a job outside of its waves, in seconds.
    pub setup: f64,
    /// Mean duration of a wave, in seconds.
    pub wave: f64,
    /// Squared coefficient of variation of a wave's duration.
    pub variation: f64,
}

/// A sprint of jobs of the highest class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sprint {
    /// Time for which a job runs before it sprints.
    pub timeout: Duration,
    /// Speed of a sprint relative to the normal one, in thousandths.
    pub speed: u32,
    /// Core-milliseconds that are added to the budget in a second, which limits sprints in the long run.
    pub refill: u64,
}

/// A model of an engine. Classes are in ascending order of priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Number of slots of the engine, all of which a job uses.
    pub slots: u32,
    /// Classes in ascending order of priority.
    pub classes: Vec<ClassModel>,
}

/// The predicted response of a class, from arrival to end in seconds. All times are infinite in an overloaded engine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Mean response time.
    pub mean: f64,
    /// Approximate 95th percentile: waits are taken to be exponential.
    pub p95: f64,
    /// Mean time of waiting.
    pub wait: f64,
    /// Mean time of running.
    pub service: f64,
}

impl Model {
    /// Predicts the response of each class, if class k drops the fraction `drops[k]` of its tasks (none where it is
    /// missing), and the highest class sprints.
    pub fn predict(&self, drops: &[DropRatio], sprint: Option<Sprint>) -> Vec<Response> {
        let services: Vec<Service> = (0..self.classes.len()).map(|class| self.service(class, drops, sprint)).collect();
        let residual: f64 =
            self.classes.iter().zip(&services).map(|(class, service)| class.arrivals * service.square / 2.0).sum();
        // Load of the classes above each. An overloaded engine never serves its lowest classes, but still those above
        // them.
        let mut above = 0.0;
        let mut responses: Vec<Response> = Vec::new();
        for (class, service) in self.classes.iter().zip(&services).rev() {
            let load = class.arrivals * service.mean;
            responses.push(response(1.0 - above, 1.0 - above - load, *service, residual));
            above += load;
        }
        responses.reverse();
        responses
    }

    /// Returns the fraction of the time in which the engine runs jobs; above 1 if it is overloaded.
    pub fn load(&self, drops: &[DropRatio], sprint: Option<Sprint>) -> f64 {
        let of = |class: usize| self.classes[class].arrivals * self.service(class, drops, sprint).mean;
        (0..self.classes.len()).map(of).sum()
    }

    /// Returns the core-seconds of sprinting per second, if the budget allowed all of them.
    pub fn sprint_demand(&self, drops: &[DropRatio], sprint: Sprint) -> f64 {
        let Some(class) = self.classes.len().checked_sub(1) else { return 0.0 };
        let (.., sprinting) = self.phases(class, drops).sprinted(sprint.timeout.as_secs_f64(), speed(sprint));
        self.classes[class].arrivals * sprinting * f64::from(self.slots)
    }

    fn phases(&self, class: usize, drops: &[DropRatio]) -> Phases {
        let drop = drops.get(class).copied().unwrap_or_default();
        let ClassModel { tasks, setup, wave, variation, .. } = &self.classes[class];
        let kept: Vec<(u32, f64)> = tasks.iter().map(|(tasks, chance)| (drop.kept(*tasks), *chance)).collect();
        Phases::of_waves(&kept, self.slots, *setup, *wave, *variation)
    }

    fn service(&self, class: usize, drops: &[DropRatio], sprint: Option<Sprint>) -> Service {
        let phases = self.phases(class, drops);
        let plain = Service { mean: phases.mean(), square: phases.square() };
        let Some(sprint) = sprint.filter(|_| class + 1 == self.classes.len()) else { return plain };
        let (mean, square, _) = phases.sprinted(sprint.timeout.as_secs_f64(), speed(sprint));
        // The budget pays for a part of the sprints only.
        let demand = self.sprint_demand(drops, sprint);
        let paid = if demand > 0.0 { (sprint.refill as f64 / 1000.0 / demand).min(1.0) } else { 1.0 };
        let part = |sprinted: f64, plain: f64| paid * sprinted + (1.0 - paid) * plain;
        Service { mean: part(mean, plain.mean), square: part(square, plain.square) }
    }
}

fn speed(sprint: Sprint) -> f64 {
    f64::from(sprint.speed) / 1000.0
}

/// The first two moments of a job's service time.
#[derive(Clone, Copy)]
struct Service {
    mean: f64,
    square: f64,
}

/// Returns the response of a class, from the fractions of time that are free of the classes above it (`before`), and of
/// the classes above and itself (`with`).
fn response(before: f64, with: f64, service: Service, residual: f64) -> Response {
    if with <= 0.0 || before <= 0.0 {
        let never = f64::INFINITY;
        return Response { mean: never, p95: never, wait: never, service: service.mean };
    }
    let wait = residual / before / with;
    // P(wait > t) is about busy * exp(-busy t / wait).
    let busy = 1.0 - with;
    let late = if busy > 0.05 && wait > 0.0 { wait / busy * (busy / 0.05).ln() } else { 0.0 };
    let deviation = (service.square - service.mean * service.mean).max(0.0).sqrt();
    Response { mean: wait + service.mean, p95: late + service.mean + deviation, wait, service: service.mean }
}
