//! Which program is the agent, and with which words is it called? Presets are data; none has code of its own.

mod structured;

use super::billing;
use super::keys::{key, nearest};
use super::layers::{lay, without_nulls};
use super::settings::{AgentWords, Settings};
use super::validate::settle;
use super::{Errand, Origin, Stack, Wrong, wrong};
use crate::engine::plan::{
    Agent, Approve, Delivery, Dialect, ExitRule, Meaning, ReasonRule, SCRIPT,
};
use crate::os::program;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The known agents, in the order in which they are looked for.
macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../presets/agents/", $name, ".toml")))),*]
    };
}

const KNOWN: [(&str, &str); 12] = presets![
    "claude",
    "codex",
    "amp",
    "gemini",
    "opencode",
    "copilot",
    "cursor-agent",
    "qwen",
    "goose",
    "aider",
    "droid",
    "pi",
];

/// How one agent's program is called and understood: a file of `presets/agents/`, or one of `agents`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Preset {
    pub title: String,
    pub command: Vec<String>,
    pub headless: Vec<String>,
    pub signs: Vec<String>,
    pub stream: Vec<String>,
    pub dialect: Dialect,
    pub ready: Option<String>,
    pub prompt: Delivery,
    pub prompt_words: Vec<String>,
    pub model: Vec<String>,
    pub model_hint: String,
    pub approve: Levels,
    pub exit: Vec<Exit>,
    pub denied: Vec<String>,
    pub reason: Vec<ReasonRule>,
    pub budget: Vec<String>,
    pub install: String,
    pub login: String,
    pub login_files: Vec<String>,
    pub login_variables: Vec<String>,
    pub keys: Vec<String>,
    pub inside: Vec<String>,
    pub version: Vec<String>,
    pub notes: String,
    pub tested: String,
}

/// Its own words for each level of approval.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Levels {
    pub none: LevelWords,
    pub edits: LevelWords,
    pub all: LevelWords,
}

/// Words and variables.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LevelWords {
    pub words: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// What one of its exit codes means.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    pub code: i32,
    pub means: Meaning,
    #[serde(default)]
    pub hint: String,
}

/// All agents that have a name here.
pub fn all(stack: &Stack, own: &BTreeMap<String, Value>) -> Result<Vec<(String, Preset)>, Wrong> {
    presets(own).map_err(|Wrong { error, hint }| match stack.origin(&["agents"]) {
        Origin::File(path) => Wrong {
            error: format!("{path}: {error}"),
            hint,
        },
        _ => Wrong { error, hint },
    })
}

/// All agents that have a name: the known ones in their order, then the user's own.
pub fn presets(own: &BTreeMap<String, Value>) -> Result<Vec<(String, Preset)>, Wrong> {
    let mut all: Vec<(String, Value)> = KNOWN
        .iter()
        .map(|(name, text)| ((*name).to_owned(), embedded(text)))
        .collect();
    for (name, changes) in own {
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, Value::Object(known))) => {
                lay(known, changes.as_object().unwrap_or(&Map::new()))
            }
            _ => all.push((name.clone(), changes.clone())),
        }
    }
    let mut sound = Vec::new();
    for (name, value) in all {
        let preset = preset(&name, value)?;
        // Patterns take their time, and those that came with this program are right.
        if own.contains_key(&name) {
            patterns_are_sound(&name, &preset)?;
        }
        sound.push((name, preset));
    }
    Ok(sound)
}

fn patterns_are_sound(name: &str, preset: &Preset) -> Result<(), Wrong> {
    let denied = preset.denied.iter().map(|pattern| ("denied", pattern));
    let reasons = preset
        .reason
        .iter()
        .map(|rule| ("reason.pattern", &rule.pattern));
    let ready = preset.ready.iter().map(|pattern| ("ready", pattern));
    let mut patterns = denied.chain(reasons).chain(ready);
    patterns.try_for_each(|(key, pattern)| {
        super::pattern_is_sound(&format!("agents.{name}.{key}"), pattern)
    })
}

fn embedded(text: &str) -> Value {
    let value: Map<String, Value> = toml::from_str(text).expect("an embedded preset is right");
    let all = settle(key("agents"), &json!({ "known": value }), "presets")
        .expect("an embedded preset is right");
    all["known"].clone()
}

