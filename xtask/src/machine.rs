//! Prepares the machine for the tests: Debian packages, and a Python with unmodified Mesos clients.
//!
//! It changes nothing outside the target directory, except that it installs packages if that is allowed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::steps;

/// A Debian package, and the command that succeeds where it need not be installed.
struct Package {
    name: &'static str,
    why: &'static str,
    probe: &'static [&'static str],
}

const PACKAGES: &[Package] = &[
    Package { name: "python3", why: "runs the Python clients and the conformance suite", probe: &["python3", "-V"] },
    Package {
        name: "python3-venv",
        why: "separates those clients from the system's Python",
        probe: &["python3", "-c", "import ensurepip, venv"],
    },
    Package {
        name: "python3-dev",
        why: "the HTTP parser of pymesos is an extension module",
        probe: &[
            "python3",
            "-c",
            "import os, sysconfig; open(os.path.join(sysconfig.get_paths()['include'], 'Python.h')).close()",
        ],
    },
    Package {
        name: "containernetworking-plugins",
        why: "connects containers to separate networks",
        probe: &["test", "-x", "/usr/lib/cni/ptp"],
    },
    Package { name: "iptables", why: "maps ports of such containers", probe: &["test", "-x", "/usr/sbin/iptables"] },
    Package { name: "iproute2", why: "inspects such networks", probe: &["ip", "-V"] },
    Package { name: "openmpi-bin", why: "runs a gang that is a real MPI program", probe: &["mpirun", "--version"] },
    Package { name: "libopenmpi-dev", why: "compiles that program", probe: &["mpicc", "--version"] },
    Package { name: "ffmpeg", why: "decodes formats that are not decoded in process", probe: &["ffmpeg", "-version"] },
    Package { name: "curl", why: "fetches files from FTP servers", probe: &["curl", "--version"] },
    Package {
        name: "zookeeper",
        why: "elects masters in conformance cases; it is not started as a service",
        probe: &["test", "-e", "/usr/share/java/zookeeper.jar"],
    },
    Package { name: "etcd-server", why: "elects masters in end-to-end tests", probe: &["etcd", "--version"] },
    Package { name: "etcd-client", why: "reads the keys there", probe: &["etcdctl", "version"] },
    Package { name: "chromium", why: "displays the web page", probe: &["chromium", "--version"] },
    Package { name: "chromium-driver", why: "drives that browser", probe: &["chromedriver", "--version"] },
    Package { name: "busybox-static", why: "is the shell of container images", probe: &["/bin/busybox", "true"] },
    Package { name: "docker-compose", why: "starts a cluster of containers", probe: &["docker-compose", "version"] },
    Package { name: "prometheus", why: "checks metrics and alert rules", probe: &["promtool", "--version"] },
    Package { name: "gcc", why: "compiles that extension module", probe: &["cc", "--version"] },
];

/// A daemon that cannot be installed on every machine; the tests that need it report that they have not run.
const DOCKER: Package = Package {
    name: "docker.io",
    why: "runs tasks that are Docker containers",
    probe: &["test", "-x", "/usr/sbin/dockerd"],
};

/// Checks that all requirements are met, and returns the Python interpreter that has the clients.
///
/// # Errors
/// Names what is missing and how to install it.
pub(crate) fn prepare(install: bool) -> Result<PathBuf> {
    let missing: Vec<&Package> = PACKAGES.iter().filter(|p| !works(p.probe)).collect();
    if !missing.is_empty() {
        for package in &missing {
            println!("missing: {} ({})", package.name, package.why);
        }
        let names: Vec<&str> = missing.iter().map(|p| p.name).collect();
        let line = format!("apt-get install --no-install-recommends --yes {}", names.join(" "));
        if !install {
            bail!("install them first: {line}");
        }
        install_packages(&names).with_context(|| format!("could not install them; run: {line}"))?;
    }
    if !works(DOCKER.probe) {
        println!("missing: {} ({})", DOCKER.name, DOCKER.why);
        if let Some(Err(error)) = install.then(|| install_packages(&[DOCKER.name])) {
            println!("continuing without it: {error:#}");
        }
    }
    python(install)
}

fn works(probe: &[&str]) -> bool {
    let mut command = Command::new(probe[0]);
    command.args(&probe[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs apt-get, through sudo for users other than root.
fn install_packages(names: &[&str]) -> Result<()> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    let apt = |arguments: &[&str]| {
        let mut command = if root { Command::new("apt-get") } else { Command::new("sudo") };
        if !root {
            command.args(["--non-interactive", "apt-get"]);
        }
        // Waits for another process that installs, and for a network that fails for a while.
        command
            .args(["--quiet", "--yes", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        steps::run(&mut command)
    };
    apt(&["update"])?;
    apt(&[&["install", "--no-install-recommends"], names].concat())
}

/// Returns the Python interpreter of a virtual environment in the target directory, which is created on first use.
fn python(install: bool) -> Result<PathBuf> {
    let script = crate::root().join("tests/python/make-venv.sh");
    let recipe = std::fs::read_to_string(&script).with_context(|| format!("cannot read {}", script.display()))?;
    let directory = crate::target().join("xtask/python");
    let (stamp, python) = (directory.join("made-by"), directory.join("bin/python"));
    let made_by = std::fs::read_to_string(&stamp).unwrap_or_default();
    if made_by == recipe && works(&[&python.to_string_lossy(), "-c", "import pymesos, tepui.lab, pytest"]) {
        println!("clients from PyPI: {}", directory.display());
        return Ok(python);
    }
    if !install {
        bail!("the clients from PyPI are not installed yet: bash {} {}", script.display(), directory.display());
    }
    steps::run(Command::new("bash").arg(&script).arg(&directory))?;
    std::fs::write(&stamp, recipe).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}
