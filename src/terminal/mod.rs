//! Drives agents on terminals: emulates the terminal behind an agent's pty, types the prompt, and
//! lets an agent use the user's own terminal.

pub(crate) mod emulator;
pub(crate) mod guard;
pub(crate) mod responder;
pub(crate) mod typing;
