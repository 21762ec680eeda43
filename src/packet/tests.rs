mod arrived;
mod received;
mod sent;
mod tunnel;
