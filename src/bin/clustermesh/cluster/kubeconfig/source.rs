//! Sources: the texts of kubeconfigs, and what they mean where they stand.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{MAIN_SEPARATOR, Path};
use std::sync::mpsc::channel;
use std::time::Duration;

use kube::config::{AuthInfo, Kubeconfig, KubeconfigError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::blocking::apart;

/// The largest kubeconfig that is read, in bytes.
const KUBECONFIG: u64 = 16 << 20;

/// Reads a file, or a pipe that ends within `patience`.
pub(super) fn from_file(path: &Path, patience: Duration) -> Result<Kubeconfig, String> {
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
pub(super) fn from_text(text: &str) -> Result<Kubeconfig, String> {
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| problem(&error))?;
    normalise(&mut kubeconfig)?;
    Ok(kubeconfig)
}

/// Describes an error in a kubeconfig without quoting its content.
pub(super) fn problem(error: &KubeconfigError) -> String {
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
