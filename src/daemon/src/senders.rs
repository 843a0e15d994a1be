//! Binds the addresses of libprocess processes to connections: a message names its sender, and any process can name
//! any.
//!
//! - A message that carries the address's session token is accepted over any connection.
//! - Without a token, as from Mesos's processes, an address is bound to the connection over which it has registered.
//!   While that is open, messages over others are refused: libprocess sends to one address over one connection.
//! - When it has closed, the next connection from the same IP takes its place.
//!
//! It decides nothing about processes that have not registered, nor about which may register.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddrV4};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Pid, lock};
use rustc_hash::FxHashMap;
use tokio::time::Instant;
use wire::libprocess::{ConnectionId, Network, Origin, SenderToken};

/// Maximum number of bound addresses; if there are more, one of the source with the most is released.
const ADDRESSES_MAX: usize = 1 << 17;
/// Maximum number of addresses that are bound to one connection: a process has one address, a proxy may forward some.
const OF_A_CONNECTION_MAX: usize = 256;
/// Maximum number of addresses that have not registered and whose token is sent back; if there are more, the oldest is
/// removed.
const GREETED_MAX: usize = 1 << 14;
/// Minimum interval between two warnings about the same address, and about the limit of all.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The bound addresses of a daemon.
pub(crate) struct Senders {
    /// Network whose messages carry the tokens back.
    network: Network,
    /// Token that this process sends to others, if it has one: then only that token is accepted.
    own: Option<SenderToken>,
    table: Mutex<Table>,
    /// Number of refused messages.
    refused: AtomicU64,
}

/// Bound addresses by whether the connection is open, those whose connection has closed first, and by number, the
/// newest first.
type Bindings = BTreeMap<(bool, Reverse<u64>), SocketAddrV4>;

#[derive(Default)]
struct Table {
    owners: FxHashMap<SocketAddrV4, Owner>,
    /// Addresses that are bound to each open connection.
    bound: FxHashMap<ConnectionId, Vec<SocketAddrV4>>,
    /// Bound addresses of each [`source`](wire::source).
    by_source: FxHashMap<IpAddr, Bindings>,
    /// Sources by the number of their addresses.
    ranking: BTreeSet<(usize, IpAddr)>,
    /// Number of the next binding.
    next: u64,
    /// Time of the last warning that an address was released.
    warned: Option<Instant>,
    /// Addresses that have not registered and whose token is sent back, the oldest first.
    greeted: VecDeque<SocketAddrV4>,
}

/// The connection and the token to which an address is bound.
struct Owner {
    /// The connection; `None` after it has closed.
    connection: Option<ConnectionId>,
    ip: IpAddr,
    /// Number of the binding, in the order of all.
    number: u64,
    /// Whether the process sends over one connection at a time, as libprocess does.
    is_libprocess: bool,
    sender_token: Option<SenderToken>,
    /// First token that the address had: the process with it may return.
    former: Option<SenderToken>,
    warned: Option<Instant>,
}

/// Whether a message registers its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The message registers its sender, which binds the sender's address.
    Registers,
    /// Any other message, which does not register its sender.
    Other,
}

impl Owner {
    fn of(origin: &Origin, sender_token: Option<SenderToken>) -> Owner {
        Owner {
            connection: Some(origin.connection),
            ip: ip(origin),
            number: 0,
            is_libprocess: origin.is_libprocess,
            sender_token,
            former: None,
            warned: None,
        }
    }

    /// Returns whether a message without a known token comes from the process at `address`.
    fn may_speak(&self, address: SocketAddrV4, origin: &Origin, kind: Kind) -> bool {
        if self.connection == Some(origin.connection) {
            return true;
        }
        let is_at = |ip: IpAddr| ip == IpAddr::V4(*address.ip());
        let is_near = ip(origin) == self.ip || is_at(ip(origin));
        let shares = self.sender_token.is_none() && !self.is_libprocess && is_near;
        match (kind, self.connection) {
            (Kind::Registers, None) => true,
            // The sender's IP is that of the address which it names, and the owner's is not.
            (Kind::Registers, Some(_)) => shares || is_at(ip(origin)) && !is_at(self.ip),
            (Kind::Other, None) => self.sender_token.is_none() && is_near,
            (Kind::Other, Some(_)) => shares,
        }
    }
}

