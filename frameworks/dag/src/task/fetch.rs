//! Fetches outputs of other stages into the sandbox: as links to files that all agents share, or as copies from other
//! sandboxes, which the agents' `/files` serve. Each is checked against its manifest.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use wire::client::{Client, ClientError};
use wire::http::StatusCode;

use super::failed::TaskFailure;
use super::framework::FrameworkClient;
use super::{Fault, MANIFEST, Missing, OUTPUT, Published, SandboxSource, SharedSource, Sources};
use crate::job::template::flat;

/// Time that an agent may take for one piece of a file.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Number of attempts to fetch from an agent that does not answer.
const ATTEMPTS_MAX: u32 = 3;
/// Maximum size of a manifest, in bytes.
const MANIFEST_MAX: usize = 64 << 20;

/// Fetches all outputs of other stages that a task reads into `input`.
///
/// # Errors
/// Outputs cannot be read; all of them are named.
pub(super) async fn fetch(sources: &Sources, input: &Path, framework: &mut FrameworkClient) -> Result<(), TaskFailure> {
    let room = |error: io::Error| TaskFailure::new(Fault::Storage, format!("{}: {error}", input.display()));
    fs::create_dir_all(input).map_err(room)?;
    let mut missing = Vec::new();
    let mut first = None;
    if sources.shared.is_empty() {
        for source in framework.sources().await? {
            if let Err(why) = from_sandbox(&source, sources.partition, input).await {
                let FetchError::Lost(why) = why else { return Err(why.failed(input)) };
                first.get_or_insert(why);
                missing.push(Missing { stage: source.stage, index: source.index, attempt: Some(source.attempt) });
            }
        }
    }
    for source in &sources.shared {
        for index in (source.first..source.first + source.count).filter(|index| !source.dropped.contains(index)) {
            if let Err(why) = link(source, index, sources.partition, input) {
                let FetchError::Lost(why) = why else { return Err(why.failed(input)) };
                first.get_or_insert(why);
                missing.push(Missing { stage: source.stage.clone(), index, attempt: None });
            }
        }
    }
    match first {
        None => Ok(()),
        Some(why) => Err(TaskFailure { fault: Fault::Source, message: why, missing }),
    }
}

/// The reason why an output cannot be fetched.
enum FetchError {
    /// The output is lost, or differs from what was published.
    Lost(String),
    /// The sandbox cannot store the output.
    Local(io::Error),
}

impl FetchError {
    fn failed(self, input: &Path) -> TaskFailure {
        match self {
            FetchError::Lost(why) => TaskFailure::new(Fault::Source, why),
            FetchError::Local(error) => TaskFailure::new(Fault::Storage, format!("{}: {error}", input.display())),
        }
    }
}

fn is_of_partition(published: &Published, partition: Option<u32>) -> bool {
    partition.is_none() || published.partition == partition
}

/// Returns the name of an output in the input directory, from stage, task and file; names sort in the order of tasks.
fn local_name(stage: &str, index: u32, name: &str) -> String {
    format!("{stage}.{index:07}.{}", flat(name))
}

fn link(source: &SharedSource, index: u32, partition: Option<u32>, input: &Path) -> Result<(), FetchError> {
    let directory = Path::new(&source.directory).join(index.to_string());
    let gone = |what: &str, error: String| FetchError::Lost(format!("{}: {what}: {error}", directory.display()));
    let manifest =
        fs::read(directory.join(MANIFEST)).map_err(|error| gone("the list of outputs", error.to_string()))?;
    for published in manifest_of(&manifest).map_err(|error| gone("the list of outputs", error))? {
        if !is_of_partition(&published, partition) {
            continue;
        }
        let file = directory.join(&published.name);
        let found = fs::metadata(&file).map_err(|error| gone(&published.name, error.to_string()))?;
        if found.len() != published.length {
            let lengths = format!("it has {} bytes, and had {} when published", found.len(), published.length);
            return Err(gone(&published.name, lengths));
        }
        let local = input.join(local_name(&source.stage, index, &published.name));
        std::os::unix::fs::symlink(&file, local).map_err(FetchError::Local)?;
    }
    Ok(())
}

