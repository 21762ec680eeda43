//! Logins: the plugins that a kubeconfig names, run once, without a terminal, and not for ever.
//!
//! kube would run them too, but three times for a connection, with our terminal, for as long as
//! they like, and with their output in its errors.

use std::process::Command;
use std::time::Duration;

use clustermesh::diagnostic::Quoted;
use clustermesh::rules::clusters::{Fault, LOGIN, shown};
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;

use super::pem::Pem;
use super::program;
use crate::secrets::Redactions;

/// The credentials that a plugin returns.
pub(super) struct Credentials {
    /// A bearer token.
    pub(super) token: Option<String>,
    /// A client certificate with its key.
    pub(super) identity: Option<Identity>,
}

/// A client certificate with its key.
pub(super) struct Identity {
    /// The certificate.
    pub(super) certificate: Pem,
    /// The key.
    pub(super) key: Pem,
}

#[derive(Deserialize)]
struct ExecCredential {
    kind: Option<String>,
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs a plugin, blocking, for at most `patience`.
pub(super) fn login(
    plugin: &ExecConfig,
    hidden: &Redactions,
    patience: Duration,
) -> Result<Credentials, Fault> {
    let name = hidden.hide(plugin.command.as_deref().unwrap_or_default());
    let failed = |problem: String| {
        Fault::new(&LOGIN, format!("the login plugin {} {problem}", Quoted(&name)))
    };
    let not_started = |problem: &str| {
        failed(format!("cannot be started: {}", shown(problem)))
            .help("install it, or add its folder to PATH")
    };
    if plugin.interactive_mode == Some(ExecInteractiveMode::Always) {
        let problem = "needs a terminal (`interactiveMode: Always`)";
        return Err(failed(problem.to_owned()));
    }
    let mut command = command(plugin).map_err(not_started)?;
    let ended = program::run(&mut command, patience)
        .map_err(|error| not_started(&error.to_string()))?
        .ok_or_else(|| {
            failed(format!("did not finish within {} s", patience.as_secs()))
                .help("log in first, or increase `--timeout`")
        })?;
    if !ended.status.success() {
        let stderr = hidden.hide(&ended.stderr);
        let lines = stderr.lines().map(str::trim).filter(|it| !it.is_empty());
        let said = match lines.collect::<Vec<_>>().join(" | ").as_str() {
            "" => "without output".to_owned(),
            text => format!("with output: {}", shown(text)),
        };
        let status = shown(&ended.status.to_string());
        return Err(failed(format!("failed ({status}) {said}")));
    }
    credentials(&ended.stdout)
        .map_err(|problem| failed(format!("printed no credentials: {problem}")))
}

fn command(plugin: &ExecConfig) -> Result<Command, &'static str> {
    let name = plugin
        .command
        .as_deref()
        .filter(|name| !name.is_empty())
        .ok_or("`exec` has no `command`")?;
    let mut command = Command::new(name);
    command.args(plugin.args.iter().flatten());
    for variable in plugin.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err("`env` contains an invalid variable");
            }
            command.env(name, value);
        }
    }
    let mut spec = json!({ "interactive": false });
    if plugin.provide_cluster_info
        && let Some(cluster) = &plugin.cluster
    {
        spec["cluster"] = json!(cluster);
    }
    let asked = json!({ "apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec });
    command.env("KUBERNETES_EXEC_INFO", asked.to_string());
    Ok(command)
}

/// Reads an `ExecCredential`, JSON or YAML. Errors do not quote its content.
fn credentials(printed: &str) -> Result<Credentials, &'static str> {
    const OTHER: &str = "the output is not an ExecCredential";
    if printed.trim().is_empty() {
        return Err("it printed nothing");
    }
    let options = serde_saphyr::options! { with_snippet: false };
    let read: ExecCredential =
        serde_saphyr::from_str_with_options(printed, options).map_err(|_| OTHER)?;
    if read.kind.is_some_and(|kind| kind != "ExecCredential") {
        return Err(OTHER);
    }
    let status = read.status.ok_or("the ExecCredential has no `status`")?;
    // Go writes out what is empty.
    let given = |text: Option<String>| text.filter(|it| !it.trim().is_empty());
    let token = given(status.token);
    let certificate = given(status.client_certificate_data);
    let identity = match (certificate, given(status.client_key_data)) {
        (Some(certificate), Some(key)) => {
            let (certificate, key) = (Pem::of_text(certificate), Pem::of_text(key));
            if certificate.certificates().is_err() || key.check_key().is_err() {
                return Err("its certificate or key is not valid PEM");
            }
            Some(Identity { certificate, key })
        }
        _ => None,
    };
    if token.is_none() && identity.is_none() {
        return Err("the ExecCredential has no token and no certificate with a key");
    }
    Ok(Credentials { token, identity })
}
