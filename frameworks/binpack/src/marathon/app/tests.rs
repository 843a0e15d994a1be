//! Tests the conversion of definitions in both directions, and definitions that are refused.

use super::*;
use crate::job::Containerizer;

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
fn bridged_containers_in_both_forms() {
    let mapping = json!({"containerPort": 80, "servicePort": 10007, "name": "http"});
    let old = json!({"id": "/a", "container": {"type": "DOCKER", "docker": {
        "image": "nginx", "network": "BRIDGE", "portMappings": [mapping, {}], "forcePullImage": true,
        "parameters": [{"key": "label", "value": "x=y"}],
    }}});
    let new = json!({"id": "/a", "networks": [{"mode": "container/bridge"}], "container": {
        "type": "DOCKER", "portMappings": [mapping, {}],
        "docker": {"image": "nginx", "forcePullImage": true, "parameters": [{"key": "label", "value": "x=y"}]},
    }});
    let (job, same) = (app(old).job("a").unwrap(), app(new).job("a").unwrap());
    assert_eq!(job, same);
    assert_eq!(job.need.ports(), 2);
    assert_eq!(
        job.container,
        crate::job::Container {
            containerizer: Containerizer::Docker,
            network: Network::Bridge,
            ports: vec![80, 0],
            force_pull: true,
            privileged: false,
            parameters: vec![("label".to_owned(), "x=y".to_owned())],
        }
    );
    let shown = App::of(&job).shown();
    assert_eq!(shown["networks"], json!([{"mode": "container/bridge"}]));
    assert_eq!(shown["container"]["portMappings"][0]["containerPort"], 80);
    assert_eq!(shown["ports"][0], 10007);
    let back = App::of(&job).with(&Value::Object(shown)).unwrap().job("a").unwrap();
    assert_eq!(back, job);
    let named =
        json!({"networks": [{"mode": "container", "name": "weave"}], "cmd": "x", "container": {"type": "MESOS"}});
    assert_eq!(app(named).job("a").unwrap().container.network, Network::Named("weave".to_owned()));
    for (given, path) in [
        (json!({"networks": [{"mode": "container"}]}), "/networks"),
        (json!({"container": {"type": "DOCKER", "docker": {"image": "i", "network": "USER"}}}), "/networks"),
        (json!({"container": {"portMappings": [{"containerPort": 1}]}}), "/container/portMappings"),
        (
            json!({"networks": [{"mode": "container/bridge"}], "container": {"type": "DOCKER",
                "docker": {"image": "i"}, "portMappings": [{"hostPort": 80}]}}),
            "/container/portMappings/hostPort",
        ),
        (json!({"container": {"docker": {"image": "i", "privileged": true}}}), "/container/docker"),
    ] {
        let problem = App::default().with(&given).unwrap().job("x").unwrap_err();
        assert_eq!(problem.details[0].0, path, "{problem:?}");
    }
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
    for given in [json!({"cmd": 7}), json!([])] {
        assert_eq!(App::new(&given).unwrap_err().status.as_u16(), 400);
    }
    let unknown = App::new(&json!({"healthChecks": [{"colour": "red"}]})).unwrap_err();
    assert_eq!((unknown.status.as_u16(), unknown.details[0].0.as_str()), (422, "/colour"));
}

#[test]
fn what_would_be_ignored_is_refused_unless_it_is_the_default() {
    for (field, default, other) in [
        ("acceptedResourceRoles", json!(["*"]), json!(["prod"])),
        ("role", json!(null), json!("prod")),
        ("unreachableStrategy", json!({"inactiveAfterSeconds": 300, "expungeAfterSeconds": 600}), json!("disabled")),
        ("killSelection", json!("YOUNGEST_FIRST"), json!("OLDEST_FIRST")),
        ("taskRateLimit", json!(null), json!(1.5)),
        ("container", json!({"docker": {"image": "i"}}), json!({"docker": {"image": "i", "forcePullImage": true}})),
        ("healthChecks", json!([{"ignoreHttp1xx": false}]), json!([{"ignoreHttp1xx": true}])),
        ("portDefinitions", json!([{"protocol": "udp,tcp"}]), json!([{"protocol": "icmp"}])),
    ] {
        let with = |value: &Value| app(json!({"id": "/x", "cmd": "a", field: value})).job("x");
        assert!(with(&default).is_ok(), "{field}: {:?}", with(&default));
        let problem = with(&other).unwrap_err();
        assert!(problem.details[0].0.starts_with(&format!("/{field}")), "{problem:?}");
    }
}

#[test]
fn an_app_that_is_read_and_given_back_is_the_same() {
    for given in [
        json!({"id": "/a", "cmd": "x"}),
        json!({"id": "/a", "cmd": "x", "ports": [0, 7]}),
        json!({"id": "/a", "cmd": "x", "portDefinitions": [{"port": 0, "name": "n", "labels": {"k": "v"}}, {"port": 9}]}),
        json!({"id": "/a", "cmd": "x", "uris": ["http://h/a.tgz"]}),
        json!({"id": "/a", "cmd": "x", "fetch": [{"uri": "http://h/a.tgz", "executable": true}], "portDefinitions": []}),
    ] {
        let job = app(given.clone()).job("a").unwrap();
        let mut shown = App::of(&job).shown();
        // Marathon's client sends nulls for fields that it does not know.
        shown.insert("instances".into(), json!(3));
        shown.insert("storeUrls".into(), Value::Null);
        let back = App::of(&job).with(&Value::Object(shown)).unwrap().job("a").unwrap();
        assert_eq!(back, Job { count: 3, ..job }, "{given}");
    }
    let first = app(json!({"id": "/a", "cmd": "x", "ports": [7]}));
    let unchanged = first.clone().with(&json!({"ports": null, "portDefinitions": null})).unwrap();
    assert_eq!(unchanged.definitions(), first.definitions());
}
