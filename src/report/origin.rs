//! The origin of a result: the meshes, the commits and the program that it was made from.

use crate::text::{count, listed};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The origin of a result.
#[derive(Clone, Debug, Default)]
pub struct ResultOrigin {
    /// The names of the meshes.
    pub meshes: Vec<String>,
    /// The commit that is checked out, shortened. The files can have changes that are not committed. Missing outside of a
    /// repository.
    pub commit: Option<String>,
    /// The commit of the old version, shortened, if the result compares with one.
    pub against: Option<AgainstCommit>,
    /// The snapshots, with the dates of the commits that last changed them, as far as the history here shows.
    pub snapshots: Vec<SnapshotDate>,
}

/// The commit of an old version.
#[derive(Clone, Debug)]
pub struct AgainstCommit {
    /// The name, as it was given.
    pub name: String,
    /// The commit.
    pub commit: String,
}

/// When a commit last changed a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotDate {
    /// The cluster.
    pub cluster: String,
    /// The day of the commit, in UTC.
    pub date: String,
}

impl ResultOrigin {
    /// Returns it in one sentence.
    pub fn sentence(&self) -> String {
        let noun = if self.meshes.len() == 1 { "Mesh" } else { "Meshes" };
        let mut parts = vec![format!("{noun} {}", listed(&self.meshes))];
        parts.extend(self.commit.iter().map(|it| format!("commit {it}")));
        let against = self.against.iter();
        parts.extend(against.map(|it| format!("compared with commit {} ({})", it.commit, it.name)));
        let dates = || self.snapshots.iter().map(|it| &it.date);
        parts.extend(dates().min().zip(dates().max()).map(|(first, last)| {
            let snapshots = count(self.snapshots.len(), "snapshot");
            if first == last {
                return format!("{snapshots} last changed on {first}");
            }
            format!("{snapshots} last changed from {first} to {last}")
        }));
        parts.push(format!("clustermesh {VERSION}"));
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_what_is_known() {
        let mesh = ResultOrigin { meshes: vec!["prod".to_owned()], ..ResultOrigin::default() };
        let version = format!("clustermesh {VERSION}");
        assert_eq!(mesh.sentence(), format!("Mesh prod; {version}"));
        let date = |cluster: &str, date: &str| SnapshotDate {
            cluster: cluster.to_owned(),
            date: date.to_owned(),
        };
        let against = AgainstCommit { name: "HEAD~3".to_owned(), commit: "0f".to_owned() };
        let origin = ResultOrigin {
            commit: Some("1a".to_owned()),
            against: Some(against),
            snapshots: vec![date("east", "2026-11-27"), date("west", "2026-10-01")],
            ..mesh
        };
        assert_eq!(
            origin.sentence(),
            format!(
                "Mesh prod; commit 1a; compared with commit 0f (HEAD~3); 2 snapshots last changed from 2026-10-01 to \
                 2026-11-27; {version}"
            )
        );
    }
}
