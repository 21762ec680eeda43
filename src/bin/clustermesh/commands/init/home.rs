//! The folder of a new mesh, as tools that read the whole repository see it.

use std::cell::OnceCell;
use std::path::{Component, Path, PathBuf};

use anyhow::bail;
use clustermesh::name::MeshName;

use super::kilo_kustomization;
use crate::disk;
use crate::settings::WorkingRepository;

/// The working folder's path from the root of its git repository.
#[derive(Debug, Default)]
pub(super) struct Home {
    root: PathBuf,
    folders: Vec<String>,
    /// Whether the repository has the Kustomization of Flux that installs Kilo, once that was looked for.
    installs_kilo: OnceCell<bool>,
}

impl Home {
    /// Finds the working folder; outside of a repository, it counts as the root of one.
    pub(super) fn find() -> Self {
        let Some(root) = WorkingRepository::default().repository() else {
            return Self::default();
        };
        let here = disk::canonical(Path::new("."));
        let below = here.strip_prefix(disk::canonical(&root)).unwrap_or(Path::new(""));
        let folders = below.components().filter_map(|it| match it {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        Self { folders: folders.collect(), root, ..Self::default() }
    }

    /// Returns the root of the repository.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns whether the repository has the Kustomization of Flux that installs Kilo.
    pub(super) fn installs_kilo(&self) -> bool {
        *self.installs_kilo.get_or_init(|| kilo_kustomization::is_in(&self.root))
    }

    /// Returns whether it is the root of the repository.
    pub(super) fn is_root(&self) -> bool {
        self.folders.is_empty()
    }

    /// Returns the name of the repository as the name of a mesh, as far as it can be one.
    pub(super) fn mesh_name(&self) -> Option<MeshName> {
        if self.root == Path::new("") {
            return None;
        }
        let root = disk::canonical(&self.root);
        let name = root.file_name()?.to_string_lossy().to_lowercase();
        let words = name.split(|it: char| !it.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|it| !it.is_empty()).collect();
        words.join("-").parse().ok()
    }

    /// Refuses names that would need quotes in a template or a pattern of git.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        if let Some(folder) = self.folders.iter().find(|it| !it.chars().all(is_plain)) {
            bail!(
                "the folder {} cannot be written into the files for Flux and Argo CD; use one with letters, digits, `-`, \
                 `_` and `.`",
                disk::shown(Path::new(folder))
            );
        }
        Ok(())
    }

    /// Returns an object of Flux or Argo CD, or a template of it, with its paths from the root of the repository.
    pub(super) fn rebase(&self, text: &str) -> String {
        if self.is_root() {
            return text.to_owned();
        }
        let folder = self.folders.join("/");
        text.replace("\"./\" ~ target.path", &format!("\"./{folder}/\" ~ target.path"))
            .replace("{{ target.path }}", &format!("{{{{ \"{folder}/\" ~ target.path }}}}"))
            .replace("    /*\n    !/rendered\n    !/rendered-services\n", &self.only_rendered())
            .replace("`rendered/`", &format!("`{folder}/rendered/`"))
    }

    /// Returns the patterns that ignore everything except the rendered folders. A file is ignored if one of the folders
    /// above it is, so each of these is named.
    fn only_rendered(&self) -> String {
        let mut path = String::new();
        let folders = self.folders.iter().map(|folder| {
            path = format!("{path}/{folder}");
            format!("    !{path}\n    {path}/*\n")
        });
        let folders = folders.collect::<Vec<_>>().concat();
        format!("    /*\n{folders}    !{path}/rendered\n    !{path}/rendered-services\n")
    }
}
