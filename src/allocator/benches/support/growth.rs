//! Growth of cost: time against agents, frameworks and filters.

use std::time::Duration;

use plot::Lines;

use super::shapes::{ask_all_anew, decline_all_for_good};
use super::{cluster, dotted, now, resident, time};

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn full_cycle(agents: usize, frameworks: usize) -> f64 {
    let best = (0..3).map(|_| {
        let mut allocator = cluster(agents, frameworks);
        time(|| allocator.allocate(now(0)).len()).0
    });
    ms(best.min().unwrap_or_default())
}

pub fn against_agents() -> Lines {
    let points = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000].map(|agents| (agents as f64, full_cycle(agents, 1_000)));
    Lines {
        title: "A full cycle, every agent offered, 1,000 frameworks".into(),
        x: "agents".into(),
        y: "ms of processor time".into(),
        log: true,
        lines: vec![
            dotted("tepui", points.to_vec()),
            dotted("Mesos 1.11, with agents being added", vec![(10_000.0, 631.0)]),
        ],
        size: None,
        ..Lines::default()
    }
}

pub fn against_frameworks() -> Lines {
    let counts = [10, 50, 200, 1_000, 3_000];
    let cycle = counts.map(|frameworks| (frameworks as f64, full_cycle(10_000, frameworks)));
    let mut anew = Vec::new();
    for frameworks in [10, 50, 200, 500] {
        let mut allocator = cluster(1_000, frameworks);
        decline_all_for_good(&mut allocator);
        anew.push((frameworks as f64, ms(ask_all_anew(&mut allocator, 1_000))));
    }
    Lines {
        title: "Time against frameworks".into(),
        x: "frameworks".into(),
        y: "ms of processor time".into(),
        log: true,
        lines: vec![
            dotted("10,000 agents, a full cycle", cycle.to_vec()),
            dotted("1,000 agents, all declined for good, all asked anew", anew),
            dotted("the same in Mesos 1.11 (every cycle)", vec![(50.0, 243.0), (200.0, 1_200.0)]),
        ],
        size: None,
        ..Lines::default()
    }
}

pub fn against_filters() -> Lines {
    let (mut idle, mut anew, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for frameworks in [1, 10, 100, 1_000] {
        let before = resident();
        let mut allocator = cluster(1_000, frameworks);
        let filters = decline_all_for_good(&mut allocator) as f64;
        memory.push((filters, (resident().saturating_sub(before) >> 10) as f64 / 1024.0));
        let best = (0..20).map(|step| time(|| allocator.allocate_all(now(step)).len()).0).min();
        idle.push((filters, ms(best.unwrap_or_default())));
        anew.push((filters, ms(ask_all_anew(&mut allocator, 1_000))));
    }
    // Memory that a smaller cluster has freed is reused.
    memory.retain(|(_, megabytes)| *megabytes > 0.5);
    Lines {
        title: "Filters on 1,000 agents: a cycle without any offer".into(),
        x: "filters".into(),
        y: "ms of processor time; MB".into(),
        log: true,
        lines: vec![
            dotted("a cycle, ms", idle),
            dotted("a cycle after every agent changed, ms", anew),
            dotted("Mesos 1.11, ms", vec![(50_000.0, 243.0), (200_000.0, 1_200.0)]),
            dotted("resident memory of the allocator, MB", memory),
        ],
        size: None,
        ..Lines::default()
    }
}
