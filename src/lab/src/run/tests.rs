//! Tests of runs of small scenarios, and of scenarios that are rejected.

use super::*;

fn outcome(text: &str) -> Outcome {
    let path = Path::new("test.toml");
    let scenario = Scenario::read(text, path).unwrap();
    run(&scenario, scenario.seed, Path::new("."), &mut |_| true).unwrap()
}

const TWO: &str = r#"
name = "two"
duration = "20m"
until_done = true

[[agents]]
count = 4
resources = "cpus:8;mem:8192"

[[frameworks]]
name = "a"
role = "a"
[[frameworks.jobs]]
at = "0s"
tasks = 200
needs = "cpus:1;mem:512"
time = "exponential 20s"

[[frameworks]]
name = "b"
role = "b"
[[frameworks.jobs]]
poisson = "2s"
count = 100
tasks = 2
needs = "cpus:1;mem:512"
time = "20s"
retries = 3
"#;

#[test]
fn all_jobs_are_done_and_reported() {
    for fidelity in ["full", "light"] {
        let text = format!("{TWO}\n[model]\nfidelity = '{fidelity}'\nfailures = 0.1\n");
        let outcome = outcome(&text);
        assert!(outcome.done, "{fidelity}");
        let [a, b] = &outcome.frameworks[..] else { panic!() };
        assert_eq!((a.submitted, b.submitted, a.left, b.left), (200, 200, 0, 0));
        // Without retries, one in ten of the tasks of `a` is lost; `b` has retries.
        assert!(a.finished < 195 && a.finished + a.failed == 200, "{a:?}");
        assert!(b.finished == 200 && b.failed > 5, "{b:?}");
        assert!(a.wait.mean > 5.0 && b.start.max < 1.0, "{a:?} {b:?}");
        let window = &outcome.windows[0];
        assert!(window.unfairness.contended > 0.2 && window.unfairness.jain > 0.9, "{window:?}");
        assert!(window.utilisation[0].1 > 0.5, "{window:?}");
    }
}

#[test]
fn quota_and_weights_hold() {
    let heavy = TWO.replace("poisson = \"2s\"\ncount = 100\ntasks = 2", "at = \"0s\"\ntasks = 200");
    let weighted = outcome(&format!("{heavy}\n[roles.a]\nweight = 3\n[[windows]]\nname='w'\nfrom='10s'\nto='60s'"));
    let shares = &weighted.windows[0].shares;
    assert!((shares[0] / shares[1] - 3.0).abs() < 0.6, "{shares:?}");
    let limited =
        outcome(&format!("{heavy}\n[roles.a]\nlimit = 'cpus:4'\n[[windows]]\nname='w'\nfrom='10s'\nto='60s'"));
    let shares = &limited.windows[0].shares;
    assert!((shares[0] - 0.125).abs() < 0.01 && shares[1] > 0.7, "{shares:?}");
}

#[test]
fn windows_do_not_depend_on_the_sample_interval() {
    // With tasks of a second and samples every seven seconds, the measured use must still equal the work done.
    let text = TWO.replace("exponential 20s", "1s").replace("time = \"20s\"", "time = \"1s\"");
    let text = text.replace("until_done = true", "sample = '7s'").replace("20m", "10m");
    let outcome = outcome(&text);
    let window = &outcome.windows[0];
    for (framework, share) in outcome.frameworks.iter().zip(&window.shares) {
        // A task uses 1 of 32 cores for a second and a few milliseconds.
        let done = framework.finished as f64 / 32.0 / outcome.seconds;
        assert!((share / done - 1.0).abs() < 0.05, "{}: {share}, not {done}", framework.name);
    }
    let used: f64 = window.shares.iter().sum();
    assert!((window.utilisation[0].1 - used).abs() < 1e-9, "{window:?}");
}

#[test]
fn agents_of_a_region_take_part() {
    let outcome = outcome(&TWO.replace("count = 4", "count = 4\nregion = 'r'\nzone = 'z'"));
    assert!(outcome.done, "{:?}", outcome.frameworks);
}

