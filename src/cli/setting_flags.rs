//! The flags that are settings: made from the table, one per row.

use crate::config::keys::{Key, Kind, key, table};
use crate::config::units::{Backoff, Span, amount, count, words};
use crate::config::validate::settle;
use crate::config::{Layer, Origin};
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use serde_json::{Map, Value, json};
use std::str::FromStr;

/// What the flags of a command line say of settings.
#[derive(Clone, Debug, Default)]
pub struct Knobs {
    values: Map<String, Value>,
}

impl Knobs {
    /// The layer on top of all others.
    pub fn layer(&self) -> Layer {
        Layer {
            origin: Origin::Flag,
            values: self.values.clone(),
        }
    }

    /// Whether this one was given.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// As if this flag had been given.
    pub fn set(&mut self, name: &str, value: &Value) {
        let settled = settle(key(name), value, name).expect("a value that fits");
        self.values.insert(name.into(), settled);
    }
}

impl Args for Knobs {
    fn augment_args(command: Command) -> Command {
        table()
            .iter()
            .filter_map(flag)
            .chain(table().iter().filter_map(refusal))
            .fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Knobs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut knobs = Self::default();
        knobs.update_from_arg_matches(matches)?;
        Ok(knobs)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for key in table().iter().filter(|key| key.flag().is_some()) {
            let value = match key.kind {
                Kind::Switch if matches.get_flag(&key.name) => Some(turned(key)),
                Kind::Switch if key.no_flag.as_ref().is_some_and(|no| matches.get_flag(no)) => {
                    Some(json!(false))
                }
                Kind::Switch => None,
                _ if key.is_list() => {
                    let all = matches.get_many::<Value>(&key.name);
                    all.map(|all| Value::Array(all.cloned().collect()))
                }
                _ => matches.get_one::<Value>(&key.name).cloned(),
            };
            if let Some(value) = value {
                self.set(&key.name, &value);
            }
        }
        Ok(())
    }
}

/// What a switch's flag says: the default turned around.
fn turned(key: &Key) -> Value {
    json!(key.default != Some(json!(true)))
}

/// The flag that says no to a switch that nobody has set. The other one's help speaks for both.
fn refusal(key: &'static Key) -> Option<Arg> {
    let name = key.no_flag.as_deref()?;
    let arg = Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .hide(true);
    Some(arg.overrides_with(key.name.as_str()))
}

fn flag(key: &'static Key) -> Option<Arg> {
    let help = key.flag_help.as_ref().unwrap_or(&key.help);
    let default = key
        .default_words()
        .map(|words| format!(" [default: {words}]"))
        .unwrap_or_default();
    let mut arg = Arg::new(key.name.as_str())
        .long(key.flag()?)
        .help(format!("{help}{default}"))
        .help_heading(key.axis.as_str());
    arg = match key.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    let aliases = if key.kind == Kind::Switch {
        &key.flag_aliases
    } else {
        &key.aliases
    };
    // A list's other name belongs to files: nobody types `--guardrails` once per guardrail.
    let aliases = aliases
        .iter()
        .filter(|_| !key.is_list())
        .map(String::as_str);
    arg = arg.visible_aliases(aliases.collect::<Vec<_>>());
    if let Some(no) = &key.no_flag {
        arg = arg.overrides_with(no.as_str());
    }
    if key.kind == Kind::Switch {
        return Some(arg.action(ArgAction::SetTrue));
    }
    if key.kind == Kind::Branch {
        // Only after `=`, so that it does not take the task for its value.
        arg = arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true");
    }
    let action = if key.is_list() {
        ArgAction::Append
    } else {
        ArgAction::Set
    };
    let shown = key.shown.as_deref().unwrap_or("VALUE");
    let hyphens = !matches!(
        key.kind,
        Kind::Choice | Kind::Branch | Kind::Path | Kind::Objects | Kind::Object
    );
    let arg = arg
        .action(action)
        .value_name(shown)
        .value_hint(hint(key))
        .value_parser(parser(key))
        .allow_hyphen_values(hyphens);
    Some(arg.ignore_case(key.kind == Kind::Choice))
}

/// What a shell may offer for a value.
fn hint(key: &Key) -> ValueHint {
    match key.kind {
        Kind::Path => ValueHint::FilePath,
        Kind::Objects => ValueHint::CommandString,
        _ => ValueHint::Other,
    }
}

fn parser(key: &'static Key) -> ValueParser {
    match key.kind {
        Kind::Choice => PossibleValuesParser::new(key.choices.iter().map(String::as_str))
            .map(Value::from)
            .into(),
        Kind::Branch => ValueParser::new(|text: &str| match text.trim() {
            "" => Err("a branch has a name, and --worktree alone is enough"),
            branch => Ok(Value::from(branch)),
        }),
        Kind::Count => ValueParser::new(|text: &str| count::<u32>(text).map(Value::from)),
        Kind::Code => ValueParser::new(|text: &str| match text.parse::<u8>() {
            Ok(code) => Ok(Value::from(code)),
            Err(_) => Err("an exit code is a number from 0 to 255"),
        }),
        Kind::Amount => ValueParser::new(|text: &str| amount(text).map(Value::from)),
        Kind::Duration => ValueParser::new(written::<Span>),
        Kind::Backoff => ValueParser::new(written::<Backoff>),
        Kind::Text => ValueParser::new(|text: &str| words(text).map(Value::from)),
        _ => ValueParser::new(|text: &str| Ok::<_, String>(Value::from(text))),
    }
}

/// What was typed stays as it was typed.
fn written<T: FromStr<Err = String>>(text: &str) -> Result<Value, String> {
    text.parse::<T>().map(|_| Value::from(text))
}
