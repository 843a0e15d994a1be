//! Sends requests with and without credentials. It asserts nothing.

use serde_json::Value;

use crate::support::exchange;

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// A sender without credentials.
    None,
    /// A user to whom the access control lists allow nothing.
    Powerless,
    /// The tenant.
    Tenant,
}

impl User {
    /// Returns the header with the credentials, whose password is `x`.
    fn header(self) -> &'static str {
        match self {
            User::None => "",
            // dev:x
            User::Powerless => "Authorization: Basic ZGV2Ong=\r\n",
            // ops:x
            User::Tenant => "Authorization: Basic b3BzOng=\r\n",
        }
    }

    /// Sends a request and returns the status and the body of the answer.
    pub fn ask(self, address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let media = "Content-Type: application/json\r\nAccept: application/json\r\n";
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\n{}{media}Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.header(),
            body.len()
        );
        let answer = exchange(address, &(head + body)).expect("the daemon answers");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status, body)
    }

    /// Sends a call of a v1 API and returns the status and the body of the answer.
    pub fn call(self, address: &str, path: &str, call: &Value) -> (u16, String) {
        self.ask(address, "POST", path, &call.to_string())
    }
}
