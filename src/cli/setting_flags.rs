//! Generates a flag for each setting from the table of settings.

use crate::config::keys::{SettingKey, SettingKind, key, table};
use crate::config::units::{BackoffRange, Millis, parse_amount, parse_count, parse_text};
use crate::config::validate::normalize;
use crate::config::{Layer, Origin};
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use serde_json::{Map, Value, json};
use std::str::FromStr;
use std::{iter, ptr};

/// The settings that were passed as flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags {
    values: Map<String, Value>,
}

impl SettingFlags {
    /// Returns the flags as the top layer of settings.
    pub(crate) fn layer(&self) -> Layer {
        Layer {
            origin: Origin::Flag,
            values: self.values.clone(),
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Sets a value as if its flag had been passed.
    pub(crate) fn set(&mut self, name: &str, value: &Value) {
        let normalized = normalize(key(name), value, name).expect("the value is valid");
        self.values.insert(name.into(), normalized);
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        table()
            .iter()
            .flat_map(|key| iter::once(key).chain(child_flags(key)))
            .filter_map(flag)
            .chain(table().iter().filter_map(negated_flag))
            .fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The flags of settings about checks.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckFlags(SettingFlags);

impl CheckFlags {
    /// The heading of these settings.
    pub(crate) const HEADING: &str = "Checks";

    pub(crate) fn layer(&self) -> Layer {
        self.0.layer()
    }
}

impl Args for CheckFlags {
    fn augment_args(command: Command) -> Command {
        let keys = table().iter().filter(|key| key.heading == Self::HEADING);
        keys.clone()
            .flat_map(|key| iter::once(key).chain(child_flags(key)))
            .filter_map(flag)
            .chain(keys.filter_map(negated_flag))
            .fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CheckFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0
            .update_from(matches, |key| key.heading == Self::HEADING)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.update_from(matches, |_| true)
    }
}

impl SettingFlags {
    /// Takes over the flags of the chosen settings, which must be defined.
    fn update_from(
        &mut self,
        matches: &ArgMatches,
        is_chosen: impl Fn(&SettingKey) -> bool,
    ) -> Result<(), Error> {
        let keys = table().iter().filter(|key| key.flag().is_some());
        for key in keys.filter(|key| is_chosen(key)) {
            let value = match key.kind {
                SettingKind::Switch if matches.get_flag(&key.name) => Some(inverted_default(key)),
                SettingKind::Switch
                    if key.no_flag.as_ref().is_some_and(|no| matches.get_flag(no)) =>
                {
                    Some(json!(false))
                }
                SettingKind::Switch => None,
                _ if key.is_list() => list_value(key, matches)?,
                _ => matches.get_one::<Value>(&key.name).cloned(),
            };
            if let Some(value) = value {
                self.set(&key.name, &value);
            }
        }
        Ok(())
    }
}

/// Returns the children of a list's objects that have a flag of their own. It belongs to the
/// occurrence of the list's flag before it.
fn child_flags(key: &'static SettingKey) -> impl Iterator<Item = &'static SettingKey> {
    let children = key.children.iter();
    children.filter(|child| key.is_list() && child.flag.is_some())
}

/// Returns the value of a list's flag; `None` if it was not passed.
fn list_value(key: &'static SettingKey, matches: &ArgMatches) -> Result<Option<Value>, Error> {
    let values = |key: &SettingKey| {
        // A command may have the list's flag without its children's.
        if matches.try_contains_id(&key.name).is_err() {
            return Vec::new();
        }
        let indices = matches.indices_of(&key.name).into_iter().flatten();
        let values = matches.get_many::<Value>(&key.name).into_iter().flatten();
        indices.zip(values.cloned()).collect::<Vec<_>>()
    };
    let mut items = values(key);
    for child in child_flags(key) {
        let shorthand = key.shorthand.as_deref().expect("its flag sets one child");
        for (at, value) in values(child) {
            let item = items.iter_mut().rfind(|(item, _)| *item < at);
            let (flag, list) = (
                child.flag().unwrap_or_default(),
                key.flag().unwrap_or_default(),
            );
            let problem = match item {
                None => format!("--{flag} belongs to the --{list} before it, and there is none"),
                Some((_, Value::Object(object))) if object.contains_key(&child.name) => {
                    format!("--{flag} is given twice for the same --{list}")
                }
                Some((_, item)) => {
                    if !item.is_object() {
                        *item = json!({ shorthand: item.take() });
                    }
                    item[&child.name] = value;
                    continue;
                }
            };
            return Err(Error::raw(
                ErrorKind::ArgumentConflict,
                format!("{problem}\n"),
            ));
        }
    }
    let items = items.into_iter().map(|(_, item)| item);
    Ok(matches
        .contains_id(&key.name)
        .then(|| Value::Array(items.collect())))
}

/// Returns the value that a switch's flag sets: the opposite of the default.
fn inverted_default(key: &SettingKey) -> Value {
    json!(key.default != Some(json!(true)))
}

/// Returns the `--no-…` flag of a switch, if it has one. The flag is hidden, because the help of
/// the other flag describes both.
fn negated_flag(key: &'static SettingKey) -> Option<Arg> {
    let name = key.no_flag.as_deref()?;
    let arg = Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .hide(true);
    Some(arg.overrides_with(key.name.as_str()))
}

fn flag(key: &'static SettingKey) -> Option<Arg> {
    let help = key.flag_help.as_ref().unwrap_or(&key.help);
    let default = key
        .describe_default()
        .map(|text| format!(" [default: {text}]"))
        .unwrap_or_default();
    let mut arg = Arg::new(key.name.as_str())
        .long(key.flag()?)
        .help(format!("{help}{default}"))
        .help_heading(key.heading.as_str());
    arg = match key.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    let aliases = if key.kind == SettingKind::Switch {
        &key.flag_aliases
    } else {
        &key.aliases
    };
    // The aliases of a list are plural, so they fit only settings files.
    let aliases = aliases
        .iter()
        .filter(|_| !key.is_list())
        .map(String::as_str);
    arg = arg.visible_aliases(aliases.collect::<Vec<_>>());
    if let Some(no) = &key.no_flag {
        arg = arg.overrides_with(no.as_str());
    }
    if key.kind == SettingKind::Switch {
        return Some(arg.action(ArgAction::SetTrue));
    }
    let bare = match key.kind {
        SettingKind::Branch => Some("true"),
        _ => key.bare.as_deref(),
    };
    if let Some(bare) = bare {
        // Require `=`, so that the flag does not take the task as its value.
        arg = arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(bare);
    }
    let mut child_flags = table().iter().flat_map(child_flags);
    let action = if key.is_list() || child_flags.any(|child| ptr::eq(child, key)) {
        ArgAction::Append
    } else {
        ArgAction::Set
    };
    let value_name = key.value_name.as_deref().unwrap_or("VALUE");
    let allow_hyphens = !matches!(
        key.kind,
        SettingKind::Choice
            | SettingKind::Branch
            | SettingKind::Path
            | SettingKind::Objects
            | SettingKind::Object
    );
    let arg = arg
        .action(action)
        .value_name(value_name)
        .value_hint(value_hint(key))
        .value_parser(value_parser(key))
        .allow_hyphen_values(allow_hyphens);
    Some(arg.ignore_case(key.kind == SettingKind::Choice))
}

/// Returns the kind of completion that a shell should offer for the value.
fn value_hint(key: &SettingKey) -> ValueHint {
    match key.kind {
        SettingKind::Path => ValueHint::FilePath,
        SettingKind::Objects => ValueHint::CommandString,
        _ => ValueHint::Other,
    }
}

fn value_parser(key: &'static SettingKey) -> ValueParser {
    match key.kind {
        SettingKind::Choice => PossibleValuesParser::new(key.choices.iter().map(String::as_str))
            .map(Value::from)
            .into(),
        SettingKind::Branch => ValueParser::new(|text: &str| match text.trim() {
            "" => Err("name the branch, or use --worktree without ="),
            branch => Ok(Value::from(branch)),
        }),
        SettingKind::Count => {
            let max = key.count_max();
            ValueParser::new(move |text: &str| match parse_count::<u64>(text)? {
                count if count <= max => Ok(Value::from(count)),
                _ => Err(format!("expected a whole number up to {max}")),
            })
        }
        SettingKind::Code => ValueParser::new(|text: &str| match text.parse::<u8>() {
            Ok(code) => Ok(Value::from(code)),
            Err(_) => Err("an exit code is a number from 0 to 255"),
        }),
        SettingKind::Amount => ValueParser::new(|text: &str| parse_amount(text).map(Value::from)),
        SettingKind::Duration => ValueParser::new(check_parses::<Millis>),
        SettingKind::Backoff => ValueParser::new(check_parses::<BackoffRange>),
        SettingKind::Text => ValueParser::new(|text: &str| parse_text(text).map(Value::from)),
        _ => ValueParser::new(|text: &str| Ok::<_, String>(Value::from(text))),
    }
}

/// Returns `text` unchanged if it parses as `T`, else the parser's error.
fn check_parses<T: FromStr<Err = String>>(text: &str) -> Result<Value, String> {
    text.parse::<T>().map(|_| Value::from(text))
}
