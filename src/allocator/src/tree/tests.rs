//! Order of the tree, and the counts that survive changes of it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use resources::{Amount, Name, Quantities};

use super::{NodeIx, ROOT, Tree};

fn amounts(cpus: i64, mem: i64) -> Quantities {
    [(Name::Cpus, Amount::from_units(cpus)), (Name::Mem, Amount::from_units(mem))].into_iter().collect()
}

/// Returns the tree of a cluster with 100 cpus and 1000 mem.
fn tree() -> Tree {
    let mut tree = Tree::new(BTreeSet::new());
    tree.set_total(&amounts(100, 1000));
    tree
}

fn client(tree: &mut Tree, role: NodeIx, name: &str, number: u32) -> NodeIx {
    let client = tree.add_client(role, &Arc::from(name), number);
    tree.set_active(client, true);
    client
}

fn order(tree: &mut Tree) -> Vec<u32> {
    tree.settle();
    let mut seen = Vec::new();
    tree.walk(|client| {
        seen.push(client);
        ControlFlow::Continue(())
    });
    let mut leaves: Vec<NodeIx> = (0..tree.nodes.len() as NodeIx).filter(|ix| tree.is_leaf(*ix)).collect();
    leaves.reverse();
    let mut some = Vec::new();
    tree.walk_some(&mut leaves, |client| {
        some.push(client);
        ControlFlow::Continue(())
    });
    assert_eq!(seen, some, "both walks go the same way");
    seen
}

impl Tree {
    fn is_leaf(&self, ix: NodeIx) -> bool {
        matches!(self.nodes[ix as usize].kind, super::Kind::Client(_)) && self.is_active(ix)
    }
}

#[test]
fn least_dominant_share_first_then_fewest_allocations_then_name() {
    let mut tree = tree();
    let role = tree.add_role(ROOT, "r");
    let [b, a, c] = [("b", 1), ("a", 0), ("c", 2)].map(|(name, number)| client(&mut tree, role, name, number));
    assert_eq!(order(&mut tree), [0, 1, 2]);
    tree.allocated(a, &amounts(10, 0));
    tree.allocated(b, &amounts(1, 300));
    tree.allocated(c, &amounts(20, 0));
    assert_eq!(order(&mut tree), [0, 2, 1]);
    tree.unallocated(a, &amounts(10, 0));
    tree.unallocated(b, &amounts(1, 300));
    tree.unallocated(c, &amounts(20, 0));
    assert_eq!(order(&mut tree), [0, 1, 2]);
    tree.allocated(a, &amounts(0, 0));
    assert_eq!(order(&mut tree), [1, 2, 0], "a was served twice");
}

#[test]
fn weights_count_among_siblings_only() {
    let mut tree = tree();
    let a = tree.add_role(ROOT, "a");
    let b = tree.add_role(ROOT, "b");
    let b_x = tree.add_role(b, "b/x");
    let x = client(&mut tree, a, "x", 0);
    let y = client(&mut tree, b_x, "y", 1);
    tree.allocated(x, &amounts(10, 0));
    tree.allocated(y, &amounts(15, 0));
    assert_eq!(order(&mut tree), [0, 1]);
    tree.set_weight(b_x, 9.0);
    assert_eq!(order(&mut tree), [0, 1], "b/x has no siblings to gain on");
    tree.set_weight(b, 2.0);
    assert_eq!(order(&mut tree), [1, 0]);
}

#[test]
fn own_frameworks_compete_with_subroles_and_subroles_with_each_other() {
    let mut tree = tree();
    let a = tree.add_role(ROOT, "a");
    let a_b = tree.add_role(a, "a/b");
    let c = tree.add_role(ROOT, "c");
    let own = client(&mut tree, a, "f", 0);
    let sub = client(&mut tree, a_b, "f", 1);
    let other = client(&mut tree, c, "f", 2);
    assert_eq!(order(&mut tree), [0, 1, 2]);
    tree.allocated(own, &amounts(1, 0));
    assert_eq!(order(&mut tree), [2, 1, 0]);
    tree.allocated(sub, &amounts(2, 0));
    assert_eq!(order(&mut tree), [2, 0, 1]);
    tree.allocated(other, &amounts(4, 0));
    assert_eq!(order(&mut tree), [0, 1, 2], "a has 3 in all");
    assert_eq!(tree.dominant_share(a), 0.03);
}

