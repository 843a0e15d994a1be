//! `cargo xtask conformance --profile unified`: runs the agents' cases on a host that has cgroups v2 alone.
//!
//! The host is an emulated machine (`tests/unified/machine.sh`), because most machines on which this is run have
//! version 1, and a controller can only be in one version. It takes a quarter of an hour, and is not part of the tests
//! that every change has to pass.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::conformance::{Isolated, profile};
use crate::{binary, root, steps, target};

/// Isolation of the agents besides processes: everything for which there is a controller.
const ISOLATION: &str = "cgroups/all,posix/rlimits,namespaces/ipc,filesystem/linux";
/// The emulated machine is slow: cases that fail are repeated once, by themselves.
const RUN: &str = r#"#!/bin/sh
export TEPUI=/payload/tepui
cd /payload/suite || exit 1
part() {
    [ -z "$2" ] && return 0
    only=""
    for name in $2; do only="$only --only $name"; done
    python3 run --profile "$1" $only | tee /tmp/log
    again=$(sed -n 's/^FAILED *\([a-z0-9_.]*\):.*/\1/p' /tmp/log)
    for name in $again; do
        echo "retried alone: $name"
        python3 run --profile "$1" --only "$name" || return 1
    done
}
failed=0
part /payload/with.json "WITH" || failed=1
part /payload/without.json "BESIDE" || failed=1
exit $failed
"#;

/// Runs these cases in the machine.
///
/// # Errors
/// The machine cannot be made, or a case failed.
pub(crate) fn run(suite: &Path, cases: &Isolated) -> Result<()> {
    let directory = target().join("unified");
    let payload = directory.join("payload");
    let _ = std::fs::remove_dir_all(&payload);
    std::fs::create_dir_all(&payload).with_context(|| format!("cannot create {}", payload.display()))?;
    steps::run(Command::new("cp").arg("-r").arg(suite).arg(payload.join("suite")))?;
    let write = |name: &str, text: &str| {
        let path = payload.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    std::fs::copy(binary(), payload.join("tepui")).with_context(|| format!("no copy of {}", binary().display()))?;
    write("with.json", &profile("tepui", &format!("{ISOLATION},namespaces/pid")))?;
    write("without.json", &profile("tepui", ISOLATION))?;
    write("run.sh", &RUN.replace("WITH", &cases.with.join(" ")).replace("BESIDE", &cases.beside.join(" ")))?;
    let script = root().join("tests/unified/machine.sh");
    steps::run(Command::new("bash").arg(script).arg(&directory).arg(&payload))
}
