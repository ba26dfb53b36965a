//! `ralph man`: the manual pages, made of the same words as the help.

use crate::cli::Words;
use crate::cli::setup::visible;
use crate::config::keys::nearest;
use crate::lifecycle::failure::{Failure, answer};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

pub(crate) fn man(verb: Option<&str>) -> Result<i32, Failure> {
    let mut all = visible(&Words::command());
    all.build();
    let page = match verb {
        None => &all,
        Some(verb) => all
            .find_subcommand(verb)
            .ok_or_else(|| unknown(verb, &all))?,
    };
    let mut roff = Vec::new();
    let source = concat!("ralph ", env!("CARGO_PKG_VERSION"));
    Man::new(page.clone())
        .source(source)
        .render(&mut roff)
        .map_err(Failure::broken)?;
    let mut roff = String::from_utf8_lossy(&roff).replace("\n.SH EXTRA\n", "\n.SH NOTES\n");
    if verb.is_some() {
        roff.push_str(".SH \"SEE ALSO\"\nralph(1)\n");
    }
    answer(&roff)?;
    Ok(0)
}

fn unknown(verb: &str, all: &Command) -> Failure {
    let known = all.get_subcommands().map(Command::get_name);
    let hint = match nearest(verb, known) {
        Some(meant) => format!("did you mean ralph man {meant}? ralph help shows every verb"),
        None => "ralph help shows every verb".into(),
    };
    Failure::usage(format!("{verb:?} is not a verb"), hint)
}
