//! The Kustomization of Flux that installs Kilo, for which the Kustomizations of clusters wait.

use std::path::Path;

use clustermesh::document::{Source, TreeNode};

use crate::disk::{self, EntryType, Roots};

/// The group of the objects.
const GROUP: &str = "kustomize.toolkit.fluxcd.io/";

/// The lines of the template with which Flux waits for the Kustomization, and those without it.
const WAITS: &str = "  # The Kustomization that installs Kilo and its Peer CRD. Flux waits for it.
{# Write its name here, or remove these lines if Flux does not install Kilo. #}
  dependsOn:
    - name: kilo
";
const WAITS_NOT: &str = "{# If Flux installs Kilo, move these lines out of the comment, with the name of its Kustomization:
  dependsOn:
    - name: kilo
#}
";

/// The most folders below each other, and the most files, that are looked into.
const DEPTH: usize = 8;
const FILES: usize = 5000;

/// The largest file that is read, in bytes.
const LIMIT: u64 = 1 << 20;

/// Returns the template for a repository. Without the Kustomization, Flux would never apply the Peers.
pub(super) fn adapt(template: &str, is_there: bool) -> String {
    if is_there { template.to_owned() } else { template.replace(WAITS, WAITS_NOT) }
}

/// Returns whether a repository has the Kustomization. Files that cannot be read do not count.
pub(super) fn is_in(root: &Path) -> bool {
    let root = if root == Path::new("") { Path::new(".") } else { root };
    let mut left = FILES;
    is_below(&Roots::within(root), root, DEPTH, &mut left)
}

fn is_below(roots: &Roots, folder: &Path, depth: usize, left: &mut usize) -> bool {
    let entries = disk::entries(roots, folder).unwrap_or_default();
    entries.into_iter().any(|(name, kind)| {
        let path = folder.join(&name);
        let extension = path.extension().and_then(|it| it.to_str());
        match kind {
            EntryType::Folder if !name.to_string_lossy().starts_with('.') && 0 < depth => {
                is_below(roots, &path, depth - 1, left)
            }
            EntryType::File if matches!(extension, Some("yaml" | "yml")) && 0 < *left => {
                *left -= 1;
                disk::read_text(roots, &path, LIMIT).is_ok_and(|text| is_in_text(&text))
            }
            _ => false,
        }
    })
}

fn is_in_text(text: &str) -> bool {
    // Most files have none, and need no parser.
    if !text.contains(GROUP) {
        return false;
    }
    let is_it = |document: &TreeNode| {
        let field = |name: &str| document.get(name).and_then(TreeNode::text);
        let name = document.get("metadata").and_then(|it| it.get("name")?.text());
        field("apiVersion").is_some_and(|it| it.starts_with(GROUP))
            && field("kind") == Some("Kustomization")
            && name == Some("kilo")
    };
    Source::parse("", text).is_ok_and(|it| it.documents.iter().any(is_it))
}
