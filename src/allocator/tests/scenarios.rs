//! Scripted scenarios: `scenarios/*.txt`, one file per rule, each a list of commands with their answers.
//!
//! A line that starts with `=` is an answer of the command above it; `#` starts a comment.
//! `UPDATE_SCENARIOS=1 cargo test -p allocator --test scenarios` replaces the answers (then read the difference).
//! Every step is also checked against the naive allocator (`support/world.rs`).
//!
//! ```text
//! config min=cpus:1|mem:64 interval=1s gpu-filter=off region=here excluded=gpus seed=1      (first line, optional)
//! agent ID RESOURCES [hostname=H] [region=R] [zone=Z] [attr=NAME:TEXT,NAME:*] [old] [used=FRAMEWORK/ROLE=RESOURCES]...       old: no roles, no hierarchy
//! total ID RESOURCES | remove ID | activate ID | deactivate ID | whitelist HOST,HOST | whitelist off
//! framework ID ROLE[,ROLE] [name=NAME] [suppressed=ROLE,..] [can=gpu,shared,revocable,refined,remote,multi] [min.ROLE=TEXT]
//!     [only.ROLE=GROUP|GROUP] [inactive]        a group: constraints by `;`: NAME, !NAME, NAME=TEXT, NAME!=TEXT, NAME~REGEX, NAME!~REGEX;
//!                                               names: of attributes, or @hostname, @region, @zone
//! update ID ROLE[,ROLE] ...                                                                 the same, except [inactive]
//! suppress ID [ROLE,..] | revive ID [ROLE,..] | weight ROLE NUMBER
//! quota ROLE [guarantee=TEXT] [limit=TEXT]                                                  neither: none
//! maintenance AGENT IN|off                 answers the inverse offers to rescind; runs answer those that are made
//! leave ID AGENT yes|no|none [REFUSE]      answers an inverse offer; none: it is rescinded
//! hold AGENTS DURATION                     holds back offers until so many agents are registered, or that has passed
//! explain ID ROLE [AMOUNTS]                explains why it has no offers, or none with these amounts
//! run | interval | tick DURATION                                                            run, interval: answer the offers
//! decline ID/ROLE AGENT [REFUSE]           declines all that is offered; without a time: no filter
//! accept ID/ROLE AGENT RESOURCES [REFUSE]  uses that much of it, and declines the rest
//! share ID/ROLE AGENT RESOURCES            a further task uses shared resources that are used already
//! finish ID/ROLE AGENT RESOURCES           returns resources that it uses
//! reserve ID/ROLE AGENT RESOURCES          reserves offered resources for the role
//! operator-reserve ROLE AGENT RESOURCES
//! shares | roles | quotas | free | refusals | wake | answers AGENT | in-the-way                           views of the allocator
//! ```
//!
//! RESOURCES is the text of `--resources` without spaces; `+revocable:NAME:AMOUNT` adds a revocable scalar,
//! `+shared:ROLE:MB` a shared volume reserved for the role.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use allocator::{
    AgentOptions, Attribute, Config, Constraint, Filter, FrameworkOptions, Held, InverseAnswer, InverseAnswerView,
    OfferConstraints, Offering, Predicate, Quota, RegexLimits, Selector, Unavailability, Weight,
};
use base::{AgentId, FrameworkId};
use resources::{Amount, Conversion, Name, Quantities, Reservation, Resource, Resources, Role};
use support::oracle::Holding;
use support::world::World;

fn resources(text: &str) -> Resources {
    let mut parts = text.split('+');
    let mut all = match parts.next() {
        Some("") | None => Resources::new(),
        Some(plain) => resources::parse_text(plain, &Role::star()).unwrap(),
    };
    for part in parts {
        let words: Vec<&str> = part.split(':').collect();
        let [kind, name, amount] = words[..] else { panic!("{part}") };
        let amount = Amount::from_f64(amount.parse().unwrap());
        match kind {
            "revocable" => all.add(Resource::scalar(name, amount).with_revocable(true)),
            "shared" => all.add(support::shared_volume(Role::parse(name).unwrap(), amount)),
            _ => panic!("{part}"),
        }
    }
    all
}

fn role(text: &str) -> Role {
    Role::parse(text).unwrap()
}

fn roles(text: &str) -> BTreeSet<Role> {
    text.split(',').filter(|r| !r.is_empty()).map(role).collect()
}

fn framework(text: &str) -> FrameworkId {
    FrameworkId::new(text).unwrap()
}

fn agent(text: &str) -> AgentId {
    AgentId::new(text).unwrap()
}

fn duration(text: &str) -> Duration {
    base::parse_duration(text).unwrap()
}

fn minimum(text: &str) -> Vec<Quantities> {
    resources::parse_alternatives(text).unwrap()
}