async fn from_sandbox(source: &SandboxSource, partition: Option<u32>, input: &Path) -> Result<(), FetchError> {
    let gone = |what: &str, error: String| {
        FetchError::Lost(format!(
            "task {} of stage '{}' on {}: {what}: {error}",
            source.index, source.stage, source.agent
        ))
    };
    let directory = format!("{}/{OUTPUT}", source.path);
    let mut client = match source.agent.parse() {
        Ok(address) => Client::at(address).with_timeout(REQUEST_TIMEOUT).with_limit(usize::MAX),
        Err(error) => return Err(gone("its address", format!("{error}"))),
    };
    let named = |what: &str, why: FetchError| match why {
        FetchError::Lost(error) => gone(what, error),
        here => here,
    };
    let manifest = download(&mut client, &format!("{directory}/{MANIFEST}"), || Ok(ManifestBuffer(Vec::new()))).await;
    let ManifestBuffer(manifest) = manifest.map_err(|why| named("the list of outputs", why))?;
    for published in manifest_of(&manifest).map_err(|error| gone("the list of outputs", error))? {
        if !is_of_partition(&published, partition) {
            continue;
        }
        let local = input.join(local_name(&source.stage, source.index, &published.name));
        let path = format!("{directory}/{}", published.name);
        copy(&mut client, &path, &published, &local).await.map_err(|why| named(&published.name, why))?;
    }
    Ok(())
}

fn manifest_of(bytes: &[u8]) -> Result<Vec<Published>, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// A manifest that is being received.
struct ManifestBuffer(Vec<u8>);

impl Write for ManifestBuffer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.0.len() + data.len() > MANIFEST_MAX {
            return Err(io::Error::other(format!("a list of outputs has {MANIFEST_MAX} bytes at most")));
        }
        self.0.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file with the length and the checksum of what was written.
struct ChecksumWriter {
    file: fs::File,
    length: u64,
    checksum: u32,
}

impl Write for ChecksumWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.file.write(data)?;
        self.length += written as u64;
        self.checksum = crc32c::crc32c_append(self.checksum, &data[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Copies an output to a file of the sandbox. The memory that it needs does not grow with the output, since it counts
/// as the task's.
async fn copy(client: &mut Client, path: &str, published: &Published, local: &Path) -> Result<(), FetchError> {
    let begin = || Ok(ChecksumWriter { file: fs::File::create(local)?, length: 0, checksum: 0 });
    let copied = download(client, path, begin).await?;
    if copied.length != published.length || copied.checksum != published.checksum {
        return Err(FetchError::Lost("its checksum is not that of what was published".to_owned()));
    }
    Ok(())
}

/// Downloads a file from an agent, with further attempts if there is no answer. A file that the agent does not have is
/// lost. `begin` creates the destination anew for each attempt.
async fn download<W: Write + Send>(
    client: &mut Client,
    path: &str,
    begin: impl Fn() -> io::Result<W>,
) -> Result<W, FetchError> {
    let path = format!("/files/download?path={}", utf8_percent_encode(path, NON_ALPHANUMERIC));
    let mut last = String::new();
    for _ in 0..ATTEMPTS_MAX {
        let mut sink = begin().map_err(FetchError::Local)?;
        match client.download(&path, &mut sink).await {
            Ok(reply) if reply.status == StatusCode::OK => return Ok(sink),
            Ok(reply) => return Err(FetchError::Lost(format!("the agent answers {}", reply.status))),
            Err(ClientError::Sink(error)) => return Err(FetchError::Local(error)),
            Err(error) => last = base::error_chain(&error),
        }
    }
    Err(FetchError::Lost(last))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    /// Answers each request with the same body, as an agent's `/files/download` does. Returns the server's address.
    fn serve(body: &'static [u8]) -> std::net::SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
            }
        });
        address
    }

    fn published(body: &[u8]) -> Published {
        let (length, checksum) = (body.len() as u64, crc32c::crc32c(body));
        Published { name: "o".into(), output: "o".into(), partition: None, length, checksum }
    }

    #[tokio::test]
    async fn an_output_is_checked_and_a_full_sandbox_is_named() {
        let body = b"what was published";
        let mut client = Client::new(&serve(body).to_string()).unwrap();
        let local = std::env::temp_dir().join(format!("tepui-fetch-{}", std::process::id()));
        assert!(copy(&mut client, "/o", &published(body), &local).await.is_ok());
        assert_eq!(fs::read(&local).unwrap(), body);
        fs::remove_file(&local).unwrap();
        let other = published(b"what was forgotten");
        let gone = copy(&mut client, "/o", &other, &local).await;
        assert!(matches!(gone, Err(FetchError::Lost(why)) if why.contains("checksum")));
        fs::remove_file(&local).unwrap();
        let full = copy(&mut client, "/o", &published(body), Path::new("/dev/full")).await;
        let Err(why @ FetchError::Local(_)) = full else { panic!("/dev/full takes nothing") };
        assert_eq!(why.failed(Path::new("/sandbox/input")).fault, Fault::Storage);
    }
}
