//! Tests requests that a page of another origin, or a file that a task has written, can cause in a browser.

use std::process::Stdio;

use serde_json::Value;

use crate::process::Process;
use crate::support::{Cluster, Daemon, Directory, call, exchange, tepui, wait_for};

/// Sends a request with these headers and returns the answer.
fn ask(address: &str, method: &str, path: &str, headers: &str) -> String {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n");
    exchange(address, &format!("{head}Content-Length: 0\r\n\r\n")).unwrap()
}

/// Returns the address of the cluster's agent.
fn agent_of(master: &str) -> String {
    let agents = call(master, "GET", "/slaves").unwrap();
    agents["slaves"][0]["pid"].as_str().unwrap().rsplit('@').next().unwrap().to_owned()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn pages_of_other_origins_change_nothing() {
    let cluster = Cluster::start("origins", 1, "cpus:1;mem:128;disk:128");
    let master = &cluster.master;
    let paths = ["/teardown", "/reserve", "/quota", "/weights", "/api/v1", "/api/v1/scheduler", "/machine/down"];
    for address in [master, &agent_of(master)] {
        for path in paths.iter().filter(|path| address == master || path.ends_with("/v1")) {
            for origin in ["http://evil.example", "null", "https://evil.example:5050"] {
                let answer = ask(address, "POST", path, &format!("Origin: {origin}\r\n"));
                assert_eq!(status(&answer), "403", "{origin} {path}: {answer}");
                assert!(answer.contains(origin), "{answer}");
            }
            let own = ask(address, "POST", path, &format!("Origin: http://{address}\r\n"));
            let behind_proxy = "Origin: https://mesos.example\r\nX-Forwarded-Host: mesos.example\r\n";
            let forwarded = ask(address, "POST", path, behind_proxy);
            assert!(status(&own) != "403" && status(&forwarded) != "403", "{own} {forwarded}");
        }
        let read = ask(address, "GET", "/version", "Origin: http://evil.example\r\n");
        assert_eq!(status(&read), "200", "{read}");
        assert!(!read.to_lowercase().contains("access-control"), "a page of another origin cannot read it: {read}");
        // This endpoint changes something with any method.
        let toggle = |headers: &str| ask(address, "GET", "/logging/toggle?level=1&duration=1secs", headers);
        for headers in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
            assert_eq!(status(&toggle(headers)), "403", "{headers}");
        }
        for headers in ["", &format!("Origin: http://{address}\r\n"), "Sec-Fetch-Site: none\r\n"] {
            assert_eq!(status(&toggle(headers)), "200", "{headers}");
        }
        let script = ask(address, "GET", "/version?jsonp=alert(1)//", "");
        assert_eq!(status(&script), "400", "{script}");
        assert!(script.contains("it must be the name of a function"), "{script}");
        assert!(ask(address, "GET", "/version?jsonp=a.b", "").contains("\r\n\r\na.b({"));
    }
}

#[test]
fn callbacks_can_be_switched_off() {
    let directory = Directory::new("origins-jsonp");
    let words = ["master", "--ip=127.0.0.1", "--port=0", "--registry=in_memory", "--no-jsonp"].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain([format!("--work_dir={}", directory.join("m"))]).collect();
    let mut master = Daemon::start(&directory.path().join("m.log"), &words, &[]);
    let address = master.address().expect("the master runs");
    let script = ask(&address, "GET", "/state?jsonp=take", "");
    assert_eq!(status(&script), "403", "{script}");
    assert!(script.contains("--jsonp=false"), "{script}");
    assert_eq!(status(&ask(&address, "GET", "/state", "")), "200");
}

#[test]
fn files_of_tasks_are_saved_and_never_shown() {
    let cluster = Cluster::start("downloads", 1, "cpus:1;mem:128;disk:128");
    let agent = &agent_of(&cluster.master);
    let master = format!("--master={}", cluster.master);
    let write =
        "--command=echo '<script>1</script>' > \"$(printf 'r\\n.html')\"; truncate -s 4G big; touch done; sleep 1000";
    let mut command = tepui();
    command.args(["execute", &master, "--name=writes", "--resources=cpus:0.1;mem:32", write]).stdout(Stdio::null());
    let _task = Process::start(&mut command);
    let directory = wait_for("the task's sandbox", || {
        let state = call(agent, "GET", "/state")?;
        let directory = state["frameworks"][0]["executors"][0]["directory"].as_str()?.to_owned();
        let found = call(agent, "GET", &format!("/files/browse?path={directory}"))?;
        let has = |name: &str| found.as_array().is_some_and(|all| all.iter().any(|file| ends(file, name)));
        has("/done").then_some(directory)
    });
    let answer = ask(agent, "GET", &format!("/files/download?path={directory}/r%0A.html"), "");
    assert_eq!(status(&answer), "200", "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "<script>1</script>\n");
    let head = head.to_lowercase();
    assert!(head.contains("content-disposition: attachment; filename=r_.html; filename*=utf-8''r%0a%2ehtml"), "{head}");
    assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'; sandbox"), "{head}");
    // A file of any size can be saved: the agent reads it while it sends it.
    let large = ask(agent, "HEAD", &format!("/files/download?path={directory}/big"), "").to_lowercase();
    assert!(status(&large) == "200" && large.contains("content-length: 4294967296\r\n"), "{large}");
}

fn ends(file: &Value, name: &str) -> bool {
    file["path"].as_str().is_some_and(|path| path.ends_with(name))
}
