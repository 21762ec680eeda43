//! Kubeconfigs: who is reached by which context, and as whom.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::rules::clusters::{CONTEXT, Fault, UNSAFE, shown};
use clustermesh::text;
use kube::config::{AuthInfo, Cluster, Kubeconfig};

mod source;

/// A context, looked up.
#[derive(Clone, Debug)]
pub(crate) struct SelectedContext {
    /// Its source, for messages.
    pub(super) origin: String,
    /// The server.
    pub(super) cluster: Cluster,
    /// The user, with its credentials.
    pub(super) user: AuthInfo,
    /// The name of that user in messages.
    pub(super) named: User,
}

/// A user of an API server, as a kubeconfig or a pod names it.
#[derive(Clone, Debug)]
pub(super) struct User {
    /// The source of the credentials, even if there are none.
    pub(super) origin: String,
    /// Whether there are credentials.
    pub(super) has_credentials: bool,
}

/// Kubeconfigs that were read, each once.
pub(crate) struct Kubeconfigs {
    /// The timeout for a pipe.
    patience: Duration,
    read: BTreeMap<Vec<PathBuf>, Result<Arc<Loaded>, Fault>>,
}

/// A kubeconfig, and what it is called.
pub(super) struct Loaded {
    kubeconfig: Kubeconfig,
    origin: String,
}

impl SelectedContext {
    /// Refuses fields with which the author of `config`, which names the kubeconfig, could run
    /// programs here or send local files to a server.
    pub(crate) fn named_by_other(self, config: &str) -> Result<Self, Fault> {
        let fields =
            [("exec", self.user.exec.is_some()), ("tokenFile", self.user.token_file.is_some())];
        let Some((field, _)) = fields.into_iter().find(|(_, is_there)| *is_there) else {
            return Ok(self);
        };
        let (origin, config) = (shown(&self.origin), shown(config));
        let sentence = format!(
            "the kubeconfig {origin} contains `{field}`, which runs a program or reads a file, and \
             the config that names it, {config}, belongs to another user"
        );
        let help = format!("if you trust this config, add `--config {config}`");
        Err(Fault::new(&UNSAFE, sentence).help(help))
    }
}

impl Kubeconfigs {
    /// Returns none yet; each may take `patience` to be read.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, read: BTreeMap::new() }
    }

    /// Looks up a context in files that are merged as kubectl merges them.
    pub(crate) fn context(
        &mut self,
        files: &[PathBuf],
        context: &str,
    ) -> Result<SelectedContext, Fault> {
        self.load(files)?.context(context)
    }

    /// Looks up a context, or takes the only one there is.
    pub(crate) fn context_or_only(
        &mut self,
        files: &[PathBuf],
        context: &str,
    ) -> Result<SelectedContext, Fault> {
        let loaded = self.load(files)?;
        match loaded.kubeconfig.contexts.as_slice() {
            [only] => loaded.context(&only.name),
            _ => loaded.context(context),
        }
    }

    /// Looks up the context that a flag names.
    pub(crate) fn context_of_flag(
        &mut self,
        flag: &str,
        files: &[PathBuf],
        context: &str,
    ) -> Result<SelectedContext, Fault> {
        let loaded = self.load(files)?;
        let selected = loaded.context(context);
        selected.map_err(|fault| {
            if *fault.kind != CONTEXT {
                return fault;
            }
            let meant = loaded.nearest(context);
            let meant = meant.map(|name| format!("; did you mean `{name}`?"));
            let meant = meant.unwrap_or_default();
            loaded.wrong(&format!("`{flag}` names the unknown context `{context}`{meant}"))
        })
    }

    fn load(&mut self, files: &[PathBuf]) -> Result<Arc<Loaded>, Fault> {
        let read = self.read.entry(files.to_vec());
        read.or_insert_with(|| load(files, self.patience)).clone()
    }
}

fn load(files: &[PathBuf], patience: Duration) -> Result<Arc<Loaded>, Fault> {
    let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    let origin = names.join(", ");
    let wrong = |problem: String| Fault::of_kubeconfig(&origin, &problem);
    let mut merged: Option<Kubeconfig> = None;
    for file in files {
        // Of a list kubectl skips the files that are not there.
        if 1 < files.len() && !file.exists() {
            continue;
        }
        let next = source::from_file(file, patience).map_err(wrong)?;
        merged = Some(match merged {
            Some(before) => before.merge(next).map_err(|error| wrong(source::problem(&error)))?,
            None => next,
        });
    }
    let kubeconfig = merged.ok_or_else(|| wrong("no kubeconfig was found".to_owned()))?;
    Ok(Arc::new(Loaded { kubeconfig, origin }))
}

