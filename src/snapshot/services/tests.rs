use super::*;

const LIST: &str = r#"{"kind": "List", "items": [
    {"kind": "Service", "metadata": {"namespace": "shop", "name": "api", "labels": {"kilo-clustermesh.io/source-cluster": "m"}},
     "spec": {"clusterIP": "10.45.0.20", "clusterIPs": ["10.45.0.20", "fd00:45::20"], "selector": {"app": "api"},
              "internalTrafficPolicy": "Cluster", "type": "LoadBalancer",
              "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080}]}},
    {"metadata": {"namespace": "shop", "name": "db"}, "spec": {"clusterIP": "None", "internalTrafficPolicy": "Local"}},
    {"metadata": {"namespace": "shop"}, "spec": {}},
    {"metadata": {"namespace": "shop", "name": "\u001b[2J"}, "spec": {}}
]}"#;

#[test]
fn keeps_what_was_asked_for_and_reads_it_back() {
    let name = |name| ServiceName::new("shop".parse().unwrap(), name).unwrap();
    let names = [name("api"), name("gone")];
    let cluster = "west".parse().unwrap();
    let snapshot = ServiceSnapshot::new(&cluster, &names, found(LIST).unwrap());
    let text = snapshot.to_json().unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "apiVersion": "kilo-clustermesh.io/v1",
      "cluster": "west",
      "kind": "ServiceSnapshot",
      "services": [
        {
          "found": {
            "clusterIPs": [
              "10.45.0.20",
              "fd00:45::20"
            ],
            "hasSelector": true,
            "isMirror": true,
            "ports": [
              {
                "name": "http",
                "port": 80,
                "protocol": "TCP"
              }
            ],
            "type": "LoadBalancer",
            "usesLocalEndpoints": false
          },
          "name": "api",
          "namespace": "shop"
        },
        {
          "found": null,
          "name": "gone",
          "namespace": "shop"
        }
      ]
    }
    "#);
    assert_eq!(ServiceSnapshot::read(&cluster, &text).unwrap(), snapshot);
    assert!(snapshot.get(&name("db")).is_none());
    assert_eq!(snapshot.counts(), (2, 1));
    let headless = &found(LIST).unwrap()[&name("db")];
    assert!(headless.cluster_ips.is_empty() && headless.uses_local_endpoints);
}

#[test]
fn believes_only_services() {
    let error = |text: &str| found(text).unwrap_err().to_string();
    insta::assert_snapshot!(error(r#"{"kind": "NodeList", "items": []}"#), @"expected a ServiceList, a List of Services or a Service, as printed by `kubectl get services -A -o json`, found the kind `NodeList`");
    insta::assert_snapshot!(error("kind: List\nitems: [{kind: Pod}]"), @"expected a ServiceList, a List of Services or a Service, as printed by `kubectl get services -A -o json`, found the kind `Pod`");
    insta::assert_snapshot!(error(r#"{"kind": "ServiceList", "metadata": {"continue": "x"}, "items": []}"#), @"the list is incomplete (it has a continue token); list all services with `kubectl get services -A -o json`");
    let name = ServiceName::new("shop".parse().unwrap(), "api").unwrap();
    let list: Value = serde_json::from_str(LIST).unwrap();
    let answer = &list["items"][0];
    assert!(answered(&name, answer).is_some_and(|it| it.is_mirror && it.has_selector));
    let other = |pointer: &str, value: Value| {
        let mut other = answer.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        answered(&name, &other)
    };
    let wrong = [
        ("/kind", json!("Pod")),
        ("/metadata/name", json!("db")),
        ("/metadata/namespace", json!("pay")),
        ("/spec/type", json!("\u{1b}[2J")),
        ("/spec/ports", json!(vec![json!({"port": 1}); 1001])),
        ("/spec/ports/0/port", json!(0)),
    ];
    for (pointer, value) in wrong {
        assert_eq!(other(pointer, value), None, "{pointer}");
    }
    assert_eq!(answered(&name, &list), None);
}

#[test]
fn lists_what_differs() {
    let of = |names: &[&str], text: &str| {
        let names: Vec<ServiceName> =
            names.iter().map(|it| ServiceName::new("shop".parse().unwrap(), it).unwrap()).collect();
        ServiceSnapshot::new(&"west".parse().unwrap(), &names, found(text).unwrap())
    };
    let before = of(&["api", "db", "old"], LIST);
    let after = LIST.replace("10.45.0.20", "10.45.0.21").replace("\"db\"", "\"old\"");
    let after = of(&["api", "db", "old", "new"], &after);
    insta::assert_snapshot!(before.differences(&after).join("\n"), @r#"
    `shop/api`: clusterIPs was `["10.45.0.20","fd00:45::20"]`, is `["10.45.0.21","fd00:45::20"]`
    `shop/db`: removed
    `shop/new`: added to the file
    `shop/old`: added
    "#);
    insta::assert_snapshot!(after.differences(&of(&["api"], LIST)).join("\n"), @r#"
    `shop/api`: clusterIPs was `["10.45.0.21","fd00:45::20"]`, is `["10.45.0.20","fd00:45::20"]`
    `shop/db`: removed from the file
    `shop/new`: removed from the file
    `shop/old`: removed from the file
    "#);
    assert!(before.differences(&before).is_empty());
}

#[test]
fn refuses_other_files() {
    let cluster = "west".parse().unwrap();
    let text = ServiceSnapshot::new(&"east".parse().unwrap(), [], FoundServices::new());
    let read = |text: &str| ServiceSnapshot::read(&cluster, text).unwrap_err().to_string();
    let text = text.to_json().unwrap();
    assert!(read(&text).contains("cluster `east`"));
    assert!(read(&text.replace(KIND, "NodeSnapshot")).contains("found `NodeSnapshot`"));
    assert!(read("<<<<<<< a\n=======\n>>>>>>> b\n").contains("conflict"));
    assert!(read("[]").contains("expected an object"));
}
