//! The table of contents of the site: parts by reader, and their pages in the order in which they are read.

use std::path::Path;

use crate::reference;

/// A part of the site: its title, and the titles and paths of its pages.
struct Part {
    title: &'static str,
    pages: &'static [(&'static str, &'static str)],
}

const START: (&str, &str) = ("tepui", "README.md");

const PARTS: &[Part] = &[
    Part {
        title: "For administrators",
        pages: &[
            ("A first day", "docs/tutorial.md"),
            ("Operating a cluster", "docs/operator.md"),
            ("Setting up an agent", "docs/agent-guide.md"),
            ("From Mesos, in place", "docs/migration.md"),
            ("Security", "docs/security.md"),
            ("Threat model", "SECURITY.md"),
            ("Allocation", "docs/allocation.md"),
            ("Compatibility with Mesos", "docs/compatibility.md"),
        ],
    },
    Part {
        title: "For framework developers",
        pages: &[
            ("Writing a framework", "docs/framework-guide.md"),
            ("The library for Rust", "frameworks/sdk/README.md"),
            ("Training a model of your own", "docs/tutorial-training.md"),
            ("The package for Python", "python/README.md"),
            ("Bin-packing: batch jobs, services, gangs", "frameworks/binpack/README.md"),
            ("Jobs of stages: pipelines", "frameworks/dag/README.md"),
            ("Your first pipeline", "docs/tutorial-pipelines.md"),
            ("Quality: training jobs", "frameworks/quality/README.md"),
            ("Video queries", "frameworks/video/README.md"),
            ("Count people at your door", "docs/tutorial-video.md"),
        ],
    },
    Part {
        title: "For researchers",
        pages: &[
            ("Overview", "docs/researcher.md"),
            ("The laboratory", "docs/lab-guide.md"),
            ("Your first learned policy", "docs/tutorial-learning.md"),
            ("Published experiments", "docs/papers/README.md"),
            ("Decima: orders of stages", "docs/papers/decima.md"),
            ("DiAS: drops and sprints", "docs/papers/dias.md"),
            ("A model of sprints", "docs/papers/sprinting.md"),
            ("Bitrates: a policy that can be read", "docs/papers/bitrate.md"),
            ("DRF", "docs/papers/drf.md"),
            ("Failures of tasks", "docs/papers/failures.md"),
            ("Libra: sizes of tasks", "docs/papers/libra.md"),
            ("Mesos: macrobenchmark", "docs/papers/mesos-macro.md"),
            ("Mesos: scale", "docs/papers/mesos-scale.md"),
            ("Mesos: behaviours", "docs/papers/mesos-table.md"),
            ("Omega", "docs/papers/omega.md"),
            ("Saha: holding, arrival, packing", "docs/papers/saha.md"),
            ("SLAQ", "docs/papers/slaq.md"),
            ("Tromino", "docs/papers/tromino.md"),
            ("Video queries", "docs/papers/video.md"),
        ],
    },
    Part { title: "Reference", pages: &[("Glossary", "docs/glossary.md")] },
    Part {
        title: "The rules of Mesos 1.11",
        pages: &[
            ("Overview", "docs/mesos/README.md"),
            ("Scheduler API", "docs/mesos/scheduler-api.md"),
            ("Executors", "docs/mesos/executors.md"),
            ("Operator API", "docs/mesos/operator-api.md"),
            ("Agent API", "docs/mesos/agent-api.md"),
            ("Endpoints", "docs/mesos/endpoints.md"),
            ("Tasks", "docs/mesos/tasks.md"),
            ("Resources", "docs/mesos/resources.md"),
            ("Roles", "docs/mesos/roles.md"),
            ("Allocator", "docs/mesos/allocator.md"),
            ("Agent", "docs/mesos/agent.md"),
            ("Containerizer", "docs/mesos/containerizer.md"),
            ("Fetcher", "docs/mesos/fetcher.md"),
            ("Maintenance", "docs/mesos/maintenance.md"),
            ("High availability", "docs/mesos/high-availability.md"),
            ("ZooKeeper", "docs/mesos/zookeeper.md"),
            ("Security", "docs/mesos/security.md"),
            ("Metrics", "docs/mesos/metrics.md"),
            ("Flags", "docs/mesos/flags.md"),
            ("Files on disk", "docs/mesos/disk.md"),
            ("Transport", "docs/mesos/transport.md"),
            ("libprocess", "docs/mesos/libprocess.md"),
            ("JSON", "docs/mesos/json.md"),
            ("Clients", "docs/mesos/clients.md"),
        ],
    },
    Part {
        title: "For contributors",
        pages: &[
            ("Architecture", "ARCHITECTURE.md"),
            ("Decisions", "docs/decisions.md"),
            ("Style", "docs/style.md"),
            ("Figures", "SPECIFICATION.md"),
            ("Benchmarks", "benches/README.md"),
            ("Trained orders of stages", "frameworks/dag/models/README.md"),
            ("Samples of Mesos's registry", "src/replicated_log/samples/README.md"),
            ("Changes", "CHANGELOG.md"),
        ],
    },
];

/// Title of the part to which the generated pages are added.
const REFERENCE: &str = "Reference";

/// Returns the paths of all pages that are in the repository.
pub(crate) fn pages() -> impl Iterator<Item = &'static str> {
    let listed = PARTS.iter().flat_map(|part| part.pages).map(|(_, path)| *path);
    std::iter::once(START.1).chain(listed)
}

/// Returns whether pages may link to this file, which is not a page: pictures, examples and scenarios.
pub(crate) fn is_shown(path: &Path) -> bool {
    let suffixes = ["svg", "png", "jpg", "toml", "rs", "py", "yml", "yaml", "json"];
    path.ends_with("LICENSE")
        || ["docs", "examples", "lab", "contrib", "frameworks"].iter().any(|top| path.starts_with(top))
            && path.extension().is_some_and(|extension| suffixes.iter().any(|suffix| extension == *suffix))
            && !path.components().any(|part| part.as_os_str() == "src")
}

/// Returns the table of contents in the form of mdBook's summary.
pub(crate) fn summary() -> String {
    let mut text = format!("[{}]({})\n", START.0, START.1);
    for part in PARTS {
        text += &format!("\n# {}\n\n", part.title);
        let generated = if part.title == REFERENCE { reference::pages() } else { Vec::new() };
        let generated = generated.iter().map(|(title, path)| (title.as_str(), path.as_str()));
        for (title, path) in generated.chain(part.pages.iter().copied()) {
            text += &format!("- [{title}]({path})\n");
        }
    }
    text
}
