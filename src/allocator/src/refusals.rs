//! Refusals ("filters"): resources of an agent that a framework, in a role, is not offered for some time.
//!
//! A refusal blocks an offer that it contains in full; as soon as the agent has anything more, the offer is made. Each
//! agent has its own refusals, sorted by client, so that a check is a short search. Clearing all refusals of a client
//! (REVIVE) only raises the client's epoch: refusals of an older epoch are void, and removed when their agent's list is
//! next changed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use base::Time;
use resources::Resources;

use crate::bits::Bits;
use crate::clients::{ClientIx, Clients};

/// Maximum number of refusals of one client on one agent. Beyond it, the one that expires first is removed.
const PER_CLIENT: usize = 64;

/// Time of a refusal that expires at the next interval run, whenever that is.
const NEXT_INTERVAL: u64 = 0;

/// Converts the time at which a refusal expires to nanoseconds since the epoch, since millions of refusals are kept.
pub(crate) fn nanos(time: Time) -> u64 {
    u64::try_from(time.since_epoch().as_nanos()).unwrap_or(u64::MAX)
}

fn time(nanos: u64) -> Time {
    Time::from_epoch(std::time::Duration::from_nanos(nanos))
}

#[derive(Debug)]
struct Refusal {
    client: ClientIx,
    /// Epoch of the client when it refused. A refusal of another epoch is void.
    epoch: u64,
    until: u64,
    /// Refused resources, shared with other frameworks that refused equal ones.
    refused: Arc<Resources>,
}

/// Refusals on one agent.
#[derive(Debug, Default)]
pub(crate) struct AgentRefusals {
    /// Refusals sorted by client.
    list: Vec<Refusal>,
    latest: Option<Arc<Resources>>,
    /// Number of refusals of this agent in a row by client, with the client's epoch. Kept only if a policy has a
    /// back-off.
    streaks: BTreeMap<ClientIx, (u64, u8)>,
}

impl AgentRefusals {
    fn range(&self, client: ClientIx) -> std::ops::Range<usize> {
        let start = self.list.partition_point(|r| r.client < client);
        let len = self.list[start..].iter().take_while(|r| r.client == client).count();
        start..start + len
    }

    /// Returns the refused resources that could block an offer to a client, and whether the refusal expires at the next
    /// interval run.
    pub(crate) fn of(&self, client: ClientIx, epoch: u64) -> impl Iterator<Item = (&Arc<Resources>, bool)> {
        let own = self.list[self.range(client)].iter().filter(move |r| r.epoch == epoch);
        own.map(|r| (&r.refused, r.until == NEXT_INTERVAL))
    }

    /// Returns the number of refusals, including void ones.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the clients with a refusal that lasts only until the next interval run.
    pub(crate) fn until_interval(&self, clients: &Clients) -> impl Iterator<Item = ClientIx> {
        let until_interval = self.list.iter().filter(|r| r.until == NEXT_INTERVAL);
        until_interval.filter(|r| clients.epoch(r.client) == Some(r.epoch)).map(|r| r.client)
    }

    /// Removes those clients from `open` that have refused all of `free` beyond the next interval run: they would be
    /// offered nothing.
    pub(crate) fn clear_refusers(&self, free: &Resources, clients: &Clients, open: &mut Bits) {
        let epochs = clients.epochs();
        // Most clients have refused the very same set.
        let (mut last, mut contains) = (std::ptr::null(), false);
        for refusal in self.list.iter().filter(|r| r.until != NEXT_INTERVAL) {
            let refused = Arc::as_ptr(&refusal.refused);
            if !std::ptr::eq(last, refused) {
                (last, contains) = (refused, refusal.refused.contains(free));
            }
            // No refusal has the epoch of a removed client.
            if contains && epochs.get(refusal.client as usize) == Some(&refusal.epoch) {
                open.clear(refusal.client);
            }
        }
    }

    /// Returns each valid refusal: client, resources, and end (`None`: until the next interval run).
    pub(crate) fn iter(&self, clients: &Clients) -> impl Iterator<Item = (ClientIx, &Resources, Option<Time>)> {
        self.list.iter().filter(|r| clients.epoch(r.client) == Some(r.epoch)).map(|r| {
            let until = (r.until != NEXT_INTERVAL).then(|| time(r.until));
            (r.client, &*r.refused, until)
        })
    }

    /// Counts one more refusal in a row. Returns the number before it.
    pub(crate) fn count_in_a_row(&mut self, client: ClientIx, clients: &Clients) -> u8 {
        let Some(now) = clients.epoch(client) else { return 0 };
        self.streaks.retain(|client, (epoch, _)| clients.epoch(*client) == Some(*epoch));
        let (_, count) = self.streaks.entry(client).or_insert((now, 0));
        let before = *count;
        *count = count.saturating_add(1);
        before
    }

    /// Records that the client uses resources here: its next refusal is the first one in a row.
    pub(crate) fn used(&mut self, client: ClientIx) {
        self.streaks.remove(&client);
    }

    /// Returns the shared copy of refused resources: frameworks that refuse equal ones share it.
    fn intern(&mut self, refused: &Resources) -> Arc<Resources> {
        match &self.latest {
            Some(latest) if **latest == *refused => latest.clone(),
            _ => self.latest.insert(Arc::new(refused.clone())).clone(),
        }
    }

    fn purge(&mut self, clients: &Clients) {
        self.list.retain(|r| clients.epoch(r.client) == Some(r.epoch));
    }
}

