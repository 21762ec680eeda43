//! Blocking work, on a thread of its own and with a limit to the wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clustermesh::rules::clusters::Fault;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time;

/// Does what blocks; if it hangs, its thread is left behind. A failure is `origin`'s fault.
pub(super) async fn aside<T: Send + 'static>(
    origin: &str,
    patience: Duration,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let (sender, receiver) = oneshot::channel();
    // A client can only be made within the runtime.
    let runtime = Handle::current();
    apart(move || {
        let _within = runtime.enter();
        // If the receiver no longer waits, the answer is dropped.
        drop(sender.send(work()));
    });
    let problem = match time::timeout(patience, receiver).await {
        Ok(Ok(done)) => return done,
        Ok(Err(_)) => "a mistake in this program".to_owned(),
        Err(_) => format!("its files were not read within {} s", patience.as_secs()),
    };
    Err(Fault::of_kubeconfig(origin, &problem))
}

/// Does something on a thread of its own, or here if the system gives us none.
pub(super) fn apart(work: impl FnOnce() + Send + 'static) {
    let here = Arc::new(Mutex::new(Some(work)));
    let there = Arc::clone(&here);
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let started = thread::Builder::new().spawn(move || take(&there).map(|work| work()));
    if started.is_err()
        && let Some(work) = take(&here)
    {
        work();
    }
}