impl Senders {
    /// Creates the table of a daemon that sends over `network`. An agent sends its masters a token, `own`; a master
    /// receives those of its agents.
    pub(crate) fn new(network: Network, own: Option<SenderToken>) -> Senders {
        Senders { network, own, table: Mutex::default(), refused: AtomicU64::new(0) }
    }

    /// Returns whether a message comes from the process that it names, as far as that is known.
    pub(crate) fn admit(&self, from: &Pid, origin: &Origin, kind: Kind) -> bool {
        let address = from.address();
        let sender_token = origin.sender_token.filter(|sender_token| self.own.is_none_or(|own| own == *sender_token));
        let table = &mut *lock(&self.table);
        let Some(owner) = table.owners.get_mut(&address) else {
            if kind == Kind::Registers || (self.own.is_some() && sender_token.is_some()) {
                self.bind(table, address, Owner::of(origin, sender_token));
            }
            return true;
        };
        let known = sender_token.is_some()
            && (sender_token == owner.sender_token || sender_token == owner.former || self.own.is_some());
        if !known && !owner.may_speak(address, origin, kind) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            warn(owner, from, origin);
            return false;
        }
        let registers = kind == Kind::Registers;
        let is_new = (known || registers) && sender_token != owner.sender_token;
        let moves = registers && owner.connection != Some(origin.connection);
        if is_new || moves || owner.connection.is_none() {
            let former = if is_new { owner.former.or(owner.sender_token) } else { owner.former };
            let sender_token = if is_new { sender_token } else { owner.sender_token };
            self.bind(table, address, Owner { former, ..Owner::of(origin, sender_token) });
        }
        true
    }

    /// Binds the address of a process to this connection, over which the process has authenticated by a secret.
    pub(crate) fn bind_authenticated(&self, client: &Pid, origin: &Origin, is_open: bool) {
        let table = &mut *lock(&self.table);
        let former = table.owners.get(&client.address()).and_then(|owner| owner.former.or(owner.sender_token));
        let owner = Owner { former, ..Owner::of(origin, origin.sender_token) };
        self.bind(table, client.address(), owner);
        if !is_open {
            table.close(origin.connection);
        }
    }

    /// Returns whether the address of the process is bound to another connection that is open.
    pub(crate) fn are_others_bound(&self, client: &Pid, origin: &Origin) -> bool {
        let table = lock(&self.table);
        let owner = table.owners.get(&client.address()).filter(|owner| owner.connection.is_some());
        owner.is_some_and(|owner| {
            let has_token = origin.sender_token.is_some() && origin.sender_token == owner.sender_token;
            !has_token && !owner.may_speak(client.address(), origin, Kind::Other)
        })
    }

    /// Sends the token of a process back that has not registered and begins to authenticate, so that it recognises the
    /// replies as those of its master.
    pub(crate) fn return_token(&self, from: &Pid, origin: &Origin) {
        let (table, address) = (&mut *lock(&self.table), from.address());
        if origin.sender_token.is_none() || table.owners.contains_key(&address) {
            return;
        }
        if table.greeted.len() >= GREETED_MAX
            && let Some(oldest) = table.greeted.pop_front()
            && !table.owners.contains_key(&oldest)
        {
            self.network.set_sender_token(oldest, None);
        }
        table.greeted.push_back(address);
        self.network.set_sender_token(address, origin.sender_token);
    }

    /// Returns the number of messages that were refused since the start.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Records that a connection has closed.
    pub(crate) fn closed(&self, connection: ConnectionId) {
        lock(&self.table).close(connection);
    }

    fn bind(&self, table: &mut Table, address: SocketAddrV4, owner: Owner) {
        // An address that is bound again keeps its number.
        let number = table.owners.get(&address).map(|owner| owner.number);
        table.unbind(address);
        let Some(connection) = owner.connection else { return };
        if table.bound.get(&connection).is_some_and(|bound| bound.len() >= OF_A_CONNECTION_MAX) {
            return;
        }
        if table.owners.len() >= ADDRESSES_MAX
            && let Some(released) = table.release()
            && self.own.is_none()
        {
            self.network.set_sender_token(released, None);
        }
        if self.own.is_none() {
            self.network.set_sender_token(address, owner.sender_token);
        }
        table.insert(address, connection, number, owner);
    }
}

