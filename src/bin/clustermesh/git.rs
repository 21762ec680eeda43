//! git: commits and their files, read through the `git` program.
//!
//! The repository may come from a stranger. Nothing is checked out, fetched or written, no command runs
//! that starts hooks or programs of the repository's config, and no text of a user is an argument.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, bail};
use clustermesh::diagnostic;

mod commit;
mod objects;
mod tree;

pub(crate) use commit::GitCommit;
pub(crate) use objects::ObjectId;
use objects::Objects;
pub(crate) use tree::{EntryMode, GitTree, TreeEntry};

/// The environment of every `git`.
const VARIABLES: [(&str, &str); 7] = [
    // Objects that a partial clone lacks are not fetched. Before 2.45 git does not know that variable,
    // but then no transport is allowed.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    // A commit has the parents that it names, not those that `.git/info/grafts` lists.
    ("GIT_GRAFT_FILE", ""),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_LITERAL_PATHSPECS", "0"),
    // Its messages are compared.
    ("LC_ALL", "C"),
];

/// The options before the subcommand. A bare repository inside of a checkout has a config of its
/// own, from a stranger.
const OPTIONS: [&str; 4] =
    ["--no-pager", "--no-replace-objects", "-c", "safe.bareRepository=explicit"];

/// The largest commit, tag or tree that is read, in bytes.
const LIMIT: u64 = 64 << 20;

/// The longest name of a branch in a message, in characters.
const NAMED: usize = 80;

/// The longest name of a revision, in bytes.
const NAME: usize = 4096;

/// The most commits that are searched for a file. That takes about ten seconds.
const SEARCHED: usize = 100_000;

/// The explanation for commits that a shallow clone lacks.
const SHALLOW: &str = "this is a shallow clone: fetch all history first (`git fetch --unshallow`, or \
                       `fetch-depth: 0` for actions/checkout)";

/// The repository around the working folder.
#[derive(Debug)]
pub(crate) struct GitRepository {
    /// The folder of its working tree.
    pub(crate) top: PathBuf,
    objects: Mutex<Objects>,
}

impl GitRepository {
    /// Opens the repository around the working folder.
    ///
    /// # Errors
    /// There is no git, no repository, or one that git refuses to read.
    pub(crate) fn around_here() -> anyhow::Result<Self> {
        let output = run(&["rev-parse", "--show-toplevel"])?;
        if !output.status.success() {
            bail!(refusal(&output.stderr));
        }
        let mut top = output.stdout;
        if top.last() == Some(&b'\n') {
            top.pop();
        }
        Ok(Self { top: PathBuf::from(os_string(top)), objects: Mutex::default() })
    }

    /// Returns the commit that a name means; with `...` behind it, the merge base of that commit and
    /// HEAD.
    pub(crate) fn commit(&self, name: &str) -> anyhow::Result<ObjectId> {
        match name.strip_suffix("...") {
            None => self.resolve(name),
            Some(base) => self.merge_base(base),
        }
    }

    /// Returns the tree of a commit.
    pub(crate) fn root(&self, commit: &ObjectId) -> anyhow::Result<ObjectId> {
        let found = self.find(&format!("{commit}^{{tree}}"))?;
        found.with_context(|| format!("the tree of {commit} is missing"))
    }

    /// Returns what a commit is made of.
    pub(crate) fn parsed(&self, commit: &ObjectId) -> anyhow::Result<GitCommit> {
        GitCommit::parse(&self.read(commit, LIMIT)?)
    }

    pub(crate) fn tree(&self, id: &ObjectId) -> anyhow::Result<GitTree> {
        GitTree::parse(&self.read(id, LIMIT)?, id.bytes())
    }

    /// Returns the content of an object of at most `limit` bytes.
    pub(crate) fn read(&self, id: &ObjectId, limit: u64) -> anyhow::Result<Vec<u8>> {
        let object = self.objects().read(id.as_str(), limit)?.context(
            "git does not have its content; if this is a partial clone, clone it without `--filter`",
        )?;
        Ok(object.content)
    }

