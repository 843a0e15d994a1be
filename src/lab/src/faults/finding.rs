//! Examines a seed that breaks a rule: finds a smaller plan that breaks the same one, and keeps its log.
//!
//! The code does not depend on what a plan is.

use super::checker::Violation;

/// A seed that breaks a rule, with its plan reduced.
#[derive(Debug)]
pub struct Finding<P> {
    /// The broken rule, and how the smaller plan breaks it.
    pub broken: Violation,
    /// The smaller plan that breaks the same rule.
    pub plan: P,
    /// Number of faults in the seed's original plan.
    pub faults: usize,
    /// Event log of the smaller plan.
    pub log: Vec<String>,
}

/// A function that runs a plan, with a log or without, and returns the rule that it breaks and the log.
pub(crate) type RunPlan<'a, P> = &'a dyn Fn(&P, bool) -> (Option<Violation>, Vec<String>);
/// A function that returns the smallest plan it finds for which a condition holds.
pub(crate) type Shrink<'a, P> = &'a dyn Fn(&P, &mut dyn FnMut(&P) -> bool) -> P;

/// Examines a plan with this many faults; returns `None` if it breaks no rule.
pub(crate) fn examine_plan<P>(
    plan: &P,
    faults: usize,
    run_plan: RunPlan<'_, P>,
    shrink: Shrink<'_, P>,
) -> Option<Finding<P>> {
    let rule = run_plan(plan, false).0?.rule;
    let small = shrink(plan, &mut |smaller| run_plan(smaller, false).0.is_some_and(|broken| broken.rule == rule));
    let (broken, log) = run_plan(&small, true);
    Some(Finding { broken: broken?, plan: small, faults, log })
}
