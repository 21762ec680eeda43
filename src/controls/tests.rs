use super::*;
use ControlValue::{AcceptedNames, AcceptedRanges, AllowedNames, Exemption, Level, Protected};

#[test]
fn a_missing_limit_accepts_everything_and_a_missing_permission_nothing() {
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
    let ranges = |texts: &[&str]| texts.iter().map(|it| it.parse().unwrap()).collect::<Vec<Cidr>>();
    let wide = AcceptedRanges(ranges(&["10.0.0.0/8"]));
    let narrow = AcceptedRanges(ranges(&["10.1.0.0/16"]));
    assert!(is_weaker(Some(&narrow), Some(&wide)) && is_weaker(Some(&narrow), None));
    assert!(!is_weaker(Some(&wide), Some(&narrow)) && !is_weaker(None, Some(&narrow)));
    let (one, two) = (AcceptedNames(names(&["a"])), AcceptedNames(names(&["a", "b"])));
    assert!(is_weaker(Some(&one), Some(&two)) && !is_weaker(Some(&two), Some(&one)));
    assert!(is_weaker(Some(&one), None) && !is_weaker(None, Some(&one)));
    let allowed = AllowedNames(names(&["shop"]));
    assert!(is_weaker(None, Some(&allowed)) && !is_weaker(Some(&allowed), None));
    assert!(is_weaker(None, Some(&Exemption)) && !is_weaker(Some(&Exemption), None));
    let local = Protected(ranges(&["192.168.0.0/16"]));
    assert!(
        is_weaker(Some(&local), Some(&Protected(Vec::new()))) && !is_weaker(None, Some(&local))
    );
}

#[test]
fn a_level_is_weaker_if_it_is_lower_or_stays_lower_for_longer() {
    let until = |day: &str| Some(day.parse::<Date>().unwrap());
    let (short, long) = (Level(1, until("2027-01-31")), Level(1, until("2027-02-01")));
    assert!(is_weaker(Some(&short), Some(&long)) && is_weaker(Some(&short), Some(&Level(1, None))));
    assert!(!is_weaker(Some(&long), Some(&short)) && is_weaker(Some(&long), Some(&Level(0, None))));
    assert!(!is_weaker(Some(&long), Some(&Level(2, None))));
}