#[test]
fn inactive_clients_keep_their_share() {
    let mut tree = tree();
    let a = tree.add_role(ROOT, "a");
    let b = tree.add_role(ROOT, "b");
    let quiet = client(&mut tree, a, "f", 0);
    client(&mut tree, a, "g", 1);
    let other = client(&mut tree, b, "h", 2);
    tree.allocated(quiet, &amounts(10, 0));
    tree.allocated(other, &amounts(5, 0));
    tree.set_active(quiet, false);
    assert_eq!(order(&mut tree), [2, 1], "a is charged for what its silent framework holds");
    tree.remove_client(quiet);
    assert_eq!(order(&mut tree), [1, 2]);
}

#[test]
fn a_folded_role_has_its_own_count_again() {
    let mut tree = tree();
    let a = tree.add_role(ROOT, "a");
    let b = tree.add_role(ROOT, "b");
    let a_x = tree.add_role(a, "a/x");
    client(&mut tree, a, "f", 0);
    let busy = client(&mut tree, a_x, "g", 1);
    let other = client(&mut tree, b, "h", 2);
    let nothing = amounts(0, 0);
    for _ in 0..3 {
        tree.allocated(busy, &nothing);
    }
    tree.allocated(other, &nothing);
    assert_eq!(order(&mut tree), [2, 0, 1]);
    tree.remove_client(busy);
    assert_eq!(order(&mut tree), [0, 2]);
    tree.remove_role(a_x);
    assert_eq!(order(&mut tree), [0, 2]);
}

#[test]
fn a_new_total_changes_all_shares() {
    let mut tree = tree();
    let role = tree.add_role(ROOT, "r");
    let cpu = client(&mut tree, role, "cpu", 0);
    let mem = client(&mut tree, role, "mem", 1);
    tree.allocated(cpu, &amounts(10, 0));
    tree.allocated(mem, &amounts(0, 200));
    assert_eq!(order(&mut tree), [0, 1]);
    tree.set_total(&amounts(20, 1000));
    // A change before the update of all orders must not lose a child.
    tree.allocated(mem, &amounts(0, 1));
    assert_eq!(order(&mut tree), [1, 0]);
    tree.set_total(&amounts(0, 0));
    assert_eq!(order(&mut tree).len(), 2, "a cluster of nothing has shares of 0");
}

#[test]
fn excluded_names_do_not_count() {
    let mut tree = Tree::new(BTreeSet::from([Name::Mem]));
    tree.set_total(&amounts(100, 1000));
    let role = tree.add_role(ROOT, "r");
    let f = client(&mut tree, role, "f", 0);
    tree.allocated(f, &amounts(10, 900));
    assert_eq!(tree.dominant_share(f), 0.1);
}

#[test]
fn equal_fractions_are_equal() {
    let mut tree = Tree::new(BTreeSet::new());
    let milli = |name, amount| (name, Amount::from_thousandths(amount));
    tree.set_total(&[milli(Name::Cpus, 300), milli(Name::Mem, 3)].into_iter().collect());
    let role = tree.add_role(ROOT, "r");
    let z = client(&mut tree, role, "z", 0);
    let y = client(&mut tree, role, "y", 1);
    tree.allocated(z, &std::iter::once(milli(Name::Cpus, 100)).collect());
    tree.allocated(y, &std::iter::once(milli(Name::Mem, 1)).collect());
    assert_eq!(order(&mut tree), [1, 0], "by name, because both have a third");
}
