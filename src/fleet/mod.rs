//! Runs loops on other machines: carries their plans, journals, requests and files, and decides
//! nothing.
//!
//! A loop in the fleet is the same directory as everywhere, and the same supervisor runs it. An
//! [`Exchange`](exchange::Exchange) moves the bytes of its files between machines, and says which
//! machine may run it.

pub(crate) mod error;
pub(crate) mod exchange;
pub(crate) mod submit;
pub(crate) mod worker;
