//! A device: `wireguard-go` in a namespace, and the socket on which it listens for changes.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use crate::kilo::Tunnels;
use crate::namespace::Namespace;

/// A device that runs, as `kilo0`.
pub(crate) struct Device {
    socket: PathBuf,
}

impl Device {
    /// Starts one; it ends with the namespace.
    pub(crate) fn start(namespace: &mut Namespace) -> io::Result<Self> {
        let socket = "/run/wireguard/kilo0.sock";
        namespace.run(&format!(
            "wireguard-go -f kilo0 >/dev/null 2>&1 &\n\
             timeout 30 sh -c 'until [ -S {socket} ]; do sleep 0.01; done'\n\
             ip link set kilo0 mtu 1420 up"
        ))?;
        Ok(Self { socket: namespace.path(socket) })
    }

    /// Forgets all peers, with their sessions and the endpoints that they called from.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.change("replace_peers=true\n")
    }

    /// Returns what gives a device its key and its peers, as a script.
    pub(crate) fn configuration(tunnels: &Tunnels) -> String {
        let configuration = &tunnels.configuration;
        format!("wg setconf kilo0 /dev/stdin <<'END'\n{configuration}END")
    }

    /// Lets it call its peers, and go on calling.
    pub(crate) fn keep_alive(&self, tunnels: &Tunnels) -> io::Result<()> {
        let mut request = String::new();
        for key in &tunnels.keys {
            let digits = key.iter().map(|it| format!("{it:02x}"));
            let _ = write!(
                request,
                "public_key={}\nupdate_only=true\npersistent_keepalive_interval={}\n",
                digits.collect::<String>(),
                tunnels.keepalive
            );
        }
        self.change(&request)
    }

    fn change(&self, request: &str) -> io::Result<()> {
        let mut stream = UnixStream::connect(&self.socket)?;
        write!(stream, "set=1\n{request}\n")?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        match answer.trim() {
            "errno=0" => Ok(()),
            answer => Err(io::Error::other(format!("{answer} to {request}"))),
        }
    }
}
