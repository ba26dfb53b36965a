//! How Codex learns of the loop: hooks among those of the user, skills that a person calls, and, if the person says so,
//! the word that these hooks are trusted.

use super::files;
use super::files::{CODEX_HOOKS, File};
use super::json::Part;
use super::record::{Appended, Record};
use super::settings_file;
use super::settings_file::Sheet;
use super::steps::Step;
use super::trust::{Trusted, trust, without};
use super::{Base, Client, Standing, Work, keys};
use crate::lifecycle::failure::Failure;
use etcetera::home_dir;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{env, fs};
use toml::Table;

pub(crate) const NAME: &str = "codex";
/// What every skill of ralph says of itself.
const MARK: &str = "Written by `ralph plugin install`";

/// What has to be done so that the client finds hooks and skills.
pub(crate) fn install(base: &Base, is_trusted: bool, record: &mut Record) -> Result<Work, Failure> {
    let home = home()?;
    let mut work = Work::default();
    work.steps.extend(skills(&home.real)?);
    let mut sheet = Sheet::open(&home.hooks(), NAME, record)?;
    let wanted = groups(&base.program);
    for (event, group) in &wanted {
        join(&mut sheet, event, group)?;
    }
    let hooks = trusted(&sheet, &wanted, &home.key);
    work.steps.extend(sheet.close(record)?);
    let path = home.config();
    let config = settings_file::text(&path)?;
    let table: Option<Table> = config.as_deref().unwrap_or_default().parse().ok();
    let is_done = |hook: &Trusted| table.as_ref().is_some_and(|table| hook.is_in(table));
    if hooks.iter().all(is_done) {
        return Ok(work);
    }
    if !is_trusted {
        work.notes.push(
            "Codex runs a hook only when a person trusts it: start codex and press t when it asks, or say \
             ralph plugin install codex --trust"
                .into(),
        );
        return Ok(work);
    }
    let (text, added) = trust(config.as_deref().unwrap_or_default(), &hooks).map_err(|wrong| {
        Failure::usage(
            format!("{} cannot be changed: {wrong}", path.display()),
            "nothing was written; say it again without --trust, start codex, and press t when it asks",
        )
    })?;
    record.appended.retain(|old| old.file != path);
    record.appended.push(Appended {
        client: NAME.into(),
        file: path.clone(),
        is_new: config.is_none(),
        text: added,
    });
    let notes = hooks
        .iter()
        .map(|hook| format!("trusts {}", hook.key))
        .collect();
    work.steps
        .push(settings_file::edit(&path, config.is_none(), text, notes)?);
    Ok(work)
}

/// What has to be done so that nothing is left of it.
pub(crate) fn uninstall(base: &Base, record: &mut Record) -> Result<Work, Failure> {
    let home = home()?;
    let homes = record.dirs(NAME, home.real.clone(), |_| true);
    let mut work = Work::default();
    for real in homes {
        let key = if real == home.real {
            home.key.clone()
        } else {
            real.clone()
        };
        leave(base, &Home { real, key }, record, &mut work)?;
    }
    Ok(work)
}

fn leave(base: &Base, home: &Home, record: &mut Record, work: &mut Work) -> Result<(), Failure> {
    let mut sheet = Sheet::open(&home.hooks(), NAME, record)?;
    let wanted = groups(&base.program);
    let hooks = trusted(&sheet, &wanted, &home.key);
    let is_last = wanted
        .iter()
        .all(|(event, _)| ours(&sheet, event).is_none_or(|(at, _)| at + 1 == count(&sheet, event)));
    sheet.undo();
    for (event, _) in &wanted {
        while let Some((_, old)) = ours(&sheet, event) {
            sheet.remove(&at(event, &old));
        }
    }
    work.steps.extend(sheet.close(record)?);
    work.steps.extend(distrust(&home.config(), &hooks, record)?);
    let own = files::codex_skills().map(|name| home.real.join("skills").join(name));
    work.steps.extend(
        own.filter(|dir| is_own_skill(dir))
            .map(|path| Step::Clear { path }),
    );
    if !is_last {
        work.notes.push(
            "hooks that come after ralph's move up, and Codex will ask whether you trust them"
                .into(),
        );
    }
    Ok(())
}

/// Takes the trust back, and what was added for it.
fn distrust(path: &Path, hooks: &[Trusted], record: &mut Record) -> Result<Option<Step>, Failure> {
    let Some(config) = settings_file::text(path)? else {
        return Ok(None);
    };
    let added = record
        .appended
        .iter()
        .find(|added| added.file == path)
        .cloned();
    record.appended.retain(|added| added.file != path);
    let text = added
        .as_ref()
        .map_or(config.clone(), |added| config.replacen(&added.text, "", 1));
    let text = hooks.iter().fold(text, |text, hook| without(&text, hook));
    if text == config {
        return Ok(None);
    }
    if text.trim().is_empty() && added.is_some_and(|added| added.is_new) {
        return Ok(Some(Step::Delete {
            path: path.to_owned(),
        }));
    }
    settings_file::edit(
        path,
        false,
        text,
        vec!["hooks.state of ralph's hooks (no more)".into()],
    )
    .map(Some)
}

