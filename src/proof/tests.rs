//! What the tests of the proof share.

pub(super) mod lab;
