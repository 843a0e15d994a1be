//! Tests lists of masters: fakes of masters that lead, follow and end, and addresses of other servers.
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use detector::{
    DetectionState, Detector, LEADER_HEADER, LeaderActivity, MASTER_HEADER, MasterList, PREVIOUS_HEADER, Problem,
    RequestIntervals, WAIT_HEADER, find,
};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::http::{Handler, HeaderName, Request, Response, Running, Server, StatusCode};
use wire::libprocess::NoMessages;

const PATIENCE: Duration = Duration::from_secs(60);
const QUICK: RequestIntervals = RequestIntervals {
    first: Duration::from_millis(4),
    search: Duration::from_millis(20),
    leader: Duration::from_millis(20),
};

/// Behaviour of a fake master at `/redirect`.
#[derive(Clone, Debug)]
enum Role {
    /// Mesos's leading master.
    Leads,
    /// A leading master of tepui with this host name and PID.
    LeadsAs(&'static str, &'static str),
    /// A master that assumes that the master at this address leads.
    Follows(String),
    /// A master that knows no leader.
    Waits,
    /// A master that holds its answer until it has another role, or the caller's time is over.
    Holds,
    /// A master that names the master at this address and its PID, and holds its answer if the caller knows that
    /// leader.
    Names(String),
    /// A server that is not a master.
    IsNone,
}

struct Fake {
    running: Running,
    role: Arc<watch::Sender<Role>>,
    /// Number of requests that have arrived.
    questions: watch::Receiver<usize>,
    /// Previous leader in each request.
    previous: Arc<Mutex<Vec<Option<String>>>>,
}

impl Fake {
    async fn start(role: Role) -> Fake {
        let (role, previous) = (Arc::new(watch::Sender::new(role)), Arc::<Mutex<Vec<_>>>::default());
        let server = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), wire::Limits::default()).unwrap();
        let address = server.address();
        let (count, questions) = watch::channel(0);
        let answering = Answering { address, role: role.clone(), count, previous: previous.clone() };
        let running = server.serve(Arc::new(answering), Arc::new(NoMessages));
        Fake { running, role, questions, previous }
    }

    fn address(&self) -> String {
        self.running.address().to_string()
    }

    fn becomes(&self, role: Role) {
        self.role.send_replace(role);
    }

    /// Stops the master, and returns its address, which refuses connections from then on.
    async fn end(self) -> String {
        let address = self.address();
        self.running.stop().await;
        address
    }
}

struct Answering {
    address: SocketAddr,
    role: Arc<watch::Sender<Role>>,
    count: watch::Sender<usize>,
    previous: Arc<Mutex<Vec<Option<String>>>>,
}

impl Answering {
    async fn role(&self, request: &Request) -> Role {
        let previous = request.header(PREVIOUS_HEADER);
        let holds = |role: &Role| match role {
            Role::Holds => true,
            Role::Names(leader) => previous == Some(&format!("master@{leader}")),
            _ => false,
        };
        let Some(wait) = request.header(WAIT_HEADER) else { return self.role.borrow().clone() };
        let wait = Duration::from_millis(wait.parse().unwrap());
        let mut role = self.role.subscribe();
        let _ = tokio::time::timeout(wait, role.wait_for(|role| !holds(role))).await;
        role.borrow().clone()
    }
}

