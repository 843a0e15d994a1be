//! Visiting the active clients in the order in which they are to be served.

use super::order::Key;
use super::{Kind, NodeIx, ROOT, Tree};

/// What the visitor says after each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// On to the next client.
    Next,
    /// Nothing more for this client's role: on to the first client of the next role.
    NextRole,
    /// Enough.
    Stop,
}

impl Tree {
    /// Visits the active clients (by their caller's number), least served first. [`Tree::settle`] goes before.
    pub(crate) fn walk(&self, mut visit: impl FnMut(u32) -> Step) {
        // A stack of our own: a role's depth is the sender's choice, and must not be able to overflow the machine's.
        let mut stack = vec![self.children(ROOT)];
        while let Some(children) = stack.last_mut() {
            let Some(key) = children.next() else {
                stack.pop();
                continue;
            };
            match self.nodes[key.node as usize].kind {
                Kind::Client(client) => match visit(client) {
                    Step::Next => {}
                    Step::NextRole => drop(stack.pop()),
                    Step::Stop => return,
                },
                _ => stack.push(self.children(key.node)),
            }
        }
    }

    fn children(&self, node: NodeIx) -> std::collections::btree_set::Iter<'_, Key> {
        self.nodes[node as usize].order.iter()
    }

    /// Sorts some clients (by their nodes) into the order in which [`Tree::walk`] would visit them.
    pub(crate) fn sort(&self, clients: &mut [NodeIx]) {
        clients.sort_by_cached_key(|&client| {
            let mut path = Vec::with_capacity(4);
            let mut at = client;
            while at != ROOT {
                let node = &self.nodes[at as usize];
                path.push(Key { share: self.share(at), count: node.count, name: node.name.clone(), node: at });
                at = node.parent;
            }
            path.reverse();
            path
        });
    }
}
