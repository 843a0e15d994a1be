//! The identity of a scheduler for its workers: address and token. Both are persisted, so that workers find the
//! scheduler after a restart.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Error, io};

const FILE: &str = "video-control.json";

/// Address and token of a scheduler.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Address to listen at.
    pub address: SocketAddr,
    /// Token with which workers authenticate.
    pub token: String,
}

impl Identity {
    /// Returns the identity stored in the directory, or a new one.
    pub(super) fn of(directory: Option<&Path>, address: SocketAddr) -> Result<Identity, Error> {
        let kept = directory.and_then(|directory| fs::read(directory.join(FILE)).ok());
        if let Some(mut kept) = kept.and_then(|bytes| serde_json::from_slice::<Identity>(&bytes).ok()) {
            if address.port() != 0 {
                kept.address = address;
            }
            return Ok(kept);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| Error::Refused(format!("no random numbers for a token: {e}")))?;
        Ok(Identity { address, token: base::hex(&bytes) })
    }

    /// Stores the identity with the listening address, readable for the owner only.
    pub(super) fn keep(&self, directory: &Path, address: SocketAddr) -> Result<(), Error> {
        let path = directory.join(FILE);
        let what = || format!("cannot write {}", path.display());
        let kept = Identity { address, token: self.token.clone() };
        let text = serde_json::to_vec(&kept).map_err(|e| Error::Refused(e.to_string()))?;
        fs::create_dir_all(directory).map_err(io(what()))?;
        let beside = directory.join("video-control.part");
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside);
        file.and_then(|mut f| f.write_all(&text)).map_err(io(what()))?;
        fs::rename(&beside, &path).map_err(io(what()))
    }
}
