//! Growth: how many more clusters like one of a mesh each limit allows.

use schemars::JsonSchema;
use serde::Serialize;

use super::bundle::Bundle;
use super::estimate::value;
use super::load::Load;
use crate::config::Capacity;
use crate::config::capacity::{Quantity, Steps};

/// The largest number of clusters that is tried.
const MOST: usize = 100_000;

/// A cluster that gets the Peers of the clusters that are added.
#[derive(Clone, Debug)]
pub struct ClusterLoad<'a> {
    /// Its name.
    cluster: &'a str,
    /// Its load now, with all Peers in one bundle.
    load: Load,
    /// The Peers that it gets of each added cluster.
    added: Bundle,
    files: usize,
}

/// The clusters that get the Peers of added ones.
#[derive(Clone, Debug)]
pub struct Growth<'a> {
    /// The limits.
    pub capacity: &'a Capacity,
    /// The clusters. The load of an added cluster is that of the one that it is like.
    pub targets: Vec<ClusterLoad<'a>>,
}

/// The number of clusters that a limit allows.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Room {
    /// The quantity, as in `limits.capacity` of the config.
    #[schemars(with = "&str", example = &"applySeconds")]
    #[serde(rename = "name")]
    pub quantity: Quantity,
    /// Up to the warning threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<Fit>,
    /// Up to the error threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Fit>,
}

/// The number of clusters that a threshold allows.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Fit {
    /// The threshold.
    pub limit: u64,
    /// The number of clusters that can be added.
    pub clusters: usize,
    /// The cluster that exceeds the threshold with one more.
    pub first: String,
}

impl<'a> ClusterLoad<'a> {
    /// Returns a cluster with its load, and the Peers that it gets of each added cluster by file.
    pub fn new(cluster: &'a str, load: &Load, added: &[&Bundle]) -> Self {
        Self {
            cluster,
            load: Load { bundles: vec![sum(&load.bundles)], ..load.clone() },
            added: sum(added.iter().copied()),
            files: added.len(),
        }
    }

    /// Returns its load with this many clusters more.
    fn with(&self, clusters: usize) -> Load {
        let mut load = self.load.clone();
        load.bundles.push(Bundle {
            objects: self.added.objects * clusters,
            peers: self.added.peers * clusters,
            ranges: self.added.ranges * clusters,
            names: self.added.names * clusters,
            bytes: self.added.bytes * clusters,
            ..Bundle::default()
        });
        if let Some(files) = &mut load.files {
            files.entries += self.files * clusters;
        }
        load
    }
}

fn sum<'b>(bundles: impl IntoIterator<Item = &'b Bundle>) -> Bundle {
    let mut sum = Bundle::default();
    bundles.into_iter().for_each(|it| sum.add_all(it));
    sum
}

impl Growth<'_> {
    /// Returns what each limit allows, the tightest first. Limits that no number of clusters exceeds are
    /// omitted.
    pub fn rooms(&self) -> Vec<Room> {
        let rooms = Quantity::ALL.iter().filter_map(|&quantity| {
            let steps = self.capacity.steps(quantity);
            let room = Room {
                quantity,
                warning: steps.warning.and_then(|it| self.fit(quantity, it)),
                error: steps.error.and_then(|it| self.fit(quantity, it)),
            };
            (room.warning.is_some() || room.error.is_some()).then_some(room)
        });
        let mut rooms: Vec<Room> = rooms.collect();
        rooms.sort_by_key(Room::clusters);
        rooms
    }

    /// Returns the largest value of a quantity with this many clusters more.
    pub fn value(&self, quantity: Quantity, clusters: usize) -> Option<f64> {
        self.targets
            .iter()
            .filter_map(|it| value(quantity, &it.with(clusters), self.capacity))
            .max_by(f64::total_cmp)
    }

    fn fit(&self, quantity: Quantity, limit: u64) -> Option<Fit> {
        let fits = self.targets.iter().filter_map(|target| {
            let clusters = self.within(target, quantity, limit)?;
            Some((clusters, target.cluster))
        });
        let (clusters, first) = fits.min()?;
        Some(Fit { limit, clusters, first: first.to_owned() })
    }

    /// Returns how many clusters a target can get, unless the quantity does not depend on their number, or any
    /// number fits.
    fn within(&self, target: &ClusterLoad, quantity: Quantity, limit: u64) -> Option<usize> {
        let value = |clusters| value(quantity, &target.with(clusters), self.capacity);
        let steps = Steps { error: Some(limit), ..Steps::default() };
        let exceeds = |clusters| value(clusters).is_some_and(|it| steps.grade(it).is_some());
        if !exceeds(MOST) || value(0) == value(MOST) {
            return None;
        }
        let (mut fits, mut too_many) = (0, MOST);
        while fits < too_many {
            let middle = usize::midpoint(fits, too_many);
            if exceeds(middle) {
                too_many = middle;
            } else {
                fits = middle + 1;
            }
        }
        Some(fits.saturating_sub(1))
    }
}

impl Room {
    /// Returns the number that fits without a warning, or else without an error.
    pub fn clusters(&self) -> usize {
        let fits = [&self.warning, &self.error].into_iter().flatten();
        fits.map(|it| it.clusters).min().unwrap_or(MOST)
    }
}
