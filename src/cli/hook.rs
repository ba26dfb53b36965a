//! The arguments of `ralph hook`, which clients call with JSON on standard input.

use crate::client::descriptor::{Client, clients};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

/// The hook events of a session.
#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// The user submitted a prompt
    Prompt(HookArgs),
    /// The agent wants to stop
    Stop(HookArgs),
    /// The agent's turn failed
    Failure(HookArgs),
    /// The session ended
    End(HookArgs),
}

/// The arguments of every hook event.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct HookArgs {
    /// The client that calls the hook
    #[arg(long, value_parser = client_parser(), default_value = &*clients()[0].name)]
    pub(crate) client: &'static Client,
    /// The number of seconds after which the client stops waiting for an answer
    #[arg(long, value_name = "SECONDS")]
    pub(crate) within: Option<u64>,
}

/// Returns a parser that accepts the names of clients.
pub(super) fn client_parser() -> impl TypedValueParser<Value = &'static Client> {
    let values = clients()
        .iter()
        .map(|client| PossibleValue::new(&*client.name).help(&*client.title));
    PossibleValuesParser::new(values)
        .map(|name| Client::by_name(&name).expect("only names of clients are accepted"))
}
