//! The report: how many pairs there were and how many agreed, by what they were and by what had been
//! done to their meshes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::fault::Fault;
use crate::trial::Trial;

/// What the meshes of every day must have at least one pair of.
const VERDICTS: [&str; 10] = [
    "ambiguous",
    "delivered",
    "loops",
    "no-initiator",
    "no-route",
    "not-accepted",
    "return-fails",
    "source-rejected",
    "stolen-by",
    "unknown-key",
];

/// What came of all trials.
pub(crate) struct Report {
    meshes: usize,
    spoilt: usize,
    /// Meshes of which `verify` finds that they keep all promises.
    kept: usize,
    packets: usize,
    tallies: BTreeMap<String, Tally>,
}

/// Pairs of one kind.
#[derive(Default)]
struct Tally {
    meshes: BTreeSet<u64>,
    all: usize,
    agreed: usize,
    /// Those that the faults of their mesh do something to.
    spoilt: usize,
}

impl Report {
    /// Counts.
    pub(crate) fn new(trials: &[Trial]) -> Self {
        let mut report = Self {
            meshes: trials.len(),
            spoilt: trials.iter().filter(|it| !it.faults.is_empty()).count(),
            kept: trials.iter().filter(|it| it.whole.keeps).count(),
            packets: 0,
            tallies: BTreeMap::new(),
        };
        for trial in trials {
            report.count(trial);
        }
        report
    }

    fn count(&mut self, trial: &Trial) {
        let mut faults: BTreeSet<String> = trial.faults.iter().map(|it| fault(it.0)).collect();
        if faults.is_empty() {
            faults.insert("fault none".to_owned());
        }
        for outcome in &trial.outcomes {
            let linked = if outcome.pair.is_linked { "linked" } else { "not linked" };
            let mut kinds = vec![
                "all pairs".to_owned(),
                linked.to_owned(),
                format!("class {}", outcome.pair.class),
                verdict(outcome.verdict.name),
            ];
            kinds.extend(faults.iter().cloned());
            for kind in kinds {
                let tally = self.tallies.entry(kind).or_default();
                tally.meshes.insert(trial.seed);
                tally.all += 1;
                tally.agreed += usize::from(outcome.agrees());
                tally.spoilt += usize::from(outcome.is_spoilt);
            }
            self.packets += outcome.fates.len() + outcome.later.len();
        }
    }

    /// Returns what should have been tried and was not: faults with an effect, and endings.
    pub(crate) fn missing(&self) -> Vec<String> {
        let has = |kind: &String, is_there: fn(&Tally) -> bool| {
            let tally = self.tallies.get(kind);
            tally.is_some_and(is_there)
        };
        let faults = Fault::ALL
            .into_iter()
            .chain([Fault::LateNode, Fault::LostNode])
            .map(fault)
            .filter(|it| !has(it, |tally| 0 < tally.spoilt));
        let verdicts =
            VERDICTS.into_iter().map(verdict).filter(|it| !has(it, |tally| 0 < tally.all));
        faults.chain(verdicts).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "\n{} meshes, {} of them with faults, {} of which `verify` finds all promises kept; {} packets \
             with their answers",
            self.meshes, self.spoilt, self.kept, self.packets
        )?;
        for (kind, tally) in &self.tallies {
            write!(f, "\n  {kind}: {tally}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let meshes = self.meshes.len();
        write!(f, "{} of {} agree, in {meshes} meshes", self.agreed, self.all)?;
        if self.spoilt != 0 {
            write!(f, ", {} spoilt", self.spoilt)?;
        }
        Ok(())
    }
}

fn fault(fault: Fault) -> String {
    format!("fault {fault}")
}

fn verdict(name: &str) -> String {
    format!("verdict {name}")
}
