use super::*;

fn steps(notice: Option<u64>, warning: Option<u64>, error: Option<u64>) -> Steps {
    Steps { notice, warning, error }
}

fn over(said: Steps) -> Result<Steps, Finding> {
    let written =
        WrittenThresholds { notice: said.notice, warning: said.warning, error: said.error };
    let usual = steps(Some(10), Some(20), Some(30));
    written.over(usual, &Place::document(&"c.yaml".into(), 0))
}

#[test]
fn a_step_itself_is_fine() {
    let steps = steps(Some(10), None, Some(30));
    assert_eq!(steps.grade(10.0), None);
    assert_eq!(steps.grade(10.5), Some(Severity::Notice));
    assert_eq!(steps.passed(31.0), Some((Severity::Error, 30)));
    assert_eq!(Steps::default().grade(f64::MAX), None);
}

#[test]
fn what_is_not_given_stays_in_order() {
    let all = |low, middle, high| steps(Some(low), Some(middle), Some(high));
    assert_eq!(over(steps(None, Some(5), None)), Ok(all(5, 5, 30)));
    assert_eq!(over(steps(None, Some(50), None)), Ok(all(10, 50, 50)));
    assert_eq!(over(steps(Some(25), None, None)), Ok(all(25, 25, 30)));
    assert_eq!(over(steps(None, None, Some(0))), Ok(all(0, 0, 0)));
    assert_eq!(over(Steps::default()), Ok(all(10, 20, 30)));
}

#[test]
fn what_is_given_ascends() {
    let problem = over(steps(Some(3), None, Some(2))).unwrap_err();
    insta::assert_snapshot!(problem.message, @"`error` (2) is lower than `notice` (3)");
    assert!(over(steps(Some(2), Some(2), Some(2))).is_ok());
}

#[test]
fn every_default_ascends() {
    for &quantity in Quantity::ALL {
        let all = Capacity::default().steps(quantity).all();
        let said: Vec<u64> = all.into_iter().filter_map(|(_, step)| step).collect();
        assert!(said.is_sorted(), "{quantity:?}");
    }
}
