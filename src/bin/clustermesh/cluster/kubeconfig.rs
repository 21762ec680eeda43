//! Kubeconfigs: who is reached by which context, and as whom.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::rules::clusters::{CONTEXT, Fault, UNSAFE, shown};
use clustermesh::text;
use kube::config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::turn::apart;

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
        self.read.entry(files.to_vec()).or_insert_with(|| load(files, self.patience)).clone()
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
        let next = from_file(file, patience).map_err(wrong)?;
        merged = Some(match merged {
            Some(before) => before.merge(next).map_err(|error| wrong(problem(&error)))?,
            None => next,
        });
    }
    let kubeconfig = merged.ok_or_else(|| wrong("no kubeconfig was found".to_owned()))?;
    Ok(Arc::new(Loaded { kubeconfig, origin }))
}

impl Loaded {
    /// Reads a kubeconfig that came as text.
    pub(super) fn from_text(text: &str, origin: String) -> Result<Self, Fault> {
        match from_text(text) {
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

/// The largest kubeconfig that is read, in bytes.
const KUBECONFIG: u64 = 16 << 20;

/// Reads a file, or a pipe that ends within `patience`.
fn from_file(path: &Path, patience: Duration) -> Result<Kubeconfig, String> {
    let (sender, receiver) = channel();
    let file = path.to_owned();
    // A pipe without a writer does not even open; then the thread is left behind.
    apart(move || drop(sender.send(bytes(&file))));
    let Ok(bytes) = receiver.recv_timeout(patience) else {
        let seconds = patience.as_secs();
        return Err(format!("{} was not read within {seconds} s", path.display()));
    };
    let text = bytes.and_then(text).map_err(|error| match error.kind() {
        // The file is named already, unless it is one of several.
        ErrorKind::NotFound => "the kubeconfig does not exist".to_owned(),
        _ => format!("cannot read {}: {error}", path.display()),
    })?;
    let mut kubeconfig = from_text(&text)?;
    if let Some(folder) = path.parent() {
        resolve(&mut kubeconfig, folder)?;
    }
    Ok(kubeconfig)
}

/// Reads a text.
fn from_text(text: &str) -> Result<Kubeconfig, String> {
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| problem(&error))?;
    normalise(&mut kubeconfig)?;
    Ok(kubeconfig)
}

/// Describes an error in a kubeconfig without quoting its content.
fn problem(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) if 0 < place.line() => format!(
                "not a valid kubeconfig: error at line {}, column {}",
                place.line(),
                place.column()
            ),
            _ => "not a valid kubeconfig".to_owned(),
        },
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => {
            "the files have different kinds or versions".to_owned()
        }
        _ => "it cannot be used".to_owned(),
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = KUBECONFIG + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    if KUBECONFIG < bytes.len() as u64 {
        return Err(io::Error::other("it is too large"));
    }
    Ok(bytes)
}

/// Decodes as kube does: PowerShell writes UTF-16.
fn text(bytes: Vec<u8>) -> io::Result<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|it| unit([it[0], it[1]]));
        char::decode_utf16(units).collect::<Result<String, _>>()
    };
    let decoded = match bytes.as_slice() {
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes).ok(),
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes).ok(),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes).ok(),
    };
    decoded.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the file is not UTF-8"))
}

/// Takes out what is empty: to kubectl, that is as if it were not there.
fn normalise(kubeconfig: &mut Kubeconfig) -> Result<(), String> {
    let clusters = kubeconfig.clusters.iter_mut();
    for cluster in clusters.filter_map(|it| it.cluster.as_mut()) {
        *cluster = without_empty(cluster).map_err(|_| "it contains an invalid cluster")?;
    }
    let users = kubeconfig.auth_infos.iter_mut();
    for user in users.filter_map(|it| it.auth_info.as_mut()) {
        *user = without_empty(user).map_err(|_| "it contains an invalid user")?;
    }
    Ok(())
}

/// Returns a value without its empty fields. Only as it is written, a user shows its secrets.
fn without_empty<T: Serialize + DeserializeOwned>(value: &T) -> serde_json::Result<T> {
    let mut written = serde_json::to_value(value)?;
    if let Value::Object(fields) = &mut written {
        fields.retain(|_, value| value != "");
    }
    serde_json::from_value(written)
}

/// Resolves paths that are meant as seen from the kubeconfig.
fn resolve(kubeconfig: &mut Kubeconfig, folder: &Path) -> Result<(), String> {
    let clusters = kubeconfig.clusters.iter_mut();
    for cluster in clusters.filter_map(|it| it.cluster.as_mut()) {
        resolve_path(&mut cluster.certificate_authority, folder)?;
    }
    let users = kubeconfig.auth_infos.iter_mut();
    for user in users.filter_map(|it| it.auth_info.as_mut()) {
        let AuthInfo { client_certificate, client_key, token_file, exec, .. } = user;
        for path in [client_certificate, client_key, token_file] {
            resolve_path(path, folder)?;
        }
        // A command without a separator is looked for in the PATH.
        if let Some(plugin) = exec
            && let Some(command) = &plugin.command
            && command.contains(MAIN_SEPARATOR)
        {
            resolve_path(&mut plugin.command, folder)?;
        }
    }
    Ok(())
}

fn resolve_path(path: &mut Option<String>, folder: &Path) -> Result<(), String> {
    if let Some(path) = path
        && Path::new(path).is_relative()
    {
        // Unresolved, it would be seen from the working folder.
        let resolved = folder.join(&*path).into_os_string().into_string();
        *path = resolved.map_err(|_| {
            "it contains relative paths, and the name of its folder is not UTF-8".to_owned()
        })?;
    }
    Ok(())
}
