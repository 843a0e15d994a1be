//! Formats the advice as tables.

use advice::{Interval, JobAdvice, READINGS_MIN, Report, ResourceAdvice, RoleAdvice, Usage, Verdict};
use resources::Amount;

use crate::read::table::{number, table};

/// Formats the advice: jobs, roles, and how it is made.
pub(super) fn text(report: &Report) -> String {
    if report.jobs.is_empty() {
        return format!("no running tasks were measured in {} rounds: no proposal", report.rounds);
    }
    let mut text = jobs(report);
    text.push_str(&format!("\n\n{}\n\n", roles(report)));
    for job in &report.jobs {
        for (resource, part) in parts(job) {
            text.push_str(&format!("{}/{} {resource}: {}\n", job.framework, job.job, part.why));
        }
    }
    if report.left_out > 0 {
        text.push_str(&format!(
            "{} samples were ignored: there are more than {} jobs\n",
            report.left_out,
            advice::JOBS_MAX
        ));
    }
    let level = number(100.0 * report.risk.level());
    text.push_str(&format!(
        "\nA proposal is the upper end of the interval (95 % confidence) of the {level}th percentile, and a margin: of the \
         rates at\nwhich processors are used, and of the tasks' peaks of memory in MB. Where too few were measured for an \
         upper end (=), it\nis their maximum, and a larger margin. With fewer than {READINGS_MIN} measurements nothing is \
         proposed. Peaks between two\nrounds are not seen.",
    ));
    text
}

/// Returns the advice for each resource of a job.
fn parts(job: &JobAdvice) -> [(&'static str, &ResourceAdvice); 2] {
    [("cpus", &job.advice.cpus), ("mem", &job.advice.mem)]
}

fn jobs(report: &Report) -> String {
    let between = format!("P{} BETWEEN", number(100.0 * report.risk.level()));
    let titles = [
        "FRAMEWORK",
        "JOB",
        "ROLE",
        ">TASKS",
        "RESOURCE",
        ">ASKS",
        ">P50",
        ">P95",
        ">P99",
        ">MAX",
        &between,
        ">PROPOSED",
        "VERDICT",
    ];
    let mut table = table(&titles);
    for job in &report.jobs {
        for (resource, part) in parts(job) {
            table.add_row(row(job, resource, part));
        }
    }
    table.trim_fmt()
}

fn row(job: &JobAdvice, resource: &str, part: &ResourceAdvice) -> Vec<String> {
    let shown = |value: f64| value_text(resource, value);
    let used = |of: fn(&Usage) -> f64| part.used.as_ref().map_or_else(|| "-".to_owned(), |used| shown(of(used)));
    let of_job = |text: &str| if resource == "cpus" { text.to_owned() } else { String::new() };
    let between = part.used.map_or_else(String::new, |used| between(resource, &used.chosen, used.max));
    vec![
        of_job(&job.framework),
        of_job(&job.job),
        of_job(&job.role),
        of_job(&format!("{:.1}", job.tasks)),
        resource.to_owned(),
        number(part.requested.to_f64()),
        used(|used| used.p50),
        used(|used| used.p95),
        used(|used| used.p99),
        used(|used| used.max),
        between,
        part.proposed.map_or_else(|| "-".to_owned(), |amount| number(amount.to_f64())),
        verdict(part.verdict).to_owned(),
    ]
}

/// Formats the interval of the percentile; `=` marks an end for which there are too few values.
fn between(resource: &str, interval: &Interval, max: f64) -> String {
    let end =
        |end: Option<f64>, without: &str| end.map_or_else(|| without.to_owned(), |value| value_text(resource, value));
    format!("{}..{}", end(interval.low, "0"), end(interval.high, &format!("={}", value_text(resource, max))))
}

fn value_text(resource: &str, value: f64) -> String {
    if resource == "cpus" { format!("{value:.3}") } else { format!("{value:.1}") }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::TooFew => "too few measurements",
        Verdict::RequestsTooMuch => "requests too much",
        Verdict::Fits => "fits",
        Verdict::RequestsTooLittle => "requests too little",
    }
}

fn roles(report: &Report) -> String {
    let mut table = table(&[
        "ROLE",
        ">TASKS",
        ">CPUS REQUESTED",
        ">USED",
        ">PROPOSED",
        ">FREED",
        ">MEM REQUESTED",
        ">USED",
        ">PROPOSED",
        ">FREED",
    ]);
    for role in &report.roles {
        table.add_row(role_row(&role.role, role));
    }
    table.add_row(role_row("all", &report.total));
    table.trim_fmt()
}

fn role_row(name: &str, role: &RoleAdvice) -> Vec<String> {
    let RoleAdvice { requested, used, proposed, freed, .. } = role;
    let cpus = |amount: Amount| format!("{:.2}", amount.to_f64());
    let mem = |amount: Amount| format!("{:.0}", amount.to_f64());
    let mut row = vec![name.to_owned(), format!("{:.1}", role.tasks)];
    row.extend([requested, used, proposed, freed].map(|amounts| cpus(amounts.cpus)));
    row.extend([requested, used, proposed, freed].map(|amounts| mem(amounts.mem)));
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use advice::{Amounts, ClusterMeasurements, Reading, Risk, Sample};

    #[test]
    fn jobs_roles_and_reasons() {
        let mut measurements = ClusterMeasurements::default();
        for round in 0..40_u32 {
            for (name, rounds) in [("web.1", 40), ("web.2", 40), ("new.1", 3)] {
                let at = f64::from(round);
                let reading = Reading { at, cpu_seconds: 0.25 * at, throttled_seconds: 0.0, rss_bytes: 3e7 };
                let (name, task) = (name.to_owned(), name.to_owned());
                let (framework, role, requested) = ("shop".to_owned(), "prod".to_owned(), Amounts::of(1.0, 256.0));
                if round < rounds {
                    measurements.add(&Sample {
                        round: u64::from(round),
                        framework,
                        role,
                        name,
                        task,
                        requested,
                        reading,
                    });
                }
            }
        }
        let text = text(&measurements.report(Risk::default()));
        let line = |start: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(start)).unwrap_or_default();
            line.split_whitespace().collect::<Vec<&str>>().join(" ")
        };
        assert_eq!(
            line("shop       web"),
            "shop web prod 2.0 cpus 1 0.250 0.250 0.250 0.250 0.250..0.250 0.28 requests too much",
            "{text}"
        );
        assert_eq!(
            line("shop       new"),
            "shop new prod 0.1 cpus 1 0.250 0.250 0.250 0.250 0.250..=0.250 - too few measurements",
            "{text}"
        );
        assert_eq!(line("prod"), "prod 2.1 2.08 0.52 0.64 1.44 531 59 105 426", "{text}");
        assert!(text.contains("shop/new mem: 2 of 20 measurements: no proposal"), "{text}");
        assert!(text.contains("shop/web mem: the largest of 2 tasks is 28.6 MB"), "{text}");
        assert_eq!(
            super::text(&ClusterMeasurements::default().report(Risk::default())),
            "no running tasks were measured in 0 rounds: no proposal"
        );
    }
}
