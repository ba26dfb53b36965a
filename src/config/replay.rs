//! Reads settings files with any content, as a run does, for tests and fuzzers. Not part of the API.

use super::{Config, ConfigError, RunRequest, SettingsFile, SettingsFiles, SettingsPaths};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The settings files of a project.
pub struct SettingsReplay {
    files: SettingsFiles,
    workspace: PathBuf,
}

impl SettingsReplay {
    /// Reads the settings files in the `.ralph` directory of a workspace. An error is a message
    /// and its hint.
    pub fn read(workspace: &Path) -> Result<Self, (String, String)> {
        let paths = SettingsPaths {
            workspace: workspace.to_owned(),
            ..SettingsPaths::default()
        };
        let files = SettingsFiles::read(&paths).map_err(parts)?;
        Ok(Self {
            files,
            workspace: workspace.to_owned(),
        })
    }

    /// Returns the keys whose values apply only if the user trusts the files.
    pub fn guarded_keys(&self) -> Vec<String> {
        let values = self.files.iter().flat_map(SettingsFile::guarded_values);
        values.map(|value| value.key).collect()
    }

    /// Removes the values that need trust.
    pub fn remove_guarded(&mut self) {
        let paths: Vec<_> = self.files.iter().map(|file| file.path.clone()).collect();
        for path in paths {
            self.files.remove_guarded(&path);
        }
    }

    /// Returns the merged values of all files and of the defaults.
    pub fn merged(&self) -> Map<String, Value> {
        self.files.clone().into_stack().merged()
    }

    /// Drafts the plan of a run with these settings, as JSON.
    pub fn draft_plan(&self) -> Result<Value, (String, String)> {
        let request = RunRequest {
            task: Some("fix it".into()),
            workspace: self.workspace.clone(),
            ..RunRequest::default()
        };
        let config = Config::new(self.files.clone().into_stack()).map_err(parts)?;
        let draft = config.draft_plan(&request).map_err(parts)?;
        Ok(serde_json::to_value(draft.plan()).expect("a plan is JSON"))
    }
}

fn parts(error: ConfigError) -> (String, String) {
    (error.message, error.hint)
}
