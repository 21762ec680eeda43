//! Sockets in namespaces; any thread may use them.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use crate::namespace::Namespace;

/// The port of all probes.
pub(crate) const PORT: u16 = 7007;

/// Opens a socket on an address of a namespace.
#[cfg(target_os = "linux")]
pub(crate) fn open(namespace: &Namespace, address: Ipv4Addr) -> io::Result<UdpSocket> {
    use std::os::fd::AsFd as _;

    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

    let network = std::fs::File::open(namespace.network())?;
    let enter = || {
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(network.as_fd(), kind)?;
        UdpSocket::bind((address, PORT))
    };
    // The thread that enters does not come back, and so must be one of its own.
    let opened = std::thread::scope(|scope| scope.spawn(enter).join());
    opened.unwrap_or_else(|_| Err(io::Error::other("the thread ended")))
}

/// Opens none, where there are no namespaces.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open(_: &Namespace, _: Ipv4Addr) -> io::Result<UdpSocket> {
    Err(io::ErrorKind::Unsupported.into())
}