fn holding(who: &str, at: &str) -> Holding {
    let (id, in_role) = who.split_once('/').unwrap();
    (framework(id), role(in_role), agent(at))
}

fn config(words: &[&str]) -> Config {
    let mut config = Config::default();
    for word in words {
        match word.split_once('=').unwrap() {
            ("min", text) => config.min_allocatable = minimum(text),
            ("interval", text) => config.allocation_interval = duration(text),
            ("gpu-filter", text) => config.filter_gpu_resources = text == "on",
            ("region", text) => config.region = Some(text.to_owned()),
            ("excluded", text) => config.fair_sharing_excluded = text.split(',').map(Name::from).collect(),
            ("seed", text) => config.seed = text.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }
    config
}

fn add_agent(world: &mut World, id: &str, total: &str, words: &[&str]) {
    let mut options = AgentOptions::default();
    let mut used = Vec::new();
    for word in words {
        match word.split_once('=') {
            None if *word == "old" => {
                options.capabilities.multi_role = false;
                options.capabilities.hierarchical_role = false;
            }
            Some(("hostname", text)) => options.hostname = text.to_owned(),
            Some(("region", text)) => options.region = Some(text.to_owned()),
            Some(("zone", text)) => options.zone = Some(text.to_owned()),
            Some(("attr", text)) => options.attributes = text.split(',').map(attribute).collect(),
            Some(("used", text)) => {
                let (who, amount) = text.split_once('=').unwrap();
                let (id, in_role) = who.split_once('/').unwrap();
                used.push((framework(id), role(in_role), resources(amount)));
            }
            other => panic!("{other:?}"),
        }
    }
    world.add_agent(&agent(id), options, &resources(total), &used);
}

fn attribute(text: &str) -> Attribute {
    let (name, text) = text.split_once(':').unwrap();
    Attribute { name: name.to_owned(), text: (text != "*").then(|| text.to_owned()) }
}

fn constraint(text: &str) -> Constraint {
    let selector = |name: &str| match name {
        "@hostname" => Selector::Hostname,
        "@region" => Selector::Region,
        "@zone" => Selector::Zone,
        name => Selector::Attribute(name.to_owned()),
    };
    for sign in ["!=", "!~", "=", "~"] {
        let Some((name, value)) = text.split_once(sign) else { continue };
        let value = value.to_owned();
        let predicate = match sign {
            "!=" => Predicate::TextNotEquals(value),
            "!~" => Predicate::TextNotMatches(value),
            "=" => Predicate::TextEquals(value),
            _ => Predicate::TextMatches(value),
        };
        return Constraint { selector: selector(name), predicate };
    }
    match text.strip_prefix('!') {
        Some(name) => Constraint { selector: selector(name), predicate: Predicate::NotExists },
        None => Constraint { selector: selector(text), predicate: Predicate::Exists },
    }
}

/// Adds a framework or, with `update`, updates it.
fn set_framework(world: &mut World, update: bool, id: &str, in_roles: &str, words: &[&str]) {
    let mut options = FrameworkOptions { roles: roles(in_roles), ..FrameworkOptions::default() };
    let mut active = true;
    let mut constraints = std::collections::BTreeMap::new();
    for word in words {
        match word.split_once('=') {
            None if *word == "inactive" => active = false,
            Some(("name", text)) => options.name = text.to_owned(),
            Some(("suppressed", text)) => options.suppressed_roles = roles(text),
            Some(("can", text)) => {
                for what in text.split(',') {
                    let can = &mut options.capabilities;
                    *match what {
                        "gpu" => &mut can.gpu_resources,
                        "shared" => &mut can.shared_resources,
                        "revocable" => &mut can.revocable_resources,
                        "refined" => &mut can.reservation_refinement,
                        "remote" => &mut can.region_aware,
                        "multi" => &mut can.multi_role,
                        other => panic!("{other}"),
                    } = true;
                }
            }
            Some((key, _)) if key.starts_with("only.") => {
                let groups = word.split_once('=').unwrap().1.split('|');
                let groups = groups.map(|group| group.split(';').map(constraint).collect()).collect();
                constraints.insert(key[5..].to_owned(), groups);
            }
            Some((key, text)) if key.starts_with("min.") => {
                options.min_allocatable.insert(role(&key[4..]), if text.is_empty() { vec![] } else { minimum(text) });
            }
            other => panic!("{other:?}"),
        }
    }
    options.constraints = OfferConstraints::new(constraints, RegexLimits::default()).unwrap();
    if update {
        world.update_framework(&framework(id), &options);
    } else {
        world.add_framework(&framework(id), &options, active);
    }
}

/// Returns all resources that are offered to a holder.
fn offered(world: &World, holding: &Holding) -> Resources {
    world.oracle.held.get(holding).map(|sets| sets[0].clone()).unwrap_or_default()
}

fn filter(refuse: Option<&&str>) -> Option<Filter> {
    refuse.map(|text| Filter { refuse: duration(text) })
}

fn reservation(held: &str, text: &str) -> Conversion {
    let consumed = resources(text);
    let converted = consumed.push_reservation(&Reservation::dynamic(role(held), None, None));
    Conversion::new(consumed, converted)
}

fn offers(made: &[Offering]) -> String {
    if made.is_empty() {
        return "nothing\n".to_owned();
    }
    made.iter().fold(String::new(), |mut text, o| {
        let _ = writeln!(text, "{} -> {}/{}: {}", o.agent, o.framework, o.role, o.resources);
        text
    })
}

fn shares(world: &World) -> String {
    let mut text = String::new();
    for view in world.allocator.roles() {
        let weight =
            if view.weight == Weight::ONE { String::new() } else { format!(" (weight {})", view.weight.value()) };
        let _ = writeln!(text, "{}{weight} {:.4}", view.role, view.dominant_share);
        for id in view.frameworks {
            let client = &world.allocator.framework_roles(&id)[&view.role];
            let _ = writeln!(text, "  {id} {:.4}", client.dominant_share);
        }
    }
    text
}

fn roles_text(world: &World) -> String {
    let mut text = String::new();
    for v in world.allocator.roles() {
        let _ = writeln!(text, "{}: offered {}, used {}, reserved {}", v.role, v.offered, v.used, v.reserved);
    }
    text
}

fn quota(words: &[&str]) -> Quota {
    let mut quota = Quota::default();
    for word in words {
        match word.split_once('=').unwrap() {
            ("guarantee", text) => quota.guarantees = resources::parse_quantities(text).unwrap(),
            ("limit", text) => quota.limits = resources::parse_quantities(text).unwrap().iter().collect(),
            ("no", names) => names.split(',').for_each(|name| quota.limits.set(&Name::from(name), Amount::ZERO)),
            other => panic!("{other:?}"),
        }
    }
    quota
}

fn quotas(world: &World) -> String {
    let mut text = String::new();
    for v in world.allocator.roles().iter().filter(|v| !v.quota.is_default()) {
        let limits: Vec<String> = v.quota.limits.iter().map(|(name, limit)| format!("{name}:{limit}")).collect();
        let (guarantees, limits) = (&v.quota.guarantees, limits.join("; "));
        let _ = writeln!(
            text,
            "{}: guarantee {guarantees}, limit {limits}, consumed {}, charged {}",
            v.role, v.consumed, v.charged
        );
    }
    let headroom = world.allocator.headroom();
    let _ = writeln!(text, "available {}, required {}", headroom.available, headroom.required);
    text
}

fn maintenance(world: &mut World, id: &str, window: &str) -> String {
    let unavailability =
        (window != "off").then(|| Unavailability { start: world.now + duration(window), duration: None });
    let asked = world.set_unavailability(&agent(id), unavailability);
    asked.iter().map(|framework| format!("{framework} is no longer asked to leave {id}\n")).collect()
}

/// Returns the inverse offers that the last run made.
fn inverse(world: &World) -> String {
    world.inverse.iter().map(|o| format!("{} is asked to leave {}\n", o.framework, o.agent)).collect()
}

fn in_the_way(world: &World) -> String {
    let list = world.allocator.offers_to_rescind_for_quota();
    let text: String = list.iter().map(|(framework, role, agent)| format!("{agent} {framework}/{role}\n")).collect();
    if text.is_empty() { "nothing\n".to_owned() } else { text }
}

fn free(world: &World) -> String {
    let mut text = String::new();
    for id in world.oracle.agents.keys() {
        let _ = writeln!(text, "{id}: {}", world.allocator.agent_view(id).unwrap().free);
    }
    text
}

fn refusals(world: &World) -> String {
    let mut text = String::new();
    for id in world.oracle.agents.keys() {
        for r in world.allocator.refusals(id) {
            let until = r.until.map_or("the next interval".to_owned(), |t| format!("{:?}", t.since(world.now)));
            let _ = writeln!(text, "{id} {}/{}: {} for {until}", r.framework, r.role, r.refused);
        }
    }
    if text.is_empty() { "none\n".to_owned() } else { text }
}

/// Executes one command. Returns its answer, which may be empty.
fn command(world: &mut World, words: &[&str]) -> String {
    match words {
        ["agent", id, total, rest @ ..] => add_agent(world, id, total, rest),
        ["total", id, total] => world.update_agent(&agent(id), &resources(total)),
        ["remove", id] if world.oracle.agents.contains_key(&agent(id)) => world.remove_agent(&agent(id)),
        ["remove", id] => world.remove_framework(&framework(id)),
        ["activate", id] if world.oracle.agents.contains_key(&agent(id)) => world.set_agent_active(&agent(id), true),
        ["deactivate", id] if world.oracle.agents.contains_key(&agent(id)) => world.set_agent_active(&agent(id), false),
        ["activate", id] => world.set_framework_active(&framework(id), true),
        ["deactivate", id] => world.set_framework_active(&framework(id), false),
        ["whitelist", "off"] => world.set_whitelist(None),
        ["whitelist", hosts] => world.set_whitelist(Some(hosts.split(',').map(str::to_owned).collect())),
        ["framework", id, in_roles, rest @ ..] => set_framework(world, false, id, in_roles, rest),
        ["update", id, in_roles, rest @ ..] => set_framework(world, true, id, in_roles, rest),
        ["suppress", id, rest @ ..] => world.suppress(&framework(id), &roles(&rest.join(","))),
        ["revive", id, rest @ ..] => world.revive(&framework(id), &roles(&rest.join(","))),
        ["weight", name, number] => world.set_weight(&role(name), Weight::new(number.parse().unwrap()).unwrap()),
        ["quota", name, rest @ ..] => world.set_quota(&role(name), quota(rest)),
        ["quotas"] => return quotas(world),
        ["in-the-way"] => return in_the_way(world),
        ["explain", id, name] => {
            let need = Quantities::default();
            return world.allocator.explain(&framework(id), &role(name), &need, world.now).to_string();
        }
        ["explain", id, name, need] => {
            let need = resources::parse_quantities(need).unwrap();
            return world.allocator.explain(&framework(id), &role(name), &need, world.now).to_string();
        }
        ["maintenance", id, window] => return maintenance(world, id, window),
        ["leave", id, at, says, refuse @ ..] => {
            let answer = match *says {
                "yes" => Some(InverseAnswer::Accept),
                "no" => Some(InverseAnswer::Decline),
                _ => None,
            };
            world.leave(&framework(id), &agent(at), answer, filter(refuse.first()));
        }
        ["answers", at] => {
            let list = world.allocator.inverse_answers(&agent(at));
            let line =
                |v: &InverseAnswerView| format!("{} {:?} {:?} ago\n", v.framework, v.answer, world.now.since(v.at));
            return if list.is_empty() { "none\n".to_owned() } else { list.iter().map(line).collect() };
        }
        ["hold", agents, span] => world.hold(agents.parse().unwrap(), duration(span)),
        ["tick", by] => world.tick(duration(by)),
        ["run"] => return offers(&world.allocate()) + &inverse(world),
        ["interval"] => return offers(&world.allocate_all()) + &inverse(world),
        ["decline", who, at, refuse @ ..] => {
            let holding = holding(who, at);
            let all = offered(world, &holding);
            world.recover(&holding, &all, Held::Offered, filter(refuse.first()));
        }
        ["accept", who, at, amount, refuse @ ..] => {
            let holding = holding(who, at);
            assert!(offered(world, &holding).contains(&resources(amount)), "{who} is not offered {amount}");
            world.mark_used(&holding, &resources(amount));
            let rest = offered(world, &holding);
            world.recover(&holding, &rest, Held::Offered, filter(refuse.first()));
        }
        ["share", who, at, amount] => world.add_shared_copies(&holding(who, at), &resources(amount)),
        ["finish", who, at, amount] => world.recover(&holding(who, at), &resources(amount), Held::Used, None),
        ["reserve", who, at, amount] => {
            let holding = holding(who, at);
            let step = reservation(holding.1.as_str(), amount);
            return world.transform(&holding, &step, Held::Offered).err().map_or(String::new(), |e| e + "\n");
        }
        ["operator-reserve", name, at, amount] => {
            let step = reservation(name, amount);
            return world.update_available(&agent(at), &step).err().map_or(String::new(), |e| e + "\n");
        }
        ["shares"] => return shares(world),
        ["roles"] => return roles_text(world),
        ["free"] => return free(world),
        ["refusals"] => return refusals(world),
        ["wake"] => {
            let wake = world.allocator.next_wake();
            return wake.map_or("never\n".to_owned(), |at| format!("in {:?}\n", at.since(world.now)));
        }
        other => panic!("no such command: {other:?}"),
    }
    String::new()
}

/// Runs a scenario, and returns its text with the answers.
fn play(script: &str) -> String {
    let mut world = None;
    let mut text = String::new();
    for line in script.lines().filter(|line| !line.starts_with('=')) {
        text.push_str(line);
        text.push('\n');
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        match words[..] {
            [] => continue,
            ["config", ..] => world = Some(World::new(config(&words[1..]))),
            _ => {
                let world = world.get_or_insert_with(|| World::new(Config::default()));
                for answer in command(world, &words).lines() {
                    let _ = writeln!(text, "= {answer}");
                }
            }
        }
    }
    text
}

#[test]
fn the_allocator_does_what_the_scenarios_say() {
    scenarios::check("tests/scenarios", 10, play);
}
