//! Ceilings: how much input a run accepts, so that no input keeps a CI job or an Argo CD plugin busy
//! for minutes.
//!
//! With the built-in values, every command that reads only files needs at most ten seconds of CPU time and 1 GiB
//! of memory. A config comes from the repository, like the input, so it can only lower them; a flag or
//! a variable comes from the user who runs the command.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

use crate::mesh::{Entry, Mesh};
use crate::place::Place;

/// The default ceilings.
const BUILT_IN: Ceilings = Ceilings {
    clusters: 400,
    nodes: 80_000,
    ranges: 20_000,
    anchors: 5_000,
    expectations: 2_000,
    peers: 500_000,
    steps: 10_000_000,
};

/// The largest accepted numbers of a run, over all meshes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ceilings {
    clusters: usize,
    nodes: usize,
    ranges: usize,
    anchors: usize,
    expectations: usize,
    peers: usize,
    steps: usize,
}

/// Something that has a ceiling.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Counted {
    /// Entries of meshes.
    Clusters,
    /// Nodes in snapshots.
    Nodes,
    /// Ranges that entries declare or accept.
    Ranges,
    /// Items of `anchors`, and the ranges and nodes that these name.
    Anchors,
    /// Expectations.
    Expectations,
    /// Peers of all targets.
    Peers,
    /// Steps of a proof.
    Steps,
}

/// A ceiling that someone sets, as in `clusters=1000`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ceiling {
    /// The counted item.
    pub counted: Counted,
    /// The most of it.
    pub most: usize,
}

/// A text that sets no ceiling.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum CeilingError {
    /// It is not of the form `NAME=N`.
    #[error("write `NAME=N`, such as `clusters=1000`")]
    Form,
    /// Nothing has this name.
    #[error("known names: clusters, nodes, ranges, anchors, expectations, peers, steps")]
    Name,
    /// The number is not a positive integer.
    #[error("the number must be a positive integer")]
    Number,
}

/// More of something than a run accepts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exceeded {
    /// The counted item.
    pub counted: Counted,
    /// Their number.
    pub count: usize,
    /// The largest accepted number.
    pub most: usize,
    /// The line with most of them, if there is one.
    pub place: Option<Place>,
}

/// Limits on the size of a run. The config can only lower them; `--ceiling NAME=N` and
/// `CLUSTERMESH_CEILINGS` can also raise them.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Ceilings")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenCeilings {
    /// The maximum number of clusters in all meshes.
    #[schemars(range(min = 1, max = BUILT_IN.clusters), extend("default" = BUILT_IN.clusters))]
    clusters: Option<u32>,
    /// The maximum number of nodes in all snapshots.
    #[schemars(range(min = 1, max = BUILT_IN.nodes), extend("default" = BUILT_IN.nodes))]
    nodes: Option<u32>,
    /// The maximum number of ranges that all clusters declare and accept.
    #[schemars(range(min = 1, max = BUILT_IN.ranges), extend("default" = BUILT_IN.ranges))]
    ranges: Option<u32>,
    /// The maximum number of items in `anchors`, including the ranges and nodes that they name.
    #[schemars(range(min = 1, max = BUILT_IN.anchors), extend("default" = BUILT_IN.anchors))]
    anchors: Option<u32>,
    /// The maximum number of expectations.
    #[schemars(
        range(min = 1, max = BUILT_IN.expectations),
        extend("default" = BUILT_IN.expectations)
    )]
    expectations: Option<u32>,
    /// The maximum number of Peers of all targets.
    #[schemars(range(min = 1, max = BUILT_IN.peers), extend("default" = BUILT_IN.peers))]
    peers: Option<u32>,
    /// The maximum number of steps of a proof.
    #[schemars(range(min = 1, max = BUILT_IN.steps), extend("default" = BUILT_IN.steps))]
    steps: Option<u32>,
}

impl Default for Ceilings {
    fn default() -> Self {
        BUILT_IN
    }
}

impl Counted {
    /// Everything that has a ceiling.
    pub const ALL: [Self; 7] = [
        Self::Clusters,
        Self::Nodes,
        Self::Ranges,
        Self::Anchors,
        Self::Expectations,
        Self::Peers,
        Self::Steps,
    ];

    /// Returns its name in configs and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clusters => "clusters",
            Self::Nodes => "nodes",
            Self::Ranges => "ranges",
            Self::Anchors => "anchors",
            Self::Expectations => "expectations",
            Self::Peers => "peers",
            Self::Steps => "steps",
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Peers => "Peers",
            Self::Steps => "steps of the proof",
            _ => self.name(),
        })
    }
}

impl FromStr for Ceiling {
    type Err = CeilingError;

