//! The Application that is rendered: its path in the repository, as Argo CD passes it.

use std::env;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use clustermesh::diagnostic::Quoted;

/// The variable with the Application's path.
const VARIABLE: &str = "ARGOCD_APP_SOURCE_PATH";

/// An Application, and its repository.
#[derive(Debug)]
pub(super) struct Application {
    /// The root of the repository, canonical.
    pub(super) root: PathBuf,
    /// The folder of the Application, canonical.
    pub(super) folder: PathBuf,
    /// The path of the folder, from the root.
    path: Vec<String>,
}

impl Application {
    /// Returns the Application for which the plugin server started this process.
    pub(super) fn of_environment() -> anyhow::Result<Self> {
        let path = env::var_os(VARIABLE)
            .with_context(|| format!("{VARIABLE} is not set; Argo CD's plugin server sets it"))?;
        let folder = env::current_dir().context("the working directory cannot be determined")?;
        Self::new(folder, &parts(Path::new(&path))?)
    }

    /// Returns an Application in a folder that has this path in its repository.
    fn new(folder: PathBuf, path: &[String]) -> anyhow::Result<Self> {
        let mut root = folder.as_path();
        for part in path.iter().rev() {
            let name = root.file_name().and_then(|it| it.to_str());
            root = match root.parent() {
                Some(above) if name == Some(part) => above,
                _ => bail!(
                    "{VARIABLE} is {}, but the working directory is a different one; remove \
                     symbolic links from the path of the Application",
                    Quoted(&path.join("/"))
                ),
            };
        }
        if root.parent().is_none() {
            bail!("the root of the repository cannot be `/`");
        }
        Ok(Self { root: root.to_owned(), path: path.to_vec(), folder })
    }

    /// Returns the last part of the path, if it has any.
    pub(super) fn name(&self) -> Option<&str> {
        self.path.last().map(String::as_str)
    }

    /// Returns the cluster that the Application delivers to: the one that it names, or else the last
    /// part of the path.
    pub(super) fn target(&self, named: Option<&str>) -> anyhow::Result<String> {
        let target = named.or(self.name()).context(
            "no cluster is selected; set the plugin's parameter `target`, or set the path of the \
             Application to the folder of a cluster",
        )?;
        Ok(target.to_owned())
    }
}

/// Returns the names in a path.
fn parts(path: &Path) -> anyhow::Result<Vec<String>> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => {
                let name = name.to_str().with_context(|| format!("{VARIABLE} is not UTF-8"))?;
                parts.push(name.to_owned());
            }
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => bail!(
                "{VARIABLE} is {}; expected a path in the repository, without `..`",
                Quoted(&path.to_string_lossy())
            ),
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(folder: &str, path: &str) -> anyhow::Result<Application> {
        Application::new(folder.into(), &parts(Path::new(path))?)
    }

    #[test]
    fn the_root_is_the_folder_less_the_path() {
        for (folder, path, root, name) in [
            ("/tmp/x/rendered/west", "rendered/west", "/tmp/x", Some("west")),
            ("/tmp/x/rendered/west", "./rendered//west/", "/tmp/x", Some("west")),
            ("/tmp/x", ".", "/tmp/x", None),
            ("/tmp/x", "", "/tmp/x", None),
            ("/tmp/a/a/a", "a/a", "/tmp/a", Some("a")),
        ] {
            let application = application(folder, path).unwrap();
            assert_eq!(application.root, Path::new(root), "{path}");
            assert_eq!(application.name(), name, "{path}");
        }
    }

    #[test]
    fn a_path_that_is_not_the_folder_s_has_no_root() {
        for (folder, path) in [
            ("/tmp/x/rendered/west", "rendered/east"),
            ("/tmp/x/rendered/west", "tmp/rendered/west"),
            ("/tmp/x/rendered/west", "../x/rendered/west"),
            ("/tmp/x/rendered/west", "rendered/west/.."),
            ("/tmp/x/rendered/west", "/tmp/x/rendered/west"),
            ("/west", "west"),
            ("/", "."),
        ] {
            assert!(application(folder, path).is_err(), "{folder} {path}");
        }
    }
}
