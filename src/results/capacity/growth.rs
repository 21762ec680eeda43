//! Growth: how many more clusters like one of the mesh fit, as a table.

use crate::capacity::{Fit, Outgrowth, Room, units};
use crate::report::table::TextTable;

/// Returns the time of a restart, which has no limit by default.
pub(super) fn closing(outgrowth: &Outgrowth) -> Option<String> {
    let clusters = outgrowth.rooms.first()?.clusters();
    if clusters == 0 {
        return None;
    }
    Some(format!(
        "With {} more, a restart of Kilo takes up to {}. Kilo's time grows with the square of the allowed IPs.",
        units::count(clusters),
        units::seconds(outgrowth.restart?)
    ))
}

/// Returns a row for each limit.
pub(super) fn table(rooms: &[Room]) -> TextTable {
    let mut table = TextTable::new(["LIMIT", ">WARNING", ">FIT", ">ERROR", ">FIT", "FIRST"]);
    for room in rooms {
        let cells = |fit: &Option<Fit>| {
            fit.as_ref().map_or_else(<[String; 2]>::default, |it| {
                [format!("> {}", units::step(room.quantity, it.limit)), units::count(it.clusters)]
            })
        };
        let first = room.warning.as_ref().or(room.error.as_ref());
        let mut row = vec![room.quantity.key().to_owned()];
        row.extend(cells(&room.warning));
        row.extend(cells(&room.error));
        row.push(first.map_or_else(String::new, |it| it.first.clone()));
        table.add(row);
    }
    table
}
