//! The kinds of attacks: the request of each client of an attack, without credentials or with those of `dev`, which
//! permit nothing.

use std::io::Write;

use crate::crowd::Plan;

/// Header with the credentials of `dev`.
const DEV: &str = "Authorization: Basic ZGV2Ong=\r\n";

/// Credentials of the tenant with a wrong password: `ops:y`.
pub const TENANT: &str = "b3BzOnk=";
/// Credentials of a user that does not exist: `guest:y`.
const STRANGER: &str = "Z3Vlc3Q6eQ==";

/// Returns all kinds of attacks, with their names.
pub fn all() -> Vec<(&'static str, Plan)> {
    vec![
        ("heads that do not end", slow_heads()),
        ("half bodies without credentials", half_bodies("")),
        ("half bodies of dev", half_bodies(DEV)),
        ("bombs without credentials", bombs("")),
        ("bombs of dev", bombs(DEV)),
        ("subscribers that do not read", subscribers()),
        ("clients that do not read /state", deaf_readers()),
        // Not the tenant's name: after such guesses from this address the tenant would have to wait itself.
        ("log-ins that are guessed", guesses(STRANGER)),
    ]
}

pub fn slow_heads() -> Plan {
    Plan::hold(b"GET /state HTTP/1.1\r\nHost: x\r\nX-Slow: ".to_vec())
}

/// Returns a plan that sends one of the 60 megabytes of a body.
pub fn half_bodies(credentials: &str) -> Plan {
    let head = format!(
        "POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\n{credentials}Content-Length: {}\r\n\r\n{}",
        60 << 20,
        "x".repeat(1 << 20)
    );
    Plan::hold(head.into_bytes())
}

/// Returns a plan that sends bodies of 250 KB that decompress to 250 MB.
pub fn bombs(credentials: &str) -> Plan {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![b' '; 1 << 20];
    (0..250).for_each(|_| packed.write_all(&zeros).expect("memory takes everything"));
    let packed = packed.finish().expect("memory takes everything");
    let head = format!(
        "POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\n{credentials}Content-Type: application/json\r\n\
         Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        packed.len()
    );
    Plan::repeat([head.as_bytes(), &packed].concat())
}

pub fn subscribers() -> Plan {
    let call = r#"{"type": "SUBSCRIBE"}"#;
    let request = format!(
        "POST /api/v1 HTTP/1.1\r\nHost: x\r\n{DEV}Content-Type: application/json\r\nAccept: application/json\r\n\
         Content-Length: {}\r\n\r\n{call}",
        call.len()
    );
    Plan::hold(request.into_bytes())
}

pub fn deaf_readers() -> Plan {
    Plan::hold(format!("GET /state HTTP/1.1\r\nHost: x\r\n{DEV}\r\n").repeat(50).into_bytes())
}

/// Returns a plan that sends wrong passwords of a user.
pub fn guesses(user: &str) -> Plan {
    Plan::repeat(format!("GET /state HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {user}\r\n\r\n").into_bytes())
}
