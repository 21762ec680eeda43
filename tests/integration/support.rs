//! What several tests need: fleets, and runs of the program.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

pub(crate) use rendered::{Snapshots, meshes, plan, snapshots, tree};

#[path = "../fleets/applied.rs"]
pub(crate) mod applied;
pub(crate) mod json_schema;
#[path = "../fleets/node.rs"]
pub(crate) mod node;
#[path = "../fleets/random.rs"]
mod random;
#[path = "../fleets/rendered.rs"]
mod rendered;
#[path = "../fleets/scale.rs"]
pub(crate) mod scale;
#[path = "../fleets/shape.rs"]
pub(crate) mod shape;
#[path = "../fleets/tenants.rs"]
pub(crate) mod tenants;

/// The project's folder.
pub(crate) fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a run of the program did.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code.
    pub(crate) code: i32,
    /// What it wrote to standard output.
    pub(crate) stdout: String,
    /// What it wrote to standard error.
    pub(crate) stderr: String,
}

impl Run {
    /// Returns the JSON text on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("killed, perhaps for its time or memory"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Fails if a text does not contain a part.
#[track_caller]
pub(crate) fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in:\n{text}");
}

/// Runs the program in a folder, with nothing in its environment.
pub(crate) fn clustermesh(folder: &Path, arguments: &[&str]) -> Run {
    clustermesh_with_input(folder, arguments, "")
}

/// Runs the program in a folder, with nothing in its environment and something on standard input.
pub(crate) fn clustermesh_with_input(
    folder: &Path,
    arguments: &[&str],
    input: impl AsRef<[u8]>,
) -> Run {
    let output = assert_cmd::Command::cargo_bin("clustermesh")
        .unwrap()
        .env_clear()
        .current_dir(folder)
        .args(arguments)
        .write_stdin(input.as_ref())
        .output()
        .unwrap();
    output.into()
}

/// Returns whether files can be given to other users and programs run as these; if not, it prints
/// that. Root of a user namespace with one user cannot.
#[cfg(unix)]
#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
pub(crate) fn has_other_users() -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    let has = std::os::unix::fs::chown(file.path(), Some(65_534), Some(65_534)).is_ok();
    if !has {
        eprintln!("SKIPPED: no file can be given to another user here");
    }
    has
}

/// Puts a copy of the program at `path`, for users who cannot read the build's folder.
///
/// Another process writes it. If this one did, a test that starts a process at the same time would hand
/// the open file on to it, and a file that is open for writing cannot be run ("Text file busy").
#[cfg(unix)]
pub(crate) fn program_at(path: &Path) {
    let status = std::process::Command::new("install")
        .args(["-m", "0755", env!("CARGO_BIN_EXE_clustermesh")])
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Copies a folder with everything in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
