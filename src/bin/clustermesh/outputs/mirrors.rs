//! The folder with the Services that clusters get of others, beside the rendered tree of the config.

use std::path::Path;

use clustermesh::kilo::peer::SOURCE_LABEL;
use clustermesh::manifest::KUSTOMIZATION;
use clustermesh::mirror::{self, FOLDER_SUFFIX, Mirrors};
use clustermesh::name::ClusterName;
use clustermesh::outputs::{self, TemplateTexts, wrong_output};
use clustermesh::rules::Finding;

use super::own_tree;
use crate::settings::Settings;
use crate::{disk, input_file};

pub(super) fn folder(settings: &Settings) -> String {
    let names = own_tree(settings).split('/');
    let names = names.filter(|it| !it.is_empty() && *it != ".");
    format!("{}{FOLDER_SUFFIX}", names.collect::<Vec<_>>().join("/"))
}

/// Returns its files.
///
/// # Errors
/// There is no place for it.
pub(super) fn texts(mirrors: &Mirrors, settings: &Settings) -> Result<TemplateTexts, Vec<Finding>> {
    let folder = folder(settings);
    let texts = mirror::tree(mirrors, &folder);
    let texts = texts.map_err(|error| vec![wrong_output(error.to_string())])?;
    if !texts.is_empty() && (own_tree(settings).starts_with('/') || !outputs::is_path(&folder)) {
        let message = format!(
            "`rendered: {}` leaves no place for the Services of other clusters",
            own_tree(settings)
        );
        let help = "write a folder below that of the config, such as `rendered: rendered`";
        return Err(vec![wrong_output(message).help(help)]);
    }
    Ok(texts)
}

/// Returns what to do about the Services of a cluster whose kustomization, at `path`, is removed: GitOps deletes nothing if the
/// folder is missing.
pub(super) fn unserved(settings: &Settings, path: &str) -> Option<String> {
    let below = Path::new(path).strip_prefix(folder(settings)).ok()?;
    let cluster = below.to_str()?.strip_suffix(KUSTOMIZATION)?;
    let cluster: ClusterName = cluster.strip_suffix('/')?.parse().ok()?;
    let folder = settings.config.join(path.strip_suffix(KUSTOMIZATION)?);
    let kubectl = settings.config.content.kubectl(&cluster);
    Some(format!(
        "without files in `{}`, Flux and Argo CD delete nothing; to delete the Services that are left in `{cluster}`, run \
         `{kubectl} delete services,endpointslices --all-namespaces -l {SOURCE_LABEL}`",
        input_file::name(&folder)
    ))
}

/// Finds what is in the folder although no render wrote it: GitOps may apply it.
pub(super) fn strays(settings: &Settings, is_known: impl Fn(&str) -> bool) -> Vec<Finding> {
    let folder = folder(settings);
    let roots = &settings.config.roots;
    let (mut findings, mut folders) = (Vec::new(), vec![folder.clone()]);
    while let Some(path) = folders.pop() {
        let place = settings.config.join(&path);
        let entries = match disk::entries(roots, &place) {
            Ok(entries) => entries,
            Err(_) if matches!(disk::is_there(roots, &place), Ok(false)) => continue,
            Err(error) => {
                findings.push(wrong_output(format!("{error:#}")));
                continue;
            }
        };
        for (name, file_type) in entries {
            let name = name.to_string_lossy();
            let below = format!("{path}/{name}");
            // A render that was killed leaves these, and the next one removes them.
            let is_left = file_type.is_file() && disk::is_temporary(&name);
            if file_type.is_dir() && path == folder {
                folders.push(below);
            } else if !is_left && !is_known(&below) {
                let file = input_file::name(&settings.config.join(&below));
                let message = format!("`{file}` is not from `render`, and GitOps may apply it");
                findings.push(wrong_output(message).help("move it to another folder"));
            }
        }
    }
    findings
}
