//! Groups similar rows of a shard, and builds the smaller data that stands for the shard: the rows of some groups, and
//! of each other group one row, its mean, with the group's weight.
//!
//! Groups are made once, by splits at the median of a projection (a random projection tree: Dasgupta and Freund, STOC
//! 2008) whose direction is that between two rows far from each other. So they have equal sizes, and the same seed
//! gives the same groups on every machine. This module does not decide which groups are critical.

use super::data::{Data, Rows, Sparse};
use super::sample;
use super::scaling::{Scaling, moments};

/// Maximum number of rows of a group. Smaller groups have more exact means, but there are more of them to compute with.
const GROUP_MAX: usize = 16;
/// Seed for the rows with which the directions begin.
const SEED: u64 = 1;

/// The groups of a shard's rows.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Row indices of each group.
    members: Vec<Vec<usize>>,
    /// Mean row of each group, with its number of rows as its weight. Rows of a group have the same class; without
    /// classes the label is the mean of their labels.
    centroids: Data,
    /// Length of each scaled mean row.
    lengths: Vec<f64>,
}

impl Groups {
    /// Groups the rows of a shard. With `classes`, labels are classes, and a group has rows of one class only;
    /// otherwise the label counts as one more feature.
    pub(crate) fn new(data: &Data, classes: bool) -> Groups {
        let scaling = Scaling::from_moments(&moments(data));
        let mut members = Vec::new();
        let mut splitter = Splitter::new(data, &scaling, classes);
        for part in by_class(data, classes) {
            splitter.split(part, &mut members);
        }
        let centroids = centroids(data, &members);
        let length = |row: Vec<f64>| scaling.apply(&row).iter().map(|x| x * x).sum::<f64>().sqrt();
        let lengths = centroids.rows().map(length).collect();
        Groups { members, centroids, lengths }
    }

    /// Returns the mean row of each group.
    pub(crate) fn centroids(&self) -> &Data {
        &self.centroids
    }

    /// Returns the length of each scaled mean row.
    pub(crate) fn lengths(&self) -> &[f64] {
        &self.lengths
    }

    /// Returns the data that stands for the shard: the rows of the most critical groups, until they are `fraction` of
    /// all rows, and the mean rows of the others.
    pub(crate) fn stand_in(&self, data: &Data, critical: &[f64], fraction: f64) -> Data {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        let rank = |group: usize| critical.get(group).copied().unwrap_or(0.0);
        order.sort_by(|a, b| rank(*b).total_cmp(&rank(*a)).then(a.cmp(b)));
        let wanted = (fraction * data.len() as f64).ceil() as usize;
        let (mut rows, mut rest) = (Vec::new(), Vec::new());
        for group in order {
            if rows.len() < wanted {
                rows.extend(&self.members[group]);
            } else {
                rest.push(group);
            }
        }
        rows.sort_unstable();
        rest.sort_unstable();
        let (picked, means) = (data.pick(&rows), self.centroids.pick(&rest));
        picked.followed_by(&means)
    }
}

/// Returns all rows in one list; with `classes`, one list for each class.
fn by_class(data: &Data, classes: bool) -> Vec<Vec<usize>> {
    if !classes {
        return vec![(0..data.len()).collect()];
    }
    let mut parts = std::collections::BTreeMap::<u64, Vec<usize>>::new();
    for row in 0..data.len() {
        parts.entry(data.label(row) as u64).or_default().push(row);
    }
    parts.into_values().collect()
}

/// The data that splits need.
struct Splitter<'a> {
    data: &'a Data,
    /// Divisor of each feature's squared difference; that of the label is the last.
    variances: Vec<f64>,
    /// Squared length of each scaled row.
    squares: Vec<f64>,
    chance: rand_pcg::Pcg64,
}

