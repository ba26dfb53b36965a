//! Runs loops on other machines: carries their plans, journals, requests and files, and decides
//! nothing.
//!
//! A loop in the fleet is the same directory as everywhere, and the same supervisor runs it. An
//! [`Exchange`](exchange::Exchange) moves the bytes of its files between machines, and says which
//! machine may run it.

pub(crate) mod connection;
pub(crate) mod driver;
pub(crate) mod error;
pub(crate) mod exchange;
pub(crate) mod mirror;
pub(crate) mod monitor;
pub(crate) mod nats;
mod signals;
pub(crate) mod submit;
pub(crate) mod worker;

use crate::lifecycle::error::CommandError;

/// Runs a future to its end on a runtime of its own. For processes that start no other.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::broken(format!("cannot start the network: {error}")))?;
    Ok(runtime.block_on(future))
}
