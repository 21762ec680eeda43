//! Given options: the values on a command line, on both sides of the command's name.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// The options that were given before the name of the command, and those behind it.
pub(super) struct GivenOptions<'m> {
    pub(super) before: &'m ArgMatches,
    pub(super) behind: &'m ArgMatches,
}

/// Returns whether an option is on this side of a command line.
pub(super) fn is_written(side: &ArgMatches, id: &str) -> bool {
    side.value_source(id) == Some(ValueSource::CommandLine)
}

impl GivenOptions<'_> {
    /// Returns whether the command has an option.
    pub(super) fn has(&self, id: &str) -> bool {
        self.behind.try_contains_id(id).is_ok()
    }

    /// Returns the side on which an option is given.
    pub(super) fn side(&self, id: &str) -> Option<&ArgMatches> {
        if is_written(self.before, id) {
            return Some(self.before);
        }
        self.has(id).then_some(self.behind)
    }

    /// Returns the value of an option that the command has.
    pub(super) fn value<T: Clone + Send + Sync + 'static>(&self, id: &str) -> Option<T> {
        self.side(id)?.get_one(id).cloned()
    }

    /// Returns the values on both sides.
    pub(super) fn values<T: Clone + Send + Sync + 'static>(&self, id: &str) -> Vec<T> {
        let front = Some(self.before).filter(|it| is_written(it, id));
        let behind = self.has(id).then_some(self.behind);
        let behind = behind.filter(|it| front.is_none() || is_written(it, id));
        let sides = [front, behind].into_iter().flatten();
        let values = sides.filter_map(|it| it.get_many(id));
        values.flatten().cloned().collect()
    }
}