impl Handler for Answering {
    async fn handle(&self, request: Request) -> Response {
        assert_eq!(request.path, "/redirect");
        self.previous.lock().unwrap().push(request.header(PREVIOUS_HEADER).map(str::to_owned));
        self.count.send_modify(|count| *count += 1);
        let role = self.role(&request).await;
        match role {
            Role::Leads => Response::redirect("127.0.0.1", self.address.port(), ""),
            Role::LeadsAs(host, pid) => Response::redirect(host, 5050, "")
                .with_header(HeaderName::from_static(MASTER_HEADER), pid)
                .with_header(HeaderName::from_static(LEADER_HEADER), pid),
            Role::Follows(leader) => {
                let (host, port) = leader.split_once(':').unwrap();
                Response::redirect(host, port.parse().unwrap(), "")
            }
            Role::Names(leader) => {
                let (host, port) = leader.split_once(':').unwrap();
                Response::redirect(host, port.parse().unwrap(), "")
                    .with_header(HeaderName::from_static(MASTER_HEADER), &format!("master@{}", self.address))
                    .with_header(HeaderName::from_static(LEADER_HEADER), &format!("master@{leader}"))
            }
            Role::Waits | Role::Holds => Response::text(StatusCode::SERVICE_UNAVAILABLE, "No leader elected"),
            Role::IsNone => Response::not_found(),
        }
    }
}

fn list(masters: &[&str]) -> MasterList {
    masters.join(",").parse().unwrap()
}

/// Starts a server that accepts connections and answers nothing.
async fn mute() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

async fn pid_in(list: &MasterList) -> Result<String, String> {
    let found = tokio::time::timeout(PATIENCE, find(list)).await.expect("the search hangs");
    found.map(|leader| leader.pid.to_string()).map_err(|none| none.to_string())
}

/// Waits until `is_so` holds for the state.
async fn until(detector: &mut Detector, what: &str, is_so: impl Fn(&DetectionState) -> bool) {
    let reached = async {
        while !is_so(&detector.known()) {
            detector.changed().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("{what}: {:?}", detector.known()));
}

fn leads(known: &DetectionState, address: &str) -> bool {
    known.leader().is_some_and(|leader| leader.pid.to_string() == format!("master@{address}"))
}

#[tokio::test]
async fn the_leader_is_found_among_standbys_dead_silent_and_foreign_addresses() {
    let leader = Fake::start(Role::Leads).await;
    let follower = Fake::start(Role::Follows(leader.address())).await;
    let foreign = Fake::start(Role::IsNone).await;
    let dead = Fake::start(Role::Waits).await.end().await;
    let (_mute, mute) = mute().await;
    let expected = Ok(format!("master@{}", leader.address()));
    let began = Instant::now();
    assert_eq!(
        pid_in(&list(&[&mute, &dead, &foreign.address(), &follower.address(), &leader.address()])).await,
        expected
    );
    // A standby names the leader, also if the list does not contain it.
    assert_eq!(pid_in(&list(&[&mute, &dead, &follower.address()])).await, expected);
    assert!(began.elapsed() < Duration::from_secs(3), "a silent address delays the others");
    assert_eq!(pid_in(&list(&[&leader.address()])).await, expected);
}

#[tokio::test]
async fn only_what_the_leader_confirms_counts() {
    let waiting = Fake::start(Role::Waits).await;
    let dead = Fake::start(Role::Waits).await.end().await;
    let (one, other) = (Fake::start(Role::Waits).await, Fake::start(Role::Follows(waiting.address())).await);
    one.becomes(Role::Follows(other.address()));
    let old = Fake::start(Role::Follows(dead.clone())).await;
    let list = list(&[&one.address(), &other.address(), &old.address()]);
    let none = tokio::time::timeout(PATIENCE, find(&list)).await.unwrap().unwrap_err();
    let problem = |address: &str| {
        let found = none.problems().iter().find(|(asked, _)| asked.to_string() == address);
        found.map(|(_, problem)| problem.to_string()).unwrap_or_default()
    };
    assert_eq!(problem(&one.address()), format!("it names {}", other.address()));
    assert_eq!(problem(&old.address()), format!("it names {dead}"));
    assert_eq!(problem(&waiting.address()), "it knows no leader");
    assert!(problem(&dead).contains("cannot connect"), "{}", problem(&dead));
    assert_eq!(none.known(), DetectionState::NoLeader);
}

#[tokio::test]
async fn failures_name_each_address() {
    let waiting = Fake::start(Role::Waits).await;
    let foreign = Fake::start(Role::IsNone).await;
    let dead = Fake::start(Role::Waits).await.end().await;
    let told = pid_in(&list(&[&dead, &foreign.address(), &waiting.address()])).await.unwrap_err();
    assert!(told.starts_with("no master leads: "), "{told}");
    for part in [
        format!("{dead}: cannot connect to {dead}: Connection refused"),
        format!("{}: it is not a master: it answers /redirect with 404 Not Found", foreign.address()),
        format!("{}: it knows no leader", waiting.address()),
    ] {
        assert!(told.contains(&part), "{told}");
    }
    let told = pid_in(&list(&[&dead, &foreign.address()])).await.unwrap_err();
    assert!(told.starts_with("no master answers: "), "{told}");
}

#[tokio::test]
async fn a_plain_connection_to_another_protocol_is_reported() {
    let (listener, address) = mute().await;
    let answering = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // A TLS alert: unexpected message.
        tokio::io::AsyncWriteExt::write_all(&mut stream, &[21, 3, 3, 0, 2, 2, 10]).await.unwrap();
        stream
    });
    let none = find(&list(&[&address])).await.unwrap_err();
    assert!(matches!(&none.problems()[0].1, Problem::Tls(_)), "{none}");
    assert!(none.to_string().contains("docs/security.md"), "{none}");
    answering.await.unwrap();
}

