//! Creates a container: pulls its image if necessary, then creates it. It is not started.

use serde_json::Value;

use super::client::{Client, ClientError, request, request_with};
use super::error::{DockerError, PullError, failed};

/// Maximum length of a line of a pull's progress, which usually has a few hundred bytes.
const LINE_MAX: usize = 1 << 20;

impl Client {
    /// Creates a container of this name. `pull` fetches the image even if it exists; `login` has the credentials for
    /// the registry.
    pub(super) fn make(
        &self,
        name: &str,
        image: &str,
        login: &str,
        pull: bool,
        create: &str,
    ) -> Result<(), DockerError> {
        if pull || !self.has_image(image)? {
            self.fetch(image, login).map_err(|source| DockerError::Pull { image: image.to_owned(), source })?;
        }
        let made = self.call("POST", &format!("/containers/create?name={name}"), Some(create), None);
        made.map(drop).map_err(failed("Failed to create the Docker container"))
    }

    /// Returns whether the daemon has an image.
    ///
    /// # Errors
    /// The daemon cannot be reached, or its response is an error.
    pub fn has_image(&self, image: &str) -> Result<bool, DockerError> {
        match self.quick("GET", &format!("/images/{image}/json"), None) {
            Ok(_) => Ok(true),
            Err(ClientError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(failed("Failed to look for the image")(error)),
        }
    }

    /// Lets the daemon pull the image. Failures are reported within its response.
    fn fetch(&self, image: &str, login: &str) -> Result<(), PullError> {
        let named = image.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
        let image = if named { image.to_owned() } else { format!("{image}:latest") };
        let encoded: String = image.bytes().map(encode).collect();
        let (mut line, mut failure) = (Vec::new(), None);
        let path = format!("/images/create?fromImage={encoded}");
        let asked = match login {
            "" => request("POST", &path, None),
            login => request_with(&format!("X-Registry-Auth: {login}\r\n"), "POST", &path, None),
        };
        let status = self.stream(&asked, None, &mut |_, data| {
            for byte in data {
                if *byte != b'\n' {
                    line.push(*byte);
                    continue;
                }
                failure = failure.take().or_else(|| failure_in(&line));
                line.clear();
            }
            line.len() > LINE_MAX
        });
        let status = status?;
        match failure.or_else(|| failure_in(&line)) {
            Some(message) => Err(PullError::Failed(message)),
            None if status == 200 => Ok(()),
            None => Err(PullError::Status(status)),
        }
    }
}

/// Encodes a byte for the query of a URL.
fn encode(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}

/// Returns the error in a line of a pull's progress, or in a response.
pub fn failure_in(line: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let words = value["error"].as_str().or_else(|| value["message"].as_str());
    words.map(str::to_owned)
}
