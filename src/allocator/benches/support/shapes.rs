//! Shapes of Mesos's own allocator benchmarks.

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::{AgentOptions, Allocator, Config, Filter, Held, Holder, Quota};
use resources::{Role, parse_quantities};

use super::report::Row;
use super::{AGENT, add_agents, add_frameworks, agent, cluster, decline, framework, now, resident, text, time};

/// Promised limit, and the figure of Mesos.
type Limits = (&'static str, &'static str);

const NONE: Limits = ("", "");

fn hosted(at: usize) -> AgentOptions {
    AgentOptions { hostname: format!("agent{at}"), ..AgentOptions::default() }
}

/// Declines offers until no client is offered any. Returns the number of declined offers.
pub fn decline_all_for_good(allocator: &mut Allocator) -> usize {
    let forever = Some(Filter { refuse: Filter::MAX_REFUSE });
    let mut declined = 0;
    for step in 0.. {
        let offerings = allocator.allocate_all(now(step));
        if offerings.is_empty() {
            break;
        }
        declined += offerings.len();
        decline(allocator, &offerings, forever, now(step));
    }
    declined
}

/// Measures a cycle in which every client is considered for every agent, as if no answer were remembered; the best of
/// several.
pub fn ask_all_anew(allocator: &mut Allocator, agents: usize) -> Duration {
    let (more, less) = (text(AGENT), text("cpus:23;mem:4096;disk:4096;ports:[31000-32000]"));
    let mut best = Duration::MAX;
    for step in 0..5 {
        for total in [&less, &more] {
            for at in 0..agents {
                allocator.update_agent(&agent(at), hosted(at), total);
            }
        }
        let (took, offers) = time(|| allocator.allocate_all(now(step)));
        assert!(offers.is_empty());
        best = best.min(took);
    }
    best
}

pub fn all_declined(agents: usize, frameworks: usize, limits: Limits, rows: &mut Vec<Row>) {
    let mut allocator = cluster(agents, frameworks);
    let (took, declined) = time(|| decline_all_for_good(&mut allocator));
    let shape = format!("{agents} agents x {frameworks} frameworks");
    assert_eq!(allocator.refusal_count() as usize, declined);
    let each = Row::new(format!("{shape}: an offer made and declined"), took, ("", "70-100 us")).each(declined);
    rows.push(each);
    let best = (0..20).map(|step| time(|| allocator.allocate_all(now(step)).len()).0).min().unwrap_or_default();
    rows.push(Row::new(format!("{shape}: a cycle with {declined} filters, no offer"), best, limits));
    let anew = ask_all_anew(&mut allocator, agents);
    rows.push(Row::new(format!("{shape}: the same, all asked anew"), anew, limits));
    let (took, ()) = time(|| {
        for at in 0..frameworks {
            allocator.suppress(&framework(at), &BTreeSet::new());
        }
    });
    rows.push(Row::new(format!("{shape}: a SUPPRESS"), took, NONE).each(frameworks));
    let (took, offers) = time(|| {
        allocator.revive(&framework(0), &BTreeSet::new());
        allocator.allocate(now(100)).len()
    });
    assert_eq!(offers, agents);
    rows.push(Row::new(format!("{shape}: one REVIVE, {offers} offers"), took, NONE));
}

pub fn add_and_update(agents: usize, frameworks: usize, limits: [Limits; 4], rows: &mut Vec<Row>) {
    let shape = format!("{agents} agents x {frameworks} frameworks");
    let mut best = [Duration::MAX; 4];
    for _ in 0..3 {
        let mut allocator = Allocator::new(Config { seed: 1, ..Config::default() });
        let (add, ()) = time(|| add_frameworks(&mut allocator, frameworks, |_| "*".to_owned()));
        let (agents_added, ()) = time(|| add_agents(&mut allocator, agents));
        let (cycle, offers) = time(|| allocator.allocate(now(0)));
        assert_eq!(offers.len(), agents);
        let total = text("cpus:32;mem:4096;disk:4096;ports:[31000-32000]");
        let (update, more) = time(|| {
            for at in 0..agents {
                allocator.update_agent(&agent(at), hosted(at), &total);
            }
            allocator.allocate(now(1)).len()
        });
        assert_eq!(more, agents);
        for (best, took) in best.iter_mut().zip([add, agents_added + cycle, cycle, update]) {
            *best = took.min(*best);
        }
    }
    let names = [
        "add the frameworks",
        "add all agents, with offers",
        "of this, the full cycle",
        "update all agents, with offers",
    ];
    for ((name, took), limits) in names.into_iter().zip(best).zip(limits) {
        rows.push(Row::new(format!("{shape}: {name}"), took, limits));
    }
}