#[tokio::test]
async fn headers_tell_the_pid_and_confirm_a_leader_with_another_name() {
    let leader = Fake::start(Role::LeadsAs("no.such.host.invalid", "master@10.1.2.3:5050")).await;
    let found = find(&list(&[&leader.address()])).await.unwrap();
    assert_eq!(found.pid.to_string(), "master@10.1.2.3:5050");
    assert_eq!(found.address.to_string(), leader.address());
    assert_eq!((found.host.as_str(), found.port), ("no.such.host.invalid", 5050));
}

#[tokio::test]
async fn a_detector_follows_the_leader() {
    let (first, second) = (Fake::start(Role::Waits).await, Fake::start(Role::Waits).await);
    let (first_at, second_at) = (first.address(), second.address());
    let dead = Fake::start(Role::Waits).await.end().await;
    let mut detector = Detector::follow(list(&[&dead, &first_at, &second_at]), QUICK, 1, Arc::default());
    until(&mut detector, "no master leads", |known| *known == DetectionState::NoLeader).await;
    assert!(
        detector.no_leader_reason().contains(&format!("{first_at}: it knows no leader")),
        "{}",
        detector.no_leader_reason()
    );
    second.becomes(Role::Follows(first_at.clone()));
    first.becomes(Role::Leads);
    until(&mut detector, "the first one leads", |known| leads(known, &first_at)).await;
    assert_eq!(detector.no_leader_reason(), "");

    // A leader that resigns reports that.
    first.becomes(Role::Waits);
    second.becomes(Role::Waits);
    until(&mut detector, "it has stepped down", |known| *known == DetectionState::NoLeader).await;
    second.becomes(Role::Leads);
    first.becomes(Role::Follows(second_at.clone()));
    until(&mut detector, "the second one leads", |known| leads(known, &second_at)).await;

    // A leader that ends is silent, and stays the leader until another one leads.
    second.end().await;
    first.becomes(Role::Leads);
    detector.recheck_leader();
    until(&mut detector, "the first one leads again", |known| leads(known, &first_at)).await;
}

#[tokio::test]
async fn a_silent_leader_stands_until_another_one_leads() {
    let (first, second) = (Fake::start(Role::Leads).await, Fake::start(Role::Waits).await);
    let (first_at, second_at) = (first.address(), second.address());
    let mut detector = Detector::follow(list(&[&first_at, &second_at]), QUICK, 1, Arc::default());
    until(&mut detector, "the first one leads", |known| leads(known, &first_at)).await;
    first.end().await;
    // The other masters know no leader yet, also after the search's first round.
    let is_searching = async {
        while detector.no_leader_reason().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, is_searching).await.expect("the search has begun");
    assert!(leads(&detector.known(), &first_at), "{:?}", detector.known());
    second.becomes(Role::Leads);
    detector.changed().await;
    assert!(leads(&detector.known(), &second_at), "{:?}", detector.known());
}

