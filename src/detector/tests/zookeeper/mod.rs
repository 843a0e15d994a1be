//! A fake ZooKeeper server with one group, `/mesos`.
//!
//! It implements the part of ZooKeeper's protocol that a detector needs: sessions, authentication, pings, children with
//! watches, data, and candidates' nodes, which are removed with their sessions. Records are big-endian after a length
//! of four bytes; a string or buffer is its length and its bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

const GROUP: &str = "/mesos";
/// Codes of errors and events.
const NO_NODE: i32 = -101;
const NO_AUTH: i32 = -102;
const NODE_EXISTS: i32 = -110;
const CREATED: i32 = 1;
const CHILDREN: i32 = 4;

/// The fake server. Its group and its sessions outlast [`ZooKeeper::stop`].
pub struct ZooKeeper {
    pub address: SocketAddr,
    held: Arc<Held>,
    serving: JoinHandle<()>,
}

struct Held {
    group: watch::Sender<Group>,
    sessions: Mutex<BTreeSet<i64>>,
    /// Credentials (`user:password`) that clients have sent.
    asked_as: Mutex<BTreeSet<String>>,
    /// Whether candidates are refused.
    closed: AtomicBool,
    /// Whether connections are closed as soon as they are made, and how many were.
    turned_away: watch::Sender<(bool, usize)>,
}

/// The members with their data, if the group exists, and the number of changes.
#[derive(Default)]
struct Group {
    version: i64,
    members: Option<BTreeMap<String, String>>,
    /// Nodes of candidates, and their sessions.
    candidates: BTreeMap<String, i64>,
}

impl ZooKeeper {
    /// Starts a server without a group at this port; 0 selects a free one.
    pub async fn start(port: u16) -> ZooKeeper {
        let group = watch::Sender::new(Group { version: 1, ..Group::default() });
        let held = Arc::new(Held {
            group,
            sessions: Mutex::default(),
            asked_as: Mutex::default(),
            closed: AtomicBool::default(),
            turned_away: watch::Sender::default(),
        });
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let address = listener.local_addr().unwrap();
        ZooKeeper { address, serving: tokio::spawn(serve(listener, held.clone())), held }
    }

    pub fn url(&self) -> String {
        format!("zk://{}{GROUP}", self.address)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) {
        self.held.group.send_modify(|group| {
            group.version += 1;
            change(group.members.get_or_insert_default());
        });
    }

