//! Tests the bundled frameworks in the laboratory, from the command line: an example of each, the contents of its
//! report, a comparison, and invalid arguments.
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::process::ToItsEnd;
use crate::support::{Directory, tepui};

fn lab(arguments: &[&str]) -> Output {
    tepui().arg("lab").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).run()
}

fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = lab(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_example_of_each_runs_and_is_reported() {
    let directory = Directory::new("lab-bundled");
    for (name, own, title) in [
        ("binpack", None, "Tasks that wait"),
        ("quality", Some("trainings.loss"), "Mean normalised loss of active trainings"),
        ("video", Some("watch.lag"), "Mean lag of queries in seconds"),
    ] {
        let (file, out) = (format!("lab/examples/{name}.toml"), directory.join(name));
        let text = told(&lab(&["run", &file, "--seeds", "1", "--json", "--out", &out]));
        let points: Value = serde_json::from_str(&text).unwrap();
        let numbers = points[0]["numbers"].as_array().unwrap();
        let known = |wanted: &str| numbers.iter().any(|number| number["name"] == wanted && number["mean"].is_f64());
        assert!(own.is_none_or(known), "{name}: {numbers:?}");
        let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
        assert!(page.contains(title), "{name}: the report has no picture '{title}'");
        // A finished run is not repeated, and is the same when it is run elsewhere.
        let again = directory.join(&format!("{name}-again"));
        let other = told(&lab(&["run", &file, "--seeds", "1", "--json", "--out", &again]));
        assert_eq!(text, other, "{name}");
        let compared = told(&lab(&["compare", &out, &again]));
        assert!(compared.contains("All runs are identical."), "{name}: {compared}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_runs() {
    let directory = Directory::new("lab-bundled-refused");
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/examples/quality.toml")).unwrap();
    let (wrong, out) = (directory.join("wrong.toml"), directory.join("out"));
    std::fs::write(&wrong, text.replace("bundled = \"quality\"", "bundled = \"qualty\"")).unwrap();
    let line = 1 + text.lines().position(|line| line.starts_with("bundled")).unwrap();
    let why = refused(&["run", &wrong, "--out", &out]);
    assert!(
        why.contains(&format!("wrong.toml:{line}: ")) && why.contains("must be one of binpack, dag, quality, video"),
        "{why}"
    );
    let why = refused(&["run", "lab/examples/quality.toml", "--live", "--out", &out]);
    assert!(why.contains("frameworks.0.bundled") && why.contains("run this without --live"), "{why}");
    assert!(!Path::new(&out).exists());
}