fn preset(name: &str, mut value: Value) -> Result<Preset, Wrong> {
    let place = format!("agents.{name}");
    without_nulls(&mut value);
    let mut preset: Preset = match serde_json::from_value(value) {
        Ok(preset) => preset,
        Err(error) => {
            return wrong(
                format!("{place}: {error}"),
                "docs/presets.md shows what an agent needs",
            );
        }
    };
    if preset.command.first().is_none_or(String::is_empty) {
        return wrong(
            format!("{place}: command is missing"),
            "name its program, as in command = [\"my-agent\"]",
        );
    }
    if preset.version.is_empty() {
        // Without any word it would begin to work.
        preset.version.push("--version".into());
    }
    Ok(preset)
}

/// The agent of an errand, and who takes over for it.
pub fn team(stack: &Stack, all: &Settings, errand: &Errand) -> Result<(Agent, Vec<Agent>), Wrong> {
    let words = all.agent.clone().unwrap_or_default();
    let names = words
        .name
        .as_deref()
        .filter(|_| errand.command.is_empty())
        .map(names)
        .unwrap_or_default();
    if names.len() < 2 {
        let mut alone = agent(stack, all, errand)?;
        charge(stack, all, &mut alone)?;
        return Ok((alone, Vec::new()));
    }
    let lone = [
        ("model", all.model.is_some()),
        ("agent", !words.flags.is_empty()),
    ];
    if let Some((name, _)) = lone.iter().find(|(_, given)| *given) {
        return wrong(
            format!(
                "{}: several agents are named, and these words are one's own",
                stack.name(name)
            ),
            "put them into that agent's `headless` words in the settings: docs/presets.md shows how",
        );
    }
    if let Some(twice) = names
        .iter()
        .enumerate()
        .find(|(at, name)| names[..*at].contains(name))
    {
        return wrong(
            format!("{} names {} twice", stack.name("agent"), twice.1),
            "once is enough",
        );
    }
    let mut team = names.iter().map(|name| {
        let alone = AgentWords {
            name: Some((*name).to_owned()),
            ..AgentWords::default()
        };
        let mut agent = agent(
            stack,
            &Settings {
                agent: Some(alone),
                ..all.clone()
            },
            errand,
        )?;
        charge(stack, all, &mut agent)?;
        Ok(agent)
    });
    let first = team.next().expect("there are at least two")?;
    Ok((first, team.collect::<Result<_, _>>()?))
}

/// Settles who pays for an agent's work, and what is kept from it.
fn charge(stack: &Stack, all: &Settings, agent: &mut Agent) -> Result<(), Wrong> {
    let presets = self::all(stack, &all.agents)?;
    agent.unset = presets
        .iter()
        .flat_map(|(_, preset)| preset.inside.iter().cloned())
        .collect();
    let program = agent.command.first().cloned().unwrap_or_default();
    let known = presets.iter().find(|(name, _)| *name == agent.name);
    if let Some((_, preset)) = known.or_else(|| of_program(&presets, &program)) {
        let bill = billing::bill_here(preset, all.allow_api_key);
        (agent.payer, agent.held_back) = (bill.payer, bill.held_back);
    }
    Ok(())
}

/// The names in a list of agents. A script's path may hold a comma.
fn names(list: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let mut rest = list;
    while let Some(cut) = rest.char_indices().find_map(|(at, c)| {
        let next = rest.get(at + 1..)?.trim_start();
        let splits = !rest.starts_with(SCRIPT) || next.starts_with(SCRIPT);
        (c == ',' && splits).then_some(at)
    }) {
        names.push(rest[..cut].trim());
        rest = rest[cut + 1..].trim_start();
    }
    names.push(rest.trim());
    names
}

