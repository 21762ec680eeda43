//! The shell of `clustermesh`: arguments, files, exit codes.

fn main() {}
