//! Succession: who carries which part of a range, so that the loss of one carrier moves few parts.

/// Segments that are equally suitable, the best first; nothing for one that is lost now.
pub(super) type Tier = Vec<Option<usize>>;

/// Returns who carries each of some parts.
///
/// The best segments have a part each, the first one the first part, and keep it as long as they are
/// not lost. The others replace the lost ones, tier by tier. So if all of the best are there, a loss
/// moves one part, and the return of that segment moves it back.
///
/// While some of the best are lost, one more loss or return may move other parts without their best
/// segment too: `tests` has the limits. With four parts or more and two segments beyond them, no choice
/// that depends only on the segments that are there can move one part only: two of the parts must prefer
/// the same replacement, and if both need it, the order in which they came to need it is not known.
pub(super) fn carriers(tiers: &[Tier], parts: usize) -> Vec<usize> {
    let mut chosen: Vec<Option<usize>> = tiers.iter().flatten().take(parts).copied().collect();
    let mut skipped = parts;
    for tier in tiers {
        if chosen.iter().all(Option::is_some) {
            break;
        }
        replace(&mut chosen, tier.get(skipped..).unwrap_or_default());
        skipped = skipped.saturating_sub(tier.len());
    }
    chosen.into_iter().flatten().collect()
}

/// Fills vacancies, the most preferred replacements first.
///
/// Each part prefers replacements in an order of its own, so that two vacancies rarely compete for one:
/// every second part counts from the end, and the number of a pair of parts and that of the replacement
/// differ in as low bits as possible. Two parts compete only for the last replacement of a tier.
fn replace(chosen: &mut [Option<usize>], replacements: &[Option<usize>]) {
    let mut left = replacements.to_vec();
    let distances = chosen.len().max(left.len()).next_power_of_two();
    for distance in 0..distances {
        for (part, vacancy) in chosen.iter_mut().enumerate().filter(|it| it.1.is_none()) {
            let place = (part / 2) ^ distance;
            let replacement = match part % 2 {
                0 => left.get_mut(place),
                _ => left.iter_mut().nth_back(place),
            };
            *vacancy = replacement.and_then(Option::take);
        }
    }
}

#[cfg(test)]
mod tests;
