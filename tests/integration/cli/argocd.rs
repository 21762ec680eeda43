//! `argocd generate`: what Argo CD's plugin server gets from us.
//!
//! The server starts it in the folder of an Application, in a copy of the repository, with the
//! Application described in variables. Here the tests play the server; `tests/delivery` tests with
//! the real one.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use super::*;
use crate::support::assert_contains;

mod confinement;
mod guards;
mod parameters;

/// The most bytes of a failure.
const LIMIT: usize = 8 << 10;

/// A repository in a folder of its own, and the variables of the plugin server for an Application
/// in it.
struct Application {
    folder: Folder,
    path: String,
    parameters: Option<String>,
    variables: Vec<(&'static str, String)>,
}

impl Application {
    /// An Application with this path in a copy of a repository.
    fn at(path: &str, repository: &Folder) -> Self {
        let folder = Folder::empty();
        crate::support::copy(repository.0.path(), &folder.path("repository"));
        Self { folder, path: path.to_owned(), parameters: None, variables: Vec::new() }
    }

    /// The Application of a cluster in a rendered tree.
    fn new(target: &str) -> Self {
        Self::at(&format!("rendered/{target}"), &Folder::rendered())
    }

    /// The Application of a cluster, without a rendered tree.
    fn unrendered(target: &str) -> Self {
        let application = Self::at(".", &Folder::mesh());
        application.with(&json!([{ "name": "target", "string": target }]))
    }

    fn with(mut self, parameters: &Value) -> Self {
        self.parameters = Some(parameters.to_string());
        self
    }

    /// The Application with this severity in the plugin's container.
    fn failing_on(mut self, severity: &str) -> Self {
        let variable = ("CLUSTERMESH_FAIL_ON", severity.to_owned());
        self.variables.push(variable);
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path("repository").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        self.folder.write(&format!("repository/{path}"), text);
    }

    fn keep(&self, cluster: &str, nodes: &[Value]) {
        let other = Folder::empty();
        other.keep(cluster, nodes);
        let path = format!("snapshots/{cluster}.json");
        self.write(&path, &other.read(&path));
    }

    /// Runs a command as the plugin server does, in the Application's folder.
    fn run(&self, command: &str) -> Run {
        let folder = self.path(&self.path);
        self.run_in(&folder, Command::new(env!("CARGO_BIN_EXE_clustermesh")), command)
    }

    fn run_in(&self, folder: &Path, mut program: Command, command: &str) -> Run {
        program
            .args(["argocd", command])
            .env_clear()
            .current_dir(folder)
            .stdin(Stdio::null())
            .env("ARGOCD_APP_NAME", "mesh")
            .env("ARGOCD_APP_SOURCE_PATH", &self.path)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(parameters) = &self.parameters {
            program.env("ARGOCD_APP_PARAMETERS", parameters);
        }
        let run = Run::from(program.output().unwrap());
        assert_harmless(&run);
        assert!(run.stderr.len() <= LIMIT, "{}", run.stderr.len());
        assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
        match run.code {
            0 => assert_eq!(run.stderr, ""),
            _ => assert_eq!(run.stdout, "", "{}", run.stderr),
        }
        run
    }

    /// What is delivered.
    fn manifests(&self) -> String {
        let run = self.run("generate");
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    }

