//! Secrets in our own files are never shown, for a mistake in any place.

use super::*;

/// Lines with a secret, as YAML writes them, and as JSON does.
fn lines() -> Vec<(String, String)> {
    let keys = ["presharedKey", "privateKey", "private-key", "token", "password", "PRIVATE KEY"];
    keys.iter()
        .map(|key| (format!("{key}: {SECRET}"), format!("\"{key}\": \"{SECRET}\"")))
        .collect()
}

fn assert_masked(folder: &Folder, commands: &[&[&str]]) {
    let mut is_seen = false;
    for arguments in commands {
        let run = run(folder, arguments);
        assert_silent(&run);
        is_seen |= run.stdout.contains("***") || run.stderr.contains("***");
    }
    assert!(is_seen, "no excerpt shows the line of the secret");
}

#[test]
fn in_meshes() {
    for (yaml, _) in lines() {
        let folder = repository();
        let entry = "    - name: east\n";
        folder.edit("repository/mesh.yaml", entry, &format!("{entry}      {yaml}\n"));
        assert_masked(&folder, &COMMANDS);
        // As a value that is judged.
        let folder = repository();
        folder.edit(
            "repository/mesh.yaml",
            entry,
            &format!("{entry}      nodeSelector: {{ matchLabels: {{ {yaml}!! }} }}\n"),
        );
        assert_masked(&folder, &COMMANDS);
    }
}

#[test]
fn in_snapshots() {
    for (_, json) in lines() {
        let folder = repository();
        folder.edit(
            "repository/snapshots/east.json",
            "\"labels\":{}",
            &format!("\"labels\":{{{json}}},{json}"),
        );
        assert_masked(&folder, &COMMANDS[..6]);
    }
}

#[test]
fn in_the_rendered_tree_and_in_dumps() {
    let file = "repository/rendered/east/prod--west.yaml";
    for (yaml, _) in lines() {
        for line in [format!("  {yaml}\n  {yaml}\n"), format!("  presharedKey: [\n  {yaml}\n")] {
            let folder = repository();
            folder.edit(file, "spec:\n", &format!("spec:\n{line}"));
            let text = folder.read(file);
            folder.write("dump.yaml", text);
            let commands: [&[&str]; 6] = [
                &["validate"],
                &["render", "--check"],
                &["verify"],
                &["verify", "--output", "json"],
                &["verify", "--peers", "east=../dump.yaml"],
                &["trace", "east/n1", "west/n1", "--peers", "east=../dump.yaml"],
            ];
            for arguments in commands {
                assert_silent(&run(&folder, arguments));
            }
        }
    }
}

#[test]
fn private_keys_under_any_name() {
    let folder = repository();
    let pem = format!(
        "    note: |\n      -----BEGIN EC PRIVATE KEY-----\n      {SECRET}\n      \
         -----END EC PRIVATE KEY-----\n"
    );
    let entry = "    - name: east\n";
    folder.edit(
        "repository/mesh.yaml",
        entry,
        &format!("{entry}  {}", pem.replace("\n      ", "\n        ")),
    );
    for arguments in COMMANDS {
        assert_silent(&run(&folder, arguments));
    }
    // In a value that is quoted.
    let folder = repository();
    let key = format!("\"-----BEGIN PRIVATE KEY-----\\n{SECRET}\\n-----END PRIVATE KEY-----\"");
    let text = folder.read("repository/snapshots/east.json");
    let (before, after) = text.split_once("\"kilo.squat.ai/key\":\"").unwrap();
    let (_, after) = after.split_once('"').unwrap();
    let text = format!("{before}\"kilo.squat.ai/key\":{key}{after}");
    folder.write("repository/snapshots/east.json", text);
    for arguments in COMMANDS {
        assert_silent(&run(&folder, arguments));
    }
}
