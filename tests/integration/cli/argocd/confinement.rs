//! Links and paths out of the repository.

use super::*;
use crate::support::assert_contains;

const SECRET: &str = "hunter2-correct-horse";

/// An Application, and a secret beside its repository.
fn beside_a_secret() -> Application {
    let application = Application::new("west");
    application.folder.write("secret", SECRET);
    application
}

#[test]
fn links_out_of_the_root_are_refused() {
    for input in ["mesh.yaml", "snapshots/east.json", "clustermesh.yaml"] {
        let application = beside_a_secret();
        let secret = application.folder.path("secret");
        // Whether the other one exists is not for everyone to know.
        for target in [secret.as_path(), Path::new("/proc/self/environ"), Path::new("/nowhere")] {
            let _ = fs::remove_file(application.path(input));
            symlink(target, application.path(input)).unwrap();
            let refusal = application.refusal(2);
            assert!(refusal.contains("it is outside "), "{input}: {refusal}");
            assert!(!refusal.contains("hunter2"), "{refusal}");
        }
    }
}

#[test]
fn a_repository_around_the_root_widens_nothing() {
    let application = beside_a_secret();
    fs::create_dir(application.folder.path(".git")).unwrap();
    application.folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmeshes: [nowhere.yaml]\n",
    );
    assert_eq!(application.manifests(), rendered("west"));
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmeshes: [../secret]\n";
    application.write("clustermesh.yaml", config);
    let refusal = application.refusal(2);
    assert_contains(&refusal, "it is outside ");
    assert!(!refusal.contains("hunter2"), "{refusal}");
    // Neither is a config above the root used.
    fs::remove_file(application.path("clustermesh.yaml")).unwrap();
    fs::remove_file(application.path("mesh.yaml")).unwrap();
    application.refusal(2);
}

#[test]
fn a_link_in_the_path_is_refused() {
    let mut application = Application::new("west");
    fs::create_dir(application.path("apps")).unwrap();
    symlink("../rendered/west", application.path("apps/west")).unwrap();
    application.path = "apps/west".to_owned();
    let refusal = application.refusal(2);
    assert_contains(&refusal, "remove symbolic links from the path");
}

#[test]
fn files_of_others_in_the_repository_are_not_quoted() {
    for text in [
        format!("TOKEN={SECRET}\nOTHER=[{SECRET}\n"),
        format!("{SECRET}: !{SECRET} [\"{SECRET}\"\n"),
        format!("kind: ClusterMesh\nspec: {{{SECRET}: 1, clusters: [{{name: {SECRET}!}}]}}\n"),
    ] {
        for input in ["mesh.yaml", "snapshots/east.json", "clustermesh.yaml"] {
            let application = Application::new("west");
            application.write("other-team/values.yaml", &text);
            let _ = fs::remove_file(application.path(input));
            let target = match input.split_once('/') {
                Some(_) => "../other-team/values.yaml",
                None => "other-team/values.yaml",
            };
            symlink(target, application.path(input)).unwrap();
            for command in ["generate", "parameters"] {
                let run = application.run(command);
                let is_unread = command == "parameters" && input.starts_with("snapshots");
                assert!(run.code != 0 || is_unread, "{input}: {}", run.stdout);
                assert!(!run.stderr.contains("hunter2"), "{input}: {}", run.stderr);
            }
        }
    }
}

#[test]
fn mistakes_are_reported_with_their_place_and_without_excerpts() {
    let application = Application::new("west");
    let mesh = MESH.replace("10.1.0.0/16", "10.1.0.0/33");
    application.write("mesh.yaml", &mesh);
    insta::assert_snapshot!(application.refusal(1), @"
    mesh.yaml:8:18: error[invalid-range] invalid range: `33` is not a prefix length from 0 to 32
      help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
    1 error
    ");
}
