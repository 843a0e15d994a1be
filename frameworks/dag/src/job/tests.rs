//! Tests of job files: what they can contain, and which faults are reported.

use super::*;

fn read_toml(text: &str) -> Result<Vec<Job>, Faults> {
    read("jobs.toml", text, Syntax::Toml)
}

/// Returns the faults of a file, as lines.
fn faults(text: &str) -> Vec<String> {
    read_toml(text).unwrap_err().to_string().lines().map(str::to_owned).collect()
}

const FULL: &str = r#"
name = "count"
shared = "/data/shared/"
keep = "none"
priority = "high"
deadline = "1h"
weight = 2.5

[[stage]]
name = "reduce"
argv = ["sort", "-m", "{input}"]
input = { stage = "map", by = "partition" }
outputs = ["sums"]

[[stage]]
name = "map"
command = "tr ' ' '\\n' | split-by-hash $TEPUI_OUTPUT/words {count}"
input = { files = ["/data/*.txt", "/more/a"], by = "bytes", size = "16MB" }
stdin = true
outputs = ["words.{partition}"]
partitions = 8
cpus = 0.5
mem = 64
env = { A = "b", N = 3 }
uris = ["http://host/a.tgz"]
user = "nobody"
retries = 3
restart = { first = "2s" }
time_limit = "10m"
approximate = { drop = 0.3, error = 0.05, value = "words.{partition}", estimate = "count" }

[[stage]]
name = "sweep"
after = ["reduce"]
command = "x"
input = { range = [0, 100], size = 7 }
"#;

#[test]
fn what_names_its_bytes_gets_parts_of_one_file() {
    let spans = |fields: &str| {
        let text = format!("name = 'j'\n[[stage]]\nname = 's'\n{fields}\n");
        read_toml(&text).unwrap()[0].stages[0].spans_files()
    };
    let lines = "input = { files = '/d/*', by = 'lines', size = 3 }\n";
    assert!(!spans(&format!("{lines}command = 'wc'")));
    assert!(spans(&format!("{lines}stdin = true\ncommand = 'wc; echo $TEPUI_INPUTS'")));
    for named in ["{input}", "{offset}", "$TEPUI_LENGTH", "${TEPUI_INPUT}"] {
        assert!(!spans(&format!("{lines}stdin = true\ncommand = 'wc {named}'")), "{named}");
        assert!(!spans(&format!("{lines}stdin = true\nargv = ['wc', 'x{named}']")), "{named}");
    }
    assert!(spans("input = { files = '/d/*', by = 'files', size = 3 }\ncommand = 'wc {input}'"));
}

#[test]
fn all_that_a_file_can_say() {
    let jobs = read_toml(FULL).unwrap();
    let [job] = jobs.as_slice() else { panic!() };
    assert_eq!((job.name.as_str(), job.shared.as_deref(), job.priority), ("count", Some("/data/shared"), Class::High));
    assert_eq!(job.keep, Keep::None);
    assert_eq!((job.deadline, job.weight), (Some(Duration::from_secs(3_600)), 2.5));
    let names: Vec<&str> = job.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["map", "reduce", "sweep"], "each after those that it waits for");
    let [map, reduce, sweep] = &job.stages[..] else { panic!() };
    let files = FilesInput {
        files: vec!["/data/*.txt".into(), "/more/a".into()],
        by: SplitUnit::Bytes,
        size: Size::Fixed(16 << 20),
        record: None,
    };
    assert_eq!(map.input, Input::Files(files));
    assert_eq!((map.partitions, map.retries, map.need), (Some(8), 3, Need::of(0.5, 64.0)));
    assert!(map.stdin && map.needs_runner());
    let approximate = map.approximate.as_ref().unwrap();
    assert_eq!((approximate.drop, approximate.error, approximate.estimate), (0.3, 0.05, Statistic::Count));
    assert_eq!(reduce.after, [0]);
    assert_eq!(reduce.input, Input::Stages(StagesInput { stages: vec![0], by: Grouping::Partition, size: 1 }));
    assert_eq!((sweep.after.as_slice(), sweep.needs_runner()), (&[1][..], false));
    // The saved form is read again.
    let kept = serde_json::to_string(job).unwrap();
    assert_eq!(serde_json::from_str::<Job>(&kept).unwrap(), *job);
}

