//! Logins: the plugins that a kubeconfig names, run once, without a terminal, and not for ever.
//!
//! kube would run them too, but three times for a connection, with our terminal, for as long as
//! they like, and with their output in its errors.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clustermesh::diagnostic::Quoted;
use clustermesh::rules::clusters::{Fault, LOGIN, shown};
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;

use super::credentials::Pem;
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
    let ended = run(&mut command, patience)
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

/// The most that is kept of what a program prints, in bytes.
const OUTPUT: usize = 1 << 20;

/// The interval between two looks at a program.
const GLANCE: Duration = Duration::from_millis(10);

/// The timeout for the rest of the output after a program has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A program that has ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The standard output.
    stdout: String,
    /// The standard error.
    stderr: String,
}

/// The output of a program so far.
struct ProgramOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Ends with the output.
    end: Receiver<()>,
}

/// Runs a program. If it takes longer than `patience` it is ended, with all that it started, and
/// nothing is returned.
pub(super) fn run(command: &mut Command, patience: Duration) -> io::Result<Option<Ended>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }
    let deadline = Instant::now() + patience;
    let mut child = command.spawn()?;
    let read = |child: &mut Child| -> io::Result<_> {
        let stdout = child.stdout.take().map(ProgramOutput::read_aside).transpose()?;
        let stderr = child.stderr.take().map(ProgramOutput::read_aside).transpose()?;
        Ok((stdout, stderr))
    };
    let (stdout, stderr) = match read(&mut child) {
        Ok(outputs) => outputs,
        // Without a reader for its output, it would wait for ever.
        Err(error) => {
            end(&mut child)?;
            return Err(error);
        }
    };
    while deadline.checked_duration_since(Instant::now()).is_some() {
        if let Some(status) = child.try_wait()? {
            // Processes that it leaves behind may hold its output, and have nothing to add.
            let until = Instant::now() + LAST_WORDS;
            let text = |output: Option<ProgramOutput>| output.map(|it| it.text(until));
            return Ok(Some(Ended {
                status,
                stdout: text(stdout).unwrap_or_default(),
                stderr: text(stderr).unwrap_or_default(),
            }));
        }
        thread::sleep(GLANCE);
    }
    end(&mut child)?;
    Ok(None)
}

/// Ends a program and all that it started.
fn end(child: &mut Child) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It is not a group of its own if it has just ended.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

impl ProgramOutput {
    /// Reads on a separate thread, so that the two processes do not wait for each other.
    fn read_aside(mut pipe: impl Read + Send + 'static) -> io::Result<Self> {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sender, end) = channel();
        let read = Arc::clone(&bytes);
        thread::Builder::new().spawn(move || {
            let mut block = [0; 4096];
            // The text that was read before an error is the whole output.
            while let Ok(length @ 1..) = pipe.read(&mut block) {
                let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
                let room = OUTPUT - read.len();
                read.extend(block.iter().take(length.min(room)));
            }
            drop(sender);
        })?;
        Ok(Self { bytes, end })
    }

    /// Returns what has come by then, or by the end.
    fn text(self, until: Instant) -> String {
        let left = until.saturating_duration_since(Instant::now());
        // Either it has ended, or we no longer wait.
        let _ = self.end.recv_timeout(left);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
