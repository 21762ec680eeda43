//! Whose config may start login plugins: those of root, of the current user, and of the user who
//! called `sudo`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::{expected, nodes};
use crate::api_server::{ApiServer, Context, Login, Setup, credential, kubeconfig};
use crate::cli::Folder;
use crate::support::{Run, has_other_users, program_at};

const CONFIG: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Config
clusters: { east: { kubeconfig: east.yaml } }
";

/// A config that names a kubeconfig with a plugin.
struct Site {
    folder: Folder,
    east: ApiServer,
}

impl Site {
    fn new(user: impl Fn(Context) -> Context) -> Self {
        let setup = Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
        let east = setup.start();
        let folder = Folder::mesh();
        let context = user(Context::new("east", &east.url()));
        folder.write("east.yaml", kubeconfig(&[context]));
        folder.write("clustermesh.yaml", CONFIG);
        folder.write("credential.json", credential("sesame-sesame"));
        folder.write("token", "sesame-sesame");
        folder.write("plugin.sh", "echo run >>runs\ncat credential.json\n");
        let program = folder.path("clustermesh");
        program_at(&program);
        Self { folder, east }
    }

    fn with_plugin() -> Self {
        Self::new(|context| context.plugin("/bin/sh", &["plugin.sh"]))
    }

    /// Gives everything to a user; all users may write all of it.
    fn give(&self, uid: u32) {
        fn give(path: &Path, uid: u32) {
            chown(path, Some(uid), Some(uid)).unwrap();
            let mode = if path.is_dir() { 0o777 } else { 0o666 };
            if path.file_name().is_none_or(|it| it != "clustermesh") {
                fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            }
            if path.is_dir() {
                for entry in fs::read_dir(path).unwrap() {
                    give(&entry.unwrap().path(), uid);
                }
            }
        }
        give(&self.folder.path(""), uid);
    }

    fn run(&self, uid: u32, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
        let output = Command::new(self.folder.path("clustermesh"))
            .uid(uid)
            .gid(uid)
            .env_clear()
            .envs(variables.iter().copied())
            .current_dir(self.folder.path(""))
            .args(["snapshot", "east"])
            .args(arguments)
            .output()
            .unwrap();
        output.into()
    }

    /// Returns whether the plugin was run, and the cluster read.
    fn runs(&self, uid: u32, variables: &[(&str, &str)], arguments: &[&str]) -> bool {
        let _ = fs::remove_file(self.folder.path("runs"));
        let asked = self.east.requests().len();
        let run = self.run(uid, variables, arguments);
        let ran = self.folder.path("runs").exists();
        let report = run.stderr.contains("error[unsafe-kubeconfig]");
        assert_eq!((run.code == 0, ran), (!report, !report), "{}", run.stderr);
        assert_eq!(self.east.requests().len() - asked, usize::from(ran));
        ran
    }
}

