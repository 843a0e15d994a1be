//! The graph of stages: an order in which each stage follows those that it waits for, or a cycle if there is none.

/// Returns an order of the stages in which each follows those that it waits for. `after` has their indices for each
/// stage.
///
/// # Errors
/// A cycle: each stage of it waits for the next one, and the last for the first.
pub fn order(after: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut waits: Vec<usize> = after.iter().map(Vec::len).collect();
    let followers = followers(after);
    let mut order: Vec<usize> = (0..after.len()).filter(|&stage| waits[stage] == 0).collect();
    let mut next = 0;
    while let Some(&stage) = order.get(next) {
        next += 1;
        for &follower in &followers[stage] {
            waits[follower] -= 1;
            if waits[follower] == 0 {
                order.push(follower);
            }
        }
    }
    if order.len() == after.len() { Ok(order) } else { Err(circle(after, &waits)) }
}

/// Returns, for each stage, the stages that wait for it.
pub fn followers(after: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut followers = vec![Vec::new(); after.len()];
    for (stage, before) in after.iter().enumerate() {
        for &one in before {
            followers[one].push(stage);
        }
    }
    followers
}

/// Returns a cycle among the stages that still wait.
fn circle(after: &[Vec<usize>], waits: &[usize]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut seen = vec![None; after.len()];
    // Each waiting stage waits for another waiting stage, so the path must return to itself.
    let mut stage = waits.iter().position(|&waits| waits > 0);
    while let Some(at) = stage {
        if let Some(first) = seen[at] {
            return path.split_off(first);
        }
        seen[at] = Some(path.len());
        path.push(at);
        stage = after[at].iter().copied().find(|&before| waits[before] > 0);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_circle_is_named_and_nothing_else() {
        assert_eq!(order(&[vec![], vec![0], vec![0, 1]]), Ok(vec![0, 1, 2]));
        assert_eq!(order(&[vec![0]]), Err(vec![0]));
        // 4 waits for the cycle, and is not part of it.
        let mut found = order(&[vec![], vec![3, 0], vec![1], vec![2], vec![3]]).unwrap_err();
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3]);
    }

    proptest! {
        /// Checks that an order has each stage once and after those that it waits for, and that otherwise the cycle
        /// exists.
        #[test]
        fn an_order_or_a_circle(edges in prop::collection::vec((0..12usize, 0..12usize), 0..30)) {
            let mut after = vec![Vec::new(); 12];
            for (stage, before) in edges {
                if !after[stage].contains(&before) {
                    after[stage].push(before);
                }
            }
            match order(&after) {
                Ok(order) => {
                    let mut place = [usize::MAX; 12];
                    for (at, &stage) in order.iter().enumerate() {
                        place[stage] = at;
                    }
                    prop_assert!(place.iter().all(|p| *p < 12));
                    for (stage, before) in after.iter().enumerate() {
                        prop_assert!(before.iter().all(|&b| place[b] < place[stage]));
                    }
                }
                Err(circle) => {
                    prop_assert!(!circle.is_empty());
                    for (at, &stage) in circle.iter().enumerate() {
                        prop_assert!(after[stage].contains(&circle[(at + 1) % circle.len()]));
                    }
                }
            }
        }
    }
}
