mod arrived;
mod received;
mod sent;
mod tunnel;
mod hops;
mod nat;
