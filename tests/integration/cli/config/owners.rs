//! Whose config is used, and whose `.git` marks a repository: git's CVE-2022-24765.

use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::cli::*;
use crate::support::{has_other_users, program_at};

const ME: u32 = 999;
const OTHER: u32 = 1000;

/// A config whose only effect can be seen: it names a mesh that is not there.
const PLANTED: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Config
meshes: [planted.yaml]
";

/// A mesh in `shared/work`; every user may read it.
fn shared() -> Folder {
    let folder = Folder::empty();
    let mesh = Folder::mesh();
    crate::support::copy(mesh.0.path(), &folder.path("shared/work"));
    for path in ["", "shared"] {
        fs::set_permissions(folder.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Runs `validate` in `shared/work` as a user.
fn validate(folder: &Folder, uid: u32, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let program = folder.path("clustermesh");
    if !program.exists() {
        program_at(&program);
    }
    let mut command = Command::new(program);
    command
        .uid(uid)
        .gid(uid)
        .env_clear()
        .envs(variables.iter().copied())
        .current_dir(folder.path("shared/work"))
        .arg("validate")
        .args(arguments);
    let output = loop {
        match command.output() {
            // A process that another test has just started may still have the copy open.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {}
            output => break output.unwrap(),
        }
    };
    output.into()
}

fn is_used(run: &Run) -> bool {
    let is_used = run.stderr.contains("planted.yaml");
    let is_ignored = run.stderr.contains("is ignored because another user owns it");
    assert_ne!(is_used, is_ignored, "{run:?}");
    is_used
}

#[test]
fn root_uses_the_config_of_whoever_owns_the_working_folder() {
    if !has_other_users() {
        return;
    }
    let folder = shared();
    folder.write("shared/clustermesh.yaml", PLANTED);
    give(&folder, "shared", 1001);
    assert!(is_used(&validate(&folder, 0, &[], &[])));
    // A working folder of its own, below a foreign one.
    give(&folder, "shared/work", 0);
    let run = validate(&folder, 0, &[], &[]);
    assert!(!is_used(&run));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(is_used(&validate(&folder, 0, &[("SUDO_UID", "1001")], &[])));
    assert!(!is_used(&validate(&folder, 0, &[("SUDO_UID", "1002")], &[])));
    assert!(!is_used(&validate(&folder, 0, &[("SUDO_UID", "no")], &[])));
}

#[test]
fn a_service_uses_the_config_of_whoever_owns_the_checkout() {
    if !has_other_users() {
        return;
    }
    let folder = shared();
    folder.write("shared/clustermesh.yaml", PLANTED);
    give(&folder, "shared", OTHER);
    assert!(is_used(&validate(&folder, ME, &[], &[])));
    give(&folder, "shared/work", ME);
    assert!(!is_used(&validate(&folder, ME, &[], &[])));
    // Root's config is used, but not in the folder of another user, who can replace it.
    give(&folder, "shared/clustermesh.yaml", 0);
    assert!(!is_used(&validate(&folder, ME, &[], &[])));
    give(&folder, "shared", 0);
    give(&folder, "shared/work", ME);
    assert!(is_used(&validate(&folder, ME, &[], &[])));
    // A link belongs to who made it, and its target to who wrote it.
    fs::rename(folder.path("shared/clustermesh.yaml"), folder.path("shared/other.yaml")).unwrap();
    std::os::unix::fs::symlink("other.yaml", folder.path("shared/clustermesh.yaml")).unwrap();
    assert!(is_used(&validate(&folder, ME, &[], &[])));
    chown(folder.path("shared/other.yaml"), Some(OTHER), None).unwrap();
    assert!(!is_used(&validate(&folder, ME, &[], &[])));
}

#[test]
fn a_config_that_is_here_or_named_is_always_used() {
    if !has_other_users() {
        return;
    }
    let folder = shared();
    give(&folder, "shared", ME);
    folder.write("shared/work/clustermesh.yaml", PLANTED);
    chown(folder.path("shared/work/clustermesh.yaml"), Some(OTHER), None).unwrap();
    assert!(is_used(&validate(&folder, ME, &[], &[])));
    fs::rename(folder.path("shared/work/clustermesh.yaml"), folder.path("shared/clustermesh.yaml"))
        .unwrap();
    assert!(!is_used(&validate(&folder, ME, &[], &[])));
    let named = ["--config", "../clustermesh.yaml"];
    assert!(is_used(&validate(&folder, ME, &[], &named)));
    let named = [("CLUSTERMESH_CONFIG", "../clustermesh.yaml")];
    assert!(is_used(&validate(&folder, ME, &named, &[])));
}

/// The path of a finding is seen from the repository's root, which shows what is taken for it.
#[test]
fn a_planted_git_folder_marks_no_repository() {
    if !has_other_users() {
        return;
    }
    let folder = shared();
    folder.edit("shared/work/mesh.yaml", "podCIDRs", "podCidrs");
    give(&folder, "shared/work", ME);
    let seen = |folder: &Folder| {
        let run = validate(folder, ME, &[], &["--output", "gitlab"]);
        let report = run.json();
        report[0]["location"]["path"].as_str().unwrap().to_owned()
    };
    assert_eq!(seen(&folder), "mesh.yaml");
    let shared = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(folder.path("shared"), shared).unwrap();
    fs::create_dir(folder.path("shared/.git")).unwrap();
    chown(folder.path("shared/.git"), Some(OTHER), None).unwrap();
    assert_eq!(seen(&folder), "mesh.yaml");
    chown(folder.path("shared/.git"), Some(ME), None).unwrap();
    assert_eq!(seen(&folder), "work/mesh.yaml");
    // As a file, as in worktrees, and as a link.
    fs::remove_dir(folder.path("shared/.git")).unwrap();
    folder.write("shared/.git", "gitdir: elsewhere\n");
    chown(folder.path("shared/.git"), Some(OTHER), None).unwrap();
    assert_eq!(seen(&folder), "mesh.yaml");
    fs::remove_file(folder.path("shared/.git")).unwrap();
    let link = folder.path("shared/.git");
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(OTHER), None).unwrap();
    assert_eq!(seen(&folder), "mesh.yaml");
}
