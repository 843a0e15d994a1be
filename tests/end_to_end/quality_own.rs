//! Tests the quality framework with real processes, on the user's own data and programs: models that are checked,
//! evaluated and stopped early, and training programs that share a cluster with a built-in job.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::process::ToItsEnd;
use crate::quality::{cluster, framework, iteration, job, process_of};
use crate::support::{Directory, tepui};

/// Returns flowers of two kinds, which differ in width, and a little in colour.
fn flowers(rows: usize) -> String {
    let mut text = "colour,length,width,kind\n".to_owned();
    for row in 0..rows {
        let (length, width) = ((row * 7) % 13, (row * 5) % 11);
        let colour = ["red", "white", "blue"][row % 3];
        let kind = if width + usize::from(colour == "red") * 2 > 5 { "rose" } else { "lily" };
        text += &format!("{colour},{length},{width},{kind}\n");
    }
    text
}

fn quality(arguments: &[&str]) -> (bool, String, String) {
    let output = tepui().args(["framework", "quality"]).args(arguments).run();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_model_of_named_columns_is_validated_kept_evaluated_and_refuses_other_data() {
    let cluster = cluster("named");
    let directory = &cluster.directory;
    let data = directory.write("flowers.csv", &flowers(330));
    let jobs = format!(
        "[[job]]\nname = \"flowers\"\nalgorithm = {{ kind = \"logistic-regression\" }}\n\
         data = {{ file = \"{data}\", label = \"kind\", categorical = [\"colour\"] }}\n\
         validation = {{ share = 0.2, seed = 3 }}\npatience = 20\nshards = 4\niterations = 120\n"
    );
    let file = directory.write("jobs.toml", &jobs);
    let (success, status, errors) = framework(&cluster, &["--jobs", &file]).finish();
    assert!(success, "{errors}");
    let status = job(&status, "flowers");
    assert!(status["validation"]["accuracy"].as_f64() > Some(0.9), "{status:#}");
    assert!(status["history"][0]["validation_loss"].as_f64() > status["validation"]["loss"].as_f64(), "{status:#}");
    let model = directory.join("state/models/flowers.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&model).unwrap()).unwrap();
    assert_eq!(kept["schema"]["columns"][0]["values"], serde_json::json!(["blue", "red", "white"]));
    assert_eq!((&kept["schema"]["label"], &kept["training"]["rows"]), (&"kind".into(), &264.into()));
    assert!(kept["validation"]["accuracy"].as_f64() > Some(0.9));

    // Columns in another order, with the label or without.
    let new = directory.write("new.csv", "width,colour,length\n10,blue,3\n0,white,3\n");
    assert_eq!(quality(&["predict", &model, &new]), (true, "rose\nlily\n".into(), String::new()));
    // A file whose name does not tell its format.
    let other = directory.write("new.txt", "width,colour,length\n10,blue,3\n");
    assert_eq!(quality(&["predict", &model, &other, "--format", "csv"]), (true, "rose\n".into(), String::new()));
    let (success, _, errors) = quality(&["predict", &model, &other, "--format=json"]);
    assert!(!success && errors.contains("'json' is not a format: csv, libsvm, parquet or arrow"), "{errors}");
    let (_, said, _) = quality(&["predict", &model, &new, "--probabilities"]);
    assert!(said.starts_with("prediction,P(lily),P(rose)\nrose,0."), "{said}");
    let (success, said, _) = quality(&["evaluate", &model, &data, "--json"]);
    let found: Value = serde_json::from_str(&said).unwrap();
    assert!(success && found["accuracy"].as_f64() > Some(0.9) && found["rows"] == 330, "{said}");
    let (_, said, _) = quality(&["evaluate", &model, &data]);
    assert!(said.starts_with("330 rows: accuracy ") && said.contains("PRECISION") && said.contains("rose"), "{said}");

    for (text, wanted) in [
        ("width,colour\n1,red\n", ":1: there is no column 'length', with which the model was trained"),
        ("width,colour,length\n1,green,2\n", ":2: column 2 ('colour') is 'green', which is not in the training data"),
        ("width,colour,length\n,red,2\n", ":2: column 1 ('width') is missing"),
        ("1,2\n", ":1: has 2 columns, and the model was trained with 3"),
    ] {
        let (success, said, errors) = quality(&["predict", &model, &directory.write("bad.csv", text)]);
        assert!(!success && said.is_empty() && errors.contains(&format!("bad.csv{wanted}")), "{errors}");
    }
}

/// Returns the command of a trainer in this repository that uses only the standard library.
fn own_trainer() -> String {
    format!("{}/frameworks/quality/examples/own_trainer.py", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn own_trainers_and_built_in_jobs_share_a_cluster_and_one_that_is_killed_continues() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let cluster = cluster("own");
    let own = |name: &str, more: &str| {
        let (trainer, common) = (own_trainer(), "checkpoint_seconds = 0.1, mem = 64");
        format!(
            "[[job]]\nname = \"{name}\"\nalgorithm = {{ kind = \"program\", command = [\"python3\", \"{trainer}\", \
             \"--rows\", \"8000\", \"--iterations\", \"1000000\"{more}], {common} }}\niterations = 1000000\n\
             tolerance = 0\nmax_cores = 4\n"
        )
    };
    // One built-in job ends by itself. The other one requests all cores for as long as the test needs.
    let built_in = crate::quality::TWO.replace("iterations = 40", "iterations = 1000000\ntolerance = 0");
    let text = format!("{}{}{built_in}", own("elastic", ""), own("fixed", ", \"--fixed\""));
    let file = cluster.directory.write("jobs.toml", &text);
    let framework = framework(&cluster, &["--jobs", &file, "--pace=40000", "--policy=fair"]);
    let checkpoint = cluster.directory.path().join("state/jobs/fixed.checkpoint");
    let before = framework.wait_for("fixed", |j| iteration(j) >= 5 && checkpoint.is_file());
    let killed = framework.wait_for("fixed", |j| {
        let task = j["tasks"].as_array().and_then(|tasks| tasks.first()?.as_str());
        let victim = task.and_then(|task| process_of(&cluster, task));
        victim.is_some_and(|id| Command::new("kill").args(["-KILL", &id.to_string()]).status().unwrap().success())
    });
    let task = |j: &Value| j["tasks"][0].as_str().map(str::to_owned);
    framework.wait_for("fixed", |j| iteration(j) > iteration(&killed) && task(j) != task(&before));
    // The others leave it a place of its agent, and it starts again with more cores than its first one.
    let cores = |j: &Value| -> Vec<f64> {
        j["history"].as_array().unwrap().iter().filter_map(|p| p["cores"].as_f64()).collect()
    };
    framework.wait_for("elastic", |j| cores(j).iter().any(|c| *c > 1.0));
    framework.wait_for("crooked", |j| j["state"] == "finished");
    for name in ["elastic", "fixed", "convex"] {
        framework.call("POST", &format!("/jobs/{name}/stop"));
    }
    let (success, status, errors) = framework.finish();
    assert!(success, "{errors}");
    for (name, state) in [("elastic", "stopped"), ("fixed", "stopped"), ("convex", "stopped"), ("crooked", "finished")]
    {
        let job = job(&status, name);
        assert_eq!(job["state"], state, "{job:#}");
        let history = job["history"].as_array().unwrap();
        assert!(history.windows(2).all(|w| iteration(&w[0]) < iteration(&w[1])), "nothing counts twice: {job:#}");
    }
    // The same data give the same losses, whatever happened in between, up to the order of sums.
    let losses = |name: &str| -> BTreeMap<u64, f64> {
        let history = job(&status, name)["history"].as_array().unwrap();
        history.iter().map(|p| (iteration(p), p["loss"].as_f64().unwrap())).collect()
    };
    let (elastic, fixed) = (losses("elastic"), losses("fixed"));
    let both: Vec<_> = elastic.iter().filter_map(|(number, loss)| Some((loss, fixed.get(number)?))).collect();
    assert!(both.len() > 1 && both.iter().all(|(one, other)| (*one - *other).abs() < 1e-9), "{both:?}");
    assert!(*both[both.len() - 1].0 < *both[0].0, "they learn: {both:?}");
    let fixed = cores(job(&status, "fixed"));
    assert!(fixed.iter().all(|c| *c == 1.0), "{fixed:?}");
    // The user can read the state: the weights.
    let state = std::fs::read_to_string(cluster.directory.join("state/models/fixed.state")).unwrap();
    assert_eq!(serde_json::from_str::<Vec<f64>>(&state).unwrap().len(), 10);
}

#[test]
fn a_program_that_breaks_the_protocol_fails_with_the_line_and_the_rule() {
    let cluster = cluster("broken");
    let text = "[[job]]\nname = \"chatty\"\nalgorithm = { kind = \"program\", command = [\"echo\", \"epoch 1\"] }\n";
    let file = cluster.directory.write("jobs.toml", text);
    let (success, status, errors) = framework(&cluster, &["--jobs", &file]).finish();
    assert!(!success && errors.contains("failed: chatty"), "{errors}");
    let reason = job(&status, "chatty")["reason"].as_str().unwrap();
    assert!(reason.starts_with("line 1 of its standard output is not of the protocol, 'epoch 1'"), "{reason}");
    let directory = Directory::new("quality-program");
    let nothing = directory.write("jobs.toml", &text.replace("[\"echo\", \"epoch 1\"]", "[]"));
    let (success, _, errors) = quality(&["--master=127.0.0.1:1", "--objective=2"]);
    assert!(
        !success && errors.contains("--objective: must be between 0 (quality) and 1 (completion), not 2"),
        "{errors}"
    );
    let (success, _, errors) = quality(&["--master=127.0.0.1:1", "--objective=1", "--policy=fair"]);
    assert!(!success && errors.contains("--objective: is for --policy=slaq; fair has one objective"), "{errors}");
    let (success, _, errors) = quality(&["--master=127.0.0.1:1", "--jobs", &nothing]);
    assert!(!success && errors.contains("jobs.toml:1: job 'chatty': algorithm: command: names no program"), "{errors}");
}
