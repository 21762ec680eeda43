//! Problems of Kilo and of endpoints in a fleet, as facts. `rules` puts them into words.

pub mod endpoint;
pub mod kilo_site;
pub mod location;
pub mod location_range;