    fn resolve(&self, name: &str) -> anyhow::Result<ObjectId> {
        let is_name = !name.is_empty() && name.len() <= NAME && !name.contains(['\n', '\r', '\0']);
        let object = if is_name {
            // git ends at names of which it has no log.
            self.find(name)
                .with_context(|| format!("`{name}` is not a commit of this repository"))?
        } else {
            None
        };
        let commit = match object {
            Some(object) => self.find(&format!("{object}^{{commit}}"))?,
            None => None,
        };
        match commit {
            Some(commit) => Ok(commit),
            None if name == "HEAD" => bail!("the repository has no commit yet"),
            None if name.contains("@{") => bail!(
                "`{name}` is not a commit of this repository: git has no log of it here, as in a new clone; name \
                 the commit, such as `HEAD~1`"
            ),
            None if is_range(name) => bail!(
                "`{name}` is not one commit; write `main...` for the commit at which the current branch left `main`"
            ),
            None if is_shallow()? => {
                bail!("`{name}` is not a commit of this repository; {SHALLOW}")
            }
            None => bail!("`{name}` is not a commit of this repository; {}", branches()?),
        }
    }

    fn merge_base(&self, name: &str) -> anyhow::Result<ObjectId> {
        let (commit, head) = (self.resolve(name)?, self.resolve("HEAD")?);
        let output = run(&["merge-base", commit.as_str(), head.as_str()])?;
        let base = String::from_utf8_lossy(&output.stdout);
        match (base.trim().parse(), output.status.code()) {
            (Ok(base), Some(0)) => Ok(base),
            (_, Some(1)) if is_shallow()? => {
                bail!("`{name}` and HEAD have no common commit; {SHALLOW}")
            }
            (_, Some(1)) => bail!("`{name}` and HEAD have no common commit"),
            _ => bail!(refusal(&output.stderr)),
        }
    }

