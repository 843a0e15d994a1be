//! Response times of classes in an engine that runs one job at a time and evicts none: an M/PH/1 queue with
//! priorities that do not pre-empt (Cobham, 1954). Nothing is chosen here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::drop::DropRatio;
use super::service::Phases;

/// Jobs of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassModel {
    /// Jobs that arrive in a second.
    pub arrivals: f64,
    /// Numbers of tasks, with their probabilities.
    pub tasks: Vec<(u32, f64)>,
    /// Seconds of a job outside its waves.
    pub setup: f64,
    /// Mean seconds of a wave.
    pub wave: f64,
    /// The variance of a wave over the square of its mean.
    pub variation: f64,
}

/// How jobs of the highest class sprint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sprint {
    /// How long a job runs before it sprints.
    pub timeout: Duration,
    /// How many times as fast it is then, in thousandths.
    pub speed: u32,
    /// Core-milliseconds of sprinting that come back in a second, which is what sprints may take in the long run.
    pub refill: u64,
}

/// An engine. Classes are in ascending order of priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Slots of the engine, which a job uses all.
    pub slots: u32,
    /// The classes.
    pub classes: Vec<ClassModel>,
}

/// What is predicted for a class, in seconds from arrival to end. All are infinite in an engine that is overloaded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The mean.
    pub mean: f64,
    /// 95 in 100 jobs take no longer, about: waits are taken as exponential.
    pub p95: f64,
    /// The mean seconds of waiting.
    pub wait: f64,
    /// The mean seconds of running.
    pub service: f64,
}

impl Model {
    /// The response of each class, if of class k the part `drops[k]` of tasks does not run (none where it is missing),
    /// and the highest class sprints.
    pub fn predict(&self, drops: &[DropRatio], sprint: Option<Sprint>) -> Vec<Response> {
        let services: Vec<Service> = (0..self.classes.len()).map(|class| self.service(class, drops, sprint)).collect();
        let residual: f64 =
            self.classes.iter().zip(&services).map(|(class, service)| class.arrivals * service.square / 2.0).sum();
        // The load of the classes above each. An overloaded engine never serves its lowest classes, but those above
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

    /// The part of the time in which the engine runs jobs; above 1 if it is overloaded.
    pub fn load(&self, drops: &[DropRatio], sprint: Option<Sprint>) -> f64 {
        let of = |class: usize| self.classes[class].arrivals * self.service(class, drops, sprint).mean;
        (0..self.classes.len()).map(of).sum()
    }

    /// Core-seconds of sprinting in a second, if the budget allowed all of them.
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

/// The first two moments of a job's time.
#[derive(Clone, Copy)]
struct Service {
    mean: f64,
    square: f64,
}

/// The response of a class, from the parts of time that the classes above it leave (`before`), and that it leaves
/// together with them (`with`).
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
