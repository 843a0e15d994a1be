//! Order of each sorter.

use resources::{Quantities, parse_quantities};

use super::*;

fn amounts(text: &str) -> Quantities {
    parse_quantities(text).unwrap()
}

fn first(kind: SorterKind, visit: &Visit, candidates: &[(&Quantities, f64)]) -> usize {
    let key = |at: &usize| {
        let (allocated, weight) = candidates[*at];
        let candidate = Candidate { allocated, weight, share: allocated.ratio(&visit.counted), number: *at as u32 };
        kind.sorter().key(&candidate, visit)
    };
    (0..candidates.len()).min_by(|a, b| key(a).total_cmp(&key(b))).unwrap()
}

#[test]
fn names() {
    for (name, kind) in SorterKind::ALL {
        assert_eq!(SorterKind::parse(name), Some(kind));
    }
    assert_eq!(SorterKind::parse("fair"), None);
}

#[test]
fn lots_fall_by_weight() {
    let none = Quantities::new();
    let mut wins = [0; 3];
    for draw in 0..6000 {
        let visit = Visit { draw, ..Visit::default() };
        wins[first(SorterKind::Random, &visit, &[(&none, 1.0), (&none, 2.0), (&none, 3.0)])] += 1;
    }
    for (wins, wanted) in wins.into_iter().zip([1000_i32, 2000, 3000]) {
        assert!((wins - wanted).abs() < 150, "{wins} instead of about {wanted}");
    }
}

#[test]
fn on_each_server_its_own_shares_count() {
    // Of 18 cpus and 36 mem: the client with more of the cluster has less of this server's resources.
    let (a, b) = (amounts("cpus:3;mem:3"), amounts("cpus:1;mem:8"));
    let counted = amounts("cpus:18;mem:36");
    let on = |server: &str| Visit { server: amounts(server), counted: counted.clone(), draw: 0 };
    assert_eq!(first(SorterKind::Drf, &on("cpus:9"), &[(&a, 1.0), (&b, 1.0)]), 0, "3/18 before 8/36");
    assert_eq!(first(SorterKind::PsDsf, &on("cpus:2;mem:32"), &[(&a, 1.0), (&b, 1.0)]), 1, "8/32 before 3/2");
    assert_eq!(first(SorterKind::PsDsf, &on("cpus:16;mem:4"), &[(&a, 1.0), (&b, 1.0)]), 0, "3/4 before 8/4");
    assert_eq!(first(SorterKind::PsDsf, &on("cpus:16;mem:4"), &[(&a, 1.0), (&b, 4.0)]), 1, "with a weight of 4");
    let gpu = amounts("gpus:1");
    let counted = amounts("cpus:18;mem:36;gpus:9");
    let visit = Visit { server: amounts("cpus:1;mem:1"), counted, draw: 0 };
    assert_eq!(first(SorterKind::PsDsf, &visit, &[(&gpu, 1.0), (&a, 1.0)]), 1, "no gpus here");
}

#[test]
fn mixes_that_fit() {
    let cluster = amounts("cpus:100;mem:1000");
    let wanted = amounts("cpus:1;mem:40");
    let fit = |free: &str| distance(&wanted, &amounts(free), &cluster);
    assert!(fit("cpus:2;mem:80") < 1e-9);
    assert!(fit("cpus:2;mem:50") < fit("cpus:8;mem:50"));
    assert!((distance(&amounts("cpus:1"), &amounts("mem:1"), &cluster) - 2.0).abs() < 1e-9);
    assert_eq!(distance(&Quantities::new(), &amounts("mem:1"), &cluster), 0.0);
}
