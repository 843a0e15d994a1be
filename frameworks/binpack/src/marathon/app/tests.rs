//! Definitions there and back, and those that are refused.

use super::*;

fn app(given: Value) -> App {
    App::new(&given).unwrap()
}

#[test]
fn a_definition_survives_the_way_there_and_back() {
    let full = app(json!({
        "id": "/prod/web", "cmd": "serve", "instances": 3, "cpus": 0.5, "mem": 64,
        "env": {"A": "1", "N": 2}, "labels": {"team": "x"}, "user": "nobody",
        "constraints": [["hostname", "UNIQUE"], ["rack", "LIKE", "r[12]"]],
        "fetch": [{"uri": "http://x/y.tgz"}], "portDefinitions": [{"port": 10105, "name": "http"}, {}],
        "healthChecks": [{"protocol": "MESOS_HTTP", "path": "/ping", "portIndex": 1, "intervalSeconds": 5}],
        "upgradeStrategy": {"minimumHealthCapacity": 0.5, "maximumOverCapacity": 0.25},
        "taskKillGracePeriodSeconds": 7, "container": {"type": "MESOS", "docker": {"image": "busybox"}},
    }));
    let job = full.job("prod_web").unwrap();
    assert_eq!((job.count, job.need.ports(), job.kind), (3, 2, crate::job::Kind::Service));
    let back = App::of(&job);
    assert_eq!(back.job("prod_web").unwrap(), job);
    let shown = Value::Object(back.shown());
    assert_eq!(shown["ports"][0], 10105);
    assert_eq!(shown["env"], json!({"A": "1", "N": "2"}));
    assert_eq!(shown["labels"], json!({"team": "x"}), "what is kept for Marathon's clients is not shown");
    assert_eq!(shown["constraints"], json!([["hostname", "UNIQUE"], ["rack", "LIKE", "r[12]"]]));
}

#[test]
fn an_update_changes_what_it_names() {
    let first = app(json!({"id": "web", "cmd": "a", "ports": [0, 0], "labels": {"k": "v"}}));
    let read_only = json!({"instances": 2, "version": "then", "tasksRunning": 5, "cmd": null});
    let second = first.clone().with(&read_only).unwrap();
    assert_eq!(second, App { instances: 2, ..first.clone() });
    let third = second.with(&json!({"args": ["x"], "ports": [1]})).unwrap();
    assert_eq!((third.cmd.clone(), third.definitions().len()), (None, 1));
}

#[test]
fn what_cannot_be_done_is_named() {
    for (given, path) in [
        (json!({"cmd": "a", "dependencies": ["/b"]}), "/dependencies"),
        (json!({"cmd": "a", "container": {"volumes": [{}]}}), "/container/volumes"),
        (json!({"cmd": "a", "healthChecks": [{}, {}]}), "/healthChecks"),
    ] {
        let problem = app(given).job("x").unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.details[0].0.as_str()), (422, path));
    }
    for (given, word) in [
        (json!({"cpus": 1}), "command"),
        (json!({"cmd": "a", "cpus": -1}), "cpus"),
        (json!({"cmd": "a", "constraints": [["rack", "NEAR", "x"]]}), "NEAR"),
        (json!({"cmd": "a", "healthChecks": [{"protocol": "SMTP"}]}), "SMTP"),
    ] {
        let problem = app(given).job("x").unwrap_err();
        assert!(
            problem.details.iter().any(|(_, rule)| rule.to_lowercase().contains(&word.to_lowercase())),
            "{problem:?}"
        );
    }
    for given in [json!({"cmd": 7}), json!({"colour": "red"}), json!([])] {
        assert_eq!(App::new(&given).unwrap_err().status.as_u16(), 400);
    }
}
