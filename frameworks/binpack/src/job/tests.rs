//! Tests job files: valid contents, and faults.

use super::*;

fn toml(text: &str) -> Result<Vec<Job>, Faults> {
    read("jobs.toml", text, Syntax::Toml)
}

fn json(text: &str) -> Result<Vec<Job>, Faults> {
    read("jobs.json", text, Syntax::Json)
}

/// Returns the faults of a file, as lines.
fn faults(text: &str) -> Vec<String> {
    toml(text).unwrap_err().to_string().lines().map(str::to_owned).collect()
}

const FULL: &str = r#"
[[job]]
name = "web"
kind = "service"
count = 3
program = ["server", "--port", "$PORT0"]
cpus = 0.5
mem = 64
disk = 10
gpus = 0
ports = 1
env = { A = "b", N = 3 }
labels = { team = "x" }
uris = ["http://host/a.tgz", { value = "http://host/b", executable = true, output = "c" }]
user = "nobody"
constraints = [["hostname", "unique"], ["rack", "group_by", 2]]
policy = "tetris"
priority = 5
health = { http = "/health", port = 0, interval = "2s", timeout = 1, grace = "500ms", failures = 2 }
restart = { first = "2s", factor = 2, longest = "1m", steady = "30s" }
update = { min_healthy = 0.5, max_over = 0.25 }
kill_grace = "3s"

[[job]]
name = "mpi"
kind = "gang"
count = 4
command = "./rank"
gather = "10s"
ends = "first"
retries = 2
"#;

#[test]
fn everything_can_be_said() {
    let jobs = toml(FULL).unwrap();
    let (web, mpi) = (&jobs[0], &jobs[1]);
    assert_eq!((web.kind, web.count, web.need), (Kind::Service, 3, Need([500, 64_000, 10_000, 0, 1_000])));
    assert_eq!(web.run, Run::Program(vec!["server".into(), "--port".into(), "$PORT0".into()]));
    assert_eq!(web.env["N"], "3");
    assert_eq!(web.policy, Some(Policy::DotProduct));
    let health = web.health.as_ref().unwrap();
    assert_eq!(health.probe, Probe::Http { path: "/health".into(), port: 0 });
    assert_eq!((health.grace, health.timeout), (Duration::from_millis(500), Duration::from_secs(1)));
    assert_eq!(web.restart.wait(3), Duration::from_secs(8));
    assert_eq!(web.restart.wait(30), Duration::from_secs(60));
    assert!(web.uris[1].executable && web.uris[0].extract);
    assert_eq!((mpi.kind, mpi.gather, mpi.ends, mpi.retries), (Kind::Gang, Duration::from_secs(10), GangEnd::First, 2));
}

