//! Place of a client in the order, level by level: for explanations, not for runs.

use super::{Kind, NodeIx, ROOT, Tree};

/// Maximum number of preceding competitors that a level names.
const NAMED: usize = 5;

/// One level of the order: a role or framework among its competitors.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Name of the role, of its own frameworks as a group (`role/.`), or of the framework.
    pub name: String,
    /// Role whose children compete at this level; empty for top-level roles.
    pub among: String,
    /// Dominant share divided by the weight, by which competitors are ordered.
    pub share: f64,
    /// Number of competitors that precede it.
    pub before: usize,
    /// First of the preceding competitors, with their shares.
    pub first: Vec<(String, f64)>,
    /// Number of competitors, including itself; suppressed ones do not count.
    pub of: usize,
}

impl Tree {
    /// Returns the levels of a client's place, from the top. A suppressed client has no place.
    pub(crate) fn levels(&self, client: NodeIx) -> Vec<Level> {
        let mut levels = Vec::new();
        let mut at = client;
        while at != ROOT {
            levels.push(self.level(at));
            at = self.nodes[at as usize].parent;
        }
        levels.reverse();
        levels
    }

    fn level(&self, ix: NodeIx) -> Level {
        let node = &self.nodes[ix as usize];
        let parent = &self.nodes[node.parent as usize];
        let place = parent.order.iter().position(|key| key.node == ix);
        let first = parent.order.iter().take(place.unwrap_or_default().min(NAMED));
        let among = match parent.kind {
            // A seat is named after its role.
            Kind::Seat => self.nodes[parent.parent as usize].name.to_string(),
            _ => parent.name.to_string(),
        };
        Level {
            name: node.name.to_string(),
            among,
            share: self.dominant_share(ix) / node.weight,
            before: place.unwrap_or_default(),
            first: first
                .map(|key| {
                    let weight = self.nodes[key.node as usize].weight;
                    (key.name.to_string(), self.dominant_share(key.node) / weight)
                })
                .collect(),
            of: if place.is_some() { parent.order.len() } else { 0 },
        }
    }
}