/// How it stands, for whoever looks around.
pub(crate) fn standing(base: &Base) -> Result<Standing, Failure> {
    let mut record = Record::read(&base.record())?;
    let sheet = Sheet::open(&home()?.hooks(), NAME, &record)?;
    let is_installed = groups(&base.program)
        .iter()
        .any(|(event, _)| ours(&sheet, event).is_some());
    let unknown = Standing::unknown(Client::Codex);
    if !is_installed {
        return Ok(unknown);
    }
    let work = install(base, false, &mut record)?;
    let is_current = work.steps.is_empty();
    let distrusted = is_current && !work.notes.is_empty();
    let trouble =
        distrusted.then(|| "not trusted yet: start codex and press t when it asks".to_owned());
    Ok(Standing {
        is_installed,
        is_current,
        trouble,
        ..unknown
    })
}

/// Puts a group among those of its event, in the place of an earlier one of ralph's: places are part of trust.
fn join(sheet: &mut Sheet, event: &str, group: &Value) -> Result<(), Failure> {
    match ours(sheet, event) {
        Some((_, old)) if old != *group => sheet.swap(&at(event, &old), &at(event, group), group),
        _ => sheet.set(&at(event, group), group, true),
    }
}

/// The group that calls ralph, and its place.
fn ours(sheet: &Sheet, event: &str) -> Option<(usize, Value)> {
    let groups = sheet.get(&keys(&["hooks", event]))?;
    let all = groups.as_array()?.iter().cloned().enumerate();
    all.rev().find(|(_, group)| is_ours(group))
}

fn count(sheet: &Sheet, event: &str) -> usize {
    sheet
        .get(&keys(&["hooks", event]))
        .and_then(|groups| Some(groups.as_array()?.len()))
        .unwrap_or(0)
}

fn is_ours(group: &Value) -> bool {
    let Some([hook]) = group["hooks"].as_array().map(Vec::as_slice) else {
        return false;
    };
    let words = hook["command"]
        .as_str()
        .and_then(shlex::split)
        .unwrap_or_default();
    let [program, door, ..] = words.as_slice() else {
        return false;
    };
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == "ralph")
        && door == "hook"
}

fn at(event: &str, group: &Value) -> Vec<Part> {
    let mut path = keys(&["hooks", event]);
    path.push(Part::Item(group.clone()));
    path
}

/// The hooks as they are to be: events, and a group for each.
fn groups(program: &str) -> Vec<(String, Value)> {
    let text = files::calling(CODEX_HOOKS, program);
    let all: Value = serde_json::from_str(&text).expect("the hooks are JSON");
    let events = all["hooks"].as_object().expect("the hooks are an object");
    events
        .iter()
        .map(|(event, groups)| (event.clone(), groups[0].clone()))
        .collect()
}

/// Ralph's hooks as Codex knows them, where they stand in the file.
fn trusted(sheet: &Sheet, wanted: &[(String, Value)], home: &Path) -> Vec<Trusted> {
    let file = home.join("hooks.json").display().to_string();
    let all = wanted.iter().filter_map(|(event, _)| {
        let (place, group) = ours(sheet, event)?;
        Some(Trusted::new(&file, event, place, &group["hooks"][0]))
    });
    all.collect()
}

/// What makes the skills what they should be; one that somebody else wrote is not replaced.
fn skills(home: &Path) -> Result<Option<Step>, Failure> {
    let dir = home.join("skills");
    for name in files::codex_skills() {
        let path = dir.join(name);
        if path.exists() && !is_own_skill(&path) {
            return Err(Failure::usage(
                format!("there is another skill at {}", path.display()),
                "nothing was written; move it away, then say it again",
            ));
        }
    }
    let differs =
        |(name, text): &File| fs::read_to_string(dir.join(name)).ok().as_ref() != Some(text);
    let files: Vec<File> = files::codex().into_iter().filter(differs).collect();
    Ok((!files.is_empty()).then_some(Step::Files {
        dir,
        files,
        stale: Vec::new(),
    }))
}

fn is_own_skill(dir: &Path) -> bool {
    fs::read_to_string(dir.join("SKILL.md")).is_ok_and(|text| text.contains(MARK))
}

/// Where Codex keeps what is the user's.
struct Home {
    real: PathBuf,
    /// As Codex itself calls it.
    key: PathBuf,
}

impl Home {
    fn hooks(&self) -> PathBuf {
        self.real.join("hooks.json")
    }

    fn config(&self) -> PathBuf {
        self.real.join("config.toml")
    }
}

/// A directory that is named is called by its real path, the usual one as it is.
fn home() -> Result<Home, Failure> {
    if let Some(set) = env::var_os("CODEX_HOME").filter(|set| !set.is_empty()) {
        let real = std::path::absolute(&set).map_err(Failure::broken)?;
        let key = fs::canonicalize(&real).unwrap_or_else(|_| real.clone());
        return Ok(Home { real, key });
    }
    let real = home_dir()
        .map_err(|error| Failure::broken(format!("cannot find the home directory: {error}")))?;
    let real = real.join(".codex");
    Ok(Home {
        key: real.clone(),
        real,
    })
}