#[test]
fn json_says_the_same() {
    let one = json(r#"{"name": "a", "command": "true", "cpus": 0.5, "kill_grace": null}"#).unwrap();
    assert_eq!(one, toml("name = 'a'\ncommand = 'true'\ncpus = 0.5").unwrap());
    assert_eq!(json(r#"[{"name": "a", "command": "true", "cpus": 0.5}]"#).unwrap(), one);
    assert_eq!(json(r#"{"job": [{"name": "a", "command": "true", "cpus": 0.5}]}"#).unwrap(), one);
}

#[test]
fn a_job_is_kept_and_read_back() {
    for job in toml(FULL).unwrap() {
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
    }
}

#[test]
fn every_fault_is_named_with_its_place() {
    let text = "[[job]]\nname = 'a b'\ncomand = 'true'\ncpus = -1\nmem = nan\nports = 1.5\n\n[[job]]\ncommand = 'x'\n";
    let found = faults(text);
    assert_eq!(found.len(), 7, "{found:#?}");
    assert_eq!(found[0], "jobs.toml:1:1: a job needs a command, a program (a list, without a shell) or an image");
    assert!(found[1].starts_with("jobs.toml:2:8: 'a b' is not a name of a job"), "{}", found[1]);
    assert_eq!(found[2], "jobs.toml:3:1: there is no field 'comand'; did you mean 'command'?");
    assert_eq!(found[3], "jobs.toml:4:8: cpus must be above 0, 0.001 at least, and this is -1");
    assert_eq!(found[4], "jobs.toml:5:7: mem must be a number, and this is NaN");
    assert_eq!(found[5], "jobs.toml:6:9: ports must be a whole number, and this is 1.5");
    assert_eq!(found[6], "jobs.toml:8:1: a job needs a name");
    let faults = json("{\"name\": \"a\",\n \"command\": \"true\",\n \"cpus\": \"two\"}").unwrap_err();
    assert_eq!(faults.to_string(), "jobs.json:3:10: cpus must be a number, and this is a text");
}

/// Each line has a job's fields and the rule that they break.
#[test]
fn rules() {
    let cases = [
        ("cpus = 0", "cpus must be above 0, 0.001 at least, and this is 0"),
        ("cpus = 0.0001", "cpus must be above 0, 0.001 at least, and this is 0.0001"),
        ("mem = inf", "mem must be a number, and this is inf"),
        ("mem = 1e12", "mem must be at most 1000000000, and this is 1000000000000"),
        ("disk = -1", "disk must be 0 or more, and this is -1"),
        ("gpus = 0.5", "gpus must be a whole number, and this is 0.5"),
        ("ports = -1", "ports must be 0 to 1000, and this is -1"),
        (
            "kind = 'batch'\ncount = 2",
            "a job of the kind batch is one task; for more, write kind = \"array\", or no kind",
        ),
        ("kind = 'array'\ncount = 0", "count must be 1 to 100000, and this is 0"),
        ("kind = 'bach'", "'bach' is not a kind of job; take batch, array, service or gang"),
        ("kind = 1", "kind must be a text, and this is a number"),
        ("kind = 'service'\nretries = 1", "retries is not for a service: it is started again for as long as it exists"),
        ("gather = 3", "gather is for kind = \"gang\" only, and this is kind = \"batch\""),
        ("kind = 'gang'\ngather = 0", "gather must be above 0: for how long a gang may hold offers"),
        ("kind = 'gang'\nends = 'last'", "ends must be \"all\" or \"first\", and this is \"last\""),
        ("policy = 'best'", "'best' is not a policy; take"),
        ("program = ['a']", "a job has either a command or a program, not both"),
        ("env = { 'a=b' = 'c' }", "env: a variable's name has no '=' and no NUL character"),
        ("env = { a = [] }", "env: 'a' must be a text, and this is a list"),
        ("constraints = ['rack']", "a constraint is a list such as"),
        ("constraints = [['rack']]", "a constraint has two or three texts"),
        ("constraints = [['rack', 'like', '(']]", "constraint: '(' is not a regular expression"),
        ("health = { interval = 1 }", "health needs exactly one of command, http = \"/path\" and tcp = true"),
        ("health = { http = '/' }", "health asks at port 0 of the task, counted from 0, and ports is 0"),
        ("health = { command = 'x', interval = 0 }", "health: interval must be above 0"),
        ("restart = { factor = 0.5 }", "factor must be 1 to 100, and this is 0.5"),
        ("restart = { frist = 1 }", "there is no field 'frist'; did you mean 'first'?"),
        ("containerizer = 'docker'", "containerizer = \"docker\" needs an image"),
        ("containerizer = 'rkt'", "containerizer must be \"mesos\" or \"docker\", and this is \"rkt\""),
        ("network = 'bridge'", "network = \"bridge\" is Docker's"),
        ("ports = 1\ncontainer_ports = [80]", "container_ports need a network other than the host's"),
        ("network = 'n'\ncontainer_ports = [80]", "there are 1 container_ports, and the job has ports = 0"),
        ("network = 'n'\nports = 1\ncontainer_ports = [70000]", "container_ports are whole numbers from 0 to 65535"),
        ("docker = { force_pull = true }", "the table docker is for containerizer = \"docker\" only"),
        (
            "image = 'i'\ncontainerizer = 'docker'\ndocker = { parameters = ['x'] }",
            "a parameter is a list of two texts",
        ),
        ("time_limit = 0", "time_limit must be above 0"),
        ("kill_grace = 'soon'", "kill_grace must be a time such as"),
        ("kind = 'service'\nupdate = { max_over = 2 }", "max_over must be 0 to 1, and this is 2"),
        ("uris = [{ extract = true }]", "a URI needs a value"),
        ("priority = 1.5", "priority must be a whole number, and this is 1.5"),
        ("user = ''", "user must not be empty"),
    ];
    for (fields, rule) in cases {
        let found = faults(&format!("[[job]]\nname = 'a'\ncommand = 'true'\n{fields}\n"));
        assert_eq!(found.len(), 1, "{fields}: {found:?}");
        let (place, said) = found[0].split_once(": ").unwrap();
        assert!(place.starts_with("jobs.toml:") && said.starts_with(rule), "{fields}: {said}");
    }
}

#[test]
fn whole_files() {
    assert_eq!(faults(""), ["jobs.toml:1:1: there is no job; write [[job]] with a name and a command"]);
    assert!(faults("[[job]]\nname = \n")[0].starts_with("jobs.toml:2:"), "{:?}", faults("[[job]]\nname = \n"));
    assert!(json("{").unwrap_err().to_string().starts_with("jobs.json:1:"));
    assert!(json("3").unwrap_err().to_string().contains("a job file holds jobs, and this is a number"));
    assert!(json(r#"{"name": "a", "name": "b"}"#).unwrap_err().to_string().contains("'name' occurs twice"));
    assert!(json(&"[".repeat(100_000)).is_err());
    assert!(toml(&format!("a = {}", "[".repeat(100_000))).is_err());
    let twice = "[[job]]\nname = 'a'\ncommand = 'x'\n[[job]]\nname = 'a'\ncommand = 'x'\n";
    assert_eq!(faults(twice), ["jobs.toml:4:1: a second job has the name 'a'"]);
    let outside = "name = 'x'\n[[job]]\nname = 'a'\ncommand = 'x'\n";
    assert_eq!(faults(outside), ["jobs.toml:1:1: 'name' is outside of a job; fields of a job follow [[job]]"]);
}

#[test]
fn times() {
    let seconds = |text| parse_time(text).map(|d| d.as_secs_f64());
    assert_eq!(
        ["1.5s", "500ms", "2m", "1h", "3", "10secs"].map(seconds),
        [1.5, 0.5, 120.0, 3600.0, 3.0, 10.0].map(Some)
    );
    assert_eq!(["", "s", "1x", "2000000h"].map(seconds), [None; 4]);
}

#[test]
fn a_file_of_a_hundred_thousand_wrong_names_is_refused_soon() {
    let fields: Vec<String> = (0..200_000).map(|n| format!("\"comand{n}\":1")).collect();
    let text = format!("{{\"name\":\"a\",\"command\":\"x\",{}}}", fields.join(","));
    let faults = read("big.json", &text, Syntax::Json).unwrap_err();
    assert_eq!(faults.0.len(), 50);
    assert_eq!(faults.0[0].rule, "there is no field 'comand0'; did you mean 'command'?");
    let twice = r#"{"name": "a", "command": "x", "env": {"A": 1, "A": 2}}"#;
    assert_eq!(read("j.json", twice, Syntax::Json).unwrap_err().0[0].rule, "'A' occurs twice");
    let nested = "[".repeat(1 << 20);
    assert!(read("j.json", &nested, Syntax::Json).is_err());
    assert!(read("j.toml", &format!("a = {nested}"), Syntax::Toml).is_err());
}