impl<'a> Splitter<'a> {
    fn new(data: &'a Data, scaling: &Scaling, classes: bool) -> Splitter<'a> {
        let mut variances: Vec<f64> = scaling.deviations.iter().map(|d| d * d).collect();
        variances.push(if classes { f64::INFINITY } else { variance(&data.labels) });
        let mut splitter = Splitter { data, variances, squares: Vec::new(), chance: sample::generator(SEED, 0) };
        splitter.squares = (0..data.len()).map(|row| splitter.product(row, &splitter.direction(row))).collect();
        splitter
    }

    /// Returns a row as a direction: its product with another row is that of the scaled rows.
    fn direction(&self, row: usize) -> Vec<f64> {
        let mut direction = self.data.row(row);
        direction.push(self.data.label(row));
        direction.iter_mut().zip(&self.variances).for_each(|(x, v)| *x /= v);
        direction
    }

    fn product(&self, row: usize, direction: &[f64]) -> f64 {
        let (of_label, of_features) = direction.split_last().map_or((0.0, direction), |(last, rest)| (*last, rest));
        self.data.dot(row, of_features) + of_label * self.data.label(row)
    }

    /// Returns the row that is farthest from this one.
    fn farthest(&self, from: usize, rows: &[usize]) -> usize {
        let direction = self.direction(from);
        let distance = |row: usize| self.squares[row] - 2.0 * self.product(row, &direction);
        let mut best = (from, f64::NEG_INFINITY);
        for &row in rows {
            let far = distance(row);
            if far > best.1 {
                best = (row, far);
            }
        }
        best.0
    }

    fn split(&mut self, rows: Vec<usize>, groups: &mut Vec<Vec<usize>>) {
        if rows.len() <= GROUP_MAX {
            if !rows.is_empty() {
                groups.push(rows);
            }
            return;
        }
        let one = rows[sample::index(&mut self.chance, rows.len())];
        let other = self.farthest(one, &rows);
        let mut direction = self.direction(one);
        direction.iter_mut().zip(self.direction(other)).for_each(|(x, y)| *x -= y);
        let mut placed: Vec<(f64, usize)> = rows.iter().map(|row| (self.product(*row, &direction), *row)).collect();
        placed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let right = placed.split_off(placed.len() / 2);
        for half in [placed, right] {
            self.split(half.into_iter().map(|(_, row)| row).collect(), groups);
        }
    }
}

fn variance(numbers: &[f64]) -> f64 {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    if variance > 0.0 { variance } else { f64::INFINITY }
}

/// Computes the mean row of each group.
fn centroids(data: &Data, groups: &[Vec<usize>]) -> Data {
    let mean = |members: &Vec<usize>, of: &dyn Fn(usize) -> f64| {
        members.iter().map(|row| of(*row)).sum::<f64>() / members.len() as f64
    };
    let rows = match &data.rows {
        Rows::Dense(rows) => {
            Rows::Dense(ndarray::Array2::from_shape_fn((groups.len(), rows.ncols()), |(group, column)| {
                mean(&groups[group], &|row| rows[[row, column]])
            }))
        }
        Rows::Sparse(rows) => {
            let mut means = Sparse::new(data.width());
            for members in groups {
                let mut sums = std::collections::BTreeMap::<u32, f64>::new();
                for (column, value) in members.iter().flat_map(|row| rows.row(*row)) {
                    *sums.entry(column as u32).or_default() += value / members.len() as f64;
                }
                means.push(sums);
            }
            Rows::Sparse(means)
        }
    };
    let labels = if data.labels.is_empty() {
        Vec::new()
    } else {
        groups.iter().map(|members| mean(members, &|row| data.labels[row])).collect()
    };
    let weights = groups.iter().map(|members| members.len() as f64).collect();
    Data { rows, labels, weights }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use proptest::prelude::*;

    use super::*;

    fn sparse(data: &Data) -> Data {
        let mut rows = Sparse::new(data.width());
        data.rows().for_each(|row| rows.push((0..).zip(row).filter(|(_, x)| *x != 0.0)));
        Data { rows: Rows::Sparse(rows), ..data.clone() }
    }

    proptest! {
        /// Property: every row is in one group; groups are small and of one class; the stand-in weighs as much as the
        /// rows, has the same sums, and is the data itself at a fraction of 1.
        #[test]
        fn groups_hold_every_row_once(
            rows in 1_usize..120,
            seed in any::<u64>(),
            fraction in 0.0..1.0,
            classes in any::<bool>(),
        ) {
            let mut chance = sample::generator(seed, 0);
            let matrix = Array2::from_shape_fn((rows, 3), |_| (sample::normal(&mut chance) * 2.0).round());
            let labels = (0..rows).map(|_| sample::index(&mut chance, 3) as f64).collect();
            let data = Data::dense(matrix, labels);
            let groups = Groups::new(&data, classes);
            let mut all: Vec<usize> = groups.members.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
            for members in &groups.members {
                prop_assert!((1..=GROUP_MAX).contains(&members.len()));
                prop_assert!(!classes || members.iter().all(|row| data.label(*row) == data.label(members[0])));
            }
            let critical: Vec<f64> = groups.members.iter().map(|members| members[0] as f64).collect();
            let part = groups.stand_in(&data, &critical, fraction);
            let sum = |data: &Data, of: &dyn Fn(usize) -> f64| -> f64 {
                (0..data.len()).map(|row| data.weight(row) * of(row)).sum()
            };
            prop_assert!((sum(&part, &|_| 1.0) - rows as f64).abs() < 1e-9);
            prop_assert!((sum(&part, &|row| part.row(row)[1]) - sum(&data, &|row| data.row(row)[1])).abs() < 1e-6);
            prop_assert!((sum(&part, &|row| part.label(row)) - sum(&data, &|row| data.label(row))).abs() < 1e-6);
            let all = groups.stand_in(&data, &critical, 1.0);
            prop_assert_eq!((all.rows, all.labels), (data.rows.clone(), data.labels.clone()));
            // Sparse rows are grouped by the same rules.
            let thin = sparse(&data);
            let part = Groups::new(&thin, classes).stand_in(&thin, &critical, fraction);
            prop_assert!((sum(&part, &|row| part.row(row)[1]) - sum(&data, &|row| data.row(row)[1])).abs() < 1e-6);
        }
    }

    #[test]
    fn similar_rows_are_together() {
        // Eight clusters of 16 rows, far from each other.
        let matrix = Array2::from_shape_fn((128, 2), |(row, column)| {
            let cluster = row % 8;
            10.0 * if column == 0 { (cluster % 4) as f64 } else { (cluster / 4) as f64 } + (row / 8) as f64 * 0.01
        });
        let groups = Groups::new(&Data::dense(matrix, vec![0.0; 128]), true);
        let pure = groups.members.iter().filter(|members| members.iter().all(|row| row % 8 == members[0] % 8)).count();
        assert_eq!((groups.members.len(), pure), (8, 8));
    }
}
