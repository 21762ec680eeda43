//! QR codes, which the apps of WireGuard scan.

use std::io::{self, IsTerminal as _};

use anstyle::{AnsiColor, Style};
use anyhow::{anyhow, bail};
use clustermesh::diagnostic::Quoted;
use clustermesh::mesh::ExternalPeer;
use clustermesh::wireguard::PrivateKey;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

use crate::disk;

/// The most bytes of a private key, its line break, and some spaces.
const KEY_LIMIT: u64 = 100;

/// The most bytes that a QR code holds (ISO/IEC 18004, version 40 with the lowest error correction).
const CODE_LIMIT: usize = 2_953;

/// Returns the private key of an external peer from the standard input.
pub(super) fn read_key(external: &ExternalPeer) -> anyhow::Result<PrivateKey> {
    let name = external.entry.name.external().unwrap_or_default();
    let is_terminal = io::stdin().is_terminal();
    let input = if is_terminal {
        Vec::new()
    } else {
        disk::standard_input(KEY_LIMIT)?
    };
    if input.is_empty() {
        bail!(
            "no private key on the standard input; run `clustermesh wireguard {name} -o qr < FILE` with the file of \
             the private key"
        );
    }
    // Nothing of the input may be in a message.
    let text = str::from_utf8(&input).unwrap_or_default();
    let key: PrivateKey = text.trim().parse().map_err(|error| {
        anyhow!("the standard input is not a private key, as `wg genkey` prints it: {error}")
    })?;
    let public = key.public()?;
    if public != external.key {
        bail!(
            "the private key on the standard input is not that of {}: its public key is {public}, and the mesh has {}",
            Quoted(name),
            external.key
        );
    }
    Ok(key)
}

/// Returns the QR code of a text, two rows in each line: light on dark, so that it can also be scanned without colours
/// from a dark terminal.
pub(super) fn code(text: &str) -> anyhow::Result<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).map_err(|_| {
        anyhow!(
            "the configuration has {} bytes, and a QR code holds {CODE_LIMIT}; import the file that `--output conf` prints, \
             or give the external peer fewer segments",
            text.len()
        )
    })?;
    let (dark, light) = (Dense1x2::Dark, Dense1x2::Light);
    let picture = code.render().dark_color(light).light_color(dark).build();
    check_width(picture.lines().next().unwrap_or_default().chars().count())?;
    let style = Style::new()
        .fg_color(Some(AnsiColor::BrightWhite.into()))
        .bg_color(Some(AnsiColor::Black.into()));
    let (start, end) = (style.render().to_string(), style.render_reset().to_string());
    let lines = picture.lines().flat_map(|it| [&start, it, &end, "\n"]);
    Ok(lines.collect())
}

/// Fails in a terminal that would break the lines.
fn check_width(needed: usize) -> anyhow::Result<()> {
    let size = terminal_size::terminal_size_of(io::stdout());
    match size {
        Some((width, _)) if usize::from(width.0) < needed => {
            bail!(
                "the QR code needs {needed} columns, and the terminal has {}; make it wider",
                width.0
            )
        }
        _ => Ok(()),
    }
}
