//! The source from which the CI jobs build this program.

use std::str::FromStr;

use clustermesh::diagnostic::Quoted;
use clustermesh::yaml::scalar;

/// The longest address, in bytes.
const LONGEST: usize = 500;

/// A commit of a git repository.
#[derive(Clone, Debug)]
pub(super) struct ProgramSource {
    repository: String,
    commit: String,
}

impl ProgramSource {
    /// Fills in the values at the top of a workflow; without a source they are empty, and its jobs fail.
    pub(super) fn fill_in(source: Option<&Self>, text: &str) -> String {
        let (repository, commit) = match source {
            Some(Self { repository, commit }) => (repository.as_str(), commit.as_str()),
            None => ("", ""),
        };
        text.replace("@REPOSITORY@", &scalar(repository)).replace("@REVISION@", &scalar(commit))
    }
}

impl FromStr for ProgramSource {
    type Err = String;

    /// Reads `URL@COMMIT`. A tag or branch is refused: it can be moved to another program, and the job that runs it
    /// has the kubeconfig.
    fn from_str(text: &str) -> Result<Self, String> {
        let (repository, commit) = text.rsplit_once('@').ok_or("expected URL@COMMIT")?;
        let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        if !matches!(commit.len(), 40 | 64) || !commit.bytes().all(is_digit) {
            let commit = Quoted(commit);
            return Err(format!("{commit} is not the full hash of a commit"));
        }
        let schemes = ["https://", "ssh://", "file://"];
        let is_url = schemes.iter().any(|it| repository.starts_with(it));
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-._~:/@%+".contains(&it);
        if !is_url || LONGEST < repository.len() || !repository.bytes().all(is_plain) {
            let repository = Quoted(repository);
            return Err(format!(
                "{repository} is not the address of a git repository: write `https://HOST/PATH` or `ssh://HOST/PATH`"
            ));
        }
        Ok(Self { repository: repository.to_owned(), commit: commit.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_commit_of_a_repository_is_a_source() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for url in ["https://git.example.com/a/b.git", "ssh://git@h/a", "file:///a"] {
            let source = format!("{url}@{commit}").parse::<ProgramSource>().unwrap();
            assert_eq!((source.repository.as_str(), source.commit.as_str()), (url, commit));
        }
        for wrong in [
            "https://git.example.com/a@main",
            "https://git.example.com/a@0123456",
            "https://git.example.com/a",
            &format!("clustermesh@{commit}"),
            &format!("https://h/$(id)@{commit}"),
            &format!("https://h/a b@{commit}"),
            &format!("-c@{commit}"),
        ] {
            assert!(wrong.parse::<ProgramSource>().is_err(), "{wrong}");
        }
    }
}
