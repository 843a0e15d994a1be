//! Examines a seed that breaks a rule: finds a smaller plan that breaks the same one, and keeps its log. It
//! does not know what a plan is.

use super::checker::Broken;

/// A seed that breaks a rule, with its plan reduced.
#[derive(Debug)]
pub struct Finding<P> {
    /// The rule that it breaks, and how the small plan breaks it.
    pub broken: Broken,
    /// The smaller plan.
    pub plan: P,
    /// How many faults the seed's own plan has.
    pub faults: usize,
    /// What happens in the smaller plan.
    pub log: Vec<String>,
}

/// Plays a plan, with a log or without: the rule that it breaks, and the log.
pub(crate) type Play<'a, P> = &'a dyn Fn(&P, bool) -> (Option<Broken>, Vec<String>);
/// Returns the smallest plan that it finds for which the given condition holds.
pub(crate) type Shrink<'a, P> = &'a dyn Fn(&P, &mut dyn FnMut(&P) -> bool) -> P;

/// Examines a plan with so many faults: none if it breaks no rule.
pub(crate) fn examine_plan<P>(plan: &P, faults: usize, play: Play<'_, P>, shrink: Shrink<'_, P>) -> Option<Finding<P>> {
    let rule = play(plan, false).0?.rule;
    let small = shrink(plan, &mut |smaller| play(smaller, false).0.is_some_and(|broken| broken.rule == rule));
    let (broken, log) = play(&small, true);
    Some(Finding { broken: broken?, plan: small, faults, log })
}
