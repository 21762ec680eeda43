//! Numbers, keys and identifiers that look random enough, and are the same on every machine.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub(crate) fn key(&mut self) -> String {
        let mut bytes: Vec<u8> = (0..4).flat_map(|_| self.word().to_le_bytes()).collect();
        // A point of Curve25519 leaves the top bit clear.
        bytes[31] &= 0x7f;
        STANDARD.encode(bytes)
    }

    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.word(), self.word());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff,
        )
    }
}