impl Loaded {
    /// Reads a kubeconfig that came as text.
    pub(super) fn from_text(text: &str, origin: String) -> Result<Self, Fault> {
        match source::from_text(text) {
            Ok(kubeconfig) => Ok(Self { kubeconfig, origin }),
            Err(problem) => Err(Fault::of_kubeconfig(&origin, &problem)),
        }
    }

    /// Looks up the context that the kubeconfig itself chooses.
    pub(super) fn current(&self) -> Result<SelectedContext, Fault> {
        match self.kubeconfig.current_context.as_deref() {
            Some(name) if !name.is_empty() => self.context(name),
            _ => Err(self.wrong("it has no `current-context`")),
        }
    }

    fn context(&self, name: &str) -> Result<SelectedContext, Fault> {
        let named = self.kubeconfig.contexts.iter().find(|it| it.name == name);
        let named = named.ok_or_else(|| self.unknown(name))?;
        let context = named.context.as_ref();
        let context = context.ok_or_else(|| self.wrong(&format!("context `{name}` is empty")))?;
        let clusters = &self.kubeconfig.clusters;
        let cluster = clusters.iter().find(|it| it.name == context.cluster);
        let cluster = cluster
            .and_then(|it| it.cluster.clone())
            .ok_or_else(|| self.wrong(&format!("the cluster of context `{name}` is missing")))?;
        let user = context.user.as_deref().filter(|user| !user.is_empty());
        let origin = match user {
            None => format!("context `{name}` of {}", self.origin),
            Some(user) => format!("user `{user}` of {}", self.origin),
        };
        let user = match user {
            None => AuthInfo::default(),
            Some(user) => {
                let users = &self.kubeconfig.auth_infos;
                let found = users.iter().find(|it| it.name == user);
                let missing = || self.wrong(&format!("the user of context `{name}` is missing"));
                let found = found.ok_or_else(missing)?;
                found.auth_info.clone().unwrap_or_default()
            }
        };
        Ok(SelectedContext {
            origin: self.origin.clone(),
            cluster,
            named: User { origin, has_credentials: has_credentials(&user) },
            user,
        })
    }

    /// Returns the fault of a context that is not there.
    fn unknown(&self, name: &str) -> Fault {
        const SHOWN: usize = 5;
        let known = &self.kubeconfig.contexts;
        let sentence = format!("{} has no context {}", shown(&self.origin), Quoted(name));
        let fault = Fault::new(&CONTEXT, sentence);
        match self.nearest(name) {
            _ if known.is_empty() => fault,
            Some(nearest) => fault
                .help(format!("did you mean {}? ", Quoted(nearest)))
                .context(if is_word(nearest) { nearest } else { "CONTEXT" }),
            None => {
                let more = if SHOWN < known.len() { ", …" } else { "" };
                let known = text::list(known.iter().take(SHOWN).map(|it| Quoted(&it.name)));
                let help = format!("known contexts: {known}{more}; ");
                fault.help(help).context("CONTEXT")
            }
        }
    }

    fn nearest(&self, name: &str) -> Option<&str> {
        let known = self.kubeconfig.contexts.iter();
        nearest(name, known.map(|it| it.name.as_str()))
    }

    fn wrong(&self, problem: &str) -> Fault {
        Fault::of_kubeconfig(&self.origin, problem)
    }
}

/// Returns whether a context needs no quotes in YAML and in a shell.
fn is_word(context: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./@".contains(it);
    context.starts_with(|it: char| it.is_ascii_alphabetic()) && context.chars().all(is_plain)
}

/// Returns whether a user has anything by which a server could know them.
fn has_credentials(user: &AuthInfo) -> bool {
    user.token.is_some()
        || user.token_file.is_some()
        || user.username.is_some()
        || user.client_certificate.is_some()
        || user.client_certificate_data.is_some()
        || user.exec.is_some()
        || user.auth_provider.is_some()
}
