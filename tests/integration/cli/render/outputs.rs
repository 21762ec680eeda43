//! Outputs: files of users that `render` fills in from templates, beside the rendered tree.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::cli::{Folder, give, node};
use crate::support::{Run, assert_contains, has_other_users, program_at};

const APPLICATION: &str = "\
name: {{ \"mesh-\" ~ target.name }}
path: {{ target.path }}
peers: {{ target.peers }}
sources:
{% for source in target.sources %}
- {{ source.cluster }}
{% endfor %}
";

/// A mesh with an output for each target.
fn folder() -> Folder {
    let folder = Folder::mesh();
    folder.write("templates/app.yaml", APPLICATION);
    configure(&folder, "- { template: templates/app.yaml, path: 'apps/{{ target.name }}.yaml' }");
    folder
}

fn configure(folder: &Folder, outputs: &str) {
    let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\noutputs:";
    folder.write("clustermesh.yaml", format!("{head}\n{outputs}\n"));
}

/// Returns how a render fails, after making sure that it wrote nothing.
fn refusal(folder: &Folder) -> String {
    let stderr = folder.refusal(1, |it| it.run(&["render"]));
    assert!(stderr.ends_with("nothing was written\n"), "{stderr}");
    let lines = stderr.lines().filter(|it| it.contains("[invalid-output]"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn are_written_with_the_tree_and_kept_up_to_date() {
    let folder = folder();
    let run = folder.run(&["render", "--check"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "missing: apps/west.yaml\n");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.ends_with("outputs: 3 written\n"), "{}", run.stderr);
    insta::assert_snapshot!(folder.read("apps/west.yaml"), @r"
    name: mesh-west
    path: rendered/west
    peers: 4
    sources:
    - east
    - north
    ");
    let record = folder.read("rendered/.clustermesh-outputs");
    let listed: Vec<&str> = record.lines().skip(1).map(|it| &it[66..]).collect();
    assert_eq!(listed, ["apps/east.yaml", "apps/north.yaml", "apps/west.yaml"]);
    assert_eq!(folder.run(&["render", "--check"]).code, 0);
    assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 0);
    let before = folder.touches(".");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(folder.touches("."), before);

    folder.edit("templates/app.yaml", "peers:", "number:");
    let check = folder.run(&["render", "--check"]);
    insta::assert_snapshot!(check.stdout, @r"
    changed: apps/east.yaml
    changed: apps/north.yaml
    changed: apps/west.yaml
    ");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert!(folder.read("apps/west.yaml").contains("number: 4\n"));
    // Another path: the old files go, and so does their folder.
    configure(
        &folder,
        "- { template: templates/app.yaml, path: 'flux/{{ target.name }}/app.yaml' }",
    );
    let run = folder.run(&["render"]);
    assert!(
        run.stderr.ends_with(
            "outputs: 3 written, removed apps/east.yaml, apps/north.yaml, apps/west.yaml\n"
        ),
        "{}",
        run.stderr
    );
    assert!(!folder.path("apps").exists());
    // None at all.
    configure(&folder, "  []");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert!(!folder.path("flux").exists());
    assert!(!folder.path("rendered/.clustermesh-outputs").exists());
    assert!(folder.path("templates/app.yaml").exists());
}

/// Their files may be what Flux applies, so deleting the config by mistake must not delete them.
#[test]
fn without_a_config_they_stay() {
    let folder = folder();
    assert_eq!(folder.run(&["render"]).code, 0);
    let config = folder.read("clustermesh.yaml");
    std::fs::remove_file(folder.path("clustermesh.yaml")).unwrap();
    let refused = folder.refusal(1, |it| it.run(&["render"]));
    insta::assert_snapshot!(refused, @"
    error[invalid-output]: rendered/.clustermesh-outputs lists 3 files of `outputs`, but there is no config
    help: write the config again; to delete these files, write a config without `outputs`, and run `clustermesh render`

    1 error
    nothing was written
    ");
    assert_eq!(folder.run(&["render", "--check"]).code, 1);
    // Both ways of the advice.
    folder.write("clustermesh.yaml", config);
    assert_eq!(folder.run(&["render", "--check"]).code, 0);
    configure(&folder, "  []");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert!(!folder.path("apps").exists());
    std::fs::remove_file(folder.path("clustermesh.yaml")).unwrap();
    assert_eq!(folder.run(&["render", "--check"]).code, 0);
}

#[test]
fn there_is_one_for_each_mesh_or_for_all() {
    let folder = folder();
    folder.write(
        "templates/mesh.json",
        "{\"mesh\": {{ mesh.name }}, \"clusters\": {{ mesh.clusters }}}\n",
    );
    folder.write(
        "templates/all.txt",
        "{% for it in clusters %}{{ it.name }}: {{ it.podCIDRs | join(', ') }}\n{% endfor %}",
    );
    configure(
        &folder,
        "\
- { template: templates/mesh.json, path: '{{ mesh.name }}.json', per: Mesh }
- { template: templates/all.txt, path: docs/all.txt, per: Repository }",
    );
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        folder.read("prod.json"),
        "{\"mesh\": \"prod\", \"clusters\": [\"east\", \"north\", \"west\"]}\n"
    );
    insta::assert_snapshot!(folder.read("docs/all.txt"), @r"
    east: 10.1.0.0/16
    north: 10.2.0.0/16
    west: 10.3.0.0/16
    ");
}

#[test]
fn files_of_people_are_left_alone() {
    let folder = folder();
    folder.write("apps/west.yaml", "mine\n");
    insta::assert_snapshot!(refusal(&folder), @"error[invalid-output]: `apps/west.yaml` already exists, and `render` did not write it");
    fs::remove_file(folder.path("apps/west.yaml")).unwrap();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("apps/west.yaml", "peers: 4", "peers: 5");
    insta::assert_snapshot!(refusal(&folder), @"error[invalid-output]: `apps/west.yaml` was changed since `render` wrote it");
    // Not wanted any more, and changed: still not ours to remove.
    configure(&folder, "  []");
    insta::assert_snapshot!(refusal(&folder), @"error[invalid-output]: `apps/west.yaml` was changed since `render` wrote it");
}

#[test]
fn lead_nowhere_else() {
    let folder = folder();
    let outside = tempfile::TempDir::new().unwrap();
    symlink(outside.path(), folder.path("link")).unwrap();
    fs::create_dir_all(folder.path(".github/workflows")).unwrap();
    symlink(".github", folder.path("ci")).unwrap();
    let paths = [
        "ci/workflows/x.yaml",
        "../x.yaml",
        "/tmp/x.yaml",
        ".git/config",
        ".github/workflows/x.yaml",
        "link/x.yaml",
        "mesh.yaml",
        "clustermesh.yaml",
        "snapshots/west.yaml",
        "rendered/west/x.yaml",
        "templates/app.yaml",
        "apps/all.yaml",
    ];
    for path in paths {
        configure(&folder, &format!("- {{ template: templates/app.yaml, path: '{path}' }}"));
        let refused = refusal(&folder);
        assert!(refused.starts_with("error[invalid-output]: "), "{path}: {refused}");
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn templates_come_from_the_repository() {
    let folder = folder();
    let outside = tempfile::TempDir::new().unwrap();
    fs::write(outside.path().join("secret.yaml"), "password: hunter2\n").unwrap();
    symlink(outside.path().join("secret.yaml"), folder.path("templates/link.yaml")).unwrap();
    folder.write(".env", "hunter2\n");
    symlink("../.env", folder.path("templates/hidden.yaml")).unwrap();
    folder.write(".git/config", "hunter2\n");
    folder.write("templates/include.yaml", "{% include '../.env' %}");
    let away = outside.path().join("secret.yaml");
    for template in [
        "templates/link.yaml",
        ".env",
        ".git/config",
        "templates/include.yaml",
        "templates/hidden.yaml",
        "/proc/self/environ",
        away.to_str().unwrap(),
        "templates/missing.yaml",
    ] {
        configure(
            &folder,
            &format!("- {{ template: {template}, path: '{{{{ target.name }}}}.yaml' }}"),
        );
        let before = folder.touches(".");
        for command in [&["render"][..], &["validate"], &["render", "--check"]] {
            let run = folder.run(command);
            assert_eq!(run.code, 1, "{template}: {}", run.stderr);
            let said = format!("{}{}", run.stdout, run.stderr);
            assert!(said.contains("invalid-output") && !said.contains("hunter2"), "{said}");
        }
        assert_eq!(folder.touches("."), before);
    }
    let run = folder.run(&["template", "templates/include.yaml"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    // An include beside the template is fine.
    folder.write("templates/include.yaml", "{% include 'app.yaml' %}");
    configure(&folder, "- { template: templates/include.yaml, path: '{{ target.name }}.yaml' }");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.read("west.yaml").contains("peers: 4\n"));
}

#[test]
fn a_wrong_template_stops_everything() {
    let folder = folder();
    for (template, problem) in [
        ("a: {{ target.nam }}", "line 1: `target.nam` is undefined"),
        ("a: {{ nothing }}", "line 1: `nothing` is undefined"),
        ("a: x-{{ target.name }}", "line 1 of the result: a value is only a part of a text"),
        ("a: {% if %}", "line 1: syntax error"),
        ("a: [", "the result is not valid YAML"),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "the template needs too many steps",
        ),
    ] {
        folder.write("templates/app.yaml", template);
        let refused = refusal(&folder);
        assert!(refused.contains(problem), "{template}: {refused}");
    }
}

/// The config's own folder may be hidden; what counts is what is hidden in it.
#[test]
fn a_config_can_lie_in_a_hidden_folder() {
    let folder = folder();
    fs::create_dir(folder.path(".deploy")).unwrap();
    for name in ["clustermesh.yaml", "mesh.yaml", "snapshots", "rendered", "templates"] {
        if folder.path(name).exists() {
            fs::rename(folder.path(name), folder.path(&format!(".deploy/{name}"))).unwrap();
        }
    }
    let run = folder.run(&["--config", ".deploy/clustermesh.yaml", "render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.path(".deploy/apps/west.yaml").exists());
}

/// A render that fails after it has begun leaves the list of its outputs as it was, and other files
/// with names like ours are never its business.
#[test]
fn the_record_outlives_a_failure() {
    let folder = folder();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.write("apps/.clustermesh-notes", "mine\n");
    let record = folder.read("rendered/.clustermesh-outputs");
    // A file where a folder must be: the disk refuses that.
    folder.write("b", "mine");
    configure(
        &folder,
        "\
- { template: templates/app.yaml, path: 'apps/{{ target.name }}.yaml' }
- { template: templates/app.yaml, path: 'a/{{ target.name }}' }
- { template: templates/app.yaml, path: 'b/{{ target.name }}' }",
    );
    folder.edit("templates/app.yaml", "peers:", "number:");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert_eq!(folder.read("rendered/.clustermesh-outputs"), record);
    assert_eq!(folder.read("apps/.clustermesh-notes"), "mine\n");
    assert!(!folder.path("a").exists());
    configure(&folder, "  []");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert!(!folder.path("apps/west.yaml").exists());
    assert_eq!(folder.read("apps/.clustermesh-notes"), "mine\n");
}

/// What is printed is Peers: a template that is wrong, or takes all memory, must not keep Argo CD's
/// plugin from delivering them.
#[test]
fn printing_fills_in_no_template() {
    let folder = folder();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.write("templates/app.yaml", "a: {{ nothing }}");
    assert_eq!(folder.run(&["render"]).code, 1);
    let run = folder.run(&["render", "--target", "west"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("kind: Peer\n"));
}

/// The engine's stack grows with an expression, and memory with a width.
#[test]
fn a_hostile_template_ends_in_an_error() {
    let folder = folder();
    let templates = [
        format!("{{{{ {}1 }}}}", "-".repeat(16_000)),
        format!("{{{{ 1{} }}}}", "+1".repeat(8_000)),
        format!("{{{{ 'x'{} }}}}", "|upper".repeat(2_600)),
        format!("{{{{ {}1 }}}}", "-".repeat(3_900)),
        "{{ 'a' | indent(18446744073709551615) }}".to_owned(),
        "{{ '%99999999999d' | format(1) }}".to_owned(),
        "{{ [1, 2] | slice(99999999999999) }}".to_owned(),
        "{{ [1, 2] | batch(99999999999999, 1) }}".to_owned(),
    ];
    for template in templates {
        folder.write("templates/app.yaml", &template);
        for command in [&["render"][..], &["template", "templates/app.yaml", "--target", "west"]] {
            let run = folder.run(command);
            assert!((0..=2).contains(&run.code), "{}: {}", &template[..20], run.stderr);
        }
    }
}

#[test]
fn belong_to_the_tree_of_the_config() {
    let folder = folder();
    assert_eq!(folder.run(&["render"]).code, 0);
    let before = folder.touches("apps");
    folder.edit("templates/app.yaml", "peers:", "number:");
    let run = folder.run(&["render", "--rendered", "elsewhere"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(folder.touches("apps"), before);
    assert!(!folder.path("elsewhere/.clustermesh-outputs").exists());
}

#[test]
fn a_damaged_record_stops_everything() {
    let folder = folder();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.write("rendered/.clustermesh-outputs", "hunter2\n");
    insta::assert_snapshot!(refusal(&folder), @"error[invalid-output]: `rendered/.clustermesh-outputs` cannot be read: line 1 is invalid");
    // It cannot name files of others for removal either.
    let digest = "0".repeat(64);
    for path in ["../x", "/etc/passwd", ".git/config"] {
        let header = crate::cli::HEADER;
        folder.write("rendered/.clustermesh-outputs", format!("{header}\n{digest}  {path}\n"));
        assert!(refusal(&folder).ends_with("line 2 is invalid"), "{path}");
    }
}

#[test]
fn a_template_can_be_tried() {
    let folder = folder();
    let names = ["apiVersion", "kind", "target", "targets", "meshes", "clusters"];
    let fields = names.map(|it| format!("\"{it}\": {{{{ {it} }}}}"));
    folder.write("values.json", format!("{{{}}}", fields.join(", ")));
    let run = folder.run(&["template", "values.json", "--target", "west"]);
    let values = run.json();
    assert_eq!(values["target"]["name"], "west");
    let schema = folder.run(&["schema", "template-context"]);
    let schema = schema.json();
    assert_eq!(crate::support::json_schema::violations(&schema, &values), Vec::<String>::new());
    let run = folder.run(&["template", "templates/app.yaml", "--target", "west"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("name: mesh-west\n"), "{}", run.stdout);
    let run = folder.run_with_input(&["template", "-"], "{{ targets | length }}\n");
    assert_eq!((run.code, run.stdout.as_str()), (0, "3\n"), "{}", run.stderr);
    let run = folder.run(&["template", "templates/app.yaml"]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"error: templates/app.yaml: line 1: `target` is undefined; name a cluster with `--target`");
    let run = folder.run(&["template", "templates/app.yaml", "--target", "wets"]);
    insta::assert_snapshot!(run.stderr, @"error: no mesh contains a cluster `wets`; did you mean `west`?");
}

/// What nodes and people write stays data: in YAML, in JSON and in plain text.
#[test]
fn hostile_names_stay_data() {
    let folder = Folder::mesh();
    let hostile = [
        "a: b",
        "# x",
        "{{ 7 }}",
        "\"",
        "'",
        "- x",
        "*a",
        "no",
        "\n::error::x",
        "\u{202e}x",
        "%7b",
        "]}",
    ];
    let labels: serde_json::Map<String, serde_json::Value> = hostile
        .iter()
        .enumerate()
        .map(|(index, it)| (format!("label{index}"), serde_json::Value::from(*it)))
        .collect();
    let mut snapshot: serde_json::Value =
        serde_json::from_str(&folder.read("snapshots/west.json")).unwrap();
    snapshot["nodes"][0]["labels"] = labels.clone().into();
    folder.write("snapshots/west.json", serde_json::to_string_pretty(&snapshot).unwrap());
    for name in ["labels.yaml", "labels.json"] {
        let is_json = name.ends_with("json");
        let text = "{% for it in clusters %}{% if it.name == 'west' %}{{ it.nodes[0].labels }}{% endif %}{% endfor %}";
        folder.write(name, text);
        let run = folder.run(&["template", name]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(!run.stdout.contains(['\n', '\u{202e}']), "{}", run.stdout);
        let read: serde_json::Value =
            if is_json { run.json() } else { serde_yaml::from_str(&run.stdout).unwrap() };
        assert_eq!(read, serde_json::Value::Object(labels.clone()), "{}", run.stdout);
    }
    folder.write(
        "labels.txt",
        "{% for it in clusters %}{{ it.nodes[0].labels.label8 | default('') }}{% endfor %}",
    );
    let run = folder.run(&["template", "labels.txt"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "control or invisible characters");
}

#[test]
fn a_long_name_of_a_node_is_whole_and_its_location_is_known() {
    let long = ["n".repeat(60), "n".repeat(60), "n".repeat(60), "n".repeat(60)].join(".");
    let folder = Folder::mesh();
    let mut node = node(3, 1);
    node["name"] = long.as_str().into();
    node["annotations"]["kilo.squat.ai/granularity"] = "location".into();
    node["annotations"]["kilo.squat.ai/location"] = "rack".into();
    folder.keep("west", &[node]);
    folder.write(
        "templates/nodes.txt",
        "{% for source in target.sources %}{% for it in source.segments %}{{ it.node }} {{ it.location }}\n{% endfor %}{% endfor %}",
    );
    configure(&folder, "- { template: templates/nodes.txt, path: 'nodes/{{ target.name }}.txt' }");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&folder.read("nodes/east.txt"), &format!("{long} rack\n"));
}

/// A run that was killed in the swap had removed the output and not yet the folder, which only the record names.
#[test]
fn the_folder_of_an_output_that_is_gone_is_removed() {
    let folder = folder();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n");
    for entry in fs::read_dir(folder.path("apps")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!folder.path("apps").exists());
}

/// What a user may not look at is not absent: without its record, no later run would remove it.
#[test]
fn outputs_in_a_folder_that_cannot_be_entered_stop_the_run() {
    if !has_other_users() {
        return;
    }
    let folder = folder();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n");
    let program = folder.path("clustermesh");
    program_at(&program);
    give(&folder, "", 999);
    for (path, mode) in [("", 0o755), ("apps", 0o600)] {
        fs::set_permissions(folder.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let record = folder.read("rendered/.clustermesh-outputs");
    let mut command = Command::new(program);
    command.uid(999).gid(999).env_clear().current_dir(folder.path("")).arg("render");
    let run = Run::from(command.output().unwrap());
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(&run.stderr, "`apps/east.yaml` cannot be an output: Permission denied");
    assert!(run.stderr.ends_with("nothing was written\n"), "{}", run.stderr);
    assert_eq!(folder.read("rendered/.clustermesh-outputs"), record);
}
