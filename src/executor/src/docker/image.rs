//! Making a container: its image is brought if need be, then it is created. It is not started.

use serde_json::Value;

use super::client::{Client, ClientError, request, request_with};

/// A line of a pull's progress has a few hundred bytes.
const LINE_MAX: usize = 1 << 20;

/// An error of the client, with what was to be done.
pub(super) fn words(what: &str) -> impl Fn(ClientError) -> String + '_ {
    move |error| format!("{what}: {}", base::error_chain(&error))
}

impl Client {
    /// Creates a container of this name; `pull` fetches the image even if it exists, and `login` has the credentials
    /// for the registry. The error is a text.
    pub(super) fn make(&self, name: &str, image: &str, login: &str, pull: bool, create: &str) -> Result<(), String> {
        if pull || !self.has_image(image)? {
            self.fetch(image, login).map_err(|why| format!("Failed to pull the image '{image}': {why}"))?;
        }
        let made = self.call("POST", &format!("/containers/create?name={name}"), Some(create), None);
        made.map(drop).map_err(words("Failed to create the Docker container"))
    }

    /// Whether the daemon has an image.
    ///
    /// # Errors
    /// The reason why that is unknown, as a text.
    pub fn has_image(&self, image: &str) -> Result<bool, String> {
        match self.quick("GET", &format!("/images/{image}/json"), None) {
            Ok(_) => Ok(true),
            Err(ClientError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(words("Failed to look for the image")(error)),
        }
    }

    /// Makes the daemon fetch the image. Failures are reported within its response.
    fn fetch(&self, image: &str, login: &str) -> Result<(), String> {
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
        let status = status.map_err(|error| base::error_chain(&error))?;
        match failure.or_else(|| failure_in(&line)) {
            Some(why) => Err(why),
            None if status == 200 => Ok(()),
            None => Err(format!("the Docker daemon answers {status}")),
        }
    }
}

/// For a URL's query.
fn encode(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}

/// The failure in a line of a pull's progress, or in a response.
pub fn failure_in(line: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let words = value["error"].as_str().or_else(|| value["message"].as_str());
    words.map(str::to_owned)
}
