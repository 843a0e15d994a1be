//! Clients: a framework in one of its roles. Clients compete in the tree and refuse offers.
//!
//! Each client has the time at which it was last *opened* (added, revived, activated). An agent that all clients have
//! refused is offered again only to clients opened since.

use resources::Quantities;
use rustc_hash::FxHashSet;
use slab::Slab;

use crate::Held;
use crate::fairness::Ledger;
use crate::tree::NodeIx;

/// Epoch of a removed client; the epoch clock starts above it.
const GONE: u64 = 0;

/// Index of a client in the slab.
pub(crate) type ClientIx = u32;

/// A framework in a role. It exists while the framework is subscribed to the role, or holds resources in it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) framework: u32,
    pub(crate) role: u32,
    /// Leaf of the client in the tree; `None` until the framework has subscribed (agents may report its tasks before).
    pub(crate) node: Option<NodeIx>,
    pub(crate) subscribed: bool,
    pub(crate) suppressed: bool,
    /// Minimum offer of the client, which replaces the allocator's.
    pub(crate) min_allocatable: Option<Vec<Quantities>>,
    /// Agents on which the client holds resources.
    pub(crate) agents: FxHashSet<u32>,
    pub(crate) offered: Quantities,
    pub(crate) used: Quantities,
    pub(crate) ledger: Ledger,
    refusals: u32,
    opened: u64,
}

impl Client {
    /// Returns the sum of the resources that the client holds in one of the two states on all agents. Shared resources
    /// count once for each agent.
    pub(crate) fn sum(&mut self, held: Held) -> &mut Quantities {
        match held {
            Held::Offered => &mut self.offered,
            Held::Used => &mut self.used,
        }
    }

    /// Returns the number of valid refusals on all agents.
    pub(crate) fn refusals(&self) -> u32 {
        self.refusals
    }
}

/// All clients, and the order in which they were opened.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    slab: Slab<Client>,
    /// Epochs by client: refusals of another epoch are void. Stored contiguously, because refusals are scanned by the
    /// million.
    epochs: Vec<u64>,
    /// Number of openings and epochs so far; never decreases.
    clock: u64,
    /// Openings (time, client), oldest first. An entry is void if its client was opened again.
    openings: Vec<(u64, ClientIx)>,
    /// Number of clients with a minimum of their own.
    own_minima: usize,
    /// Number of valid refusals of all clients.
    refusals: u64,
}

impl Clients {
    pub(crate) fn add(&mut self, framework: u32, role: u32) -> ClientIx {
        self.clock += 1;
        let client = Client {
            framework,
            role,
            node: None,
            subscribed: false,
            suppressed: false,
            min_allocatable: None,
            agents: FxHashSet::default(),
            offered: Quantities::default(),
            used: Quantities::default(),
            ledger: Ledger::default(),
            refusals: 0,
            opened: 0,
        };
        let ix = self.slab.insert(client);
        if self.epochs.len() <= ix {
            self.epochs.resize(ix + 1, GONE);
        }
        self.epochs[ix] = self.clock;
        ix as ClientIx
    }

    pub(crate) fn remove(&mut self, ix: ClientIx) -> Option<Client> {
        let client = self.slab.try_remove(ix as usize)?;
        self.refusals -= u64::from(client.refusals);
        self.own_minima -= usize::from(client.min_allocatable.is_some());
        self.epochs[ix as usize] = GONE;
        Some(client)
    }

    pub(crate) fn get(&self, ix: ClientIx) -> &Client {
        &self.slab[ix as usize]
    }

    /// Returns a client by an index that may be stale.
    pub(crate) fn try_get(&self, ix: ClientIx) -> Option<&Client> {
        self.slab.get(ix as usize)
    }

    pub(crate) fn get_mut(&mut self, ix: ClientIx) -> &mut Client {
        &mut self.slab[ix as usize]
    }

    /// Returns the epoch of a client's valid refusals, or `None` if the client was removed.
    pub(crate) fn epoch(&self, ix: ClientIx) -> Option<u64> {
        self.epochs.get(ix as usize).copied().filter(|epoch| *epoch != GONE)
    }

    /// Returns the epochs of all clients by index; 0 for removed ones.
    pub(crate) fn epochs(&self) -> &[u64] {
        &self.epochs
    }

    /// Returns the current value of the opening clock.
    pub(crate) fn now(&self) -> u64 {
        self.clock
    }

    /// Marks that a client may accept resources that it refused before, on any agent.
    pub(crate) fn open(&mut self, ix: ClientIx) {
        self.clock += 1;
        self.slab[ix as usize].opened = self.clock;
        if self.openings.len() > 2 * self.slab.len() + 64 {
            let slab = &self.slab;
            self.openings.retain(|&(when, ix)| slab.get(ix as usize).is_some_and(|c| c.opened == when));
        }
        self.openings.push((self.clock, ix));
    }

    /// Returns the clients opened after a moment.
    pub(crate) fn opened_since(&self, moment: u64) -> impl Iterator<Item = ClientIx> {
        let start = self.openings.partition_point(|&(when, _)| when <= moment);
        self.openings[start..]
            .iter()
            .filter(|&&(when, ix)| self.slab.get(ix as usize).is_some_and(|c| c.opened == when))
            .map(|&(_, ix)| ix)
    }

    /// Makes all refusals of a client void.
    pub(crate) fn forget_refusals(&mut self, ix: ClientIx) {
        self.clock += 1;
        let client = &mut self.slab[ix as usize];
        self.epochs[ix as usize] = self.clock;
        self.refusals -= u64::from(client.refusals);
        client.refusals = 0;
    }

    pub(crate) fn count_refusals(&mut self, ix: ClientIx, more: u32, less: u32) {
        let client = &mut self.slab[ix as usize];
        client.refusals = client.refusals + more - less;
        self.refusals = self.refusals + u64::from(more) - u64::from(less);
    }

    /// Sets a client's own minimum for offers.
    pub(crate) fn set_minimum(&mut self, ix: ClientIx, minimum: Option<Vec<Quantities>>) {
        let client = &mut self.slab[ix as usize];
        self.own_minima =
            self.own_minima + usize::from(minimum.is_some()) - usize::from(client.min_allocatable.is_some());
        client.min_allocatable = minimum;
    }

    /// Returns the number of clients with a minimum of their own.
    pub(crate) fn own_minima(&self) -> usize {
        self.own_minima
    }

    /// Returns the number of valid refusals of all clients.
    pub(crate) fn all_refusals(&self) -> u64 {
        self.refusals
    }
}
