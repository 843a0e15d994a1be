//! How cost grows: time against agents, frameworks and filters.

use std::time::Duration;

use super::plot::{Plot, Series};
use super::shapes::{ask_everybody_anew, decline_all_for_good};
use super::{cluster, now, resident, time};

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

pub fn against_agents() -> Plot {
    let points = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000].map(|agents| (agents as f64, full_cycle(agents, 1_000)));
    Plot {
        title: "A full cycle, every agent offered, 1,000 frameworks",
        x: "agents",
        y: "ms of processor time",
        log: true,
        series: vec![
            Series { name: "tepui", points: points.to_vec() },
            Series { name: "Mesos 1.11, with agents being added", points: vec![(10_000.0, 631.0)] },
        ],
    }
}

pub fn against_frameworks() -> Plot {
    let counts = [10, 50, 200, 1_000, 3_000];
    let cycle = counts.map(|frameworks| (frameworks as f64, full_cycle(10_000, frameworks)));
    let mut anew = Vec::new();
    for frameworks in [10, 50, 200, 500] {
        let mut allocator = cluster(1_000, frameworks);
        decline_all_for_good(&mut allocator);
        anew.push((frameworks as f64, ms(ask_everybody_anew(&mut allocator, 1_000))));
    }
    Plot {
        title: "Time against frameworks",
        x: "frameworks",
        y: "ms of processor time",
        log: true,
        series: vec![
            Series { name: "10,000 agents, a full cycle", points: cycle.to_vec() },
            Series { name: "1,000 agents, all declined for good, everybody asked anew", points: anew },
            Series { name: "the same in Mesos 1.11 (every cycle)", points: vec![(50.0, 243.0), (200.0, 1_200.0)] },
        ],
    }
}

pub fn against_filters() -> Plot {
    let (mut idle, mut anew, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for frameworks in [1, 10, 100, 1_000] {
        let before = resident();
        let mut allocator = cluster(1_000, frameworks);
        let filters = decline_all_for_good(&mut allocator) as f64;
        memory.push((filters, (resident().saturating_sub(before) >> 10) as f64 / 1024.0));
        let best = (0..20).map(|step| time(|| allocator.allocate_all(now(step)).len()).0).min();
        idle.push((filters, ms(best.unwrap_or_default())));
        anew.push((filters, ms(ask_everybody_anew(&mut allocator, 1_000))));
    }
    // What a smaller cluster has left free is used again.
    memory.retain(|(_, megabytes)| *megabytes > 0.5);
    Plot {
        title: "Filters on 1,000 agents: a cycle without any offer",
        x: "filters",
        y: "ms of processor time; MB",
        log: true,
        series: vec![
            Series { name: "a cycle, ms", points: idle },
            Series { name: "a cycle after every agent changed, ms", points: anew },
            Series { name: "Mesos 1.11, ms", points: vec![(50_000.0, 243.0), (200_000.0, 1_200.0)] },
            Series { name: "resident memory of the allocator, MB", points: memory },
        ],
    }
}
