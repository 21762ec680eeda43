//! Orders: ranges by family, address and length, sorted as numbers that are small.

use std::net::IpAddr;

/// Ranges in their order, as the numbers that they had before; equal ones in the order of those.
#[derive(Debug)]
pub(crate) struct Order {
    /// Address and length in one.
    v4: Vec<(u64, usize)>,
    v6: Vec<(u128, u8, usize)>,
}

impl Order {
    /// Sorts ranges, each an address, masked or not, and a length.
    pub(crate) fn sort(ranges: impl Iterator<Item = (IpAddr, u8)>) -> Self {
        let mut order = Self { v4: Vec::with_capacity(ranges.size_hint().0), v6: Vec::new() };
        for (number, (address, length)) in ranges.enumerate() {
            match address {
                IpAddr::V4(v4) => {
                    let packed = u64::from(v4.to_bits()) << 8 | u64::from(length);
                    order.v4.push((packed, number));
                }
                IpAddr::V6(v6) => order.v6.push((v6.to_bits(), length, number)),
            }
        }
        order.v4.sort_unstable();
        order.v6.sort_unstable();
        order
    }

    /// Returns how many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns the numbers in order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        let v4 = self.v4.iter().map(|it| it.1);
        v4.chain(self.v6.iter().map(|it| it.2))
    }

    /// Returns the numbers of ranges that are there more than once, each range by itself.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = Vec<usize>> {
        let v4 = self
            .v4
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|run| 1 < run.len())
            .map(|run| run.iter().map(|it| it.1).collect());
        let v6 = self.v6.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|run| 1 < run.len());
        v4.chain(v6.map(|run| run.iter().map(|it| it.2).collect()))
    }
}
