//! The glossary of report pages.

use plot::Page;

/// Terms of reports with their meanings.
const TERMS: [(&str, &str); 24] = [
    (
        "95 % interval",
        "The number after ±: half of the interval in which the mean over many seeds lies with 95 % confidence, by Student's t distribution over the seeds of this report.",
    ),
    (
        "contended time",
        "The share of the samples at which at least two frameworks want more resources than are available. Unfairness is measured at these samples only.",
    ),
    (
        "deviation",
        "A measure of unfairness: the largest difference of a framework's share from its fair share, relative to the fair share. 0 % is fair.",
    ),
    (
        "dominant share",
        "The largest of a framework's shares of the cluster's resources: 30 % for 10 % of the CPUs and 30 % of the memory.",
    ),
    (
        "fair share",
        "The dominant share that a framework would have if the cluster were divided by dominant resource fairness over what all frameworks want at that moment.",
    ),
    (
        "gap",
        "A measure of unfairness: 1 less the smallest share over the largest, regardless of the fair shares. 0 % means equal shares. With weights or unequal demands see the other measures.",
    ),
    (
        "held",
        "How long a framework holds an offer before it answers, and the share of the cluster in its unanswered offers.",
    ),
    (
        "in offers",
        "The share of the cluster in unanswered offers, which no framework can use: the largest of all resources, averaged over time.",
    ),
    ("in use", "The share of a resource of the whole cluster that tasks hold, averaged over time."),
    (
        "Jain's index",
        "The square of the sum of share over fair share of all frameworks, over their number times the sum of the squares: 1 if all have the same fraction of their fair shares, 1/n if one of n has all resources.",
    ),
    ("job time", "Time from the submission of a job to the end of its last task."),
    (
        "lost share",
        "A measure of unfairness: the share-seconds that a framework lacks, relative to those of its fair share, for the framework that lacks most. 0 % is fair.",
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
    ("rescinded", "An offer that the master took back before the framework had answered."),
    (
        "seed",
        "The number that determines all random choices of a run: arrivals, durations, failures. Equal seeds have equal choices at all points.",
    ),
    ("share-seconds", "A dominant share times the seconds for which it lasts."),
    ("start time", "Time from the launch of a task until its framework receives TASK_RUNNING."),
    ("unfinished", "Submitted tasks that had not ended at the end of the run."),
    (
        "virtual time",
        "The clock of the simulation. It runs the code of the real master and frameworks, as fast as the computer can.",
    ),
    (
        "wait",
        "Time from the submission of a task until its framework receives TASK_RUNNING, in seconds. Tasks that never ran are not counted.",
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
