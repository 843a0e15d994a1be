//! Table of the results, and the HTML page with the table and the plots.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Result of one measured shape.
pub struct Row {
    pub shape: String,
    pub took: Duration,
    /// Number of items that the figure is divided by, if it is per item.
    pub per: Option<usize>,
    /// Promised limit, and the figure of Mesos 1.11 on a machine of this kind.
    pub at_most: &'static str,
    pub mesos: &'static str,
}

impl Row {
    pub fn new(shape: String, took: Duration, limits: (&'static str, &'static str)) -> Row {
        Row { shape, took, per: None, at_most: limits.0, mesos: limits.1 }
    }

    pub fn each(self, count: usize) -> Row {
        Row { per: Some(count), ..self }
    }

    fn figure(&self) -> String {
        match self.per {
            Some(count) => format!("{:.2} us", self.took.as_secs_f64() * 1e6 / count.max(1) as f64),
            None => format!("{:.3} ms", self.took.as_secs_f64() * 1e3),
        }
    }
}

pub fn print(rows: &[Row]) {
    let width = rows.iter().map(|row| row.shape.chars().count()).max().unwrap_or_default();
    println!("{:width$}  {:>12}  {:>8}  Mesos 1.11", "shape (processor time)", "tepui", "at most");
    for row in rows {
        println!("{:width$}  {:>12}  {:>8}  {}", row.shape, row.figure(), row.at_most, row.mesos);
    }
}

/// Writes the page into cargo's target directory. Returns its path.
pub fn write(rows: &[Row], plots: &[String]) -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(3).unwrap_or(&program);
    let path = target.join("allocator-bench.html");
    std::fs::write(&path, page(rows, plots))?;
    Ok(path)
}

fn page(rows: &[Row], plots: &[String]) -> String {
    let mut html = String::from(
        "<!doctype html><meta charset=utf-8><title>Allocator</title><style>body{font:15px sans-serif;margin:2em;max-width:70em}\
         td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
         svg{max-width:100%}</style><h1>What the allocator costs</h1><p>Processor time of one thread. Mesos 1.11's figures were \
         measured with the same shapes on a quiet machine of this kind.</p><table><tr><th>shape<th>tepui<th>at most<th>Mesos 1.11",
    );
    for row in rows {
        let shape = row.shape.replace('&', "&amp;").replace('<', "&lt;");
        let _ = write!(html, "<tr><td>{shape}<td>{}<td>{}<td>{}", row.figure(), row.at_most, row.mesos);
    }
    html.push_str("</table>");
    for plot in plots {
        html.push_str(plot);
    }
    html
}