    /// Adds a member with a master's address.
    pub fn enter(&self, name: &str, address: &str) {
        self.write(name, &format!(r#"{{"pid":"master@{address}"}}"#));
    }

    /// Adds a member with any data.
    #[allow(dead_code, reason = "not every test writes what is wrong")]
    pub fn write(&self, name: &str, data: &str) {
        self.change(|members| drop(members.insert(name.to_owned(), data.to_owned())));
    }

    pub fn leave(&self, name: &str) {
        self.change(|members| drop(members.remove(name)));
    }

    /// Returns whether a client has sent this `user:password`.
    #[allow(dead_code, reason = "not every test authenticates")]
    pub fn was_asked_as(&self, credential: &str) -> bool {
        self.held.asked_as.lock().unwrap().contains(credential)
    }

    /// Refuses connections from now on.
    #[allow(dead_code, reason = "not every test needs it")]
    pub async fn stop(&mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }

    /// Accepts connections again, at the same address.
    #[allow(dead_code, reason = "not every test needs it")]
    pub async fn resume(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serving = tokio::spawn(serve(listener, self.held.clone()));
    }

    /// Closes all connections, and new ones at once until there were this many.
    #[allow(dead_code, reason = "not every test needs it")]
    pub async fn turn_away(&mut self, times: usize) {
        self.stop().await;
        self.held.turned_away.send_replace((true, 0));
        self.resume().await;
        self.held.turned_away.subscribe().wait_for(|(_, count)| *count >= times).await.unwrap();
        self.held.turned_away.send_modify(|(on, _)| *on = false);
    }

    /// Ends all sessions.
    #[allow(dead_code, reason = "not every test needs it")]
    pub fn forget_sessions(&self) {
        self.held.sessions.lock().unwrap().clear();
        self.held.end_candidates(|_| true);
    }

    /// Refuses candidates from now on.
    #[allow(dead_code, reason = "not every test has candidates")]
    pub fn close(&self) {
        self.held.closed.store(true, Ordering::Relaxed);
    }

    /// Returns the members and their data.
    #[allow(dead_code, reason = "not every test has candidates")]
    pub fn members(&self) -> BTreeMap<String, String> {
        self.held.group.borrow().members.clone().unwrap_or_default()
    }
}

impl Held {
    /// Removes the nodes of candidates whose sessions have ended.
    fn end_candidates(&self, ended: impl Fn(i64) -> bool) {
        self.group.send_modify(|group| {
            let gone: Vec<String> =
                group.candidates.iter().filter(|(_, session)| ended(**session)).map(|(name, _)| name.clone()).collect();
            for name in gone {
                group.version += 1;
                group.candidates.remove(&name);
                group.members.get_or_insert_default().remove(&name);
            }
        });
    }

    /// Creates a directory, or a candidate's node, and returns its name; `None` if the directory exists.
    fn create(&self, path: &str, data: String, session: i64) -> Option<String> {
        let mut made = None;
        self.group.send_modify(|group| match path.strip_prefix(GROUP).map(|rest| rest.trim_start_matches('/')) {
            Some("") if group.members.is_none() => {
                group.version += 1;
                group.members = Some(BTreeMap::new());
                made = Some(path.to_owned());
            }
            Some(label) if !label.is_empty() => {
                group.version += 1;
                let name = format!("{label}{:010}", group.version);
                group.members.get_or_insert_default().insert(name.clone(), data);
                group.candidates.insert(name.clone(), session);
                made = Some(format!("{GROUP}/{name}"));
            }
            _ => {}
        });
        made
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, held: Arc<Held>) {
    // Connections end with this task.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        if held.turned_away.borrow().0 {
            held.turned_away.send_modify(|(_, count)| *count += 1);
            continue;
        }
        connections.spawn(connection(stream, held.clone()));
    }
}

async fn connection(stream: TcpStream, held: Arc<Held>) {
    let (mut reader, mut writer) = stream.into_split();
    let Some(connect) = packet(&mut reader).await else { return };
    if let Some(session) = taken(&connect, &held, &mut writer).await {
        let (sender, requests) = mpsc::channel(1);
        let read = async {
            while let Some(request) = packet(&mut reader).await {
                if sender.send(request).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = read => {}
            _ = answer_all(requests, &held, session, &mut writer) => {}
        }
    }
}

/// Opens a new session, or resumes a known one.
async fn taken(connect: &[u8], held: &Held, writer: &mut OwnedWriteHalf) -> Option<i64> {
    let wanted = i64::from_be_bytes(connect[16..24].try_into().unwrap());
    let session = {
        let mut sessions = held.sessions.lock().unwrap();
        match wanted {
            0 => {
                let new = sessions.last().unwrap_or(&0) + 1;
                sessions.insert(new);
                new
            }
            old if sessions.contains(&old) => old,
            _ => 0,
        }
    };
    let timeout = if session == 0 { &[0; 4] } else { &connect[12..16] };
    let password = text("passwordpassword");
    send(writer, &[&[0; 4], timeout, &session.to_be_bytes(), &password, &[0]]).await?;
    (session != 0).then_some(session)
}

async fn packet(reader: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let length = reader.read_u32().await.ok()?;
    let mut packet = vec![0; length as usize];
    reader.read_exact(&mut packet).await.ok()?;
    Some(packet)
}

async fn send(writer: &mut OwnedWriteHalf, parts: &[&[u8]]) -> Option<()> {
    let body = parts.concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    writer.write_all(&[&length[..], &body].concat()).await.ok()
}

fn text(value: &str) -> Vec<u8> {
    [&u32::try_from(value.len()).unwrap().to_be_bytes()[..], value.as_bytes()].concat()
}

fn int(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Returns the string at this offset, and the offset of its end.
fn string(bytes: &[u8], at: usize) -> (String, usize) {
    let end = at + 4 + usize::try_from(int(bytes, at)).unwrap();
    (String::from_utf8(bytes[at + 4..end].to_vec()).unwrap(), end)
}

/// Returns the header of a reply: id of the request, version of the data, and result.
fn header(xid: i32, version: i64, error: i32) -> Vec<u8> {
    [&xid.to_be_bytes()[..], &version.to_be_bytes(), &error.to_be_bytes()].concat()
}

/// Answers requests. A watch fires once, after a change since the state that its owner has seen.
async fn answer_all(
    mut requests: mpsc::Receiver<Vec<u8>>,
    held: &Held,
    session: i64,
    writer: &mut OwnedWriteHalf,
) -> Option<()> {
    let mut group = held.group.subscribe();
    let mut watching: Option<(i32, i64)> = None;
    loop {
        let fired = async {
            match watching {
                Some((event, since)) => {
                    let version = group.wait_for(|group| group.version > since).await.unwrap().version;
                    (event, version)
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            (event, version) = fired => {
                watching = None;
                let event = [&event.to_be_bytes()[..], &3_i32.to_be_bytes(), &text(GROUP)].concat();
                send(writer, &[&header(-1, version, 0), &event]).await?;
            }
            request = requests.recv() => {
                let (version, answer, watch) = answer(&request?, held, session);
                watching = watch.map(|(event, since)| (event, since.unwrap_or(version))).or(watching);
                send(writer, &[&answer]).await?;
            }
        }
    }
}

type Watch = Option<(i32, Option<i64>)>;

/// Answers a request. Returns the state that was read, the answer, and what is watched from now on, with the state that
/// its owner has seen if it is an older one.
fn answer(request: &[u8], held: &Held, session: i64) -> (i64, Vec<u8>, Watch) {
    let (xid, kind) = (int(request, 0), int(request, 4));
    if kind == 15 && held.closed.load(Ordering::Relaxed) {
        let version = held.group.borrow().version;
        return (version, header(xid, version, NO_AUTH), None);
    }
    if kind == 15 {
        let (path, end) = string(request, 8);
        let made = held.create(&path, string(request, end).0, session);
        let version = held.group.borrow().version;
        let answer = match made {
            Some(path) => [header(xid, version, 0), text(&path), vec![0; 68]].concat(),
            None => header(xid, version, NODE_EXISTS),
        };
        return (version, answer, None);
    }
    // The client closes the session.
    if kind == -11 {
        held.sessions.lock().unwrap().remove(&session);
        held.end_candidates(|owner| owner == session);
    }
    let group = held.group.borrow();
    let version = group.version;
    let good = |parts: &[&[u8]]| [header(xid, version, 0), parts.concat()].concat();
    let missing = || header(xid, version, NO_NODE);
    let stat = [0; 68];
    let (answer, watch) = match (kind, &group.members) {
        (3, Some(_)) => (good(&[&stat]), None),
        (3, None) => (missing(), Some((CREATED, None))),
        (4 | 8 | 12, None) => (missing(), None),
        (4, Some(members)) => {
            let path = string(request, 8).0;
            let data = path.strip_prefix(GROUP).and_then(|path| members.get(path.trim_start_matches('/')));
            (data.map_or_else(missing, |data| good(&[&text(data), &stat])), None)
        }
        (8 | 12, Some(members)) => {
            assert_eq!(string(request, 8).0, GROUP);
            let count = u32::try_from(members.len()).unwrap().to_be_bytes();
            let names: Vec<u8> = members.keys().flat_map(|name| text(name)).collect();
            (good(&[&count, &names, if kind == 12 { &stat } else { &[] }]), Some((CHILDREN, None)))
        }
        // A read sees all earlier writes.
        (9, _) => (good(&[&text(&string(request, 8).0)]), None),
        (100, _) => {
            let (scheme, end) = string(request, 12);
            assert_eq!(scheme, "digest");
            held.asked_as.lock().unwrap().insert(string(request, end).0);
            (good(&[]), None)
        }
        // The watches of a resumed session: after the state that it has seen, lists of three kinds, of which one has
        // one entry.
        (101, _) => {
            let seen = i64::from_be_bytes(request[8..16].try_into().unwrap());
            let event = if int(request, 20) == 1 { CREATED } else { CHILDREN };
            (good(&[]), Some((event, Some(seen))))
        }
        _ => (good(&[]), None),
    };
    (version, answer, watch)
}
