//! `rbac --kubeconfig`: the script that creates a login, with a kubectl that answers what a cluster could.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::Folder;
use crate::support::{Run, assert_contains};

/// The Secret has no token at first, and a proxy and a server are hostile.
const KUBECTL: &str = r#"#!/bin/sh
printf '%s\n' "$*" >> calls
case "$*" in
    *' apply '*) cat >> applied ;;
    *' get secret '*) if [ -e asked ]; then printf %s "to'ken"; else : > asked; fi ;;
    *cluster.server*) printf '%s' "https://it's \$(touch pwned)
- x: y" ;;
    *cluster.certificate*) printf Q0E= ;;
esac
"#;

fn folder(arguments: &[&str]) -> Folder {
    let folder = Folder::mesh();
    folder.write("bin/kubectl", KUBECTL);
    let program = folder.path("bin/kubectl");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let run = folder.run(&[&["rbac", "--kubeconfig"], arguments].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    folder.write("login.sh", run.stdout);
    folder
}

fn sh(folder: &Folder, arguments: &[&str]) -> Run {
    let bin = folder.path("bin").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(arguments)
        .current_dir(folder.path(""))
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_login_is_written_for_each_cluster() {
    let folder = folder(&["--peers"]);
    let run = sh(&folder, &["login.sh", "-jobs", "east", "west=a=$(touch pwned)"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let file = folder.path("-jobs");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kubeconfig: Value = serde_yaml::from_str(&folder.read("-jobs")).unwrap();
    assert_eq!(kubeconfig["users"][1], json!({"name": "west", "user": {"token": "to'ken"}}));
    let context = json!({"name": "west", "context": {"cluster": "west", "user": "west"}});
    assert_eq!(
        kubeconfig["contexts"],
        json!([{"name": "east", "context": {"cluster": "east", "user": "east"}}, context])
    );
    let cluster = &kubeconfig["clusters"][0]["cluster"];
    assert_contains(cluster["server"].as_str().unwrap(), "https://it's $(touch pwned)");
    assert_eq!(cluster["certificate-authority-data"], "Q0E=");
    assert_eq!(cluster.as_object().unwrap().len(), 2);
    // The secret is in the file and nowhere else, and texts of clusters stay texts.
    let calls = folder.read("calls");
    assert!(!calls.contains("ken'") && !calls.contains("to'ken"), "{calls}");
    assert!(!run.stderr.contains("to'ken"), "{}", run.stderr);
    assert!(!folder.path("pwned").exists());
    assert_contains(&calls, "--context=a=$(touch pwned) apply");
    let applied = folder.read("applied");
    assert_contains(&applied, "type: kubernetes.io/service-account-token\n");
    assert_contains(&applied, "resources: [peers]\n");
    // A file that is there may hold other logins.
    let again = sh(&folder, &["login.sh", "./-jobs", "east"]);
    insta::assert_snapshot!(again.stderr, @"./-jobs exists: choose another file");
    assert_eq!(again.code, 1);
}

#[test]
fn nothing_is_written_without_all_clusters() {
    let folder = folder(&[]);
    assert_eq!(sh(&folder, &["-n", "login.sh"]).code, 0);
    let wrong = [
        &["jobs"][..],
        &["jobs", "east", "We st"],
        &["jobs", "=a"],
        &["jobs", "east="],
        &["jobs", "east", "east=other"],
    ];
    for arguments in wrong {
        let run = sh(&folder, &[&["login.sh"], arguments].concat());
        assert_eq!(run.code, 1, "{arguments:?}");
        assert!(!folder.path("jobs").exists(), "{arguments:?}");
    }
    folder.write("bin/kubectl", "#!/bin/sh\nexit 3\n");
    assert_ne!(sh(&folder, &["login.sh", "jobs", "east"]).code, 0);
    assert!(!folder.path("jobs").exists());
}

#[test]
fn only_the_named_services_are_granted() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24\n",
        "wireguardCIDR: 10.101.0.0/24\n      acceptedServices: [shop, '1']\n",
    );
    let service = "cluster: west, ports: [{ port: 80 }], in: [east]";
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.103.0.0/24\n",
        &format!(
            "wireguardCIDR: 10.103.0.0/24\n      serviceCIDR: 10.45.0.0/16\n  services:\n    \
            - {{ name: web, namespace: shop, clusterIPs: [10.45.0.20], {service} }}\n    \
            - {{ name: 'no', namespace: shop, clusterIPs: [10.45.0.21], {service}, as: {{ namespace: '1' }} }}\n"
        ),
    );
    let run = folder.run(&["rbac", "--services", "west"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @r#"
    # The right that `clustermesh snapshot --services` needs in west: to read these Services.
    # Apply this only there. To use another user than this service account, change the subjects.
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      name: clustermesh-snapshot-services
      namespace: shop
    rules:
      - apiGroups: [""]
        resources: [services]
        resourceNames:
          - "no"
          - web
        verbs: [get]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      name: clustermesh-snapshot-services
      namespace: shop
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: Role
      name: clustermesh-snapshot-services
    subjects:
      - kind: ServiceAccount
        name: snapshot
        namespace: clustermesh
    "#);
    let east = folder.run(&["rbac", "--services", "east"]).stdout;
    let rules: Vec<Value> = serde_yaml::Deserializer::from_str(&east)
        .map(|it| Value::deserialize(it).unwrap())
        .filter(|it| it["kind"] == "Role")
        .map(|it| json!([it["metadata"]["namespace"], it["rules"]]))
        .collect();
    let rule = |name| json!([{ "apiGroups": [""], "resources": ["services"], "resourceNames": [name], "verbs": ["get"] }]);
    assert_eq!(json!(rules), json!([["1", rule("no")], ["shop", rule("web")]]));
    let refusal = |arguments: &[&str]| {
        let arguments = [&["rbac", "--services"], arguments].concat();
        folder.refusal(2, |it| it.run(&arguments))
    };
    insta::assert_snapshot!(refusal(&["north"]), @"error: `spec.services` names no Service that `north` has or gets, only Services of `east`, `west`");
    insta::assert_snapshot!(refusal(&["west", "-C", ".."]), @"
    error: no mesh found: this folder has no `mesh.yaml` and no `meshes/`
    help: run `clustermesh init`, use --mesh or -C to name a mesh elsewhere, or write this to `mesh.yaml`:

    apiVersion: kilo.squat.ai/v1alpha1
    kind: ClusterMesh
    metadata:
      name: mesh
    spec:
      clusters:
        - name: east
          podCIDRs: [10.42.0.0/16]
          wireguardCIDR: 10.4.0.0/16
        - name: west
          podCIDRs: [10.44.0.0/16]
          wireguardCIDR: 10.6.0.0/16
    ");
    for other in ["--peers", "--kubeconfig", "--delivery", "--secret=a/b"] {
        assert_contains(&refusal(&["west", other]), "cannot be used with");
    }
}
