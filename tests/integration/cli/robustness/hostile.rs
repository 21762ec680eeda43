//! Malicious input: no panic, no hang, no flood of output, and a clear message.

use serde_json::{Value, json};

use crate::cli::{Folder, MESH, api_node};
use crate::support::assert_contains;

/// Accepts a dump with any losses.
const ACCEPTED: [&str; 6] = ["snapshot", "east", "--from", "dump.json", "--accept", "east"];

/// The messages about a mesh, a config and a dump of this text, which must be short.
fn report(text: impl AsRef<[u8]>) -> [String; 3] {
    let folder = Folder::mesh();
    folder.write("hostile", text);
    let before = folder.touches("snapshots");
    let report = [
        ["render", "--mesh", "hostile", "--color=never"].as_slice(),
        &["render", "--config", "hostile"],
        &["snapshot", "east", "--from", "hostile"],
    ]
    .map(|arguments| {
        let run = folder.run_with(&[], arguments);
        assert!(run.code == 1 || run.code == 2, "{run:?}");
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        assert!(run.stderr.len() < 10_000, "{} bytes", run.stderr.len());
        assert_contains(&run.stderr, "error");
        assert_eq!(run.stdout, "");
        run.stderr
    });
    assert_eq!(folder.touches("snapshots"), before);
    assert!(!folder.path("rendered").exists());
    report
}

