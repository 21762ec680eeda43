//! `snapshot` of live clusters: requests, snapshots and messages.

use serde_json::{Value, json};

use crate::api_server::{ApiServer, Context, Setup, kubeconfig};
use crate::cli::{Folder, api_node, node};
use crate::support::{Run, assert_contains};

mod answers;
mod certificates;
mod crashes;
mod failures;
mod floods;
mod keys;
mod kubeconfigs;
mod leaders;
mod logins;
#[cfg(target_os = "linux")]
mod owners;
mod proxies;
mod secrets;
mod services;
mod several;
mod status;
#[cfg(target_os = "linux")]
mod threads;
mod tunnels;
mod waiting;

/// A mesh of `east`, which is looked at, and `north` and `west`, which answer as they should.
struct Site {
    folder: Folder,
    east: ApiServer,
    others: [ApiServer; 2],
}

const SNAPSHOT: [&str; 3] = ["snapshot", "--kubeconfig", "kubeconfig"];

impl Site {
    fn new(east: Setup) -> Self {
        Self::with(east.start(), |context| context)
    }

    /// Lets `east` be reached by more than an address.
    fn with(east: ApiServer, reach: impl Fn(Context) -> Context) -> Self {
        let site = Self {
            folder: Folder::mesh(),
            east,
            others: [2, 3].map(|cluster| Setup::nodes(&nodes(cluster)).start()),
        };
        site.reach(reach);
        site
    }

    /// Writes the kubeconfig.
    fn reach(&self, east: impl Fn(Context) -> Context) {
        let [north, west] = &self.others;
        let text = kubeconfig(&[
            east(Context::new("east", &self.east.url())),
            Context::new("north", &north.url()),
            Context::new("west", &west.url()),
        ]);
        self.folder.write("kubeconfig", text);
    }

    fn snapshot(&self, arguments: &[&str]) -> Run {
        self.folder.run_with(&[], &[&SNAPSHOT, arguments].concat())
    }

    /// Fails unless all three are written, and returns the messages about `east`.
    fn success(&self, arguments: &[&str]) -> String {
        let run = self.snapshot(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
        assert_eq!(self.kept("east"), expected(1));
        self.about_east(&run)
    }

    /// Fails unless `east` keeps its old snapshot and the others get new ones, and returns the
    /// messages about `east`.
    fn failure(&self, arguments: &[&str]) -> String {
        let old = self.folder.touches("snapshots").remove("east.json");
        let run = self.snapshot(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert_eq!(self.folder.touches("snapshots").remove("east.json"), old);
        self.about_east(&run)
    }

    fn about_east(&self, run: &Run) -> String {
        let mut said = self.redacted(&run.stderr);
        for (number, cluster) in [(2, "north"), (3, "west")] {
            assert_eq!(self.kept(cluster), expected(number));
            let line = format!("snapshots/{cluster}.json: 2 nodes, 2 usable, written\n");
            assert_contains(&said, &line);
            said = said.replace(&line, "");
        }
        said
    }

    /// Takes out what is different in every run.
    fn redacted(&self, said: &str) -> String {
        let port = format!(":{}", self.east.address().port());
        said.replace(&port, ":PORT").replace(self.folder.path("").to_str().unwrap(), "FOLDER/")
    }

    /// Returns the names of the nodes that are kept; the old snapshots are written in another way.
    fn kept(&self, cluster: &str) -> Value {
        let text = self.folder.read(&format!("snapshots/{cluster}.json"));
        assert!(text.starts_with("{\n  "), "{cluster} was not written");
        let snapshot: Value = serde_json::from_str(&text).unwrap();
        snapshot["nodes"].clone()
    }
}

/// The nodes of a cluster.
fn nodes(cluster: u8) -> Vec<Value> {
    vec![api_node(cluster, 1), api_node(cluster, 2)]
}

/// What is kept of them.
fn expected(cluster: u8) -> Value {
    json!([node(cluster, 1), node(cluster, 2)])
}
