//! Water-filling: computes the shares of competitors if dominant shares were raised together until demands are met and
//! resources are used up (the DRF allocation for divisible tasks; Ghodsi et al., NSDI 2011).

/// A role or framework that competes for resources.
#[derive(Clone, Debug)]
pub struct Competitor {
    /// Weight of the competitor, in proportion to which its share rises.
    pub weight: f64,
    /// Largest dominant share that the competitor can use.
    pub demand: f64,
    /// Fraction of each resource of the cluster that belongs to a dominant share of 1. The largest is 1.
    pub mix: Vec<f64>,
}

/// Tolerance for sums of binary fractions.
const EPSILON: f64 = 1e-9;

/// Returns the dominant share of each competitor if `capacity` of every resource is shared.
///
/// Demands, weights and mixes must not be negative. A competitor without demand or weight has a share of 0.
#[must_use]
pub fn fill(capacity: f64, all: &[Competitor]) -> Vec<f64> {
    let resources = all.iter().map(|one| one.mix.len()).max().unwrap_or_default();
    let mut shares = vec![0.0; all.len()];
    let mut left = vec![capacity; resources];
    let mut rates = vec![0.0; resources];
    let mut rising: Vec<usize> = (0..all.len()).filter(|at| all[*at].demand > 0.0 && all[*at].weight > 0.0).collect();
    // Competitors whose demand is met first are last, so that `pop` removes them.
    let height = |at: usize| all[at].demand / all[at].weight;
    rising.sort_by(|a, b| height(*b).total_cmp(&height(*a)));
    for at in &rising {
        add(&mut rates, &all[*at], 1.0);
    }
    let mut level = 0.0;
    while let Some(first) = rising.last() {
        let met = height(*first) - level;
        let full = left.iter().zip(&rates).filter(|(_, rate)| **rate > EPSILON).map(|(left, rate)| left / rate);
        let step = full.fold(met, f64::min).max(0.0);
        level += step;
        for (left, rate) in left.iter_mut().zip(&rates) {
            *left -= step * rate;
        }
        if step >= met {
            if let Some(at) = rising.pop() {
                shares[at] = all[at].demand;
                add(&mut rates, &all[at], -1.0);
            }
            continue;
        }
        let is_full = |at: usize| left.iter().zip(&all[at].mix).any(|(left, part)| *left <= EPSILON && *part > 0.0);
        let before = rising.len();
        rising.retain(|at| {
            let stops = is_full(*at);
            if stops {
                shares[*at] = level * all[*at].weight;
                add(&mut rates, &all[*at], -1.0);
            }
            !stops
        });
        if rising.len() == before {
            // Only rounding errors lead here.
            rising.drain(..).for_each(|at| shares[at] = level * all[at].weight);
        }
    }
    shares
}

fn add(rates: &mut [f64], one: &Competitor, sign: f64) {
    for (rate, part) in rates.iter_mut().zip(&one.mix) {
        *rate += sign * one.weight * part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn competitor(weight: f64, demand: f64, mix: &[f64]) -> Competitor {
        Competitor { weight, demand, mix: mix.to_vec() }
    }

    fn close(shares: &[f64], wanted: &[f64]) {
        assert_eq!(shares.len(), wanted.len());
        let near = shares.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near, "{shares:?} are not {wanted:?}");
    }

    #[test]
    fn the_example_of_the_paper() {
        // 9 cpus and 18 GB; tasks of <1, 4> and <3, 1>: dominant shares of 2/3 each.
        let a = competitor(1.0, 1.0, &[(1.0 / 9.0) / (4.0 / 18.0), 1.0]);
        let b = competitor(1.0, 1.0, &[1.0, (1.0 / 18.0) / (3.0 / 9.0)]);
        close(&fill(1.0, &[a, b]), &[2.0 / 3.0, 2.0 / 3.0]);
    }

    #[test]
    fn what_one_framework_does_not_want_goes_to_the_others() {
        let all = [competitor(1.0, 0.1, &[1.0]), competitor(1.0, 1.0, &[1.0]), competitor(2.0, 1.0, &[1.0])];
        close(&fill(1.0, &all), &[0.1, 0.3, 0.6]);
        close(&fill(1.0, &all[..1]), &[0.1]);
        close(&fill(1.0, &[]), &[]);
    }

    #[test]
    fn competitors_that_do_not_need_an_exhausted_resource_are_filled_further() {
        let all =
            [competitor(1.0, 1.0, &[1.0, 0.0]), competitor(1.0, 1.0, &[1.0, 0.0]), competitor(1.0, 1.0, &[0.0, 1.0])];
        close(&fill(1.0, &all), &[0.5, 0.5, 1.0]);
    }

    #[test]
    fn a_part_of_the_cluster() {
        let all = [competitor(1.0, 1.0, &[1.0, 0.5]), competitor(3.0, 1.0, &[1.0, 1.0])];
        close(&fill(0.4, &all), &[0.1, 0.3]);
    }
}