/// The agent of an errand.
pub fn agent(stack: &Stack, all: &Settings, errand: &Errand) -> Result<Agent, Wrong> {
    if !errand.command.is_empty() {
        if let Some(name) = ["agent", "model", "approve"]
            .into_iter()
            .find(|name| stack.is_typed(name))
        {
            return wrong(
                format!("--{name} and a command after -- are both given"),
                "a command is run as it is: put its own words there",
            );
        }
        let presets = self::all(stack, &all.agents)?;
        let mut agent = plain(all, errand, errand.command.clone());
        if let Some((preset, interactive)) = screen(&presets, &errand.command) {
            agent.terminal = all.pty.unwrap_or(interactive);
            agent.ready = preset.ready.clone().filter(|_| agent.terminal);
            agent.reasons.clone_from(&preset.reason);
            agent.login.clone_from(&preset.login);
            if !agent.terminal && structured::says(&errand.command[1..], &preset.stream) {
                agent.denied.clone_from(&preset.denied);
                speak(&mut agent, preset.dialect);
            }
        }
        return Ok(agent);
    }
    let words = all.agent.clone().unwrap_or_default();
    if words.name.is_some() && !words.command.is_empty() {
        return wrong(
            format!(
                "{}: name and command contradict each other",
                stack.name("agent")
            ),
            "give one of the two",
        );
    }
    if let Some(script) = words.name.as_ref().filter(|name| name.starts_with(SCRIPT)) {
        takes_only_words(stack, script)?;
        if !words.flags.is_empty() {
            return wrong(
                format!("{}: a script takes no flags", stack.name("agent")),
                "leave them out",
            );
        }
        return Ok(plain(all, errand, vec![script.clone()]));
    }
    let presets = self::all(stack, &all.agents)?;
    if let Some(name) = &words.name {
        let Some((name, preset)) = presets.iter().find(|(known, _)| known == name) else {
            return unknown(stack, name, &presets);
        };
        return called(stack, all, name, preset, &preset.command, &words.flags);
    }
    if let [program, ..] = &words.command[..] {
        if let Some((name, preset)) = of_program(&presets, program) {
            return called(stack, all, name, preset, &words.command, &words.flags);
        }
        takes_only_words(stack, program)?;
        return Ok(plain(all, errand, [words.command, words.flags].concat()));
    }
    let installed =
        |preset: &Preset| program::find(&preset.command[0], &errand.workspace).is_some();
    match presets.iter().find(|(_, preset)| installed(preset)) {
        Some((name, preset)) => called(stack, all, name, preset, &preset.command, &words.flags),
        None => wrong(
            "no agent is installed, and none is named",
            format!(
                "install one, for example with: {}; ralph doctor shows all. Or give any command after --",
                presets[0].1.install
            ),
        ),
    }
}

/// Its output is read as this.
fn speak(agent: &mut Agent, dialect: Dialect) {
    agent.dialect = dialect;
    agent.reports_cost = dialect.tells_cost();
}

/// The agent whose program this is.
fn of_program<'a>(presets: &'a [(String, Preset)], program: &str) -> Option<&'a (String, Preset)> {
    let base = program.rsplit('/').next().unwrap_or_default();
    presets.iter().find(|(_, preset)| preset.command[0] == base)
}

/// The known agent that a command calls, and whether it is called as a person would: with its screen. One that
/// has no words for anything else may well run without.
fn screen<'a>(presets: &'a [(String, Preset)], command: &[String]) -> Option<(&'a Preset, bool)> {
    let (_, preset) = of_program(presets, command.first()?)?;
    let says = |word: &String, sign: &String| {
        word == sign
            || word
                .strip_prefix(sign.as_str())
                .is_some_and(|rest| rest.starts_with('='))
    };
    let headless = command[1..]
        .iter()
        .any(|word| preset.signs.iter().any(|sign| says(word, sign)));
    Some((preset, !headless && !preset.signs.is_empty()))
}

/// Why the program of a known agent is not there, and how to get it.
pub fn how_to_install(program: &str, own: &BTreeMap<String, Value>) -> Option<String> {
    let presets = presets(own).ok()?;
    let base = Path::new(program).file_name()?.to_str()?;
    let (_, preset) = presets
        .into_iter()
        .find(|(_, preset)| preset.command[0] == base)?;
    (!preset.install.is_empty()).then(|| match preset.login.as_str() {
        "" => format!("install it: {}", preset.install),
        login => format!("install it: {}; then log in: {login}", preset.install),
    })
}

fn unknown<T>(stack: &Stack, name: &str, presets: &[(String, Preset)]) -> Result<T, Wrong> {
    let known = || presets.iter().map(|(name, _)| name.as_str());
    let list = known().collect::<Vec<_>>().join(", ");
    let hint = match nearest(name, known()) {
        Some(meant) => format!("did you mean {meant}? There are {list}, and script:FILE"),
        None => format!("there are {list}, and script:FILE; any other command goes after --"),
    };
    wrong(
        format!("{} {name:?}: there is no such agent", stack.name("agent")),
        hint,
    )
}

/// Nobody knows which words of a program that has no preset would say these.
fn takes_only_words(stack: &Stack, program: &str) -> Result<(), Wrong> {
    let model = stack.level(&["model"]) > 0 && stack.level(&["model"]) >= stack.level(&["agent"]);
    let given = [("model", model), ("approve", stack.is_typed("approve"))];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => wrong(
            format!("{}: {program} is not a known agent", stack.name(name)),
            "say it in the agent's own words: docs/presets.md shows how to make an agent known",
        ),
    }
}

