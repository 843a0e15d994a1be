//! Network namespaces as files: made before any process is in them, and entered for a moment.
//!
//! What is in one but its loopback device is others' business.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Makes a new network namespace, with nothing but a loopback device, that can be opened at `path` until it is removed.
///
/// # Errors
/// What the system refuses; only root may.
pub fn make_network(path: &Path) -> io::Result<()> {
    remove_network(path)?;
    File::create_new(path)?;
    let target: PathBuf = path.to_owned();
    // A thread is in one namespace for as long as it lives: this one lives for the namespace.
    let thread = std::thread::Builder::new().name("network".into()).spawn(move || {
        // SAFETY: of all that threads share, only their network changes, and this thread ends here.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
        turn_loopback_on()?;
        mount_bind("/proc/thread-self/ns/net", &target).map_err(io::Error::from)
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread has failed")))
}

/// Removes a namespace's file; the namespace itself goes with its last process. Nothing happens if it is not there.
///
/// # Errors
/// What the system refuses.
pub fn remove_network(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH) {
        // It is not a mount: something went wrong when it was made.
        Ok(()) | Err(rustix::io::Errno::INVAL) => std::fs::remove_file(path),
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Does something in another network: sockets that `act` opens are there for good. The calling thread stays where it
/// is.
///
/// # Errors
/// What the system refuses; only root may.
pub fn in_network<T: Send>(network: BorrowedFd<'_>, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    let there = move || {
        move_into_link_name_space(network, Some(LinkNameSpaceType::Network))?;
        Ok(act())
    };
    std::thread::scope(|scope| {
        // A thread of its own: one that could not come back would be lost.
        let thread = std::thread::Builder::new().name("network".into()).spawn_scoped(scope, there)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread has failed")))
    })
}

fn turn_loopback_on() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: an all-zero request is a valid one; the name fits, with a zero after it, and the call only reads the
    // request.
    let done = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l'.cast_signed();
        request.ifr_name[1] = b'o'.cast_signed();
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_comes_and_goes() {
        if !rustix::process::geteuid().is_root() {
            return println!("not run: it needs root");
        }
        let path = std::env::temp_dir().join(format!("tepui-network-{}", std::process::id()));
        make_network(&path).unwrap();
        let id = |path: &Path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
        assert_ne!(id(&path), id(Path::new("/proc/self/ns/net")));
        let network = File::open(&path).unwrap();
        let inside = || id(Path::new("/proc/thread-self/ns/net"));
        assert_eq!(in_network(std::os::fd::AsFd::as_fd(&network), inside).unwrap(), id(&path));
        assert_ne!(inside(), id(&path));
        remove_network(&path).unwrap();
        assert!(!path.exists());
        remove_network(&path).unwrap();
    }
}
