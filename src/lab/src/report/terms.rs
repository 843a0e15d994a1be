//! The glossary of report pages.

use plot::Page;

/// Terms of reports with their meanings.
const TERMS: [(&str, &str); 24] = [
    (
        "95 % interval",
        "What stands after ±: half of the interval in which the mean over many seeds lies with 95 % confidence, by Student's t distribution over the seeds of this report.",
    ),
    (
        "contended time",
        "The part of the samples at which at least two frameworks want more than there is. Unfairness is measured at these samples only.",
    ),
    (
        "deviation",
        "A measure of unfairness: the largest difference of a framework's share from its fair share, as a part of the fair share. 0 % is fair.",
    ),
    (
        "dominant share",
        "The largest of a framework's parts of the cluster's resources: of 10 % of the CPUs and 30 % of the memory it is 30 %.",
    ),
    (
        "fair share",
        "The dominant share that a framework would have if the cluster were divided by dominant resource fairness over what all frameworks want at that moment.",
    ),
    (
        "gap",
        "A measure of unfairness: 1 less the smallest share over the largest, whatever each framework should have. 0 % means equal shares. With weights or unequal demands see the other measures.",
    ),
    (
        "held",
        "How long a framework keeps an offer before it answers, and the part of the cluster that lies in its unanswered offers.",
    ),
    (
        "in offers",
        "The part of the cluster that lies in unanswered offers, where no framework can use it: the largest of all resources, averaged over time.",
    ),
    ("in use", "The part of a resource of the whole cluster that tasks have, averaged over time."),
    (
        "Jain's index",
        "The square of the sum of share over fair share of all frameworks, over their number times the sum of the squares: 1 if all have the same part of their fair shares, 1/n if one of n has everything.",
    ),
    ("job time", "Time from the submission of a job to the end of its last task."),
    (
        "lost share",
        "A measure of unfairness: the share-seconds that a framework lacked, as a part of those that were due, for the framework that is treated worst. 0 % is fair.",
    ),
    (
        "offer",
        "Resources of one agent that the master offers to one framework. A framework accepts an offer (launches tasks on it) or declines it; the master can take it back.",
    ),
    (
        "percentile",
        "Of 100 tasks, 99 waited no longer than the 99th percentile; half of them no longer than the median.",
    ),
    ("point", "One combination of the values of a sweep. Every point runs with every seed."),
    (
        "seed",
        "The number from which all random choices of a run come: arrivals, durations, failures. Equal seeds have equal choices at all points.",
    ),
    ("share-seconds", "A dominant share times the seconds for which it lasts."),
    ("start time", "Time from the launch of a task until its framework knows that it runs."),
    ("taken back", "An offer that the master rescinded before the framework had answered."),
    ("unfinished", "Tasks that were submitted and had not ended when the run did."),
    (
        "virtual time",
        "The clock of the simulation: the code of masters and frameworks is real, and time passes as fast as it can be computed.",
    ),
    (
        "wait",
        "Time from the submission of a task until its framework knows that it runs; in seconds. Tasks that never ran are not counted.",
    ),
    ("whole", "The window that covers the whole run, used if the scenario names no others."),
    ("window", "A part of the run for which shares, fairness and utilisation are measured."),
];

/// Adds these terms to the glossary of a page.
pub(super) fn explain(page: &mut Page, terms: &[&str]) {
    for (term, meaning) in TERMS.iter().filter(|(term, _)| terms.contains(term)) {
        page.term(term, meaning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_in_order() {
        assert!(TERMS.is_sorted_by(|a, b| a.0.to_lowercase() < b.0.to_lowercase()));
    }
}
