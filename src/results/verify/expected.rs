//! Expectations that do not hold, each by a packet that shows it.

use std::fmt::Write as _;

use crate::agent::fabric::SiteId;
use crate::diagnostic::escaped;
use crate::packet::trace::{End, NamedEnd, Trace};
use crate::proof::messages::expectation::name;
use crate::report::width::Width;
use crate::results::trace::TraceResult;
use crate::text;

use super::Verified;

/// The number of packets that are shown step by step.
const FOLLOWED: usize = 5;

/// The longest part of a name that is shown, in characters.
const NAMED: usize = 300;

impl Verified<'_, '_> {
    /// Follows the packets that break expectations, step by step.
    pub(super) fn counterexamples(&self, width: Width) -> String {
        let broken: Vec<_> = self
            .checks
            .iter()
            .filter_map(|it| Some((it, self.traced(it.counterexample.as_ref()?)?)))
            .collect();
        let mut text = String::new();
        for (check, traced) in broken.iter().take(FOLLOWED) {
            let name = escaped(&name(check.expectation), NAMED);
            let place = self.files.shown_place(&check.expectation.place);
            let _ = writeln!(text, "{name} ({place}) fails for this packet:");
            for line in traced.ways(width).lines() {
                let _ = writeln!(text, "{}", format!("  {line}").trim_end());
            }
            let _ = writeln!(text, "\n  {}\n", traced.message());
        }
        let more = broken.len().saturating_sub(FOLLOWED);
        if 0 < more {
            let _ = writeln!(text, "… and {}\n", text::count(more, "more such packet"));
        }
        text
    }

    /// Returns the path of a packet with everything that is needed to print it.
    pub(super) fn traced<'v>(&'v self, trace: &Trace) -> Option<TraceResult<'v>> {
        let end = |site: SiteId, address| {
            let owner = self.fabric.site(site).owner(address)?;
            let end = End { site, owner, address };
            Some(NamedEnd::from(end))
        };
        let packet = &trace.packet;
        let from = end(packet.from.site, packet.source)?;
        let to = end(packet.to.site(), packet.destination)?;
        Some(TraceResult::new(self.fabric, self.files, [&from, &to], trace, None, None))
    }
}