#[test]
fn sizes_are_numbers_times_and_bytes() {
    let size = |by: &str, size: &str| {
        let text = format!(
            "name = 'j'\n[[stage]]\nname = 's'\ncommand = 'x'\ninput = {{ files = '/a', by = '{by}', size = {size} }}\n"
        );
        read_toml(&text).map(|jobs| match &jobs[0].stages[0].input {
            Input::Files(input) => input.size,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(size("bytes", "'64MB'"), Ok(Size::Fixed(64 << 20)));
    assert_eq!(size("lines", "1000"), Ok(Size::Fixed(1_000)));
    assert_eq!(size("lines", "'30s'"), Ok(Size::Target(Duration::from_secs(30))));
    assert_eq!(size("files", "'auto'"), Ok(Size::Auto));
    for wrong in ["0", "-1", "'soon'", "'64MB'", "'7'", "true"] {
        let error = size("lines", wrong).unwrap_err().to_string();
        assert!(
            error.starts_with("jobs.toml:5:") && error.contains("size must be a number above 0"),
            "{wrong}: {error}"
        );
    }
}

#[test]
fn circles_and_unknown_stages_are_named() {
    let circle = "name = 'j'\n[[stage]]\nname = 'a'\nafter = 'c'\ncommand = 'x'\n[[stage]]\nname = 'b'\nafter = 'a'\ncommand = 'x'\n\
                  [[stage]]\nname = 'c'\nafter = ['b']\ncommand = 'x'\n";
    let said = faults(circle);
    assert_eq!(said.len(), 1);
    assert!(
        said[0].contains(": stages wait for each other: ") && said[0].contains("a after c after b after a"),
        "{said:?}"
    );
    let unknown = "name = 'j'\n[[stage]]\nname = 'first'\ncommand = 'x'\n[[stage]]\nname = 'b'\nafter = ['frist', 'x']\ncommand = 'x'\n";
    assert_eq!(
        faults(unknown),
        ["jobs.toml:7:10: there is no stage 'frist'; did you mean 'first'?", "jobs.toml:7:19: there is no stage 'x'"]
    );
    let own = "name = 'j'\n[[stage]]\nname = 'a'\nafter = 'a'\ncommand = 'x'\n";
    assert_eq!(faults(own), ["jobs.toml:2:1: stages wait for each other: a after a"]);
}

#[test]
fn every_fault_has_its_line_and_its_rule() {
    let stage = |line: &str| format!("name = 'j'\n[[stage]]\nname = 's'\ncommand = 'x'\n{line}\n");
    for (line, rule) in [
        ("after = 3", "after must be a list"),
        ("tasks = 0", "tasks must be 1 to 1000000, and this is 0"),
        ("argv = ['x']", "a stage has either a command or a argv, not both"),
        ("input = { files = 'a' }", "'a' must be an absolute path"),
        ("input = { files = '/a[' }", "'/a[' is not a pattern"),
        ("input = { files = [] }", "files must be 1 to"),
        ("input = { files = '/a', range = [0, 1] }", "an input has one of files, range and stage"),
        ("input = { files = '/a', by = 'words' }", "by must be files, lines, records or bytes"),
        ("input = { files = '/a', by = 'records' }", "records need record"),
        ("input = { files = '/a', record = '>' }", "record is for by = \"records\""),
        ("input = { range = [3, 3] }", "range must be [FROM, TO]"),
        ("input = { range = [0, 9000000] }", "a stage has at most 1000000 tasks"),
        ("input = { stage = 's2' }", "there is no stage 's2'"),
        ("input = { range = [0, 1] }\ntasks = 2", "either a number of tasks or an input"),
        ("stdin = true", "stdin is for stages whose input is files"),
        (
            "constraints = [['hostname', 'unique']]",
            "constraint 'hostname unique': a stage can have equal, like and unlike",
        ),
        ("constraints = [['rack', 'near', 'r1']]", "'near' is not an operator"),
        ("partitions = 3", "partitions is for stages with outputs"),
        ("outputs = ['a']\npartitions = 2", "an output contains {partition} if, and only if"),
        ("outputs = ['../a']", "relative to the output directory"),
        ("outputs = ['a', 'a']", "'a' is named twice"),
        ("outputs = ['a_b', 'a/b']", "'a/b' and 'a_b' have the same name for readers, 'a_b'"),
        ("approximate = { drop = 1 }", "drop must be 0 to 0.99"),
        ("approximate = true\ninput = { files = '/a', by = 'lines' }", "no task is dropped"),
        ("approximate = {}\ninput = { files = '/a', size = 'auto' }", "approximate needs a size that is a number"),
        ("approximate = true\ninput = { range = [0, 9], size = '30s' }", "approximate needs a size that is a number"),
        ("approximate = true\ninput = { stage = 's' }", "approximate is for stages that do not read stages"),
        ("approximate = 1", "approximate must be true or a table"),
        (
            "image = 'i'\ninput = { files = ['/a/b', '/*/c'] }",
            "files must be below a directory, which becomes a volume: '/*/c'",
        ),
        ("containerizer = 'docker'", "containerizer = \"docker\" needs an image"),
        ("image = 'i'\ncontainerizer = 'rkt'", "containerizer must be \"mesos\" or \"docker\", and this is \"rkt\""),
        ("image = 'i'\ncontainerizer = 'docker'\nuser = 'u'", "user is for containerizer = \"mesos\""),
        ("keep = 'all'", "'keep' is a field of a job: it must precede the stages"),
        ("deadline = 3", "'deadline' is a field of a job: it must precede the stages"),
        ("retires = 3", "there is no field 'retires'; did you mean 'retries'?"),
    ] {
        let said = faults(&stage(line)).join("\n");
        assert!(said.contains(rule), "{line}: {said}");
        assert!(said.starts_with("jobs.toml:"), "{said}");
    }
    let whole = |text: &str| faults(text).join("\n");
    assert!(whole("name = 'j'\ncommand = 'x'\n").contains("'command' is a field of a stage"));
    assert!(whole("name = 'j'\n").contains("a job needs stages"));
    assert!(whole("name = 'j'\nshared = '//'\n").contains("shared must be a directory of its own"));
    assert!(whole("name = 'j'\nkeep = 'some'\n").contains("keep must be all, outputs or none, and this is \"some\""));
    assert!(whole("").contains("there is no job; write [[job]] with a name and stages"));
    assert!(whole("name = 'j'\nweight = 0\n[[stage]]\nname='s'\ncommand='x'").contains("weight must be"));
    assert!(whole("name = 'j'\nshared = 'x'\n[[stage]]\nname='s'\ncommand='x'").contains("absolute path"));
    assert!(whole("name = 'j'\n[[stage]]\nname='s.t'\ncommand='x'").contains("the name of a stage has no '.'"));
    let twice = "name = 'j'\n[[stage]]\nname='s'\ncommand='x'\n[[stage]]\nname='s'\ncommand='x'\n";
    assert!(whole(twice).contains("a second stage has the name 's'"));
}

#[test]
fn readers_must_have_something_to_read() {
    let text = |map: &str, reduce: &str| {
        format!(
            "name = 'j'\n[[stage]]\nname = 'map'\ncommand = 'x'\n{map}\n[[stage]]\nname = 'reduce'\ncommand = 'x'\ninput = {reduce}\n"
        )
    };
    let said = |map: &str, reduce: &str| faults(&text(map, reduce)).join("\n");
    assert!(said("", "{ stage = 'map' }").contains("reads stage 'map', which has no outputs"));
    assert!(
        said("outputs = ['a']", "{ stage = 'map', by = 'partition' }").contains("partitions of 'map', which has none")
    );
    assert!(
        said("outputs = ['a']", "{ stage = ['map', 'map'], by = 'task' }").contains("by = \"task\" is for one stage")
    );
    assert!(said("outputs = ['a']", "{ stage = 'map', size = 3 }").contains("size is for by = \"task\""));
    assert!(read_toml(&text("outputs = ['a']", "{ stage = 'map', by = 'task', size = 3 }")).is_ok());
}

#[test]
fn json_is_read_as_well() {
    let text = r#"[{ "name": "j", "stage": { "name": "s", "argv": ["true"], "tasks": 3 } }]"#;
    let jobs = read("jobs.json", text, Syntax::Json).unwrap();
    assert_eq!(jobs[0].stages[0].input, Input::Tasks(3));
    assert_eq!(jobs[0].stages[0].run, Run::Program(vec!["true".into()]));
}

#[test]
fn numbers_of_tasks_are_known_where_no_file_is_looked_at() {
    assert_eq!(read_toml(FULL).unwrap()[0].task_counts(), None);
    let text = "name = 'j'\n[[stage]]\nname = 'a'\ncommand = 'x'\ninput = { range = [0, 10], size = 3 }\noutputs = ['{partition}']\npartitions = 5\n\
                [[stage]]\nname = 'b'\ncommand = 'x'\ninput = { stage = 'a', by = 'task', size = 3 }\noutputs = ['o']\n\
                [[stage]]\nname = 'c'\ncommand = 'x'\ninput = { stage = 'a', by = 'partition' }\n\
                [[stage]]\nname = 'd'\ncommand = 'x'\ninput = { stage = 'b' }\n[[stage]]\nname = 'e'\ncommand = 'x'\ntasks = 7\n";
    let job = &read_toml(text).unwrap()[0];
    let counts = job.task_counts().unwrap();
    let of = |name: &str| counts[job.stage(name).unwrap()];
    assert_eq!(["a", "b", "c", "d", "e"].map(of), [4, 2, 5, 1, 7]);
}