#[tokio::test]
async fn a_leader_with_heartbeats_is_probed_when_they_end_or_when_it_is_in_doubt() {
    let (mut leader, leader_activity) = (Fake::start(Role::Leads).await, Arc::<LeaderActivity>::default());
    let SocketAddr::V4(address) = leader.running.address() else { panic!("an IPv4 address") };
    let intervals = RequestIntervals { leader: Duration::from_secs(2), ..QUICK };
    leader_activity.record(address);
    let mut detector =
        Detector::follow(list(&[&leader.address(), "127.0.0.1:1"]), intervals, 1, leader_activity.clone());
    until(&mut detector, "it leads", |known| leads(known, &leader.address())).await;
    let found = *leader.questions.borrow();
    detector.recheck_leader();
    leader.questions.wait_for(|count| *count > found).await.unwrap();
    // A sign of life counts for its time, and no longer.
    let noted = Instant::now();
    leader_activity.record(address);
    let before = *leader.questions.borrow_and_update();
    leader.questions.wait_for(|count| *count > before).await.unwrap();
    assert!(noted.elapsed() >= intervals.leader, "{:?}", noted.elapsed());
}

#[tokio::test]
async fn masters_that_hold_their_answers_receive_one_request_for_the_next_leader() {
    let leader = Fake::start(Role::Leads).await;
    let leader_at = leader.address();
    let (one, other) = (Fake::start(Role::Names(leader_at.clone())).await, Fake::start(Role::Holds).await);
    // Without held answers, they would be asked every two milliseconds.
    let first = Duration::from_millis(2);
    let intervals = RequestIntervals { first, search: first, leader: Duration::from_secs(86_400) };
    let list = list(&[&leader_at, &one.address(), &other.address()]);
    let mut detector = Detector::follow(list, intervals, 0, Arc::default());
    until(&mut detector, "the first one leads", |known| leads(known, &leader_at)).await;
    leader.end().await;
    detector.recheck_leader();
    let mut questions = (one.questions.clone(), other.questions.clone());
    let asked = async {
        questions.0.wait_for(|count| *count > 0).await.unwrap();
        questions.1.wait_for(|count| *count > 0).await.unwrap();
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("both are asked");
    one.becomes(Role::Names(other.address()));
    other.becomes(Role::Leads);
    until(&mut detector, "the other one leads", |known| leads(known, &other.address())).await;
    let previous = Some(format!("master@{leader_at}"));
    for master in [one, other] {
        // One request, unless the machine has stopped for the two seconds for which the answer is held.
        let known = master.previous.lock().unwrap().clone();
        assert!(known.len() <= 3 && known.iter().all(|known| *known == previous), "{known:?}");
    }
}

#[tokio::test]
async fn a_command_asks_again_when_the_leader_that_is_named_has_died() {
    let dead = Fake::start(Role::Waits).await.end().await;
    let (one, other) = (Fake::start(Role::Names(dead.clone())).await, Fake::start(Role::Names(dead.clone())).await);
    let list = list(&[&one.address(), &other.address(), &dead]);
    let (one_at, mut questions) = (one.address(), one.questions.clone());
    let elected = async {
        questions.wait_for(|count| *count > 1).await.unwrap();
        other.becomes(Role::Names(one_at.clone()));
        one.becomes(Role::Leads);
    };
    let (found, ()) = tokio::join!(pid_in(&list), elected);
    assert_eq!(found, Ok(format!("master@{one_at}")));
    assert_eq!(*one.previous.lock().unwrap(), [None, Some(format!("master@{dead}"))]);
}
