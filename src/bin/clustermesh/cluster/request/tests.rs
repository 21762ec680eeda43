use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn refused_connection() -> RequestFailure {
    let fault =
        Fault::new(&UNREACHABLE, "cannot connect").counted(": Connection refused".to_owned());
    RequestFailure::Passing(fault, None)
}

fn no_right() -> RequestFailure {
    RequestFailure::Final(Fault::new(&RIGHT, "the right is missing"))
}

fn answered(status: u16, wanted: Option<Duration>) -> RequestFailure {
    let status = StatusCode::from_u16(status).unwrap();
    RequestFailure::Passing(refused(status, ""), wanted)
}

/// Returns how long a request is repeated that always fails in this way.
fn repeated(
    attempts: &mut Attempts,
    failure: impl Fn() -> RequestFailure,
    patience: Duration,
) -> Duration {
    let mut took = Duration::ZERO;
    while let Ok(pause) = attempts.pause(failure(), patience) {
        took += pause;
        let since = attempts.since.unwrap();
        attempts.since = Some(since.checked_sub(pause).unwrap());
    }
    took
}

#[test]
fn refused_connections_outlast_a_restart() {
    let mut attempts = Attempts::default();
    let took = repeated(&mut attempts, refused_connection, MINUTE);
    assert!(Duration::from_secs(15) < took && took < RESTART, "{took:?}");
    let short = Duration::from_secs(3);
    let took = repeated(&mut Attempts::default(), refused_connection, short);
    assert!(took < short, "{took:?}");
}

#[test]
fn too_many_requests_are_repeated_until_the_timeout() {
    let took = repeated(&mut Attempts::default(), || answered(429, None), MINUTE);
    assert!(Duration::from_secs(50) < took && took < MINUTE, "{took:?}");
}

#[test]
fn a_server_that_starts_may_fail_as_often_as_others() {
    let mut attempts = Attempts::default();
    for _ in 0..7 {
        assert!(attempts.pause(refused_connection(), MINUTE).is_ok());
    }
    repeated(&mut attempts, || answered(503, None), MINUTE);
    assert_eq!((attempts.count, attempts.failed), (7 + ATTEMPTS, ATTEMPTS));
}

/// `tests/cluster` shows that a real one does so.
#[test]
fn rights_may_be_missing_only_after_a_restart() {
    let mut attempts = Attempts::default();
    assert!(attempts.pause(no_right(), MINUTE).is_err());
    assert!(attempts.pause(refused_connection(), MINUTE).is_ok());
    let took = repeated(&mut attempts, no_right, MINUTE);
    assert!(Duration::from_secs(10) < took && took < RESTART, "{took:?}");
}

#[test]
fn a_pause_that_exceeds_the_timeout_is_not_taken() {
    let mut attempts = Attempts::default();
    let later = answered(503, Some(2 * MINUTE));
    assert!(attempts.pause(later, MINUTE).is_err());
    let wanted = Duration::from_secs(9);
    let pause = Attempts::default().pause(answered(429, Some(wanted)), MINUTE);
    assert_eq!(pause.unwrap(), wanted);
}
