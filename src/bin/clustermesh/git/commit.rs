//! Commits: their tree, their parents and their time.

use anyhow::Context as _;

use super::ObjectId;

/// A commit.
#[derive(Clone, Debug)]
pub(crate) struct GitCommit {
    pub(crate) tree: ObjectId,
    /// The commits before it; several of a merge.
    pub(crate) parents: Vec<ObjectId>,
    /// When it was committed, in Unix seconds.
    pub(crate) time: i64,
}

impl GitCommit {
    /// Parses a commit object: lines of a name and a value up to an empty line.
    pub(super) fn parse(content: &[u8]) -> anyhow::Result<Self> {
        let content = String::from_utf8_lossy(content);
        let headers = content.lines().take_while(|it| !it.is_empty());
        let headers: Vec<(&str, &str)> = headers.filter_map(|it| it.split_once(' ')).collect();
        let first = |name: &str| headers.iter().find(|it| it.0 == name).map(|it| it.1);
        let tree = first("tree").and_then(|it| it.parse().ok());
        let parents = headers.iter().filter(|it| it.0 == "parent");
        let parents: Vec<ObjectId> = parents.filter_map(|it| it.1.parse().ok()).collect();
        // The name and the address of the person, the seconds, and the time zone.
        let time = first("committer").and_then(|it| it.rsplit(' ').nth(1)?.parse().ok());
        let commit = tree.zip(time).map(|(tree, time)| Self { tree, parents, time });
        commit.context("a commit object of git has no tree or no time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_merges_and_ignores_the_message() {
        let id = |digit: &str| digit.repeat(40);
        let text = format!(
            "tree {}\nparent {}\nparent {}\nauthor A B <a@b> 5 +0100\ncommitter C  D <> 1700000000 -0330\n\nparent {}\n",
            id("a"),
            id("b"),
            id("c"),
            id("d")
        );
        let commit = GitCommit::parse(text.as_bytes()).unwrap();
        let parents: Vec<&str> = commit.parents.iter().map(ObjectId::as_str).collect();
        assert_eq!((commit.tree.as_str(), commit.time), (&*id("a"), 1_700_000_000));
        assert_eq!(parents, [id("b"), id("c")]);
        assert!(GitCommit::parse(b"tree x\n\n").is_err());
    }
}
