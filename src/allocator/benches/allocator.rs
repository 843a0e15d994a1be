//! Measures allocation runs in the shapes of Mesos's own allocator benchmarks, and compares them with Mesos 1.11 on a
//! machine of this kind (2 cores, idle).
//!
//! `cargo xtask bench allocator` prints a table and writes a page with it and with plots of the growth of cost, into
//! cargo's target directory. `cargo bench -p allocator --bench allocator -- NAME` measures the shapes whose name
//! contains it, without the page; `-- docs` draws the plots of docs/images. Each figure is the processor time of one
//! pass after the state was built, the best of a few if the pass can be repeated.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

mod support;

use std::path::Path;

use plot::Lines;
use support::report::{self, Row};
use support::{growth, shapes, stories};

fn measure(wanted: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut shape = |name: &str, run: &mut dyn FnMut(&mut Vec<Row>)| {
        if name.contains(wanted) {
            run(&mut rows);
        }
    };
    shape("declined", &mut |rows| shapes::all_declined(1_000, 10, ("", ""), rows));
    shape("declined", &mut |rows| shapes::all_declined(1_000, 50, ("1 ms", "240 ms"), rows));
    shape("declined", &mut |rows| shapes::all_declined(1_000, 200, ("2 ms", "1.2 s"), rows));
    let limits = [("", "16 ms"), ("30 ms", "631 ms"), ("", ""), ("30 ms", "430 ms")];
    shape("add", &mut |rows| shapes::add_and_update(10_000, 1_000, limits, rows));
    let limits = [("", ""), ("", ""), ("150 ms", "minutes"), ("", "")];
    shape("full", &mut |rows| shapes::add_and_update(50_000, 1_000, limits, rows));
    shape("single", &mut |rows| shapes::one_by_one(2_000, 1_000, rows));
    shape("silent", &mut |rows| shapes::mostly_silent(1_000, 200, ("2 ms", "20-23 ms"), rows));
    let limits = [("30 ms", "17.8 s"), ("40 ms", "7.1 s"), ("1 ms", "5.6 s")];
    shape("quota", &mut |rows| shapes::quota_everywhere(3_000, limits, rows));
    shape("freed", &mut |rows| shapes::freed(10_000, 200, ("100 us", "up to 1 s"), rows));
    shape("memory", &mut |rows| shapes::memory(50_000, 1_000, 100, rows));
    rows
}

/// Returns the plots of docs/allocation.md, with the names of their files.
fn stories() -> [(&'static str, Lines); 3] {
    [("holding", stories::holding()), ("granularity", stories::granularity()), ("sorters", stories::sorters())]
}

fn growth() -> [(&'static str, Lines); 3] {
    [
        ("growth-agents", growth::against_agents()),
        ("growth-frameworks", growth::against_frameworks()),
        ("growth-filters", growth::against_filters()),
    ]
}

fn main() -> std::io::Result<()> {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    if wanted == "docs" {
        let directory = Path::new("../../docs/images");
        std::fs::create_dir_all(directory)?;
        for (name, plot) in stories().into_iter().chain(growth()) {
            std::fs::write(directory.join(format!("allocation-{name}.svg")), plot.svg())?;
        }
        return Ok(());
    }
    let rows = measure(&wanted);
    report::print(&rows);
    if wanted.is_empty() {
        let plots: Vec<String> = growth().iter().chain(&stories()).map(|(_, plot)| plot.svg()).collect();
        let path = report::write(&rows, &plots)?;
        println!("\nwith plots: {}", path.display());
    }
    Ok(())
}
