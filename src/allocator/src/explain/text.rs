//! An explanation in words: one line a reason, with how many agents it stops and some of them, so that ten thousand
//! agents make a few lines.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};

use std::time::Duration;

use base::{Time, format_duration};
use resources::Limits;

use super::{Explanation, HeldBy, Level, Obstacle, QuotaStanding, Standing, Verdict};
use crate::Held;

/// How many agents, holders or names a line gives.
const EXAMPLES: usize = 3;

impl Display for Explanation {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.write_standing(out)?;
        if let Some((agents, until)) = self.paused {
            let left = span(until, self.at);
            writeln!(out, "Nobody is offered anything until {agents} agents have come back, or for {left} more.")?;
        }
        for level in self.levels.iter().filter(|level| level.of > 1) {
            writeln!(out, "{}", Place(level))?;
        }
        if let Some(quota) = &self.quota {
            writeln!(out, "{}", QuotaLine(quota))?;
        }
        if !self.set_aside.is_empty() {
            let lacks = self.set_aside.iter().map(|(role, amounts)| format!("{role} lacks {amounts}"));
            writeln!(out, "Set aside for guarantees: {}.", some(lacks))?;
        }
        self.write_agents(out)
    }
}

impl Explanation {
    fn write_standing(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let role = &self.role;
        let framework = match self.name.as_str() {
            "" => self.framework.to_string(),
            name => format!("{name} ({})", self.framework),
        };
        match &self.standing {
            Standing::Unknown => writeln!(out, "Framework {framework} is not known."),
            Standing::NotSubscribed(roles) if roles.is_empty() => {
                writeln!(out, "Framework {framework} is subscribed to no role.")
            }
            Standing::NotSubscribed(roles) => {
                let roles = some(roles.iter().map(ToString::to_string));
                writeln!(out, "Framework {framework} is not subscribed to role {role}, but to {roles}.")
            }
            Standing::Inactive => {
                writeln!(out, "Framework {framework} gets no offers: it is not connected, or not active.")
            }
            Standing::Suppressed => {
                writeln!(out, "Framework {framework} gets no offers in role {role}: it has suppressed them.")
            }
            Standing::Wants => writeln!(out, "Framework {framework} wants offers in role {role}."),
        }
    }

    fn write_agents(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<Key<'_>, Vec<(&str, &Obstacle)>> = BTreeMap::new();
        for Verdict { agent, hostname, obstacle } in &self.agents {
            let name = if hostname.is_empty() { agent.as_str() } else { hostname };
            groups.entry(Key::of(obstacle)).or_default().push((name, obstacle));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        // Most agents first; among equals as the rules come.
        groups.sort_by_key(|(_, agents)| std::cmp::Reverse(agents.len()));
        for (_, agents) in groups {
            let noun = if agents.len() == 1 { "agent" } else { "agents" };
            let names = some(agents.iter().map(|(agent, _)| (*agent).to_owned()));
            writeln!(out, "{} {noun}: {} ({names})", agents.len(), self.reason(&agents))?;
        }
        Ok(())
    }

    /// What is true of all agents of a group.
    fn reason(&self, agents: &[(&str, &Obstacle)]) -> String {
        let Some((_, first)) = agents.first() else { return String::new() };
        match first {
            Obstacle::Offered(_) => format!("offered to it, {}", self.longest(agents.iter().map(|(_, o)| *o))),
            Obstacle::Inactive => "disconnected, draining, deactivated or just back".to_owned(),
            Obstacle::Unhealthy(why) => format!("unhealthy: {why}"),
            Obstacle::NotWhitelisted => "not on the whitelist".to_owned(),
            Obstacle::Constraints => "excluded by its offer constraints".to_owned(),
            Obstacle::OldAgent(lacks) => format!("without the capability {lacks}"),
            Obstacle::Capability("GPU_RESOURCES") => "with GPUs, and it lacks GPU_RESOURCES".to_owned(),
            Obstacle::Capability(lacks) => format!("in another region, and it lacks {lacks}"),
            Obstacle::TooSmall => "smaller than the least offer".to_owned(),
            Obstacle::Held(_) => format!("too little is free: {}", self.holders(agents)),
            Obstacle::Reserved(roles) => {
                format!("what is free is reserved for {}", some(roles.iter().map(ToString::to_string)))
            }
            Obstacle::Stripped(lacks) => format!("what is free is only for frameworks with {lacks}"),
            Obstacle::Limit(role) => format!("the limits of role {role} leave too little"),
            Obstacle::SetAside => "what is free is set aside for guarantees".to_owned(),
            Obstacle::Refused(_) => self.refused(agents),
            Obstacle::HoldsTooMuch => "it holds as much in offers as it may".to_owned(),
            Obstacle::Nothing(offer) => {
                format!("nothing stops an offer, unless who comes before takes it; of the first, {offer}")
            }
        }
    }

    fn longest<'a>(&self, obstacles: impl Iterator<Item = &'a Obstacle>) -> String {
        let since = obstacles.filter_map(|o| if let Obstacle::Offered(since) = o { Some(*since) } else { None });
        format!("the longest for {}", span(self.at, since.min().unwrap_or(self.at)))
    }

    fn refused(&self, agents: &[(&str, &Obstacle)]) -> String {
        let until = |o: &Obstacle| if let Obstacle::Refused(until) = o { *until } else { None };
        let ends: Vec<Time> = agents.iter().filter_map(|(_, o)| until(o)).collect();
        match (ends.iter().min(), ends.iter().max()) {
            (Some(first), Some(last)) => match (span(*first, self.at), span(*last, self.at)) {
                (first, last) if first == last => format!("refused by it for {last} more"),
                (first, last) => format!("refused by it for {first} to {last} more"),
            },
            _ => "refused by it until the next interval".to_owned(),
        }
    }

