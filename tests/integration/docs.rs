//! Texts that people read: their language, their links, the commands they show, the paths they name.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::project;

// Without the feature there are fewer commands.
#[cfg(feature = "snapshot")]
mod commands;
mod console;
mod examples;
mod generated;
mod links;
mod messages;
mod passage;
mod paths;
mod prose;
mod reference;
mod release;
mod rule_pages;
mod rules;
mod scale;
pub(crate) mod schemas;
mod templates;

/// Lists the files of the repository in order of path, without what is built and what git keeps.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(project()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if ![".git", "target"].contains(&name) {
            collect(&path, &mut files);
        }
    }
    files.sort();
    files
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), files);
        }
    } else {
        files.push(path.to_owned());
    }
}

/// Returns a path relative to the repository, with slashes.
fn shown(path: &Path) -> String {
    let path = path.strip_prefix(project()).unwrap();
    path.to_str().unwrap().replace('\\', "/")
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    extension.is_some_and(|it| extensions.contains(&it))
}