    fn from_str(text: &str) -> Result<Self, CeilingError> {
        let (name, number) = text.split_once('=').ok_or(CeilingError::Form)?;
        let counted = Counted::ALL.into_iter().find(|it| it.name() == name.trim());
        let most: Option<usize> = number.trim().parse().ok();
        Ok(Self {
            counted: counted.ok_or(CeilingError::Name)?,
            most: most.filter(|it| 0 < *it).ok_or(CeilingError::Number)?,
        })
    }
}

impl Ceilings {
    /// Returns the most that is accepted.
    pub fn most(&self, counted: Counted) -> usize {
        match counted {
            Counted::Clusters => self.clusters,
            Counted::Nodes => self.nodes,
            Counted::Ranges => self.ranges,
            Counted::Anchors => self.anchors,
            Counted::Expectations => self.expectations,
            Counted::Peers => self.peers,
            Counted::Steps => self.steps,
        }
    }

    /// Returns the most steps of a proof.
    pub fn most_steps(&self) -> u64 {
        u64::try_from(self.steps).unwrap_or(u64::MAX)
    }

    /// Returns the ceilings with one of them changed.
    #[must_use]
    pub fn with(mut self, ceiling: Ceiling) -> Self {
        let most = match ceiling.counted {
            Counted::Clusters => &mut self.clusters,
            Counted::Nodes => &mut self.nodes,
            Counted::Ranges => &mut self.ranges,
            Counted::Anchors => &mut self.anchors,
            Counted::Expectations => &mut self.expectations,
            Counted::Peers => &mut self.peers,
            Counted::Steps => &mut self.steps,
        };
        *most = ceiling.most;
        self
    }

    /// Returns whether there is more of something than is accepted.
    pub fn exceeded(&self, counted: Counted, count: usize) -> Option<Exceeded> {
        let most = self.most(counted);
        (most < count).then_some(Exceeded {
            counted,
            count,
            most,
            place: None,
        })
    }

    /// Returns what meshes have too much of.
    pub fn exceeded_by(&self, meshes: &[Mesh]) -> Vec<Exceeded> {
        let entries = || meshes.iter().flat_map(|mesh| &mesh.entries);
        let summed = |counted: Counted, key: &str, count: fn(&Entry) -> usize| {
            let mut exceeded = self.exceeded(counted, entries().map(count).sum())?;
            let largest = entries().max_by_key(|entry| count(entry));
            exceeded.place = largest.map(|entry| entry.place.key(key));
            Some(exceeded)
        };
        [
            summed(Counted::Clusters, "name", |_| 1),
            summed(Counted::Ranges, "name", ranges),
            summed(Counted::Anchors, "anchors", anchors),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn ranges(entry: &Entry) -> usize {
    entry.networks.all().len()
        + entry.accepted.iter().flatten().count()
        + entry.local_networks.len()
}

fn anchors(entry: &Entry) -> usize {
    entry
        .anchors
        .iter()
        .map(|it| 1 + it.nodes.len() + it.ranges.iter().flatten().count())
        .sum()
}

impl WrittenCeilings {
    pub(super) fn ceilings(&self) -> Ceilings {
        let most = |written: Option<u32>, built_in: usize| {
            written
                .and_then(|it| usize::try_from(it).ok())
                .unwrap_or(built_in)
        };
        Ceilings {
            clusters: most(self.clusters, BUILT_IN.clusters),
            nodes: most(self.nodes, BUILT_IN.nodes),
            ranges: most(self.ranges, BUILT_IN.ranges),
            anchors: most(self.anchors, BUILT_IN.anchors),
            expectations: most(self.expectations, BUILT_IN.expectations),
            peers: most(self.peers, BUILT_IN.peers),
            steps: most(self.steps, BUILT_IN.steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_is_a_name_and_a_positive_number() {
        for counted in Counted::ALL {
            let text = format!("{}=7", counted.name());
            assert_eq!(text.parse(), Ok(Ceiling { counted, most: 7 }));
            let ceilings = Ceilings::default().with(Ceiling { counted, most: 7 });
            assert_eq!(ceilings.exceeded(counted, 7), None);
            assert_eq!(ceilings.exceeded(counted, 8).map(|it| it.most), Some(7));
            let others = Counted::ALL.into_iter().filter(|it| *it != counted);
            for other in others {
                assert_eq!(ceilings.most(other), Ceilings::default().most(other));
            }
        }
        for (text, error) in [
            ("clusters", CeilingError::Form),
            ("cluster=5", CeilingError::Name),
            ("clusters=0", CeilingError::Number),
            ("clusters=-1", CeilingError::Number),
            ("clusters=1e3", CeilingError::Number),
        ] {
            assert_eq!(text.parse::<Ceiling>(), Err(error));
        }
    }
}
