//! Solves the assignment problem: the cheapest assignment of rows to columns (the Hungarian method, in the form with
//! shortest augmenting paths: Jonker and Volgenant, 1987).

/// Returns the column that is assigned to each row. Each column is used at most once, and as many rows as possible have
/// one.
///
/// `cost` has a row of costs for each row, all equally long. A cost that is not finite forbids the pair. Takes time in
/// the cube of the larger side.
pub fn assign(cost: &[Vec<f64>]) -> Vec<Option<usize>> {
    let (rows, columns) = (cost.len(), cost.first().map_or(0, Vec::len));
    let side = rows.max(columns);
    if columns == 0 {
        return vec![None; rows];
    }
    // Forbidden pairs and missing rows or columns cost more than all others together.
    let largest = cost.iter().flatten().filter(|c| c.is_finite()).fold(0.0_f64, |a, c| a.max(c.abs()));
    let forbidden = (largest + 1.0) * 2.0 * (side as f64 + 1.0);
    let at = |row: usize, column: usize| {
        let given = cost.get(row).and_then(|r| r.get(column)).copied().unwrap_or(forbidden);
        if given.is_finite() { given } else { forbidden }
    };
    let owner = solve(side, at);
    let mut out = vec![None; rows];
    for (column, row) in owner.into_iter().enumerate() {
        if row < rows && column < columns && cost[row][column].is_finite() {
            out[row] = Some(column);
        }
    }
    out
}

/// Returns the row of each column in the cheapest complete assignment of a square.
fn solve(side: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    // Index 0 stands for the row that is being inserted; real rows and columns count from 1.
    let (mut row_price, mut column_price) = (vec![0.0; side + 1], vec![0.0; side + 1]);
    let mut owner = vec![0; side + 1];
    for row in 1..=side {
        owner[0] = row;
        let mut way = vec![0; side + 1];
        let mut least = vec![f64::INFINITY; side + 1];
        let mut used = vec![false; side + 1];
        let mut column = 0;
        loop {
            used[column] = true;
            let (here, mut step, mut next) = (owner[column], f64::INFINITY, 0);
            for other in 1..=side {
                if used[other] {
                    continue;
                }
                let reduced = cost(here - 1, other - 1) - row_price[here] - column_price[other];
                if reduced < least[other] {
                    least[other] = reduced;
                    way[other] = column;
                }
                if least[other] < step {
                    step = least[other];
                    next = other;
                }
            }
            for other in 0..=side {
                if used[other] {
                    row_price[owner[other]] += step;
                    column_price[other] -= step;
                } else {
                    least[other] -= step;
                }
            }
            column = next;
            if owner[column] == 0 {
                break;
            }
        }
        while column != 0 {
            owner[column] = owner[way[column]];
            column = way[column];
        }
    }
    owner.into_iter().skip(1).map(|row| row - 1).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn total(cost: &[Vec<f64>], given: &[Option<usize>]) -> f64 {
        given.iter().enumerate().filter_map(|(row, column)| column.map(|c| cost[row][c])).sum()
    }

    /// Finds the best assignment by exhaustive search: most pairs first, then the least cost.
    fn by_trying(cost: &[Vec<f64>], row: usize, taken: &mut Vec<usize>) -> (usize, f64) {
        if row == cost.len() {
            return (0, 0.0);
        }
        let mut best = by_trying(cost, row + 1, taken);
        for column in 0..cost[row].len() {
            if taken.contains(&column) || !cost[row][column].is_finite() {
                continue;
            }
            taken.push(column);
            let (pairs, rest) = by_trying(cost, row + 1, taken);
            taken.pop();
            let this = (pairs + 1, rest + cost[row][column]);
            if this.0 > best.0 || (this.0 == best.0 && this.1 < best.1) {
                best = this;
            }
        }
        best
    }

    proptest! {
        // Each column is used once, forbidden pairs never, and there are as many pairs, at the same cost, as in an
        // exhaustive search.
        #[test]
        fn as_good_as_trying_all(
            rows in 0_usize..5,
            columns in 0_usize..5,
            values in proptest::collection::vec(proptest::option::weighted(0.8, 0_u32..50), 25),
        ) {
            let value = |r: usize, c: usize| values[r * 5 + c].map_or(f64::INFINITY, f64::from);
            let cost: Vec<Vec<f64>> = (0..rows).map(|r| (0..columns).map(|c| value(r, c)).collect()).collect();
            let given = assign(&cost);
            let mut columns: Vec<usize> = given.iter().flatten().copied().collect();
            let pairs = columns.len();
            columns.sort_unstable();
            columns.dedup();
            prop_assert_eq!(columns.len(), pairs);
            let (most, least) = by_trying(&cost, 0, &mut Vec::new());
            prop_assert_eq!(pairs, most);
            prop_assert!((total(&cost, &given) - least).abs() < 1e-9);
        }
    }
}
