//! Text of an explanation: one line per reason, with the number of agents and some of their names, so that ten thousand
//! agents result in a few lines.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};

use std::time::Duration;

use base::{AgentId, Time, format_duration};
use resources::{Limits, Quantities};

use super::{AgentExplanation, Explanation, HeldBy, Inactivity, Level, Obstacle, OfferState, QuotaUsage};
use crate::Held;

/// Maximum number of agents, holders or names in a line.
const EXAMPLES: usize = 3;

impl Display for Explanation {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.write_offer_state(out)?;
        if let Some((agents, until)) = self.paused {
            let left = span(until, self.at);
            writeln!(out, "No offers are made until {agents} agents have reregistered, or for {left} more.")?;
        }
        for level in self.levels.iter().filter(|level| level.of > 1) {
            writeln!(out, "{}", Place(level))?;
        }
        if let Some(quota) = &self.quota {
            writeln!(out, "{}", QuotaLine(quota))?;
        }
        if !self.withheld.is_empty() {
            let withheld = self.withheld.iter().map(|(role, amounts)| format!("{amounts} for {role}"));
            writeln!(out, "Withheld for guarantees: {}.", some(withheld))?;
        }
        if self.offer_state == OfferState::Wants && self.agents.is_empty() {
            writeln!(out, "There are no agents.")?;
        }
        if self.is_impossible() {
            writeln!(out, "No agent can offer {}, however long the framework waits.", self.need)?;
        }
        self.write_agents(out)?;
        self.write_maintenance(out)
    }
}

impl Explanation {
    fn write_offer_state(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let role = &self.role;
        let framework = match self.name.as_str() {
            "" => self.framework.to_string(),
            name => format!("{name} ({})", self.framework),
        };
        match &self.offer_state {
            OfferState::Unknown => writeln!(out, "Framework {framework} is not known."),
            OfferState::NotSubscribed(roles) if roles.is_empty() => {
                writeln!(out, "Framework {framework} is subscribed to no role.")
            }
            OfferState::NotSubscribed(roles) => {
                let roles = some(roles.iter().map(ToString::to_string));
                writeln!(out, "Framework {framework} is not subscribed to role {role}, but to {roles}.")
            }
            OfferState::Inactive => {
                writeln!(out, "Framework {framework} receives no offers: it is not connected, or not active.")
            }
            OfferState::Suppressed => {
                writeln!(out, "Framework {framework} receives no offers in role {role}: it has suppressed them.")
            }
            OfferState::Wants => writeln!(out, "Framework {framework} wants offers in role {role}."),
        }
    }