    /// Why nothing is delivered.
    fn refusal(&self, code: i32) -> String {
        let run = self.run("generate");
        assert_eq!(run.code, code, "{} {}", run.stdout, run.stderr);
        run.stderr
    }
}

/// What `render` prints for a target.
fn rendered(target: &str) -> String {
    let run = Folder::mesh().run(&["render", "--target", target]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout
}

#[test]
fn delivers_what_render_prints() {
    for target in ["east", "north", "west"] {
        assert_eq!(Application::new(target).manifests(), rendered(target));
        assert_eq!(Application::unrendered(target).manifests(), rendered(target));
    }
}

/// Runs what `argocd/plugin` has, as the plugin server would.
#[test]
fn what_is_shipped_is_what_is_understood() {
    let shipped = |file: &str| -> Value {
        let path = crate::support::project().join("argocd/plugin").join(file);
        serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let spec = shipped("plugin.yaml")["spec"].take();
    assert_eq!(spec["generate"], json!({ "command": ["/clustermesh", "argocd", "generate"] }));
    let parameters = json!({ "command": ["/clustermesh", "argocd", "parameters"] });
    assert_eq!(spec["parameters"], json!({ "dynamic": parameters }));
    assert_eq!(spec.as_object().unwrap().len(), 2, "{spec}");
    let source = shipped("application.yaml")["spec"]["source"].take();
    let mut application = Application::unrendered("north").with(&source["plugin"]["parameters"]);
    application.path = source["path"].as_str().unwrap().to_owned();
    assert_eq!(application.manifests(), rendered("west"));
}

#[test]
fn a_parameter_goes_before_the_path() {
    let application =
        Application::new("east").with(&json!([{ "name": "target", "string": "west" }]));
    assert_eq!(application.manifests(), rendered("west"));
}

#[test]
fn a_path_is_understood_in_every_spelling() {
    let mut application = Application::new("west");
    for path in ["./rendered/west", "rendered//west/", "rendered/./west"] {
        application.path = path.to_owned();
        assert_eq!(application.manifests(), rendered("west"), "{path}");
    }
    for path in [".", "./", ""] {
        let mut application = Application::unrendered("west");
        application.path = path.to_owned();
        assert_eq!(application.manifests(), rendered("west"), "{path}");
    }
}

#[test]
fn the_config_is_looked_for_up_to_the_root() {
    let repository = Folder::empty();
    crate::support::copy(Folder::rendered().0.path(), &repository.path("clusters/mesh"));
    repository.write(
        "clusters/clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmeshes: [mesh/mesh.yaml]\n\
         snapshots: mesh/snapshots\nrendered: mesh/rendered\n",
    );
    let application = Application::at("clusters/mesh/rendered/west", &repository);
    assert_eq!(application.manifests(), rendered("west"));
    fs::remove_file(application.path("clusters/clustermesh.yaml")).unwrap();
    assert_eq!(application.manifests(), rendered("west"));
}

#[test]
fn without_a_target_nothing_is_delivered() {
    let application = Application::at(".", &Folder::rendered());
    insta::assert_snapshot!(application.refusal(2), @"error: no cluster is selected; set the plugin's parameter `target`, or set the path of the Application to the folder of a cluster");
    let application = Application::at("rendered", &Folder::rendered());
    insta::assert_snapshot!(application.refusal(2), @"error: no mesh contains a cluster `rendered`; known clusters: `east`, `north`, `west`");
}

#[test]
fn is_reported_by_the_plugin_server_where_the_application_is() {
    let run = Folder::rendered().run(&["argocd", "generate"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: ARGOCD_APP_SOURCE_PATH is not set; Argo CD's plugin server sets it");
    let mut application = Application::new("west");
    let folder = application.path("rendered/west");
    let run = |application: &Application| {
        let program = Command::new(env!("CARGO_BIN_EXE_clustermesh"));
        let run = application.run_in(&folder, program, "generate");
        assert_eq!(run.code, 2, "{}", run.stdout);
        run.stderr
    };
    application.path = "rendered/east".to_owned();
    insta::assert_snapshot!(run(&application), @"error: ARGOCD_APP_SOURCE_PATH is `rendered/east`, but the working directory is a different one; remove symbolic links from the path of the Application");
    for path in ["..", "../repository/rendered/west", "/", "/tmp", "rendered/west/.."] {
        application.path = path.to_owned();
        let report = run(&application);
        assert_contains(&report, "expected a path in the repository, without `..`");
    }
}

#[test]
fn warnings_of_a_delivery_are_not_repeated_at_every_refresh() {
    let application = Application::new("west");
    let mut claimed = node(1, 2);
    claimed["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.101.0.1/24");
    application.keep("east", &[node(1, 1), claimed]);
    let manifests = application.manifests();
    assert!(manifests.contains("prod--east--n1"));
    let refusal = application.failing_on("warning").refusal(1);
    assert_contains(&refusal, "warning[duplicate-address] east/n2: ");
}

#[test]
fn needs_neither_a_home_nor_git_nor_a_tree_that_can_be_written() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    if !crate::support::has_other_users() {
        return;
    }
    let application = Application::new("west");
    let program = application.folder.path("clustermesh");
    crate::support::program_at(&program);
    let mut paths = vec![application.folder.path("")];
    while let Some(path) = paths.pop() {
        let mode = if path.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
            0o555
        } else {
            0o444
        };
        if path != program {
            chown(&path, Some(999), Some(999)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    for command in ["generate", "parameters"] {
        let mut program = Command::new(&program);
        program.uid(999).gid(999);
        let folder = application.path("rendered/west");
        let run = application.run_in(&folder, program, command);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(command == "parameters" || run.stdout == rendered("west"));
    }
    fs::set_permissions(application.folder.path(""), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_failure_is_short_and_begins_with_errors() {
    let application = Application::new("west");
    for number in 0..300 {
        application.write(&format!("rendered/north/stray-{number}.yaml"), "x: y\n");
    }
    assert_eq!(application.manifests(), rendered("west"));
    application.keep("east", &[]);
    let refusal = application.refusal(1);
    assert!(refusal.starts_with("error[silent-cluster] east: "), "{refusal}");
    assert_eq!(refusal.matches("warning[").count(), 9, "{refusal}");
    let refusal = application.failing_on("warning").refusal(1);
    assert!(refusal.starts_with("error[silent-cluster] east: "), "{refusal}");
    let last: Vec<&str> = refusal.lines().rev().take(2).collect();
    assert!(last[0].starts_with("1 error, 3"), "{refusal}");
    assert!(last[1].starts_with("and "), "{refusal}");
    assert!(last[1].ends_with(" more; run `clustermesh validate`"), "{refusal}");
    assert!(LIMIT / 2 < refusal.len(), "{}", refusal.len());
}

#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_written_is_not_delivered() {
    let application = Application::new("west");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_clustermesh"))
        .args(["argocd", "generate"])
        .env_clear()
        .env("ARGOCD_APP_SOURCE_PATH", "rendered/west")
        .current_dir(application.path("rendered/west"))
        .stdout(full)
        .output()
        .unwrap();
    let report = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(report.starts_with("error: cannot write"), "{report}");
}

#[test]
fn uses_no_colour_whatever_the_environment_says() {
    let mut application = Application::new("west");
    application.variables.push(("CLICOLOR_FORCE", "1".to_owned()));
    application.write("mesh.yaml", "a: [");
    application.refusal(2);
}

#[test]
fn announces_its_parameters() {
    let run = Application::new("west").run("parameters");
    insta::assert_snapshot!(run.stdout, @r#"
    [
      {
        "name": "target",
        "title": "Cluster",
        "tooltip": "The cluster whose Peers are delivered; default: the last part of the path. The clusters are east, north, west",
        "required": false,
        "itemType": "string",
        "collectionType": "string",
        "string": "west"
      },
      {
        "name": "allow-empty",
        "title": "Allow losses",
        "tooltip": "TARGET or TARGET/SOURCE: deliver even if the cluster loses all its Peers, or all Peers of one source. Remove the value afterwards",
        "required": false,
        "itemType": "string",
        "collectionType": "array",
        "array": []
      }
    ]
    "#);
    let announced = |application: &Application| -> Value {
        let run = application.run("parameters");
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.json()
    };
    // Without a cluster in the path, one must be named.
    let target = &announced(&Application::unrendered("west"))[0];
    assert_eq!((&target["required"], &target["string"]), (&json!(true), &Value::Null));
    // Snapshots are not needed, and what is wrong with parameters is left to `generate`.
    let application = Application::new("west").with(&json!([{ "name": "nope" }]));
    fs::remove_dir_all(application.path("snapshots")).unwrap();
    assert_eq!(announced(&application).as_array().unwrap().len(), 2);
    application.write("mesh.yaml", "a: [");
    assert_eq!(application.run("parameters").code, 2);
}
