//! Network namespaces as files: created before any process is in them, and entered for a short time.
//!
//! Only the loopback device is set up here; other code configures the rest.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Creates a network namespace with only a loopback device. It can be opened at `path` until it is removed.
///
/// # Errors
/// An error of the system; only root may create one.
pub fn make_network(path: &Path) -> io::Result<()> {
    remove_network(path)?;
    File::create_new(path)?;
    let target: PathBuf = path.to_owned();
    // A thread of its own creates the namespace, because it stays in it for the rest of its life.
    let thread = std::thread::Builder::new().name("network".into()).spawn(move || {
        // SAFETY: only the network namespace of this thread changes, and this thread ends here.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
        turn_loopback_on()?;
        mount_bind("/proc/thread-self/ns/net", &target).map_err(io::Error::from)
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread has failed")))
}

/// Removes the file of a namespace; the namespace itself ends with its last process. Does nothing if the file does not
/// exist.
///
/// # Errors
/// An error of the system.
pub fn remove_network(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH) {
        // The file is not a mount: an earlier attempt to create the namespace failed.
        Ok(()) | Err(rustix::io::Errno::INVAL) => std::fs::remove_file(path),
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Calls `act` in another network namespace: sockets that it opens stay in that one. The calling thread stays where it
/// is.
///
/// # Errors
/// An error of the system; only root may enter one.
pub fn in_network<T: Send>(network: BorrowedFd<'_>, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    let there = move || {
        move_into_link_name_space(network, Some(LinkNameSpaceType::Network))?;
        Ok(act())
    };
    std::thread::scope(|scope| {
        // A thread of its own enters the namespace: one that could not return would be lost.
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