impl Table {
    /// Adds the owner of an address that has none, with this number or the next one.
    fn insert(&mut self, address: SocketAddrV4, connection: ConnectionId, number: Option<u64>, owner: Owner) {
        let number = number.unwrap_or(self.next);
        self.next += 1;
        self.bound.entry(connection).or_default().push(address);
        self.change(wire::source(owner.ip), |addresses| addresses.insert((true, Reverse(number)), address));
        self.owners.insert(address, Owner { number, ..owner });
    }

    /// Changes the addresses of a source, and its rank.
    fn change<T>(&mut self, source: IpAddr, change: impl FnOnce(&mut Bindings) -> T) {
        let addresses = self.by_source.entry(source).or_default();
        self.ranking.remove(&(addresses.len(), source));
        change(addresses);
        let length = addresses.len();
        if length > 0 {
            self.ranking.insert((length, source));
        } else {
            self.by_source.remove(&source);
        }
    }

    /// Removes a binding of the source that has the most, and returns its address: one whose connection has closed, or
    /// else the newest. Processes without any secret can bind addresses, so those of one host must not keep other
    /// hosts from it, and must not release the bindings of the host's agent, which are older.
    fn release(&mut self) -> Option<SocketAddrV4> {
        let (_, source) = *self.ranking.last()?;
        let (_, address) = self.by_source.get(&source)?.first_key_value()?;
        let address = *address;
        self.unbind(address);
        let now = Instant::now();
        if self.warned.is_none_or(|at| now.duration_since(at) >= WARNING_INTERVAL) {
            self.warned = Some(now);
            tracing::warn!(
                "{ADDRESSES_MAX} addresses of processes are bound to their connections, which is the limit: {address} of \
                 {source}, which has the most, is released, and others after it"
            );
        }
        Some(address)
    }

    /// Removes the owner of an address, which another one replaces.
    fn unbind(&mut self, address: SocketAddrV4) {
        let Some(owner) = self.owners.remove(&address) else { return };
        self.change(wire::source(owner.ip), |addresses| {
            addresses.remove(&(owner.connection.is_some(), Reverse(owner.number)))
        });
        let Some(connection) = owner.connection else { return };
        if let Some(bound) = self.bound.get_mut(&connection) {
            bound.retain(|other| *other != address);
            if bound.is_empty() {
                self.bound.remove(&connection);
            }
        }
    }

    fn close(&mut self, connection: ConnectionId) {
        for address in self.bound.remove(&connection).unwrap_or_default() {
            let Some(owner) = self.owners.get_mut(&address) else { continue };
            owner.connection = None;
            let (source, number) = (wire::source(owner.ip), Reverse(owner.number));
            self.change(source, |addresses| {
                addresses.remove(&(true, number));
                addresses.insert((false, number), address)
            });
        }
    }
}

fn ip(origin: &Origin) -> IpAddr {
    origin.peer.ip().to_canonical()
}

