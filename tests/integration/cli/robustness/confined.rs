//! Files outside of the repository: links and paths of a config lead nowhere else, nothing but our
//! own files is quoted, and outputs stay inside.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::cli::*;
use crate::support::assert_contains;

mod commits;
mod secrets;

/// What must never be printed.
const SECRET: &str = "hunter2-correct-horse";

/// How everything that reads is called.
const COMMANDS: [&[&str]; 17] = [
    &["validate"],
    &["validate", "--output", "concise"],
    &["validate", "--output", "json"],
    &["validate", "--output", "sarif"],
    &["validate", "--output", "github"],
    &["validate", "--output", "gitlab"],
    &["validate", "--output", "markdown"],
    &["render"],
    &["render", "--check"],
    &["render", "--target", "east"],
    &["verify"],
    &["verify", "--output", "json"],
    &["trace", "east/n1", "west/n1"],
    &["capacity"],
    &["config"],
    &["diff", "--against", "rendered"],
    &["snapshot", "east", "--from", "dump.json", "--check"],
];

/// Texts that none of our parsers accepts, each with the secret in another part.
fn foreign() -> Vec<String> {
    vec![
        format!("TOKEN={SECRET}\nOTHER=[{SECRET}\n"),
        format!("https://user:{SECRET}@example.org\n"),
        format!("[remote \"origin\"]\n\turl = https://x:{SECRET}@example.org\n"),
        format!("{SECRET}: !{SECRET} [\"{SECRET}\"\n"),
        format!("kind: {SECRET}\napiVersion: {SECRET}\n{SECRET}: *{SECRET}\n"),
        format!("{{\"kind\": \"{SECRET}\", \"{SECRET}\": \"{SECRET}\"}}"),
        format!("kind: ClusterMesh\nspec: {{{SECRET}: 1, clusters: [{{name: {SECRET}!}}]}}\n"),
        format!("kind: Config\nlimits: {{{SECRET}: 1, nodes: {SECRET}}}\n"),
        format!("PATH=/bin\0TOKEN={SECRET}\0X=\napiVersion: kilo.squat.ai/v1alpha1\n\0"),
    ]
}

/// A rendered mesh in a repository, with a config, expectations and a dump, beside a foreign
/// folder.
fn repository() -> Folder {
    let folder = Folder::empty();
    let mesh = Folder::rendered();
    crate::support::copy(mesh.0.path(), &folder.path("repository"));
    fs::create_dir(folder.path("repository/.git")).unwrap();
    folder
        .write("repository/clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n");
    folder.write("repository/dump.json", "{\"kind\":\"NodeList\",\"items\":[]}");
    folder
}

fn run(folder: &Folder, arguments: &[&str]) -> Run {
    folder.run(&[&["-C", "repository"], arguments].concat())
}

/// Replaces a file with a link.
fn link(folder: &Folder, target: &Path, name: &str) {
    let path = folder.path("repository").join(name);
    let _ = fs::remove_file(&path);
    symlink(target, path).unwrap();
}