#[test]
fn new_jobs_do_not_change_a_decision_in_progress() {
    // Jobs arrive far more often than the framework decides; each decision waits for the end of the present one, and
    // takes its own time.
    let text = TWO.replace(
        "name = \"b\"\nrole = \"b\"",
        "name = \"b\"\nrole = \"b\"\nconduct = { think = '10s', refuse = '1s' }",
    );
    let text = text.replacen("tasks = 200", "tasks = 1", 1);
    let outcome = outcome(&text);
    let b = &outcome.frameworks[1];
    assert!(outcome.done && b.finished == 200, "{b:?}");
    assert!((12.0..40.0).contains(&b.wait.mean) && b.wait.max < 60.0, "{:?}", b.wait);
}

#[test]
fn faults_are_survived_and_reported() {
    let faults = "[[faults]]\nwhat = 'failover'\nat = '30s'\nfor = '2s'\n\
        [[faults]]\nwhat = 'reboot'\nwho = 'agent'\ncount = 2\nevery = '40s'\nfrom = '45s'\nuntil = '2m'\nfor = '15s'\n\
        [[faults]]\nwhat = 'partition'\nwho = 'agent0'\npoisson = '50s'\nuntil = '3m'\nfor = '3s'\n\
        [[faults]]\nwhat = 'stall'\nwho = 'b'\nat = '60s'\nfor = '5s'\n\
        [[faults]]\nwhat = 'slow-disk'\nwho = 'master'\nat = '10s'\nfor = '1m'\nby = '100ms'\n";
    let retried = TWO.replacen("time = \"exponential 20s\"", "time = \"exponential 20s\"\nretries = 9", 1);
    let retried = retried.replace("retries = 3", "retries = 9");
    let (calm, rough) = (outcome(&retried), outcome(&format!("{retried}\n{faults}")));
    let failed = |outcome: &Outcome| outcome.frameworks.iter().map(|framework| framework.failed).sum::<u64>();
    assert!(rough.done && calm.done, "{:?}", rough.frameworks);
    assert!(failed(&calm) == 0 && failed(&rough) > 5, "{:?}", rough.frameworks);
    assert!(rough.seconds > calm.seconds, "{} {}", rough.seconds, calm.seconds);
    assert_eq!(rough.digest, outcome(&format!("{retried}\n{faults}")).digest);
}

#[test]
fn a_framework_follows_its_script() {
    // The framework first holds all offers, then releases them and takes none for a while, then works normally, and
    // leaves.
    let script = "name = \"b\"\nrole = \"b\"\nlike = 'hoarder'\nconduct = { think = '1h' }\nscript = [\
        { at = '60s', do = 'suppress' }, { at = '61s', do = 'give-back', conduct = { hoard = false, think = '0s' } },\
        { at = '2m', do = 'revive' }, { at = '4m', do = 'leave' }]\n";
    let text = TWO.replace("name = \"b\"\nrole = \"b\"", script).replace("until_done = true", "").replace("20m", "5m");
    let outcome = outcome(&text);
    let (series, b) = (&outcome.series, &outcome.frameworks[1]);
    let held = |from: usize, to: usize| series.tracks[1].held[from..to].iter().copied().fold(0.0, f64::max);
    assert!(held(30, 59) > 0.1 && held(63, 119) == 0.0, "{} {}", held(30, 59), held(63, 119));
    let used = |at: usize| series.tracks[1].share[at];
    assert!(used(115) == 0.0 && used(150) > 0.1 && b.finished > 0, "{b:?}");
    // No further task ends after the framework has left.
    assert!(b.finished < 200 && b.offers_received > 0, "{b:?}");
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let text = |outcome: &Outcome| format!("{outcome:?}");
    assert_eq!(text(&outcome(TWO)), text(&outcome(TWO)));
    let other = outcome(&TWO.replace("name = \"two\"", "name = \"two\"\nseed = 2"));
    assert_ne!(other.digest, outcome(TWO).digest);
}

