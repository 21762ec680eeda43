//! Numbers, keys and identifiers that look random enough, and are the same on every machine.
#![allow(dead_code, reason = "each target needs a part of it")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns the next number.
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // It is below a `usize`.
        usize::try_from(self.word() % end as u64).unwrap_or_default()
    }

    /// Returns whether something happens that does so in `percent` cases of a hundred.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of some things.
    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Returns 32 bytes.
    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&self.word().to_le_bytes());
        }
        bytes
    }

    /// Returns a public key.
    pub(crate) fn key(&mut self) -> String {
        let mut bytes = self.bytes();
        // A point of Curve25519 leaves the top bit clear.
        bytes[31] &= 0x7f;
        STANDARD.encode(bytes)
    }

    /// Returns a UID.
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