fn assert_silent(run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn links_lead_nowhere_else() {
    let folder = repository();
    folder.write("home/.git-credentials", SECRET);
    let inputs = ["mesh.yaml", "clustermesh.yaml", "expectations.yaml", "snapshots/east.json"];
    for input in inputs {
        let folder = repository();
        folder.write("home/.git-credentials", SECRET);
        let credentials = folder.path("home/.git-credentials");
        let targets = [
            credentials.as_path(),
            Path::new("../home/.git-credentials"),
            Path::new("/proc/self/environ"),
            Path::new("/proc/kmsg"),
        ];
        for target in targets {
            link(&folder, target, input);
            let run = run(&folder, &["verify"]);
            assert_eq!(run.code, 2, "{input}: {}", run.stderr);
            assert!(
                run.stderr.contains("it is outside ") || run.stderr.contains("No such file"),
                "{input}: {}",
                run.stderr
            );
            assert_silent(&run);
        }
    }
}

#[test]
fn says_where_a_link_leads_to_and_what_to_do() {
    let folder = repository();
    folder.write("elsewhere/mesh.yaml", MESH);
    link(&folder, Path::new("../elsewhere/mesh.yaml"), "mesh.yaml");
    let refused = run(&folder, &["validate"]);
    assert_eq!(refused.code, 2);
    let root = folder.path("repository").canonicalize().unwrap();
    let report = refused.stderr.replace(root.to_str().unwrap(), "…");
    insta::assert_snapshot!(report, @"error: cannot read `mesh.yaml`: it is outside `…`; to read files in other folders, add --root DIR");
    for arguments in [
        &["validate", "--root", "../elsewhere"],
        // Who names a file has it read.
        &["validate", "--mesh", "../elsewhere/mesh.yaml"],
        &["validate", "--mesh", "mesh.yaml"],
    ] {
        let run = run(&folder, arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    }
    let variables = [("CLUSTERMESH_ROOT", "../elsewhere")];
    let run = folder.run_with(&variables, &["-C", "repository", "validate"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// The message does not show whether a file outside exists.
#[test]
fn a_link_outside_has_one_message() {
    let message = |target: &str, input: &str| {
        let folder = repository();
        folder.write("elsewhere/there.yaml", SECRET);
        link(&folder, Path::new(target), input);
        let run = run(&folder, &["verify"]);
        assert_eq!(run.code, 2, "{input}: {}", run.stdout);
        let root = folder.path("").canonicalize().unwrap();
        run.stderr.replace(root.to_str().unwrap(), "…")
    };
    for input in ["mesh.yaml", "clustermesh.yaml", "expectations.yaml", "snapshots/east.json"] {
        let there = message("../elsewhere/there.yaml", input);
        for target in ["../elsewhere/absent.yaml", "../absent/there.yaml", "../elsewhere"] {
            assert_eq!(message(target, input), there, "{input}: {target}");
        }
    }
}

#[test]
fn paths_of_the_config_lead_nowhere_else() {
    for (field, path) in [
        ("meshes", "../elsewhere/mesh.yaml"),
        ("meshes", "../elsewhere"),
        ("meshes", "/etc"),
        ("meshes", "docs/../../elsewhere/mesh.yaml"),
        ("snapshots", "../elsewhere"),
        ("snapshots", "docs/gone/../../../elsewhere"),
        ("rendered", "../elsewhere"),
        ("rendered", "/tmp"),
        ("rendered", ".git/rendered"),
        ("rendered", ".GIT"),
        ("expectations", "../elsewhere/expectations.yaml"),
        ("meshes", ".git/mesh.yaml"),
        ("snapshots", ".git"),
    ] {
        let folder = repository();
        folder.write("elsewhere/mesh.yaml", MESH);
        folder.write("elsewhere/expectations.yaml", SECRET);
        folder.write("repository/.git/mesh.yaml", MESH);
        folder.write("repository/docs/x", "");
        let value = match field {
            "meshes" => format!("[{path}]"),
            _ => path.to_owned(),
        };
        folder.write(
            "repository/clustermesh.yaml",
            format!("apiVersion: kilo-clustermesh.io/v1\nkind: Config\n{field}: {value}\n"),
        );
        let before = folder.touches("elsewhere");
        let run = run(
            &folder,
            if field == "expectations" { &["verify"] } else { &["render", "--allow-empty", "*"] },
        );
        assert_eq!(run.code, if field == "snapshots" { run.code.max(1) } else { 2 });
        assert_silent(&run);
        assert_eq!(folder.touches("elsewhere"), before, "{field}: {path}");
        assert!(!folder.path("repository/.git/rendered").exists());
    }
}

#[test]
fn nothing_of_a_foreign_file_is_shown() {
    for (number, text) in foreign().iter().enumerate() {
        for input in [
            "mesh.yaml",
            "clustermesh.yaml",
            "expectations.yaml",
            "snapshots/east.json",
            "snapshots/stray.json",
            "rendered/east/prod--west.yaml",
            "rendered/east/stray.yaml",
            "dump.json",
        ] {
            let folder = repository();
            folder.write("repository/.env", text);
            let depth = input.matches('/').count();
            let target = format!("{}.env", "../".repeat(depth));
            // As a link to a file of the repository, and as the file itself.
            link(&folder, Path::new(&target), input);
            for arguments in COMMANDS.iter().skip(number % 4).step_by(4) {
                assert_silent(&run(&folder, arguments));
            }
            fs::remove_file(folder.path("repository").join(input)).unwrap();
            folder.write(&format!("repository/{input}"), text);
            for arguments in COMMANDS.iter().skip((number + 1) % 4).step_by(4) {
                assert_silent(&run(&folder, arguments));
            }
        }
    }
}

#[test]
fn nothing_of_a_named_file_is_shown_that_is_not_ours() {
    let folder = repository();
    for text in foreign() {
        folder.write("home/.netrc", &text);
        let file = folder.path("home/.netrc");
        let file = file.to_str().unwrap();
        let peers = format!("east={file}");
        for arguments in [
            &["validate", "--mesh", file][..],
            &["validate", "--config", file],
            &["verify", "--expectations", file],
            &["verify", "--peers", &peers],
            &["verify", "--peers", &peers, "--output", "json"],
            &["trace", "east/n1", "west/n1", "--peers", &peers],
            &["capacity", "--peers", &peers],
            &["snapshot", "east", "--from", file],
            &["diff", "--peers", &peers],
            &["diff", "--against", "rendered", "--mesh", file],
            &["diff", "--against", "../home"],
        ] {
            assert_silent(&run(&folder, arguments));
        }
        let new = Folder::empty();
        let [east, west] = ["east", "west"].map(|it| format!("--from={it}={file}"));
        let run = new.run(&["init", &east, &west]);
        assert_ne!(run.code, 0, "{text}");
        assert_silent(&run);
        assert!(new.touches(".").is_empty(), "{text}");
    }
}

#[test]
fn says_where_a_foreign_file_is_wrong() {
    let folder = repository();
    folder.write("repository/mesh.yaml", format!("a: b\nTOKEN: [{SECRET}\n"));
    let run = run(&folder, &["validate"]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr.trim_end(), @"1 error");
    insta::assert_snapshot!(run.stdout.trim_end(), @"
    error[syntax-error]: `apiVersion` is missing or unknown, so the text of the file is not shown
    --> mesh.yaml:2:8
    help: begin a mesh with the lines `apiVersion: kilo.squat.ai/v1alpha1` and `kind: ClusterMesh`, and any other file of clustermesh with `apiVersion: kilo-clustermesh.io/v1`
    ");
}

#[test]
fn a_folder_that_is_named_keeps_its_links_inside() {
    let folder = repository();
    fs::rename(folder.path("repository/snapshots"), folder.path("nodes")).unwrap();
    let named = ["render", "--check", "--snapshots", "../nodes"];
    assert_eq!(run(&folder, &named).code, 0);
    // To another file of the folder, and to the repository.
    fs::rename(folder.path("nodes/east.json"), folder.path("nodes/old.json")).unwrap();
    symlink("old.json", folder.path("nodes/east.json")).unwrap();
    assert_eq!(run(&folder, &named).code, 0);
    fs::remove_file(folder.path("nodes/east.json")).unwrap();
    fs::rename(folder.path("nodes/old.json"), folder.path("repository/old.json")).unwrap();
    symlink("../repository/old.json", folder.path("nodes/east.json")).unwrap();
    assert_eq!(run(&folder, &named).code, 0);
    fs::rename(folder.path("repository/old.json"), folder.path("outside.json")).unwrap();
    fs::remove_file(folder.path("nodes/east.json")).unwrap();
    symlink("../outside.json", folder.path("nodes/east.json")).unwrap();
    assert_eq!(run(&folder, &named).code, 2);
}

#[test]
fn links_inside_of_the_repository_are_followed() {
    let folder = repository();
    fs::rename(folder.path("repository/snapshots/east.json"), folder.path("repository/kept.json"))
        .unwrap();
    link(&folder, Path::new("../kept.json"), "snapshots/east.json");
    fs::rename(folder.path("repository/rendered"), folder.path("repository/deploy")).unwrap();
    link(&folder, Path::new("deploy"), "rendered");
    let run = run(&folder, &["render", "--check"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn a_tree_that_leads_elsewhere_is_neither_read_nor_written() {
    let folder = repository();
    fs::rename(folder.path("repository/rendered"), folder.path("theirs")).unwrap();
    link(&folder, Path::new("../theirs"), "rendered");
    folder.edit("repository/mesh.yaml", NORTH, "");
    let before = folder.touches("theirs");
    for arguments in [&["render"][..], &["render", "--check"], &["validate"], &["verify"]] {
        let run = run(&folder, arguments);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert_contains(&run.stderr, "it is outside ");
    }
    assert_eq!(folder.touches("theirs"), before);
    // So it is with the folder of one cluster.
    fs::remove_file(folder.path("repository/rendered")).unwrap();
    fs::create_dir(folder.path("repository/rendered")).unwrap();
    link(&folder, Path::new("../../theirs/north"), "rendered/north");
    link(&folder, Path::new("../../theirs/east"), "rendered/east");
    let run = run(&folder, &["render", "--allow-empty", "*"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_eq!(folder.touches("theirs"), before);
}

#[test]
fn snapshots_that_lead_elsewhere_are_not_written() {
    let folder = repository();
    fs::rename(folder.path("repository/snapshots"), folder.path("theirs")).unwrap();
    link(&folder, Path::new("../theirs"), "snapshots");
    folder.write("theirs/.clustermesh-tmp-abcdef", "theirs");
    let before = folder.touches("theirs");
    let dump = json!({ "kind": "NodeList", "items": [api_node(1, 1)] });
    folder.write("repository/dump.json", dump.to_string());
    let arguments = ["snapshot", "east", "--from", "dump.json", "--accept", "east"];
    let refused = run(&folder, &arguments);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert_eq!(folder.touches("theirs"), before);
    // Who names the folder has it written.
    let named = [&arguments[..], &["--snapshots", "../theirs"]].concat();
    let written = run(&folder, &named);
    assert_eq!(written.code, 0, "{}", written.stderr);
    for path in ["repository/.git/nodes", "repository/.git"] {
        let path = folder.path(path);
        let named = [&arguments[..], &["--snapshots", path.to_str().unwrap()]].concat();
        let refused = run(&folder, &named);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
    }
    assert_eq!(folder.touches("repository/.git").len(), 0);
}

#[test]
fn git_s_files_are_not_read_wherever_they_are() {
    // As in worktrees and submodules, and with a folder of another name.
    for named in ["gitdir: store\n", "gitdir: ./store\n"] {
        let folder = repository();
        fs::remove_dir(folder.path("repository/.git")).unwrap();
        folder.write("repository/.git", named);
        folder.write("repository/store/config", MESH);
        link(&folder, Path::new("store/config"), "mesh.yaml");
        let run = run(&folder, &["validate"]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert_contains(&run.stderr, "inside `.git`");
    }
    // Of a repository in the repository.
    let folder = repository();
    folder.write("repository/vendor/.git/config", MESH);
    link(&folder, Path::new("vendor/.git/config"), "mesh.yaml");
    assert_eq!(run(&folder, &["validate"]).code, 2);
    // A submodule is a repository of its own.
    folder.write("repository/sub/.git", "gitdir: ../.git/modules/sub\n");
    folder.write("repository/sub/mesh.yaml", MESH);
    link(&folder, Path::new("../kept"), "sub/snapshots");
    fs::rename(folder.path("repository/snapshots"), folder.path("repository/kept")).unwrap();
    let run = folder.run(&["-C", "repository/sub", "validate"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
}

#[test]
fn nothing_in_the_repository_is_waited_for() {
    let folder = repository();
    fs::remove_file(folder.path("repository/mesh.yaml")).unwrap();
    let pipe = Command::new("mkfifo").arg(folder.path("repository/mesh.yaml")).status();
    assert!(pipe.unwrap().success());
    let run = run(&folder, &["validate"]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"error: cannot read `mesh.yaml`: it is a device, pipe or socket, not a regular file; `-` reads the standard input");
    fs::remove_file(folder.path("repository/mesh.yaml")).unwrap();
    for target in ["mesh.yaml", "snapshots"] {
        link(&folder, Path::new(target), "mesh.yaml");
        assert_eq!(super::confined::run(&folder, &["validate"]).code, 2);
    }
}

#[test]
fn a_pipe_that_is_named_is_read() {
    let folder = repository();
    let pipe = folder.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut writer = Command::new("sh")
        .args(["-c", "cat repository/mesh.yaml > pipe"])
        .current_dir(folder.0.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let run = run(&folder, &["render", "--check", "--mesh", "../pipe"]);
    assert!(writer.wait().unwrap().success());
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn a_working_folder_that_is_gone_is_the_reason() {
    let folder = repository();
    fs::create_dir(folder.path("repository/gone")).unwrap();
    for command in ["validate", "init"] {
        let output = Command::new("sh")
            .args(["-c", "rmdir \"$PWD\" && exec \"$0\" \"$@\""])
            .args([env!("CARGO_BIN_EXE_clustermesh"), command])
            .current_dir(folder.path("repository/gone"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_contains(
            &String::from_utf8(output.stderr).unwrap(),
            "cannot look at the working folder: No such file or directory",
        );
        fs::create_dir(folder.path("repository/gone")).unwrap();
    }
}

#[test]
fn the_peers_of_a_process_are_read() {
    let folder = repository();
    let script = "\"$0\" verify --peers east=<(cat rendered/east/prod--west.yaml; echo ---; \
                  cat rendered/east/prod--north.yaml)";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_clustermesh")])
        .current_dir(folder.path("repository"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn temporary_folders_are_removed_only_if_they_are_ours() {
    let folder = Folder::rendered();
    let ours = format!("{HEADER}x\n");
    folder.write("rendered/.clustermesh-tmp-aaaaaa/west/a.yaml", &ours);
    folder.write("rendered/.clustermesh-tmp-aaaaaa/.old-0", &HEADER[..7]);
    folder.write("rendered/.clustermesh-tmp-bbbbbb/west/a.yaml", "theirs\n");
    folder.write("rendered/.clustermesh-tmp-cccccc/west/deep/a.yaml", &ours);
    folder.write("rendered/west/.clustermesh-tmp-dddddd/a.yaml", &ours);
    folder.write("theirs/a.yaml", &ours);
    symlink("../theirs", folder.path("rendered/.clustermesh-tmp-eeeeee")).unwrap();
    fs::create_dir(folder.path("rendered/.clustermesh-tmp-ffffff")).unwrap();
    symlink("../../theirs", folder.path("rendered/.clustermesh-tmp-ffffff/a")).unwrap();
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!folder.path("rendered/.clustermesh-tmp-aaaaaa").exists());
    for path in [
        "rendered/.clustermesh-tmp-bbbbbb/west/a.yaml",
        "rendered/.clustermesh-tmp-cccccc/west/deep/a.yaml",
        "rendered/west/.clustermesh-tmp-dddddd/a.yaml",
        "rendered/.clustermesh-tmp-eeeeee/a.yaml",
        "rendered/.clustermesh-tmp-ffffff/a/a.yaml",
        "theirs/a.yaml",
    ] {
        assert!(folder.path(path).exists(), "{path}");
    }
}

/// Where a link leads to outside must make no difference, or its author learns what a machine has.
#[test]
fn whether_a_file_outside_exists_is_not_revealed() {
    let folder = repository();
    let outputs =
        "outputs: [{ template: app.yaml, path: 'apps/{{ target.name }}.yaml', per: Target }]";
    let config = format!("apiVersion: kilo-clustermesh.io/v1\nkind: Config\n{outputs}\n");
    folder.write("repository/clustermesh.yaml", config);
    for name in ["app.yaml", "apps/east.yaml"] {
        folder.write("repository/app.yaml", "a: 1\n");
        folder.write("repository/apps/east.yaml", "a: 1\n");
        let reports = ["home/.ssh/absent", "home/.ssh/id_rsa"].map(|target| {
            folder.write("home/.ssh/id_rsa", SECRET);
            link(&folder, &folder.path(target), name);
            let run = run(&folder, &["validate"]);
            assert_eq!(run.code, 1, "{}", run.stderr);
            run.stdout
        });
        assert_eq!(reports[0], reports[1]);
    }
}