#[test]
fn root_runs_no_plugin_of_another() {
    if !has_other_users() {
        return;
    }
    let site = Site::with_plugin();
    assert!(site.runs(0, &[], &[]), "its own");
    site.give(1001);
    assert!(!site.runs(0, &[], &[]));
    insta::assert_snapshot!(site.run(0, &[], &[]).stderr, @"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig east.yaml contains `exec`, which runs a program or reads a file, and the config that names it, clustermesh.yaml, belongs to another user; snapshots/east.json was kept
    help: if you trust this config, add `--config clustermesh.yaml`
    ");
    assert!(!site.runs(0, &[("SUDO_UID", "1002")], &[]));
    assert!(!site.runs(0, &[("SUDO_UID", "")], &[]));
    assert!(site.runs(0, &[("SUDO_UID", "1001")], &[]), "who called sudo");
    assert!(site.runs(0, &[], &["--config", "clustermesh.yaml"]));
    assert!(site.runs(0, &[("CLUSTERMESH_CONFIG", "clustermesh.yaml")], &[]));
    assert!(site.runs(1001, &[], &[]), "the owner");
    // The owner of the config decides, not that of the kubeconfig.
    chown(site.folder.path("east.yaml"), Some(0), Some(0)).unwrap();
    assert!(!site.runs(0, &[], &[]));
    // A link to a config of our own is not one of our own.
    chown(site.folder.path("clustermesh.yaml"), Some(0), Some(0)).unwrap();
    assert!(site.runs(0, &[], &[]));
    let [config, real] = ["clustermesh.yaml", "real.yaml"].map(|it| site.folder.path(it));
    fs::rename(&config, real).unwrap();
    std::os::unix::fs::symlink("real.yaml", &config).unwrap();
    assert!(site.runs(0, &[], &[]));
    std::os::unix::fs::lchown(&config, Some(1001), Some(1001)).unwrap();
    assert!(!site.runs(0, &[], &[]));
}

#[test]
fn a_user_runs_no_plugin_of_another() {
    if !has_other_users() {
        return;
    }
    let site = Site::with_plugin();
    site.give(1000);
    assert!(!site.runs(999, &[], &[]));
    assert!(site.runs(999, &[], &["--config", "clustermesh.yaml"]));
    assert!(site.runs(1000, &[], &[]));
    // The owner of the kubeconfig decides what is run.
    chown(site.folder.path("clustermesh.yaml"), Some(0), Some(0)).unwrap();
    assert!(!site.runs(999, &[], &[]), "of another user");
    assert!(!site.runs(999, &[], &["--config", "clustermesh.yaml"]));
    insta::assert_snapshot!(site.run(999, &[], &[]).stderr, @r#"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig east.yaml, which clustermesh.yaml names, belongs to another user; snapshots/east.json was kept
    help: if you trust it, become its owner: `sudo chown "$(id -u)" east.yaml`
    "#);
    chown(site.folder.path("east.yaml"), Some(0), Some(0)).unwrap();
    assert!(site.runs(999, &[], &[]), "of root");
    chown(site.folder.path("east.yaml"), Some(999), Some(999)).unwrap();
    assert!(site.runs(999, &[], &[]), "its own");
    // A link of another user could lead to another file at any time.
    let [kubeconfig, real] = ["east.yaml", "real.yaml"].map(|it| site.folder.path(it));
    fs::rename(&kubeconfig, real).unwrap();
    std::os::unix::fs::symlink("real.yaml", &kubeconfig).unwrap();
    std::os::unix::fs::lchown(&kubeconfig, Some(1000), Some(1000)).unwrap();
    assert!(!site.runs(999, &[], &[]));
}

/// A kubeconfig of the current user may start anything, with a context from any source.
#[test]
fn a_kubeconfig_of_our_own_runs_its_plugin() {
    if !has_other_users() {
        return;
    }
    let site = Site::with_plugin();
    site.folder.edit("clustermesh.yaml", "kubeconfig: east.yaml", "context: east");
    site.give(1001);
    assert!(site.runs(0, &[], &["--kubeconfig", "east.yaml"]));
    assert!(site.runs(0, &[("KUBECONFIG", "east.yaml")], &[]));
}

/// The server could belong to an attacker, and the file to us.
#[test]
fn no_file_of_ours_is_a_token_for_another() {
    if !has_other_users() {
        return;
    }
    let site = Site::new(|context| context.user("tokenFile", "token"));
    site.give(1001);
    let run = site.run(0, &[], &[]);
    assert_eq!((run.code, site.east.connections()), (2, 0));
    insta::assert_snapshot!(run.stderr, @"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig east.yaml contains `tokenFile`, which runs a program or reads a file, and the config that names it, clustermesh.yaml, belongs to another user; snapshots/east.json was kept
    help: if you trust this config, add `--config clustermesh.yaml`
    ");
    assert_eq!(site.run(0, &[], &["--config", "clustermesh.yaml"]).code, 0);
    let snapshot: serde_json::Value =
        serde_json::from_str(&site.folder.read("snapshots/east.json")).unwrap();
    assert_eq!(snapshot["nodes"], expected(1));
}
