//! Chooses the fraction of tasks that jobs of low priority drop: the smallest with which all classes meet their
//! targets, by DiAS's model of the measured jobs.

use std::time::Duration;

use super::{JOBS_NEEDED, MeasuredJob, Settings, Tuning, unknown};
use crate::job::Class;
use crate::priority::{ClassModel, DropRatio, Model, Response, Target, search};

/// Classes by ascending priority.
const CLASSES: [Class; 3] = [Class::Low, Class::Normal, Class::High];
/// Limit of the factor by which a prediction is corrected.
const CORRECTION_MAX: f64 = 4.0;
/// Number of job lengths that the model distinguishes.
const LENGTHS: usize = 12;

impl Tuning {
    /// Chooses the fraction, if enough jobs of low class have ended.
    pub(super) fn choose_drop(&mut self, slots: u32, settings: &Settings) {
        let known = self.jobs[Class::Low as usize].len();
        if known < JOBS_NEEDED {
            self.why_drop = unknown(known);
            return;
        }
        let classes: Vec<Class> = CLASSES.into_iter().filter(|class| self.jobs[*class as usize].len() > 1).collect();
        let model = self.model(&classes, slots);
        let in_force: Vec<DropRatio> =
            classes.iter().map(|class| ratio(self.mean(*class, |job| job.dropped))).collect();
        let predicted = model.predict(&in_force, None);
        // Jobs run side by side, in an order that is not the model's: measured responses correct the prediction.
        let corrections: Vec<f64> = classes
            .iter()
            .zip(&predicted)
            .map(|(class, response)| correction(self.mean(*class, |job| job.response), response))
            .collect();
        let targets: Vec<Target> = classes
            .iter()
            .zip(&corrections)
            .map(|(class, correction)| Target {
                mean: settings.targets.of(*class).map(|target| target.div_f64(*correction)),
                p95: None,
                drop: match class {
                    Class::Low => ratio(self.mean(Class::Low, |job| job.allowed).min(settings.drop)),
                    _ => DropRatio::NONE,
                },
            })
            .collect();
        let choice = search(&model, &targets, None);
        self.drop = choice.drops.first().map_or(0.0, |drop| drop.part());
        self.why_drop = explain(&classes, &choice.responses, &corrections, settings, self.drop, choice.is_met);
    }

    fn mean(&self, class: Class, of: impl Fn(&MeasuredJob) -> f64) -> f64 {
        let jobs = &self.jobs[class as usize];
        jobs.iter().map(of).sum::<f64>() / jobs.len().max(1) as f64
    }

    /// Returns the model of an engine with as many slots as a job can use. Where the cluster has more, jobs run side by
    /// side, and each engine receives its share of the arrivals.
    fn model(&self, classes: &[Class], slots: u32) -> Model {
        let width = classes.iter().map(|class| self.mean(*class, |job| f64::from(job.width))).fold(1.0, f64::max);
        let used = (width.round() as u32).clamp(1, slots.max(1));
        let engines = (f64::from(slots) / f64::from(used)).max(1.0);
        let class = |class: &Class| {
            let jobs = &self.jobs[*class as usize];
            let mut lengths: Vec<u32> = jobs.iter().map(|job| job.tasks).collect();
            lengths.sort_unstable();
            let tasks = (0..LENGTHS.min(lengths.len())).map(|n| {
                let place = (2 * n + 1) * lengths.len() / (2 * LENGTHS.min(lengths.len()));
                (lengths[place.min(lengths.len() - 1)], 1.0)
            });
            ClassModel {
                arrivals: self.rate(*class) / engines,
                tasks: tasks.collect(),
                setup: self.mean(*class, |job| job.other) / f64::from(used),
                wave: self.mean(*class, |job| job.wave),
                variation: self.mean(*class, |job| job.spread),
            }
        };
        Model { slots: used, classes: classes.iter().map(class).collect() }
    }
}

fn ratio(share: f64) -> DropRatio {
    DropRatio::new((share * 1e3).round().clamp(0.0, 999.0) as u32).unwrap_or_default()
}

fn correction(measured: f64, predicted: &Response) -> f64 {
    if predicted.mean.is_finite() && predicted.mean > 0.0 {
        (measured / predicted.mean).clamp(1.0 / CORRECTION_MAX, CORRECTION_MAX)
    } else {
        1.0
    }
}

fn explain(
    classes: &[Class],
    responses: &[Response],
    corrections: &[f64],
    settings: &Settings,
    drop: f64,
    is_met: bool,
) -> String {
    let parts = classes.iter().zip(responses).zip(corrections).map(|((class, response), correction)| {
        let predicted = match response.mean * correction {
            mean if mean.is_finite() => format!("{mean:.1} s"),
            _ => "unbounded".to_owned(),
        };
        let target = settings
            .targets
            .of(*class)
            .map_or_else(String::new, |target: Duration| format!(" (target {} s)", target.as_secs_f64()));
        format!("{} {predicted}{target}", class.name())
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    let how = if is_met {
        "the smallest share that meets all targets"
    } else {
        "the targets cannot be met with less than the maximum"
    };
    format!("drops {:.1} % of tasks: {how}; predicted mean responses: {parts}", drop * 100.0)
}
