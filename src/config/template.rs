//! Loads the prompt template: the project's, the user's or the embedded one.

use super::{ConfigError, RunRequest, config_error};
use crate::engine::{prompt, template};

pub(super) fn load_prompt_template(request: &RunRequest) -> Result<String, ConfigError> {
    let dirs = [
        Some(request.workspace.join(".ralph")),
        request.config_dir.clone(),
    ];
    for path in dirs
        .into_iter()
        .flatten()
        .map(|dir| dir.join("template.md"))
    {
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return config_error(
                    format!("cannot read {}: {error}", path.display()),
                    "save the template as a UTF-8 text file",
                );
            }
            Ok(text) => {
                return match template::find_invalid_tag(&text, &prompt::TEMPLATE_FIELDS) {
                    None => Ok(text),
                    Some(tag) => config_error(
                        format!("{}: invalid tag {tag}", path.display()),
                        format!(
                            "a template can use {}; close sections in order",
                            prompt::TEMPLATE_FIELDS.join(", ")
                        ),
                    ),
                };
            }
        }
    }
    Ok(include_str!("../../presets/prompt.md").to_owned())
}
