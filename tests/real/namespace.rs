//! A network namespace: a shell in a network, a mount table and a process tree of its own.
//!
//! It has no name and leaves nothing behind: the shell ends when its input does, and with the first
//! process of a tree the kernel ends the others and frees the network, also after a panic or a kill.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What a script's status stands behind, on a line of its own.
const END: &str = "end-of-script";

/// A network namespace.
pub(crate) struct Namespace {
    name: String,
    shell: Child,
    /// Where it reads what to do; none when it is to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Namespace {
    /// Makes one; it has nothing but a loopback.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let mut shell = Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = shell.stdin.take();
        let output = shell.stdout.take().map(BufReader::new);
        let mut namespace = Self {
            name: name.to_owned(),
            shell,
            input,
            output: output.ok_or(io::ErrorKind::BrokenPipe)?,
        };
        namespace.send_raw("exec 2>&1\n")?;
        // WireGuard listens for its configuration in the file system.
        namespace.run("mount -t tmpfs none /run; mkdir /run/wireguard; ip link set lo up")?;
        Ok(namespace)
    }

    /// Returns what it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file by which other namespaces know its network.
    pub(crate) fn network(&self) -> String {
        format!("/proc/{}/ns/net", self.shell.id())
    }

    /// Returns where a file of it is for everyone else.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.shell.id()))
    }

    /// Runs a script to its first failure.
    pub(crate) fn run(&mut self, script: &str) -> io::Result<String> {
        self.send(script)?;
        self.receive()
    }

    /// Starts a script; [`Namespace::receive`] ends it.
    pub(crate) fn send(&mut self, script: &str) -> io::Result<()> {
        self.send_raw(&format!(
            "(set -e\n{script}\n) </dev/null; status=$?; echo; echo {END} $status\n"
        ))
    }

    fn send_raw(&mut self, text: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(text.as_bytes())?;
        input.flush()
    }

    /// Waits for the script that was sent, and returns its output.
    pub(crate) fn receive(&mut self) -> io::Result<String> {
        let mut said = String::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                let name = &self.name;
                return Err(io::Error::other(format!("{name}: the shell ended: {said}")));
            }
            let Some(status) = line.strip_prefix(END) else {
                said.push_str(&line);
                continue;
            };
            return match status.trim() {
                "0" => Ok(said),
                status => {
                    let said = said.trim();
                    Err(io::Error::other(format!("{}: {status}: {said}", self.name)))
                }
            };
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.input.take());
        // Even one that hangs in a script must go; the kernel does the rest.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