#[test]
fn bad_scenarios_are_refused_with_their_line() {
    let wrong = |from: &str, to: &str| {
        let text = TWO.replacen(from, to, 1);
        Scenario::read(&text, Path::new("x.toml")).unwrap_err().to_string()
    };
    for (from, to, start, words) in [
        ("count = 4", "cout = 4", "x.toml:7:", "unknown field `cout`"),
        ("count = 4", "count = 0", "x.toml:6:", "agents"),
        ("count = 4", "count = 4\nfailures = 2", "x.toml:8:", "must be a share from 0 to 1"),
        ("cpus:8;mem:8192", "cpus:x", "x.toml:8:", "resources"),
        ("tasks = 200", "tasks = 0", "x.toml:15:", "tasks"),
        ("at = \"0s\"", "", "x.toml:13:", "exactly one of"),
        ("exponential 20s", "gauss 20s", "x.toml:17:", "is not a distribution"),
        ("duration = \"20m\"", "duration = \"0s\"", "x.toml:3:", "more than 0"),
        ("name = \"b\"", "name = \"a\"", "x.toml:20:", "another framework"),
        ("until_done = true", "model.failures = 1.5", "x.toml:4:", "must be a share from 0 to 1"),
        ("until_done = true", "roles.a.weight = 0", "x.toml:4:", "must be positive"),
        (
            "until_done = true",
            "roles.a = { guarantee = 'cpus:8;mem:64', limit = 'cpus:4' }",
            "x.toml:4:",
            "more cpus is guaranteed than",
        ),
        ("until_done = true", "roles.a.limit = 'cpus:0;mem:64'", "x.toml:4:", "must be more than 0"),
        ("duration = \"20m\"", "duration = \"20x\"", "x.toml:3:", "'20x' is not a duration"),
        (
            "until_done = true",
            "faults = [{ what = 'crash', who = 'agnt', at = '1s', for = '1s' }]",
            "x.toml:4:",
            "agent0",
        ),
        (
            "until_done = true",
            "faults = [{ what = 'reboot', who = 'b', at = '1s', for = '1s' }]",
            "x.toml:4:",
            "partition",
        ),
        (
            "until_done = true",
            "faults = [{ what = 'crash', who = 'agent', at = '1s' }]",
            "x.toml:4:",
            "length of the fault",
        ),
        (
            "until_done = true",
            "faults = [{ what = 'cut', who = 'agent', poisson = '1us' }]",
            "x.toml:4:",
            "100000 at most",
        ),
        (
            "until_done = true",
            "faults = [{ what = 'cut', who = 'agent', every = '1ms', count = 8 }]",
            "x.toml:4:",
            "every: ",
        ),
        ("until_done = true", "faults = [{ what = 'flood', at = '1s' }]", "x.toml:4:", "slow-disk"),
        ("until_done = true", "faults = [{ what = 'failover', for = '1s' }]", "x.toml:4:", "exactly one of"),
        ("poisson = \"2s\"", "trace = 'x.csv'\nshape = 'alibaba'", "x.toml:24:", "google-2011"),
        ("poisson = \"2s\"", "poisson = '2s'\nmachine = 'mem:1'", "x.toml:24:", "is valid only with `trace`"),
        ("until_done = true", "repetitions = 1000000000", "x.toml:4:", "must be 1 to 1000"),
        ("role = \"a\"", "options = { a = 1 }", "x.toml:12:", "set `bundled`"),
        ("tasks = 200", "options = { a = 1 }", "x.toml:15:", "set `bundled`"),
        ("role = \"a\"", "bundled = 'x'\nlike = 'spark'", "x.toml:13:", "has fixed behaviour"),
        ("role = \"a\"", "bundled = 'x'\nconduct = { hold = '1s' }", "x.toml:13:", "has fixed behaviour"),
    ] {
        let why = wrong(from, to);
        assert!(why.starts_with(start) && why.contains(words), "{to}: {why}");
    }
}