    /// Who holds how many agents of a group, those with most first.
    fn holders(&self, agents: &[(&str, &Obstacle)]) -> String {
        let mut sums: BTreeMap<(bool, String), (usize, Time)> = BTreeMap::new();
        for (_, obstacle) in agents {
            let Obstacle::Held(list) = obstacle else { continue };
            for HeldBy { framework, name, role, held, since, .. } in list {
                let framework = if name.is_empty() { framework.as_str() } else { name };
                let sum = sums.entry((*held == Held::Used, format!("{framework}/{role}"))).or_insert((0, *since));
                *sum = (sum.0 + 1, sum.1.min(*since));
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        some(sums.iter().map(|((used, who), (count, since))| {
            let how = if *used { "used by" } else { "offered to" };
            let times = match *count {
                1 => String::new(),
                count if *since == Time::EPOCH => format!(" on {count}"),
                count => format!(" on {count}, the longest"),
            };
            format!("{how} {who}{times}{}", so_far(self.at, *since))
        }))
    }
}

/// What agents are grouped by: the rule, and what it names.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(u8, &'a str, Vec<&'a str>);

impl<'a> Key<'a> {
    fn of(obstacle: &'a Obstacle) -> Key<'a> {
        match obstacle {
            Obstacle::Nothing(_) => Key(0, "", vec![]),
            Obstacle::Offered(_) => Key(1, "", vec![]),
            Obstacle::Inactive => Key(2, "", vec![]),
            Obstacle::Unhealthy(why) => Key(2, why, vec![]),
            Obstacle::NotWhitelisted => Key(3, "", vec![]),
            Obstacle::Constraints => Key(4, "", vec![]),
            Obstacle::OldAgent(lacks) => Key(5, lacks, vec![]),
            Obstacle::Capability(lacks) => Key(6, lacks, vec![]),
            Obstacle::TooSmall => Key(7, "", vec![]),
            Obstacle::Held(_) => Key(8, "", vec![]),
            Obstacle::Reserved(roles) => Key(9, "", roles.iter().map(|role| role.as_str()).collect()),
            Obstacle::Stripped(lacks) => Key(10, lacks, vec![]),
            Obstacle::Limit(role) => Key(11, role.as_str(), vec![]),
            Obstacle::SetAside => Key(12, "", vec![]),
            Obstacle::Refused(until) => Key(13, if until.is_some() { "" } else { "interval" }, vec![]),
            Obstacle::HoldsTooMuch => Key(14, "", vec![]),
        }
    }
}

/// A place in the order as a sentence.
struct Place<'a>(&'a Level);

impl Display for Place<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Level { name, among, share, before, first, of } = self.0;
        match name.strip_suffix("/.") {
            Some(role) => write!(out, "Frameworks of {role} itself come")?,
            None => write!(out, "{name} comes")?,
        }
        write!(out, " {} of {of} ", ordinal(before + 1))?;
        match among.as_str() {
            "" => write!(out, "among top-level roles")?,
            role => write!(out, "in role {role}")?,
        }
        write!(out, ", with a share of {share:.4}")?;
        if *before == 0 {
            return write!(out, ".");
        }
        let more = before - first.len();
        let first: Vec<String> = first.iter().map(|(name, share)| format!("{} {share:.4}", competitor(name))).collect();
        write!(out, "; before it: {}", first.join(", "))?;
        if more > 0 { write!(out, " and {more} more.") } else { write!(out, ".") }
    }
}

struct QuotaLine<'a>(&'a QuotaStanding);

impl Display for QuotaLine<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let QuotaStanding { role, quota, charged } = self.0;
        write!(out, "Role {role} has consumed {charged}")?;
        if !quota.guarantees.is_empty() {
            let lacks = quota.guarantees.saturating_sub(charged);
            write!(out, " of the guaranteed {}", quota.guarantees)?;
            if !lacks.is_empty() {
                write!(out, ", lacking {lacks}")?;
            }
        }
        if !quota.limits.is_empty() {
            write!(out, "; it may have {} at most", limits(&quota.limits))?;
        }
        write!(out, ".")
    }
}

fn limits(limits: &Limits) -> String {
    limits.iter().map(|(name, limit)| format!("{name}:{limit}")).collect::<Vec<_>>().join("; ")
}

/// The first of some texts, and how many more there are.
fn some(texts: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut more = 0_usize;
    for (at, one) in texts.enumerate() {
        match at {
            0 => text.push_str(&one),
            at if at < EXAMPLES => drop(write!(text, ", {one}")),
            _ => more += 1,
        }
    }
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

/// A length of time, in whole seconds if it has one.
fn span(later: Time, earlier: Time) -> String {
    let exact = later.since(earlier);
    if exact < Duration::from_secs(1) {
        return format_duration(Duration::from_millis(exact.as_millis() as u64));
    }
    format_duration(Duration::from_secs((exact + Duration::from_millis(500)).as_secs()))
}

/// How long a state has lasted; empty if its start is unknown.
fn so_far(now: Time, since: Time) -> String {
    if since == Time::EPOCH { String::new() } else { format!(" for {}", span(now, since)) }
}

/// A role's own frameworks, as one of those that compete with its sub-roles, have a name of their own.
fn competitor(name: &str) -> String {
    match name.strip_suffix("/.") {
        Some(role) => format!("the frameworks of {role} itself"),
        None => name.to_owned(),
    }
}

fn ordinal(number: usize) -> String {
    let suffix = match (number % 10, number % 100) {
        (1, other) if other != 11 => "st",
        (2, other) if other != 12 => "nd",
        (3, other) if other != 13 => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}
