use super::*;

fn read(text: &str) -> Result<Snapshot, SnapshotError> {
    Snapshot::read(&"east".parse().unwrap(), text)
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn text_round_trips() {
    let text = r#"{
  "apiVersion": "kilo-clustermesh.io/v1",
  "cluster": "east",
  "kind": "NodeSnapshot",
  "nodes": [
    {
      "addresses": [
        {
          "address": "192.168.1.1",
          "type": "InternalIP"
        }
      ],
      "annotations": {
        "kilo.squat.ai/key": "k"
      },
      "labels": {},
      "name": "a",
      "podCIDRs": [
        "10.42.0.0/24"
      ],
      "stale": true,
      "uid": "1"
    }
  ]
}
"#;
    assert_eq!(read(text).unwrap().to_json().unwrap(), text);
}

#[test]
fn nothing_is_hidden_from_a_reviewer() {
    let node = Node { name: "a\u{202e}b\u{e0041}\u{1b}".to_owned(), ..Node::default() };
    let snapshot = Snapshot::new("east".parse().unwrap(), vec![node]).unwrap();
    let text = snapshot.to_json().unwrap();
    assert!(text.contains(r#""a\u202eb\udb40\udc41\u001b""#), "{text}");
    assert_eq!(read(&text).unwrap(), snapshot);
}

#[test]
fn says_what_is_wrong() {
    let header = r#""apiVersion":"kilo-clustermesh.io/v1","cluster":"east","kind":"NodeSnapshot""#;
    insta::assert_snapshot!(error("{}"), @"unsupported kind ``, expected `NodeSnapshot`; create snapshots with `clustermesh snapshot --from CLUSTER=FILE`");
    insta::assert_snapshot!(error(r#"{"apiVersion":"kilo-clustermesh.io/v2","kind":"NodeSnapshot","new":1}"#), @"unsupported apiVersion `kilo-clustermesh.io/v2`; this version reads `kilo-clustermesh.io/v1`");
    insta::assert_snapshot!(error(&format!(r#"{{{header},"nodes":[{{"name":"a"}},{{"name":"a"}}]}}"#)), @"duplicate node name `a`");
    insta::assert_snapshot!(error(&format!(r#"{{{header},"nodes":[{{"name":"a","labels":{{"x":"1","x":"2"}}}}]}}"#)), @"duplicate key `x` at line 1 column 125");
    insta::assert_snapshot!(error(&format!(r#"{{{header},"nodes":[{{"name":"a","podCidrs":[]}}]}}"#)), @"unknown field `podCidrs`, expected one of `addresses`, `annotations`, `carriedOver`, `labels`, `lostLead`, `name`, `plugin`, `podCIDRs`, `stale`, `uid` at line 1 column 109");
    insta::assert_snapshot!(error(&header.replace("east", "west").replacen('"', "{\"nodes\":[],\"", 1).replace("Snapshot\"", "Snapshot\"}")), @"this is the snapshot of `west`, but the file is named after `east`");
    insta::assert_snapshot!(error(r#"["kilo-clustermesh.io/v1","east","NodeSnapshot",[]]"#), @"invalid type: sequence, expected an object at line 1 column 0");
    assert!(read("{").unwrap_err().is_syntax());
}
