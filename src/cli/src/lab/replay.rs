//! `tepui lab replay`: runs a recorded master again, under the same or other policies.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use ::lab::replay::{By, DecisionKind, Differences, DifferingDecision, FrameworkTotals, Replay, replay};
use ::lab::report::number;
use anyhow::{Context, Result};

use crate::read::table::table;
use crate::say::say;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The recording: the file of `tepui master --record`
    file: PathBuf,
    /// Policies of holding and refusal for a second master beside the recorded one; a file as for
    /// `tepui master --policies`
    #[arg(long, value_name = "FILE")]
    policies: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let other = args.policies.as_deref().map(daemon::master::policies_of_file).transpose()?;
    let file = File::open(&args.file).with_context(|| format!("cannot open {}", args.file.display()))?;
    let config = |flags: &[(String, String)]| Ok(daemon::master::recorded_config(flags)?);
    let policies = |text: &str| Ok(serde_json::from_str(text)?);
    let replayed = replay(&mut BufReader::new(file), &config, &policies, other)
        .with_context(|| format!("cannot replay {}", args.file.display()))?;
    if args.json {
        say!("{}", serde_json::to_string(&replayed)?);
    } else {
        print(&replayed, args.policies.is_some());
    }
    // The replay must equal the recording: otherwise the comparison with other policies means little.
    Ok(if replayed.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(replay: &Replay, other: bool) {
    let Replay { batches, inputs, seconds, .. } = replay;
    say!("{inputs} inputs in {batches} batches over {seconds:.1} s");
    if replay.cut {
        say!("The recording ends within a batch: its master crashed or was killed.");
    }
    match replay.differs {
        None => say!("Under the recorded settings every batch has the recorded outcome."),
        Some((batch, at)) => say!(
            "{} batches differ from the recording, first batch {batch} after {at:.1} s: another version of tepui made \
             the recording, or this is a bug",
            replay.different
        ),
    }
    let mut table = table(&TITLES);
    for (name, (was, would)) in &replay.frameworks {
        table.add_row(row(name, if other { "recorded" } else { "" }, was));
        if let Some(would) = would {
            table.add_row(row("", "replayed", would));
        }
    }
    say!("{}", table.trim_fmt());
    if other {
        say!("{} recorded calls answer offers that the other policies do not make: not replayed.", replay.dropped);
        say!("Frameworks act as recorded: they do not react to the other policies.");
    }
    if let Some(differences) = &replay.differences {
        explain(differences);
    }
}

/// Maximum number of decisions that are printed; --json has more.
const DECISIONS: usize = 12;

/// Prints the reasons of differing outcomes.
fn explain(differences: &Differences) {
    say!("");
    say!("WHY THE OUTCOMES DIFFER");
    for (setting, was, would) in &differences.policies {
        say!("Policy {setting}: recorded {was}, replayed {would}.");
    }
    if differences.policies.is_empty() {
        say!("The policies are those of the recording.");
    }
    let Some((batch, seconds)) = differences.first_difference else {
        say!("The masters decide the same in every batch.");
        return;
    };
    say!("Up to {seconds:.1} s both masters decide the same. The first difference is in batch {batch}:");
    let first = differences.decisions.iter().chain(&differences.tasks).filter(|one| one.batch == batch);
    decisions(first);
    say!("");
    say!("Decisions differ in {} batches. Decisions of one master only:", differences.batches);
    let mut table = table(&ONLY);
    for (name, only) in &differences.frameworks {
        let (offers, back, launched) = (only.offers, only.taken_back, only.launched);
        let counts = [offers.0, offers.1, back.0, back.1, launched.0, launched.1, only.missing];
        table.add_row(std::iter::once(name.clone()).chain(counts.iter().map(u64::to_string)));
    }
    say!("{}", table.trim_fmt());
    if !differences.tasks.is_empty() {
        say!("");
        say!("First tasks that the other master did not launch:");
        decisions(differences.tasks.iter());
    }
}

const ONLY: [&str; 8] = [
    "FRAMEWORK",
    ">OFFERS recorded",
    ">replayed",
    ">RESCINDED recorded",
    ">replayed",
    ">TASKS LAUNCHED recorded",
    ">replayed",
    ">NEVER LAUNCHED",
];

fn decisions<'a>(all: impl Iterator<Item = &'a DifferingDecision>) {
    let mut table = table(&["TIME s", "MASTER", "DECISION", "REASON"]);
    let mut left = 0_usize;
    for (n, differing) in all.enumerate() {
        if n >= DECISIONS {
            left += 1;
            continue;
        }
        let by = if differing.by == By::Recorded { "recorded" } else { "other" };
        let reason = match (differing.what, differing.why.as_str()) {
            (_, "") => String::new(),
            (DecisionKind::TakesBack, why) => why.to_owned(),
            (DecisionKind::Offers | DecisionKind::Launches, why) => format!("in the other master: {why}"),
        };
        table.add_row([format!("{:.1}", differing.seconds), by.to_owned(), decision(differing), reason]);
    }
    say!("{}", table.trim_fmt());
    if left > 0 {
        say!("and {left} more");
    }
}

fn decision(DifferingDecision { what, framework, role, agent, resources, task, .. }: &DifferingDecision) -> String {
    let role = if role.is_empty() { String::new() } else { format!(" ({role})") };
    match what {
        DecisionKind::Offers => format!("offers {resources} of {agent} to {framework}{role}"),
        DecisionKind::TakesBack => format!("rescinds {resources} of {agent} from {framework}{role}"),
        DecisionKind::Launches => format!("launches task {task} of {framework} on {agent}"),
    }
}

const TITLES: [&str; 9] =
    ["FRAMEWORK", "", ">OFFERS", ">ACCEPTED", ">DECLINED", ">RESCINDED", ">SHARE", ">FAIR", ">WAITED s"];

fn row(name: &str, which: &str, totals: &FrameworkTotals) -> [String; 9] {
    [
        name.to_owned(),
        which.to_owned(),
        totals.offers.to_string(),
        totals.accepted.to_string(),
        totals.declined.to_string(),
        totals.rescinded.to_string(),
        number(totals.share),
        number(totals.target),
        number(totals.waited),
    ]
}
