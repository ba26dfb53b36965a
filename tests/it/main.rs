//! The one integration test binary: the repository's rules, and the program from outside.

mod house;
mod kit;
mod rows;