/// Measures agents that register separately, with a run after each.
pub fn one_by_one(agents: usize, frameworks: usize, rows: &mut Vec<Row>) {
    let mut allocator = cluster(0, frameworks);
    let total = text(AGENT);
    let (took, offers) = time(|| {
        let mut offers = 0;
        for at in 0..agents {
            allocator.add_agent(&agent(at), AgentOptions::default(), &total, &[]);
            offers += allocator.allocate(now(0)).len();
        }
        offers
    });
    assert_eq!(offers, agents);
    let shape = format!("{agents} agents x {frameworks} frameworks: an agent added, a run after each");
    rows.push(Row::new(shape, took, NONE).each(agents));
}

pub fn mostly_silent(agents: usize, frameworks: usize, limits: Limits, rows: &mut Vec<Row>) {
    let mut allocator = cluster(agents, frameworks);
    for at in 2..frameworks {
        allocator.suppress(&framework(at), &BTreeSet::new());
    }
    let mut best = Duration::MAX;
    for step in 0..10 {
        let (took, offers) = time(|| allocator.allocate_all(now(step)));
        assert_eq!(offers.len(), agents);
        best = best.min(took);
        decline(&mut allocator, &offers, None, now(step));
    }
    let silent = frameworks - 2;
    rows.push(Row::new(format!("{agents} x {frameworks} with {silent} suppressed: {agents} offers"), best, limits));
}

/// Measures runs in which every role has a quota, and some have guarantees of several agents, so that one run makes
/// more offers than there are agents.
pub fn quota_everywhere(count: usize, limits: [Limits; 3], rows: &mut Vec<Row>) {
    let shape = format!("{count} agents, roles with quota, frameworks");
    let mut best = [Duration::MAX; 3];
    let mut made = 0;
    for _ in 0..2 {
        let mut allocator = Allocator::new(Config { seed: 1, ..Config::default() });
        add_agents(&mut allocator, count);
        for at in 0..count {
            let guarantee = if at < count / 24 { "cpus:120;mem:20480" } else { "cpus:12;mem:2048" };
            let guarantees = parse_quantities(guarantee).expect("the text is right");
            let role = Role::parse(&format!("role{at}")).expect("the role is right");
            allocator.set_quota(&role, Quota { guarantees, ..Quota::default() });
        }
        let (add, ()) = time(|| add_frameworks(&mut allocator, count, |at| format!("role{at}")));
        let (cycle, offers) = time(|| allocator.allocate(now(0)));
        made = offers.len();
        let (idle, more) = time(|| allocator.allocate_all(now(1)));
        assert!(more.is_empty());
        for (best, took) in best.iter_mut().zip([add, cycle, idle]) {
            *best = took.min(*best);
        }
    }
    let names = ["add the frameworks".to_owned(), format!("the cycle, {made} offers"), "an idle cycle".to_owned()];
    for ((name, took), limits) in names.into_iter().zip(best).zip(limits) {
        rows.push(Row::new(format!("{shape}: {name}"), took, limits));
    }
}

pub fn freed(agents: usize, frameworks: usize, limits: Limits, rows: &mut Vec<Row>) {
    let mut allocator = cluster(agents, frameworks);
    let offers = allocator.allocate(now(0));
    for o in &offers {
        let holder = Holder { framework: &o.framework, role: &o.role, agent: &o.agent };
        allocator.mark_offered_used(holder, &o.resources);
    }
    let task = text("cpus:1;mem:64");
    let (took, made) = time(|| {
        let mut made = 0;
        for o in &offers {
            let holder = Holder { framework: &o.framework, role: &o.role, agent: &o.agent };
            allocator.recover(holder, &task, Held::Used, None, now(1));
            made += allocator.allocate(now(1)).len();
        }
        made
    });
    assert_eq!(made, offers.len());
    let shape = format!("{agents} x {frameworks} busy: a task ends, the next offer is made");
    rows.push(Row::new(shape, took, limits).each(made));
}

pub fn memory(agents: usize, frameworks: usize, filters_each: usize, rows: &mut Vec<Row>) {
    let before = resident();
    let mut allocator = cluster(agents, frameworks);
    let mut left = agents * filters_each;
    let (took, ()) = time(|| {
        for step in 0.. {
            let offers = allocator.allocate(now(step));
            decline(&mut allocator, &offers, Some(Filter { refuse: Filter::MAX_REFUSE }), now(step));
            left = left.saturating_sub(offers.len());
            if left == 0 {
                break;
            }
        }
    });
    let count = allocator.refusal_count() as usize;
    let megabytes = resident().saturating_sub(before) >> 20;
    let shape =
        format!("{agents} x {frameworks}, {count} filters in {megabytes} MB (at most 1,500 MB): an offer declined");
    rows.push(Row::new(shape, took, NONE).each(count));
    // Fair shares of all clients.
    let (took, report) = time(|| allocator.fairness());
    rows.push(Row::new(format!("  fairness of {} frameworks, read", report.clients.len()), took, NONE));
}