/// Queue of the refusals of all agents, by the time at which they expire.
#[derive(Debug, Default)]
pub(crate) struct RefusalExpiries {
    /// Refusals with a time, earliest first. Entries of removed refusals are skipped when they are due, or removed by
    /// [`RefusalExpiries::rebuild`].
    heap: BinaryHeap<Reverse<(u64, u32, ClientIx)>>,
    /// Refusals that expire at the next interval run.
    until_interval: Vec<(u32, ClientIx)>,
}

impl RefusalExpiries {
    /// Returns the time at which the first refusal has expired. It is still valid at its last instant, so that it
    /// survives a run at the very end of an interval.
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((until, _, _))| time(until.saturating_add(1)))
    }

    /// Removes and returns a refusal that expired before `now`.
    pub(crate) fn pop(&mut self, now: u64) -> Option<(u32, ClientIx)> {
        match self.heap.peek() {
            Some(Reverse((until, agent, client))) if *until < now => {
                let ended = (*agent, *client);
                self.heap.pop();
                Some(ended)
            }
            _ => None,
        }
    }

    pub(crate) fn take_until_interval(&mut self) -> Vec<(u32, ClientIx)> {
        std::mem::take(&mut self.until_interval)
    }

    /// Returns whether most entries belong to removed refusals, so that [`RefusalExpiries::rebuild`] is due.
    pub(crate) fn is_crowded(&self, valid: u64) -> bool {
        self.heap.len() as u64 > 2 * valid + 1024
    }

    /// Replaces the queue by the valid refusals of these agents.
    pub(crate) fn rebuild<'a>(
        &mut self,
        agents: impl Iterator<Item = (u32, &'a mut AgentRefusals)>,
        clients: &Clients,
    ) {
        let mut entries = Vec::new();
        for (agent, refusals) in agents {
            refusals.purge(clients);
            let timed = refusals.list.iter().filter(|r| r.until != NEXT_INTERVAL);
            entries.extend(timed.map(|r| Reverse((r.until, agent, r.client))));
        }
        self.heap = BinaryHeap::from(entries);
    }
}

/// A refusal to be stored.
pub(crate) struct NewRefusal<'a> {
    pub(crate) agent: u32,
    pub(crate) client: ClientIx,
    pub(crate) refused: &'a Resources,
    /// Time at which the refusal expires; `None` for the next interval run.
    pub(crate) until: Option<Time>,
}

/// Stores a refusal. Refusals that it covers in resources and time are removed. If it is covered itself, nothing
/// changes.
pub(crate) fn store(
    new: NewRefusal<'_>,
    refusals: &mut AgentRefusals,
    refusal_expiries: &mut RefusalExpiries,
    clients: &mut Clients,
) {
    let NewRefusal { agent, client, refused, until } = new;
    let Some(epoch) = clients.epoch(client) else { return };
    let until = until.map_or(NEXT_INTERVAL, |t| nanos(t).max(1));
    if refusals.list.len() == refusals.list.capacity() {
        refusals.purge(clients);
    }
    let mut range = refusals.range(client);
    let old = &refusals.list[range.clone()];
    // A longer refusal may expire before the next interval run, so it does not cover one until that run.
    let lasts = |r: &Refusal| if until == NEXT_INTERVAL { r.until == NEXT_INTERVAL } else { r.until >= until };
    if old.iter().any(|r| r.epoch == epoch && lasts(r) && r.refused.contains(refused)) {
        return;
    }
    let mut gone = 0;
    for at in range.clone().rev() {
        let r = &refusals.list[at];
        let void = r.epoch != epoch;
        if void || (r.until <= until && refused.contains(&r.refused)) {
            refusals.list.remove(at);
            range.end -= 1;
            gone += u32::from(!void);
        }
    }
    if range.len() >= PER_CLIENT
        && let Some(first) = range.clone().min_by_key(|&at| refusals.list[at].until)
    {
        refusals.list.remove(first);
        range.end -= 1;
        gone += 1;
    }
    let refused = refusals.intern(refused);
    refusals.list.insert(range.end, Refusal { client, epoch, until, refused });
    clients.count_refusals(client, 1, gone);
    match until {
        NEXT_INTERVAL => refusal_expiries.until_interval.push((agent, client)),
        _ => refusal_expiries.heap.push(Reverse((until, agent, client))),
    }
}

/// Removes the refusals of a client that expired before `now` or, if `until_interval`, expire at an interval run.
/// Returns true if there was one: the next run considers the client again.
pub(crate) fn end(
    refusals: &mut AgentRefusals,
    client: ClientIx,
    now: u64,
    until_interval: bool,
    clients: &mut Clients,
) -> bool {
    let Some(epoch) = clients.epoch(client) else { return false };
    let mut gone = 0;
    for at in refusals.range(client).rev() {
        let r = &refusals.list[at];
        let void = r.epoch != epoch;
        let ended = if r.until == NEXT_INTERVAL { until_interval } else { r.until < now };
        if void || ended {
            refusals.list.remove(at);
            gone += u32::from(!void);
        }
    }
    clients.count_refusals(client, 0, gone);
    gone > 0
}

/// Removes all refusals on an agent. Returns the clients that had one.
pub(crate) fn clear(refusals: &mut AgentRefusals, clients: &mut Clients) -> Vec<ClientIx> {
    refusals.purge(clients);
    let mut had: Vec<ClientIx> = refusals.list.drain(..).map(|r| r.client).collect();
    for client in &had {
        clients.count_refusals(*client, 0, 1);
    }
    refusals.latest = None;
    refusals.streaks.clear();
    had.dedup();
    had
}
