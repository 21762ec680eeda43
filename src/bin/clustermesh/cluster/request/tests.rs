use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn refused() -> Fault {
    Fault::Unreachable {
        server: "127.0.0.1:6443".to_owned(),
        problem: "Connection refused".to_owned(),
        attempts: 1,
    }
}

fn answered(status: u16) -> Fault {
    Fault::Refused {
        status,
        says: String::new(),
        attempts: 1,
    }
}

/// Returns how long a request is repeated that always fails in this way.
fn repeated(attempts: &mut Attempts, fault: &Fault, patience: Duration) -> Duration {
    let mut took = Duration::ZERO;
    while let Some(pause) = attempts.pause(fault, None, patience) {
        took += pause;
        let since = attempts.since.unwrap();
        attempts.since = Some(since.checked_sub(pause).unwrap());
    }
    took
}

#[test]
fn refused_connections_outlast_a_restart() {
    let mut attempts = Attempts::default();
    let took = repeated(&mut attempts, &refused(), MINUTE);
    assert!(Duration::from_secs(15) < took && took < RESTART, "{took:?}");
    let short = Duration::from_secs(3);
    let took = repeated(&mut Attempts::default(), &refused(), short);
    assert!(took < short, "{took:?}");
}

#[test]
fn too_many_requests_are_repeated_until_the_timeout() {
    let took = repeated(&mut Attempts::default(), &answered(429), MINUTE);
    assert!(Duration::from_secs(50) < took && took < MINUTE, "{took:?}");
}

#[test]
fn a_server_that_starts_may_fail_as_often_as_others() {
    let mut attempts = Attempts::default();
    for _ in 0..7 {
        let pause = attempts.pause(&refused(), None, MINUTE);
        assert!(pause.is_some());
    }
    repeated(&mut attempts, &answered(503), MINUTE);
    assert_eq!((attempts.count, attempts.failed), (7 + ATTEMPTS, ATTEMPTS));
}

#[test]
fn a_pause_that_exceeds_the_timeout_is_not_taken() {
    let mut attempts = Attempts::default();
    assert_eq!(
        attempts.pause(&answered(503), Some(2 * MINUTE), MINUTE),
        None
    );
    let wanted = Duration::from_secs(9);
    let pause = Attempts::default().pause(&answered(429), Some(wanted), MINUTE);
    assert_eq!(pause, Some(wanted));
}