/// A command that is run as it is, its prompt on standard input.
fn plain(all: &Settings, errand: &Errand, command: Vec<String>) -> Agent {
    let scripted = command[0].strip_prefix(SCRIPT);
    Agent {
        name: command[0].rsplit('/').next().unwrap_or_default().to_owned(),
        exit_waiting: waiting(all, Some(WAITING)),
        reports_cost: scripted.is_some(),
        terminal: all.pty.unwrap_or(false),
        command: match scripted {
            Some(file) => vec![format!("{SCRIPT}{}", errand.workspace.join(file).display())],
            None => command,
        },
        ..Agent::default()
    }
}

/// What an agent exits with that was written for a loop like this one.
const WAITING: i32 = 42;

fn waiting(all: &Settings, otherwise: Option<i32>) -> Option<i32> {
    match all.exit_waiting {
        Some(0) => None,
        Some(code) => Some(code),
        None => otherwise,
    }
}

/// A known agent: program, headless words, approval, model, the user's flags, and the prompt's own words last. On
/// a terminal it is called as a person would, without what makes it run headless.
fn called(
    stack: &Stack,
    all: &Settings,
    name: &str,
    preset: &Preset,
    command: &[String],
    flags: &[String],
) -> Result<Agent, Wrong> {
    let level = match all.approve {
        Approve::None => &preset.approve.none,
        Approve::Edits => &preset.approve.edits,
        Approve::All => &preset.approve.all,
    };
    let model = match &all.model {
        Some(_) if preset.model.is_empty() => {
            let hint = if preset.model_hint.is_empty() {
                "leave it out"
            } else {
                &preset.model_hint
            };
            return wrong(
                format!("{}: {name} has no flag for a model", stack.name("model")),
                hint,
            );
        }
        Some(model) => preset
            .model
            .iter()
            .map(|word| word.replace("{model}", model))
            .collect(),
        None => vec![],
    };
    let waits = preset
        .exit
        .iter()
        .find(|exit| exit.means == Meaning::Waiting)
        .map(|exit| exit.code);
    let terminal = all.pty.unwrap_or(false);
    let (headless, prompt_words, prompt) = if terminal {
        (&[][..], &[][..], Delivery::default())
    } else {
        (
            &preset.headless[..],
            &preset.prompt_words[..],
            preset.prompt.clone(),
        )
    };
    // Flags of the user's own may ask for another form.
    let own = [command, flags].concat();
    let asks = !terminal && !structured::chooses(&own, &preset.stream);
    let stream = if asks { &preset.stream[..] } else { &[] };
    let mut agent = Agent {
        name: name.to_owned(),
        command: [
            command,
            headless,
            stream,
            &level.words,
            &model,
            flags,
            prompt_words,
        ]
        .concat(),
        env: level.env.clone(),
        prompt,
        approve: held_to(preset, level, all.approve),
        exit_waiting: waiting(all, waits),
        exits: preset.exit.iter().map(|exit| exit.rule(preset)).collect(),
        denied: preset.denied.clone(),
        dialect: Dialect::Text,
        reasons: preset.reason.clone(),
        login: preset.login.clone(),
        // A person at a screen has an eye on the bill.
        budget: if terminal {
            vec![]
        } else {
            preset.budget.clone()
        },
        payer: None,
        held_back: Vec::new(),
        unset: Vec::new(),
        model: all.model.clone(),
        reports_cost: false,
        terminal,
        ready: preset.ready.clone().filter(|_| terminal),
    };
    if asks || (!terminal && structured::says(&own, &preset.stream)) {
        speak(&mut agent, preset.dialect);
    }
    Ok(agent)
}

/// What an agent may really do: one that has no words for less may do more than was asked. One that has no
/// words at all may do whatever its own settings allow, which nobody knows here.
fn held_to(preset: &Preset, level: &LevelWords, asked: Approve) -> Option<Approve> {
    let levels = &preset.approve;
    if [&levels.none, &levels.edits, &levels.all]
        .iter()
        .all(|level| **level == LevelWords::default())
    {
        return None;
    }
    Some(match level {
        level if *level == levels.all => Approve::All,
        level if *level == levels.edits => Approve::Edits,
        _ => asked,
    })
}

impl Exit {
    fn rule(&self, preset: &Preset) -> ExitRule {
        let login = self.means == Meaning::Login && self.hint.is_empty();
        let hint = if login {
            format!("log in: {}", preset.login)
        } else {
            self.hint.clone()
        };
        ExitRule {
            code: self.code,
            means: self.means,
            hint,
        }
    }
}