    fn write_agents(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<Key<'_>, Vec<&AgentExplanation>> = BTreeMap::new();
        for verdict in &self.agents {
            groups.entry(Key::of(&verdict.obstacle)).or_default().push(verdict);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        // Most agents first; equal groups in the order of the rules.
        groups.sort_by_key(|(_, agents)| std::cmp::Reverse(agents.len()));
        for (_, agents) in groups {
            let noun = if agents.len() == 1 { "agent" } else { "agents" };
            let names = some(agents.iter().map(|one| one.name.clone()));
            writeln!(out, "{} {noun}: {} ({names})", agents.len(), self.reason(&agents))?;
        }
        Ok(())
    }

    /// Writes the maintenance windows with their agents, and the machines that are down.
    fn write_maintenance(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut windows: BTreeMap<(Time, Option<Duration>), Vec<&AgentExplanation>> = BTreeMap::new();
        for verdict in &self.agents {
            if let Some(window) = verdict.maintenance {
                windows.entry((window.start, window.duration)).or_default().push(verdict);
            }
        }
        for ((start, duration), agents) in windows {
            let begin = match start > self.at {
                true => format!("is scheduled in {}", span(start, self.at)),
                false => format!("has been due for {}", span(self.at, start)),
            };
            let length = duration.map_or_else(String::new, |length| format!(", {} long", format_duration(length)));
            let noun = if agents.len() == 1 { "agent" } else { "agents" };
            let names = some(agents.iter().map(|one| one.name.clone()));
            writeln!(
                out,
                "{} {noun}: maintenance {begin}{length}; offers name it, and frameworks may refuse them ({names})",
                agents.len()
            )?;
        }
        if !self.down.is_empty() {
            let noun = if self.down.len() == 1 { "machine is" } else { "machines are" };
            let names = some(self.down.iter().cloned());
            writeln!(out, "{} {noun} down for maintenance, without agents ({names})", self.down.len())?;
        }
        Ok(())
    }

    /// Returns the text that is true of all agents of a group.
    fn reason(&self, agents: &[&AgentExplanation]) -> String {
        let Some(first) = agents.first() else { return String::new() };
        match &first.obstacle {
            Obstacle::Offered(_) => format!("offered to the framework, {}", self.longest(agents)),
            Obstacle::Inactive(why) => inactive(*why).to_owned(),
            Obstacle::Unhealthy(why) => format!("unhealthy: {why}"),
            Obstacle::NotWhitelisted => "not on the whitelist".to_owned(),
            Obstacle::Constraints => "excluded by the framework's offer constraints".to_owned(),
            Obstacle::OldAgent(lacks) => format!("without the capability {lacks}"),
            Obstacle::Capability("GPU_RESOURCES") => "with GPUs; the framework lacks GPU_RESOURCES".to_owned(),
            Obstacle::Capability(lacks) => format!("in another region; the framework lacks {lacks}"),
            Obstacle::TooSmall(_) if self.need.is_empty() => "smaller than the smallest offer".to_owned(),
            Obstacle::TooSmall(_) => format!("too small{}", self.most(agents, |one| one.total())),
            Obstacle::Held(_) => {
                let holders = self.holders(agents);
                format!("too little is free{}: {holders}", self.most(agents, |one| Some(&one.free)))
            }
            Obstacle::Reserved(roles) => {
                format!("the free resources are reserved for {}", some(roles.iter().map(ToString::to_string)))
            }
            Obstacle::Stripped(lacks) => format!("the free resources are only for frameworks with {lacks}"),
            Obstacle::Limit(role) => format!("the limits of role {role} leave too little"),
            Obstacle::Withheld => {
                let roles = some(self.withheld.iter().map(|(role, _)| role.to_string()));
                let most = self.most(agents, |one| Some(&one.free));
                format!("the free resources{most} are withheld for the guarantees of {roles}")
            }
            Obstacle::Refused(_) => self.refused(agents),
            Obstacle::HoldsTooMuch => "the framework holds as much in offers as the policies allow".to_owned(),
            Obstacle::Nothing(offer) => {
                format!("an offer is possible unless an earlier framework accepts it; the first: {offer}")
            }
        }
    }

    /// Returns the largest of some quantities of a group, limited to the names in the need.
    fn most<'a>(
        &self,
        agents: &[&'a AgentExplanation],
        of: impl Fn(&'a AgentExplanation) -> Option<&'a Quantities>,
    ) -> String {
        let mut most = Quantities::default();
        agents.iter().filter_map(|one| of(one)).for_each(|amounts| most = most.max(amounts));
        let needed: Vec<String> =
            self.need.iter().map(|(name, _)| format!("{}:{}", name.as_str(), most.get(&name))).collect();
        if needed.is_empty() { String::new() } else { format!(" (at most {})", needed.join(";")) }
    }

    fn longest(&self, agents: &[&AgentExplanation]) -> String {
        let since = agents.iter().filter_map(|one| match &one.obstacle {
            Obstacle::Offered(since) => Some(*since),
            _ => None,
        });
        format!("the longest for {}", span(self.at, since.min().unwrap_or(self.at)))
    }

    fn refused(&self, agents: &[&AgentExplanation]) -> String {
        let until = |one: &&AgentExplanation| if let Obstacle::Refused(until) = one.obstacle { until } else { None };
        let ends: Vec<Time> = agents.iter().filter_map(until).collect();
        match (ends.iter().min(), ends.iter().max()) {
            (Some(first), Some(last)) => match (span(*first, self.at), span(*last, self.at)) {
                (first, last) if first == last => format!("refused by the framework for {last} more"),
                (first, last) => format!("refused by the framework for {first} to {last} more"),
            },
            _ => "refused by the framework until the next interval".to_owned(),
        }
    }

    /// Returns the clients that hold agents of a group, those with most agents first.
    fn holders(&self, agents: &[&AgentExplanation]) -> String {
        let mut sums: BTreeMap<(bool, String), (usize, Time)> = BTreeMap::new();
        for verdict in agents {
            let Obstacle::Held(list) = &verdict.obstacle else { continue };
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

impl Explanation {
    /// Returns one line with the reason why the framework has no offer of this agent, or `None` if the agent is not
    /// known.
    #[must_use]
    pub fn about(&self, agent: &AgentId) -> Option<String> {
        if self.offer_state != OfferState::Wants {
            let mut text = String::new();
            // Writing to a string cannot fail.
            let _ = write!(text, "{self}");
            return text.lines().next().map(str::to_owned);
        }
        let verdict = self.agents.iter().find(|verdict| verdict.agent == *agent)?;
        Some(self.reason(&[verdict]))
    }

    /// Returns whether there are agents, and none of them can ever have an offer with all of the need.
    fn is_impossible(&self) -> bool {
        !self.need.is_empty() && !self.agents.is_empty() && self.possible_agents() == 0
    }
}

impl AgentExplanation {
    /// Returns the total of the agent if that is the obstacle.
    fn total(&self) -> Option<&Quantities> {
        if let Obstacle::TooSmall(total) = &self.obstacle { Some(total) } else { None }
    }
}

fn inactive(why: Inactivity) -> &'static str {
    match why {
        Inactivity::Any => "disconnected, draining or deactivated",
        Inactivity::Disconnected => "disconnected",
        Inactivity::Draining => "draining",
        Inactivity::Drained => "drained, and not reactivated",
        Inactivity::Deactivated => "deactivated",
    }
}

/// Key by which agents are grouped: the rule, and the names in it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(u8, &'a str, Vec<&'a str>);

impl<'a> Key<'a> {
    fn of(obstacle: &'a Obstacle) -> Key<'a> {
        match obstacle {
            Obstacle::Nothing(_) => Key(0, "", vec![]),
            Obstacle::Offered(_) => Key(1, "", vec![]),
            Obstacle::Inactive(why) => Key(2, inactive(*why), vec![]),
            Obstacle::Unhealthy(why) => Key(2, why, vec![]),
            Obstacle::NotWhitelisted => Key(3, "", vec![]),
            Obstacle::Constraints => Key(4, "", vec![]),
            Obstacle::OldAgent(lacks) => Key(5, lacks, vec![]),
            Obstacle::Capability(lacks) => Key(6, lacks, vec![]),
            Obstacle::TooSmall(_) => Key(7, "", vec![]),
            Obstacle::Held(_) => Key(8, "", vec![]),
            Obstacle::Reserved(roles) => Key(9, "", roles.iter().map(|role| role.as_str()).collect()),
            Obstacle::Stripped(lacks) => Key(10, lacks, vec![]),
            Obstacle::Limit(role) => Key(11, role.as_str(), vec![]),
            Obstacle::Withheld => Key(12, "", vec![]),
            Obstacle::Refused(until) => Key(13, if until.is_some() { "" } else { "interval" }, vec![]),
            Obstacle::HoldsTooMuch => Key(14, "", vec![]),
        }
    }
}

/// Text of a place in the order, as a sentence.
struct Place<'a>(&'a Level);

impl Display for Place<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Level { name, among, share, before, first, of } = self.0;
        match name.strip_suffix("/.") {
            Some(role) => write!(out, "Frameworks of {role} itself are")?,
            None => write!(out, "{name} is")?,
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

struct QuotaLine<'a>(&'a QuotaUsage);

impl Display for QuotaLine<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let QuotaUsage { role, quota, charged } = self.0;
        match charged.is_empty() {
            true => write!(out, "Role {role} has consumed nothing")?,
            false => write!(out, "Role {role} has consumed {charged}")?,
        }
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

/// Returns the first of some texts, and the number of the others.
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

/// Formats a length of time in units that suit it: whole seconds, minutes from ten minutes on, hours from two days on.
fn span(later: Time, earlier: Time) -> String {
    let exact = later.since(earlier);
    let unit = match exact.as_secs() {
        0 => return format_duration(Duration::from_millis(exact.as_millis() as u64)),
        1..600 => 1,
        600..172_800 => 60,
        _ => 3600,
    };
    let units = (exact + Duration::from_millis(unit * 500)).as_secs() / unit;
    format_duration(Duration::from_secs(units * unit))
}

/// Formats how long a state has lasted; empty if its start is unknown.
fn so_far(now: Time, since: Time) -> String {
    if since == Time::EPOCH { String::new() } else { format!(" for {}", span(now, since)) }
}

/// Returns the text for a competitor. The frameworks of a role itself compete with its child roles under a name of
/// their own.
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