fn warn(owner: &mut Owner, from: &Pid, origin: &Origin) {
    let now = Instant::now();
    if owner.warned.is_some_and(|at| now.duration_since(at) < WARNING_INTERVAL) {
        return;
    }
    owner.warned = Some(now);
    tracing::warn!(
        "Refusing messages from {} that name {from} as their sender: that process has registered over another connection",
        origin.peer
    );
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const AGENT: &str = "slave(1)@10.0.0.2:5051";
    const TOKEN: Option<SenderToken> = Some(token(1));

    const fn token(byte: u8) -> SenderToken {
        SenderToken::new([byte; 16])
    }

    /// Creates the origin of a libprocess message over a connection from an IP.
    fn over(connection: u64, ip: &str, sender_token: Option<SenderToken>) -> Origin {
        let (connection, peer) = (ConnectionId(connection), format!("{ip}:40000").parse().unwrap());
        Origin { connection, peer, is_libprocess: true, sender_token }
    }

    fn master() -> Senders {
        Senders::new(Network::new(wire::Limits::default(), |_| {}), None)
    }

    fn admit(senders: &Senders, origin: Origin, kind: Kind) -> bool {
        senders.admit(&AGENT.parse().unwrap(), &origin, kind)
    }

    #[tokio::test]
    async fn one_connection_speaks_for_a_registered_address() {
        let senders = master();
        let (own, other) = (over(1, "10.0.0.2", None), over(2, "10.0.0.2", None));
        assert!(admit(&senders, other, Kind::Other), "nothing is registered");
        assert!(admit(&senders, own, Kind::Registers));
        assert!(admit(&senders, own, Kind::Other));
        assert!(!admit(&senders, other, Kind::Other));
        assert!(!admit(&senders, other, Kind::Registers));
        assert!(senders.are_others_bound(&AGENT.parse().unwrap(), &other));
        // A process with another id at the same address counts as the same.
        assert!(!senders.admit(&"slave(2)@10.0.0.2:5051".parse().unwrap(), &other, Kind::Other));
        assert!(senders.admit(&"slave(1)@10.0.0.2:5052".parse().unwrap(), &other, Kind::Other));
        senders.closed(other.connection);
        assert!(admit(&senders, own, Kind::Other));
    }

    #[tokio::test]
    async fn when_it_has_closed_the_same_ip_takes_its_place() {
        let senders = master();
        // Behind address translation: the pid has another IP than the connection.
        let own = over(1, "192.168.0.7", None);
        assert!(admit(&senders, own, Kind::Registers));
        senders.closed(own.connection);
        assert!(!admit(&senders, over(2, "192.168.0.9", None), Kind::Other));
        assert!(admit(&senders, over(3, "192.168.0.7", None), Kind::Other));
        // That connection is open now.
        assert!(!admit(&senders, over(4, "192.168.0.7", None), Kind::Registers));
        senders.closed(ConnectionId(3));
        assert!(admit(&senders, over(5, "192.168.0.9", None), Kind::Registers));
    }

    #[tokio::test]
    async fn the_named_ip_prevails_over_others_and_a_secret_over_all() {
        let senders = master();
        assert!(admit(&senders, over(1, "10.0.0.66", None), Kind::Registers));
        assert!(!admit(&senders, over(2, "10.0.0.67", None), Kind::Registers));
        assert!(admit(&senders, over(3, "10.0.0.2", None), Kind::Registers));
        assert!(!admit(&senders, over(1, "10.0.0.66", None), Kind::Other));
        assert!(!admit(&senders, over(4, "10.0.0.2", None), Kind::Registers));
        senders.bind_authenticated(&AGENT.parse().unwrap(), &over(4, "10.0.0.2", None), true);
        assert!(admit(&senders, over(4, "10.0.0.2", None), Kind::Registers));
        assert!(!admit(&senders, over(3, "10.0.0.2", None), Kind::Other));
    }

    #[tokio::test]
    async fn a_token_speaks_over_any_connection() {
        let senders = master();
        assert!(admit(&senders, over(1, "10.0.0.2", TOKEN), Kind::Registers));
        assert!(admit(&senders, over(2, "172.16.0.1", TOKEN), Kind::Other));
        for sender_token in [None, Some(token(2))] {
            assert!(!admit(&senders, over(3, "10.0.0.2", sender_token), Kind::Other));
            assert!(!admit(&senders, over(3, "10.0.0.2", sender_token), Kind::Registers));
        }
        senders.closed(ConnectionId(1));
        assert!(!admit(&senders, over(3, "10.0.0.2", None), Kind::Other));
        // While the agent is down another process registers at its address; the agent gets the address back.
        assert!(admit(&senders, over(4, "10.0.0.2", Some(token(2))), Kind::Registers));
        assert!(admit(&senders, over(5, "10.0.0.2", TOKEN), Kind::Registers));
        assert!(!admit(&senders, over(6, "10.0.0.2", None), Kind::Other));
    }

    #[tokio::test]
    async fn a_client_of_many_connections_is_known_by_its_ip() {
        let senders = master();
        let over = |connection, ip| Origin { is_libprocess: false, ..over(connection, ip, None) };
        assert!(admit(&senders, over(1, "10.0.0.3"), Kind::Registers));
        assert!(admit(&senders, over(2, "10.0.0.3"), Kind::Other));
        assert!(admit(&senders, over(2, "10.0.0.3"), Kind::Registers));
        assert!(!admit(&senders, over(3, "10.0.0.4"), Kind::Other));
    }

    #[tokio::test]
    async fn an_agent_knows_its_master_by_the_token_that_it_gave() {
        let agent = Senders::new(Network::new(wire::Limits::default(), |_| {}), TOKEN);
        // Another token is ignored.
        assert!(admit(&agent, over(1, "10.0.0.2", Some(token(2))), Kind::Registers));
        assert!(admit(&agent, over(2, "10.0.0.2", TOKEN), Kind::Other));
        for sender_token in [None, Some(token(2))] {
            assert!(!admit(&agent, over(3, "10.0.0.2", sender_token), Kind::Other));
            assert!(!admit(&agent, over(3, "10.0.0.2", sender_token), Kind::Registers));
        }
        assert!(admit(&agent, over(4, "10.0.0.2", TOKEN), Kind::Registers));
    }

    #[tokio::test]
    async fn addresses_that_only_begin_to_authenticate_are_limited() {
        let senders = master();
        for port in 1..=u16::MAX {
            let pid: Pid = format!("x@10.0.0.2:{port}").parse().unwrap();
            senders.return_token(&pid, &over(1, "10.0.0.2", TOKEN));
        }
        assert_eq!(lock(&senders.table).greeted.len(), GREETED_MAX);
        assert!(lock(&senders.table).owners.is_empty());
    }

    #[tokio::test]
    async fn bound_addresses_are_limited() {
        let senders = master();
        for port in 1..=2 * OF_A_CONNECTION_MAX {
            let pid: Pid = format!("slave(1)@10.0.0.2:{port}").parse().unwrap();
            assert!(senders.admit(&pid, &over(1, "10.0.0.2", None), Kind::Registers));
        }
        assert_eq!(lock(&senders.table).owners.len(), OF_A_CONNECTION_MAX);
        senders.closed(ConnectionId(1));
        assert!(lock(&senders.table).bound.is_empty());
    }

    #[tokio::test]
    async fn the_source_with_the_most_addresses_makes_room_for_others() {
        let senders = master();
        assert!(admit(&senders, over(1, "10.0.0.2", None), Kind::Registers));
        for number in 0..ADDRESSES_MAX {
            let address = Ipv4Addr::from_bits(0x0b00_0000 + number as u32);
            let pid: Pid = format!("slave(1)@{address}:5051").parse().unwrap();
            let connection = 2 + (number / OF_A_CONNECTION_MAX) as u64;
            // Tasks on the agent's host bind all addresses.
            assert!(senders.admit(&pid, &over(connection, "10.0.0.2", None), Kind::Registers));
        }
        assert!(!admit(&senders, over(10_000, "10.0.0.2", None), Kind::Other), "it is older, and still bound");
        let late: Pid = "slave(1)@10.0.0.3:5051".parse().unwrap();
        assert!(senders.admit(&late, &over(10_001, "10.0.0.3", None), Kind::Registers));
        assert!(!senders.admit(&late, &over(10_002, "10.0.0.3", None), Kind::Other));
        let table = lock(&senders.table);
        assert_eq!(table.owners.len(), ADDRESSES_MAX);
        let counts: Vec<usize> = table.ranking.iter().map(|(count, _)| *count).collect();
        assert_eq!(counts, [1, ADDRESSES_MAX - 1]);
        assert!(table.ranking.iter().all(|(count, source)| table.by_source[source].len() == *count));
        assert_eq!(table.bound.values().map(Vec::len).sum::<usize>(), ADDRESSES_MAX);
    }

    #[test]
    fn bindings_of_closed_connections_are_released_first() {
        let mut table = Table::default();
        let address = |last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 5051);
        for last in 1..=4 {
            let (connection, owner) =
                (ConnectionId(last.into()), Owner::of(&over(last.into(), "10.0.0.9", None), None));
            table.insert(address(last), connection, None, owner);
        }
        table.close(ConnectionId(2));
        let released: Vec<Option<SocketAddrV4>> = (0..5).map(|_| table.release()).collect();
        assert_eq!(released, [Some(address(2)), Some(address(4)), Some(address(3)), Some(address(1)), None]);
        assert!(table.by_source.is_empty() && table.ranking.is_empty() && table.bound.is_empty());
    }
}
