//! Aside: work that blocks, on a thread of its own, and not waited for for ever.

use std::time::Duration;

use clustermesh::rules::clusters::Fault;
use tokio::{task, time};

/// Does what blocks; if it hangs, its thread is left behind. What fails is `origin`'s fault.
pub(super) async fn aside<T: Send + 'static>(
    origin: &str,
    patience: Duration,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let problem = match time::timeout(patience, task::spawn_blocking(work)).await {
        Ok(Ok(done)) => return done,
        Ok(Err(_)) => "a mistake in this program".to_owned(),
        Err(_) => format!("its files were not read within {} s", patience.as_secs()),
    };
    Err(Fault::Kubeconfig {
        origin: origin.to_owned(),
        problem,
    })
}
