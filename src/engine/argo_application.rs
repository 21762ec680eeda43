//! Applications of Argo CD: which folders they deliver, and in which order.
//!
//! They are read as far as that matters. Argo CD judges the rest.

use super::StepOrder;
use crate::document::{Source, TreeNode, TreeValue};

/// The group of Argo CD's objects.
const GROUP: &str = "argoproj.io/";

/// The options that change the order of a sync, as `controller/sync.go` of Argo CD v3.2 compares them: letter by
/// letter.
const PRUNE_LAST: &str = "PruneLast=true";
const BACKGROUND: &str = "PrunePropagationPolicy=background";

/// The deepest nesting of generators that is searched.
const DEPTH: usize = 16;

/// An Application, or the template of an `ApplicationSet`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ArgoApplication {
    /// The folders that it delivers. `*` is a part that an `ApplicationSet` fills in.
    folders: Vec<String>,
    /// The clusters whose Peers the plugin renders for it.
    clusters: Vec<String>,
    /// The order in which it changes objects.
    pub order: StepOrder,
}

impl ArgoApplication {
    /// Reads the Applications and `ApplicationSet`s of a text. Other documents are left out, and so is a text that is not
    /// YAML: Argo CD takes none of it.
    pub fn all(name: &str, text: &str) -> Vec<Self> {
        if !text.contains(GROUP) {
            return Vec::new();
        }
        let source = Source::parse(name, text);
        let documents = source.map(|it| it.documents).unwrap_or_default();
        documents.iter().filter_map(Self::read).collect()
    }

    fn read(document: &TreeNode) -> Option<Self> {
        if !document.get("apiVersion")?.text()?.starts_with(GROUP) {
            return None;
        }
        let spec = document.get("spec")?;
        let mut generated = Vec::new();
        let spec = match document.get("kind")?.text()? {
            "Application" => spec,
            "ApplicationSet" => {
                add_folders(spec.get("generators")?, DEPTH, &mut generated);
                spec.get("template")?.get("spec")?
            }
            _ => return None,
        };
        let mut application =
            Self { folders: Vec::new(), clusters: Vec::new(), order: order(spec) };
        for source in spec.get("source").into_iter().chain(items(spec, "sources")) {
            let path = text(source, "path").map(filled);
            match (plugin_target(source), path.as_deref()) {
                (Some(cluster), _) => application.clusters.push(filled(cluster)),
                // Any of the folders for which there is an Application.
                (None, Some("*")) => application.folders.append(&mut generated),
                (None, path) => application.folders.extend(path.map(str::to_owned)),
            }
        }
        Some(application)
    }

    /// Returns whether it delivers the folder of a cluster in a rendered tree of this name. Its path from the
    /// top of the repository is unknown, so the ends of the paths are compared.
    pub fn delivers(&self, tree: &str, cluster: &str) -> bool {
        let is_folder = |path: &String| {
            let parts = path.split('/').filter(|it| !matches!(*it, "" | "."));
            match parts.collect::<Vec<_>>().as_slice() {
                [.., folder, name] => fits(folder, tree) && fits(name, cluster),
                _ => false,
            }
        };
        self.folders.iter().any(is_folder) || self.clusters.iter().any(|it| fits(it, cluster))
    }
}

/// Returns the order in which a sync with the options of a spec changes objects.
fn order(spec: &TreeNode) -> StepOrder {
    let options: Vec<&str> = spec
        .get("syncPolicy")
        .into_iter()
        .flat_map(|it| items(it, "syncOptions"))
        .filter_map(TreeNode::text)
        .collect();
    if options.contains(&PRUNE_LAST) {
        StepOrder::AppliesFirst
    } else if options.contains(&BACKGROUND) {
        StepOrder::DeletesFirst
    } else {
        StepOrder::Mixed
    }
}

/// Returns the cluster that the plugin of clustermesh renders for a source, if a parameter names one.
fn plugin_target(source: &TreeNode) -> Option<&str> {
    let mut parameters = items(source.get("plugin")?, "parameters");
    let target = parameters.find(|it| text(it, "name") == Some("target"))?;
    text(target, "string")
}

/// Adds the folders for which generators make Applications, also those of generators inside of others.
fn add_folders(node: &TreeNode, depth: usize, folders: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let paths = items(node, "directories").filter_map(|it| text(it, "path"));
    folders.extend(paths.map(str::to_owned));
    match &node.value {
        TreeValue::Sequence(nodes) => nodes.iter().for_each(|it| add_folders(it, depth, folders)),
        TreeValue::Mapping(entries) => {
            entries.iter().for_each(|it| add_folders(&it.value, depth, folders));
        }
        TreeValue::Scalar(_) => {}
    }
}

fn items<'n>(node: &'n TreeNode, key: &str) -> impl Iterator<Item = &'n TreeNode> + use<'n> {
    let items = match node.get(key).map(|it| &it.value) {
        Some(TreeValue::Sequence(items)) => &items[..],
        _ => &[],
    };
    items.iter()
}

fn text<'n>(node: &'n TreeNode, key: &str) -> Option<&'n str> {
    node.get(key)?.text()
}

/// Returns a text with `*` for each value that an `ApplicationSet` fills in, such as `{{.name}}`.
fn filled(text: &str) -> String {
    let mut pieces = text.split("{{");
    let first = pieces.next().unwrap_or_default();
    let rest = pieces.map(|it| it.split_once("}}").map_or("", |it| it.1));
    rest.fold(first.to_owned(), |all, piece| all + "*" + piece)
}

/// Returns whether a name fits a pattern: it has what the pattern has before and after its open parts.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let tail = rest.rsplit('*').next().unwrap_or_default();
    name.strip_prefix(head).is_some_and(|it| it.ends_with(tail))
}