    /// Returns the object of a name, if there is one.
    fn find(&self, name: &str) -> anyhow::Result<Option<ObjectId>> {
        let object = self.objects().read(name, LIMIT)?;
        Ok(object.map(|object| object.id))
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a commit, or any before it, has a path that one of these patterns matches, a submodule included.
/// In a shallow clone, and in a history of more than [`SEARCHED`] commits, that is unknown, so one may have had it.
pub(crate) fn may_have_had(
    commit: &ObjectId,
    patterns: impl Iterator<Item = String>,
) -> anyhow::Result<bool> {
    let mut lines = vec![commit.to_string(), "--".to_owned()];
    lines.extend(patterns);
    let is_one_line = |it: &String| !it.contains('\n');
    if is_shallow()? || is_long(commit)? || !lines.iter().all(is_one_line) {
        return Ok(true);
    }
    Ok(!first_commit(&lines)?.is_empty())
}

/// Starts git with pipes for its input and its output.
fn started(arguments: &[&str]) -> anyhow::Result<Child> {
    program(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(unstarted)
}

/// Returns what git prints about the first commit that these lines of standard input select.
fn first_commit(lines: &[String]) -> anyhow::Result<Vec<u8>> {
    let mut child = started(&["rev-list", "--max-count=1", "--full-history", "--stdin"])?;
    let mut stdin = child.stdin.take();
    let written = stdin.as_mut().map(|it| it.write_all((lines.join("\n") + "\n").as_bytes()));
    drop(stdin);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!(refusal(&output.stderr));
    }
    written.transpose()?;
    Ok(output.stdout)
}

/// Returns whether a file of a commit, in any folder, contains texts that all of these regular expressions match.
/// Prose about such texts does not count.
pub(crate) fn contains(commit: &ObjectId, patterns: &[&str]) -> anyhow::Result<bool> {
    let options = ["--quiet", "--text", "--all-match", "--extended-regexp"];
    let safe = ["--no-textconv", "--no-recurse-submodules"];
    let patterns = patterns.iter().flat_map(|it| ["-e", it]);
    let paths = [commit.as_str(), "--", ":(top)", ":(top,exclude,glob)**/*.md"];
    let words = ["grep"].into_iter().chain(options).chain(safe);
    let output = run(&words.chain(patterns).chain(paths).collect::<Vec<_>>())?;
    match output.status.code() {
        Some(0) => Ok(true),
        // It reports objects that are missing, and continues.
        Some(1) if output.stderr.is_empty() => Ok(false),
        _ => bail!(refusal(&output.stderr)),
    }
}

/// Returns whether a name means the commits between two, as in `main..topic`.
fn is_range(name: &str) -> bool {
    let ends = name.split_once("..");
    ends.is_some_and(|(from, to)| !from.is_empty() && !to.trim_start_matches('.').is_empty())
}

/// Returns whether a commit has too many ancestors for a search.
fn is_long(commit: &ObjectId) -> anyhow::Result<bool> {
    let skipped = format!("--skip={SEARCHED}");
    let output = run(&["rev-list", "--max-count=1", &skipped, commit.as_str()])?;
    Ok(!output.status.success() || !output.stdout.is_empty())
}

/// Returns why the history may lack commits, if it may.
pub(crate) fn missing_history() -> anyhow::Result<Option<&'static str>> {
    Ok(is_shallow()?.then_some(SHALLOW))
}

fn is_shallow() -> anyhow::Result<bool> {
    let output = run(&["rev-parse", "--is-shallow-repository"])?;
    Ok(output.stdout.starts_with(b"true"))
}

/// Runs a command.
/// Names some branches, for a name that is not one.
fn branches() -> anyhow::Result<String> {
    let output = run(&[
        "for-each-ref",
        "--count=8",
        "--format=%(refname:short)",
        "refs/heads",
        "refs/remotes",
    ])?;
    let names = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> = names.lines().map(|it| diagnostic::escaped(it, NAMED)).collect();
    Ok(format!("branches here: {}", names.join(", ")))
}

fn run(words: &[&str]) -> anyhow::Result<Output> {
    program(words).output().map_err(unstarted)
}

fn program(words: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(OPTIONS).args(words).envs(VARIABLES).stdin(Stdio::null());
    command
}

fn unstarted(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return anyhow::anyhow!("`git` was not found in PATH; install git");
    }
    anyhow::Error::new(error).context("cannot start `git`")
}

/// Returns what git printed as the reason for which it ended.
fn reason(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    text.strip_prefix("fatal: ").map_or(text.clone(), str::to_owned)
}

/// Returns why git refused, from what it printed.
fn refusal(stderr: &[u8]) -> String {
    let text = reason(stderr);
    if text.starts_with("not a git repository") {
        return "this folder is not in a git repository".to_owned();
    }
    if text.starts_with("this operation must be run in a work tree")
        || text.starts_with("cannot use bare repository")
    {
        return "this is a bare repository, which has no working tree".to_owned();
    }
    format!("git cannot read this repository: {text}")
}

/// Returns the name that git means with some bytes.
pub(crate) fn os_string(bytes: Vec<u8>) -> OsString {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt as _;
        OsString::from_vec(bytes)
    }
    #[cfg(not(unix))]
    {
        String::from_utf8_lossy(&bytes).into_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_why_git_refuses() {
        for (stderr, reason) in [
            (
                "fatal: not a git repository (or any of the parent directories): .git\n",
                "this folder is not in a git repository",
            ),
            (
                "fatal: this operation must be run in a work tree\n",
                "this is a bare repository, which has no working tree",
            ),
            (
                "fatal: detected dubious ownership in repository at '/a'\nTo add\n\n\tgit config\n",
                "git cannot read this repository: detected dubious ownership in repository at '/a' \
                 To add git config",
            ),
        ] {
            assert_eq!(refusal(stderr.as_bytes()), reason);
        }
    }
}
