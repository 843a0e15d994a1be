//! `tepui registry import`: creates the registry of a master from the replicated logs of Mesos masters.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use protos::mesos::internal::Registry;
use protos::mesos::master_info::capability::Type;
use store::{FileRegistry, StoreError};

use super::source::{LogArgs, describe, log_at};
use super::summary::summary;
use crate::read::print;

/// Capabilities of a master of this version; a registry may require some of them.
const CAPABILITIES: [Type; 3] = [Type::AgentUpdate, Type::AgentDraining, Type::QuotaV2];

/// Flags of `tepui registry import`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A Mesos master's work directory or its `replicated_log`; once for each master
    #[arg(long, required = true, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Work directory of the new master; without a registry
    #[arg(long = "work_dir", visible_alias = "work-dir", value_name = "DIR")]
    work_dir: PathBuf,
    #[command(flatten)]
    log: LogArgs,
}

/// Imports a registry.
///
/// # Errors
/// A log is rejected, the registry requires a capability that this version does not have, or there is a registry
/// already.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let logs = args.from.iter().map(|path| log_at(path)).collect::<Result<Vec<PathBuf>>>()?;
    check_target(&logs, &args.work_dir)?;
    let recovered = args.log.read(&logs)?;
    let place = describe(&recovered);
    let registry = recovered.registry;
    let file = create(&args.work_dir, &registry)?;
    let next = format!(
        "next: start this master with the address of the Mesos masters' leader and --work_dir={}\n\
         agents register again within --agent_reregister_timeout (10 minutes); docs/migration.md has all steps",
        args.work_dir.display()
    );
    print(&format!("{place}\nimported into '{}'\n\n{}\n\n{next}", file.display(), summary(&registry)))
}

/// Creates the registry of a master in a work directory without one. Returns its file.
///
/// # Errors
/// The registry requires a capability that this version does not have, there is one already, or writing fails.
pub(super) fn create(work_dir: &Path, registry: &Registry) -> Result<PathBuf> {
    check(registry)?;
    let file = work_dir.join(FileRegistry::NAME);
    match FileRegistry::create(&file, registry) {
        Err(error @ StoreError::InUse { .. }) => {
            let error = anyhow::Error::from(error);
            bail!("{error:#}: nothing is imported into the registry of a running master")
        }
        Err(error @ StoreError::Exists { .. }) => {
            let error = anyhow::Error::from(error);
            bail!("{error:#} already: name another --work_dir, or move the file and its '.commits' away")
        }
        created => drop(created.context("the registry cannot be written")?),
    }
    // This is what the master will read.
    let written = FileRegistry::read(&file).context("the written registry cannot be read")?;
    ensure!(sorted(written) == sorted(registry.clone()), "'{}' differs from the written registry", file.display());
    Ok(file)
}

/// Checks that the new registry is not in a directory from which logs are read.
fn check_target(logs: &[PathBuf], work_dir: &Path) -> Result<()> {
    for log in logs {
        let is_inside = match (log.canonicalize(), work_dir.canonicalize()) {
            (Ok(log), Ok(work_dir)) => work_dir.starts_with(log),
            _ => work_dir.starts_with(log),
        };
        ensure!(!is_inside, "--work_dir '{}' is inside of --from '{}'", work_dir.display(), log.display());
    }
    Ok(())
}

/// Checks that a master of this version can lead with a registry, and that every entry has its own key.
fn check(registry: &Registry) -> Result<()> {
    for required in &registry.minimum_capabilities {
        let is_known = CAPABILITIES.iter().any(|known| known.as_str_name() == required.capability);
        ensure!(is_known, "the registry requires the capability '{}', which tepui does not have", required.capability);
    }
    let updates = store::changes(&Registry::default(), registry);
    let entries = updates.iter().filter_map(|update| Some((update.key(), update.value()?)));
    let kept = store::registry_of(Path::new("of Mesos"), entries)?;
    ensure!(
        sorted(kept) == sorted(registry.clone()),
        "the registry has two entries of the same agent, role, machine or capability"
    );
    Ok(())
}

/// Returns a registry with its unordered lists in order, and without empty ones.
fn sorted(mut registry: Registry) -> Registry {
    fn by_bytes<M: prost::Message>(list: &mut [M]) {
        list.sort_by_cached_key(prost::Message::encode_to_vec);
    }
    registry.slaves.iter_mut().for_each(|list| by_bytes(&mut list.slaves));
    registry.slaves = registry.slaves.filter(|list| !list.slaves.is_empty());
    registry.unreachable.iter_mut().for_each(|list| by_bytes(&mut list.slaves));
    registry.unreachable = registry.unreachable.filter(|list| !list.slaves.is_empty());
    registry.gone.iter_mut().for_each(|list| by_bytes(&mut list.slaves));
    registry.gone = registry.gone.filter(|list| !list.slaves.is_empty());
    registry.machines.iter_mut().for_each(|list| by_bytes(&mut list.machines));
    registry.machines = registry.machines.filter(|list| !list.machines.is_empty());
    by_bytes(&mut registry.weights);
    by_bytes(&mut registry.quota_configs);
    by_bytes(&mut registry.minimum_capabilities);
    #[allow(deprecated)]
    by_bytes(&mut registry.quotas);
    registry
}

#[cfg(test)]
mod tests {
    use protos::mesos::internal::registry;

    use super::*;

    fn weight(role: &str) -> registry::Weight {
        registry::Weight { info: protos::mesos::WeightInfo { role: Some(role.into()), weight: 2.0 } }
    }

    #[test]
    fn entries_that_would_be_lost_are_refused() {
        let weights = |roles: &[&str]| Registry {
            weights: roles.iter().map(|role| weight(role)).collect(),
            machines: Some(registry::Machines::default()),
            ..Registry::default()
        };
        check(&weights(&["b", "a"])).unwrap();
        let error = check(&weights(&["a", "a"])).unwrap_err().to_string();
        assert_eq!(error, "the registry has two entries of the same agent, role, machine or capability");
    }

    #[test]
    fn capabilities_of_later_versions_are_refused() {
        let requires = |capability: &str| Registry {
            minimum_capabilities: vec![registry::MinimumCapability { capability: capability.to_owned() }],
            ..Registry::default()
        };
        check(&requires("QUOTA_V2")).unwrap();
        let error = check(&requires("X")).unwrap_err().to_string();
        assert_eq!(error, "the registry requires the capability 'X', which tepui does not have");
    }
}