#[test]
fn sweeps_make_points() {
    use crate::scenario::points;
    let text = format!("{TWO}\n[sweep]\n'frameworks.a.conduct.refuse' = ['1s', '5s']\nseed = [1, 2, 3]");
    let all = points(&text, Path::new("x.toml")).unwrap();
    assert_eq!(all.len(), 6);
    assert_eq!(all[4].values[0], ("frameworks.a.conduct.refuse".to_owned(), "5s".to_owned()));
    assert_eq!(all[4].scenario.seed, 2);
    let both = format!("{TWO}\n[sweep]\n'seed + repetitions' = [2, 3]");
    let both = points(&both, Path::new("x.toml")).unwrap();
    assert_eq!((both.len(), both[1].scenario.seed, both[1].scenario.repetitions), (2, 3, 3));
    for (sweep, words) in [
        ("'frameworks.x.start' = ['1s']", "no entry 'x'"),
        ("seed = []", "no values"),
        ("'agents.0.cout' = [1]", "unknown field"),
    ] {
        let why = points(&format!("{TWO}\n[sweep]\n{sweep}"), Path::new("x.toml")).unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }
    let many: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    let fields = ["seed", "repetitions", "duration", "sample", "name"];
    let sweep: Vec<String> = fields.iter().map(|field| format!("{field} = [{}]", many.join(","))).collect();
    let text = format!("{TWO}\n[sweep]\n{}", sweep.join("\n"));
    let why = points(&text, Path::new("x.toml")).unwrap_err().to_string();
    assert!(why.contains("10510100501 points; at most 10000 are allowed"), "{why}");
}

#[test]
fn every_published_experiment_can_be_run() {
    let directory = Path::new("../../lab/papers");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "toml")) {
        let text = std::fs::read_to_string(&file).unwrap();
        if text.contains("\nreplay = ") {
            // A scenario with `replay` is about a framework's policies alone, without a master; `cargo xtask papers`
            // runs it.
            continue;
        }
        let points = crate::scenario::points(&text, &file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let stem = file.file_stem().unwrap().to_str().unwrap();
        assert_eq!(points[0].scenario.name, stem, "results of a scenario go into a directory of its name");
        count += 1;
    }
    assert!(count >= 10, "{count} scenarios");
}

#[test]
fn jobs_of_a_chain_come_one_after_another_and_are_measured_by_name() {
    let text = TWO
        .replace("at = \"0s\"", "chain = \"30s\"\nfrom = \"10s\"\nname = \"large\"\ncount = 3")
        .replace("exponential 20s", "20s");
    let outcome = outcome(&text);
    let a = &outcome.frameworks[0];
    let (name, job) = &a.kinds[0];
    assert_eq!((name.as_str(), job.count, a.submitted, a.left), ("large", 3, 600, 0));
    // No job waits in the queue behind another, and there is a pause between them.
    assert!(a.wait.max < job.max, "{a:?}");
    assert!(outcome.seconds > 10.0 + 3.0 * job.mean + 2.0 * 30.0, "{} {a:?}", outcome.seconds);
}

#[test]
fn small_jobs_do_not_wait_for_large_ones_where_jobs_are_treated_fairly() {
    let small =
        "[[frameworks.jobs]]\nat = \"30s\"\ntasks = 2\nname = \"small\"\nneeds = \"cpus:1;mem:512\"\ntime = \"10s\"\n";
    let text = TWO.replacen("\n[[frameworks]]\nname = \"b\"", &format!("\n{small}\n[[frameworks]]\nname = \"b\""), 1);
    let first = outcome(&text);
    let fair = outcome(&text.replacen("role = \"a\"\n", "role = \"a\"\nconduct = { fair_jobs = true }\n", 1));
    let time = |outcome: &Outcome| outcome.frameworks[0].kinds[0].1.mean;
    assert!(time(&fair) < 0.6 * time(&first), "{} {}", time(&fair), time(&first));
}

#[test]
fn a_manager_holds_back_what_does_not_fit() {
    let text = |release: &str| format!("{TWO}\n[manager]\nrelease = '{release}'\n");
    let (all, demand) = (outcome(&text("all")), outcome(&text("demand-drf")));
    assert!(all.done && demand.done);
    let apart = |outcome: &Outcome| (outcome.frameworks[0].wait.mean - outcome.frameworks[1].wait.mean).abs();
    assert!(apart(&demand) < apart(&all), "{} {}", apart(&demand), apart(&all));
}