fn first_lines(report: &[String]) -> String {
    let lines = report.iter().map(|it| it.lines().next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn survives_an_alias_bomb() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let alias = format!("*a{}, ", level - 1);
        bomb.extend([format!("a{level}: &a{level} ["), alias.repeat(10), "]\n".into()]);
    }
    insta::assert_snapshot!(first_lines(&report(bomb)[..2]), @"
    error[too-large]: more than 250000 values, aliases expanded
    error[too-large]: more than 250000 values, aliases expanded
    ");
}

#[test]
fn survives_an_alias_of_itself() {
    insta::assert_snapshot!(first_lines(&report("a: &a [*a]\n")[..2]), @"
    error[too-large]: an alias is used inside the value that it refers to
    error[too-large]: an alias is used inside the value that it refers to
    ");
}

#[test]
fn survives_deep_lists() {
    insta::assert_snapshot!(first_lines(&report("[".repeat(100_000))), @"
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    error: `hostile` is not a usable node list: not the JSON or YAML that `kubectl get -o json` prints: error at line 1, column 256
    ");
}

#[test]
fn survives_deep_maps() {
    insta::assert_snapshot!(first_lines(&report("{a: ".repeat(100_000))), @"
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    error: `hostile` is not a usable node list: not the JSON that `kubectl get -o json` prints: error at line 1, column 2
    ");
}

#[test]
fn survives_deep_blocks() {
    insta::assert_snapshot!(first_lines(&report("- ".repeat(100_000))), @"
    error[too-large]: values nested more than 64 deep, aliases expanded
    error[too-large]: values nested more than 64 deep, aliases expanded
    error: `hostile` is not a usable node list: not the JSON or YAML that `kubectl get -o json` prints: error at line 1, column 1
    ");
}

#[test]
fn survives_deep_json() {
    insta::assert_snapshot!(first_lines(&report("{\"a\":".repeat(100_000))), @"
    error[too-large]: values nested more than 64 deep, aliases expanded
    error[too-large]: values nested more than 64 deep, aliases expanded
    error: `hostile` is not a usable node list: the file ends too early, in line 1; write it again with `kubectl get -o json`
    ");
}

#[test]
fn survives_depth_where_nobody_looks() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let folder = Folder::mesh();
    folder.write(
        "dump.json",
        format!(r#"{{"kind":"Node","metadata":{{"name":"a"}},"other":{deep}}}"#),
    );
    let run = folder.run_with(&[], &ACCEPTED);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (
            0,
            "snapshots/east.json: 1 node, none with a Kilo key (does Kilo run there?), written (+1 ~0 -2 nodes)\n"
        )
    );
}

#[test]
fn survives_a_deep_snapshot() {
    let folder = Folder::mesh();
    for open in ["[", "{\"nodes\":", "{\"other\":"] {
        folder.write("snapshots/east.json", open.repeat(100_000));
        let run = folder.run_with(&[], &["render"]);
        assert!(run.code == 1 || run.code == 2, "{}", run.stderr);
        assert_contains(&run.stderr, "--> snapshots/east.json:1:");
        assert!(run.stderr.len() < 1000);
    }
}

#[test]
fn survives_bytes_of_zero() {
    insta::assert_snapshot!(first_lines(&report("kind: a\0b\n")), @"
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    error: `hostile` is not a usable node list: not the JSON or YAML that `kubectl get -o json` prints: error at line 1, column 8
    ");
    insta::assert_snapshot!(first_lines(&report([0; 1000])), @"
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    error: `hostile` is not a usable node list: not the JSON or YAML that `kubectl get -o json` prints: error at line 1, column 1
    ");
}

#[test]
fn survives_what_is_no_utf8() {
    insta::assert_snapshot!(first_lines(&report(b"kind: \xc3\x28\n")), @"
    error: cannot read `hostile`: it is not UTF-8: the first invalid byte is at offset 6
    error: cannot read `hostile`: it is not UTF-8: the first invalid byte is at offset 6
    error: cannot read `hostile`: it is not UTF-8: the first invalid byte is at offset 6
    ");
}

#[test]
fn survives_text_of_two_bytes_each() {
    let text: Vec<u8> = MESH.encode_utf16().flat_map(u16::to_le_bytes).collect();
    report([b"\xff\xfe".as_slice(), &text].concat());
}

#[test]
fn survives_huge_numbers() {
    let folder = Folder::mesh();
    for number in
        ["99999999999999999999999999999999", "1e999999999", "-1", "0x1ffff", ".inf", "51820.5"]
    {
        let field = format!("- name: east\n      wireguardPort: {number}");
        folder.write("mesh.yaml", MESH.replace("- name: east", &field));
        let run = folder.run_with(&[], &["render"]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert_contains(&run.stderr, "--> mesh.yaml:8:22");
    }
}

#[test]
fn survives_a_huge_number_in_json() {
    let number = "9".repeat(1_000_000);
    report(format!("{{\"kind\":{number}}}"));
    let folder = Folder::mesh();
    folder.edit("snapshots/east.json", "\"uid\":\"1-1\"", &format!("\"uid\":{number}"));
    let run = folder.run_with(&[], &["render"]);
    assert_contains(&run.stderr, "--> snapshots/east.json:1:");
    assert!(run.stderr.len() < 1000);
}

#[test]
fn survives_very_long_lines() {
    let long = "x".repeat(2_000_000);
    report(format!("kind: {long}"));
    report(format!("{long}: {long}"));
    report(format!("{{\"kind\":\"{long}\"}}"));
    report(format!("a: 1 # {long}\n"));
}

#[test]
fn survives_very_many_mistakes_in_a_line() {
    report(format!("[{}]", "{a: 1}, ".repeat(20_000)));
}

#[test]
fn survives_very_many_documents() {
    report("---\n".repeat(200_000) + "kind: x\n");
}

#[test]
fn survives_a_very_long_annotation() {
    let folder = Folder::mesh();
    let mut dump = api_node(1, 1);
    let long = "é".repeat(1_000_000);
    dump["metadata"]["annotations"]["kilo.squat.ai/force-endpoint"] = long.clone().into();
    folder.write("dump.json", dump.to_string());
    assert_eq!(folder.run(&ACCEPTED).code, 0);
    let run = folder.run_with(&[], &["render", "--allow-empty", "*"]);
    assert!(run.stderr.contains("invalid-endpoint"));
    assert!(run.stderr.len() < 2000, "{} bytes", run.stderr.len());
}

#[test]
fn survives_very_many_nodes() {
    let folder = Folder::mesh();
    let node = api_node(1, 1).to_string();
    let items: Vec<String> =
        (0..20_000).map(|it| node.replace("\"n1\"", &format!("\"n{it}\""))).collect();
    folder.write("dump.json", format!(r#"{{"kind":"List","items":[{}]}}"#, items.join(",")));
    assert_eq!(folder.run_with(&[], &ACCEPTED).code, 0);
    let run = folder.run_with(&[], &["render"]);
    assert_eq!(run.code, 0);
    assert!(run.stderr.len() < 2000, "{}", run.stderr);
}

#[test]
fn survives_very_many_findings() {
    let folder = Folder::mesh();
    let nodes: Vec<Value> = (0..20_000)
        .map(|it| json!({ "name": format!("n{it}"), "podCIDRs": ["10.1.1.0/24"] }))
        .collect();
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render", "--allow-empty", "*/east"]).code, 0);
    let on_one_line = folder.read("snapshots/east.json");
    let snapshot: Value = serde_json::from_str(&on_one_line).unwrap();
    for text in [on_one_line, format!("{snapshot:#}")] {
        folder.write("snapshots/east.json", text);
        let run = folder.run_with(&[], &["validate", "--output", "json"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(20_000 <= run.stdout.matches("\"label\": \"n").count());
    }
}

/// The first ones are listed, so that the report can be read and the run ends soon.
#[test]
fn lists_the_first_of_very_many_mistakes() {
    let folder = Folder::mesh();
    let head = MESH.split("    - name").next().unwrap();
    let flow = format!("{} [{}{{}}]\n", head.trim_end(), "{},".repeat(20_000));
    let unknown: Vec<String> = (0..20_000).map(|it| format!("  x{it}: 1\n")).collect();
    let unknown = unknown.concat();
    for (text, count) in [(flow, 20_001), (format!("{MESH}{unknown}"), 20_000)] {
        folder.write("mesh.yaml", text);
        for (output, listed) in [("human", 100..101), ("concise", 1000..1010)] {
            let run = folder.run(&["validate", "--output", output]);
            assert_eq!(run.code, 1, "{}", run.stderr);
            let errors = run.stdout.matches("error[").count();
            assert!(listed.contains(&errors), "{output}: {errors} of {count}");
            assert_contains(&run.stdout, " more findings of this rule in this file are not listed");
        }
    }
}
