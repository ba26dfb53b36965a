//! The agent CLIs in `tests/cli/npm`: where each is installed, how it is pointed at the scripted model and kept offline,
//! and the names of its file and command tools. All keys are dummies.

use crate::model::{Step, use_tool};
use crate::stage::Stage;
use serde_json::json;

pub(crate) struct Cli {
    /// The agent's name in ralph, which is also the name of its program.
    pub(crate) name: &'static str,
    /// The directory in `tests/cli/npm` that installs it: `core` or `more`.
    pub(crate) set: &'static str,
    /// The path of the program within the installed packages.
    pub(crate) program: &'static str,
    pub(crate) prepare: fn(&mut Stage),
    /// Returns a step that writes a new file with the CLI's own tool; takes the path and one line
    /// of text.
    pub(crate) write: fn(&str, &str) -> Step,
    /// Returns a step that runs a shell command with the CLI's own tool.
    pub(crate) shell: fn(&str) -> Step,
}

pub(crate) const CLAUDE: Cli = Cli {
    name: "claude",
    set: "core",
    program: "@anthropic-ai/claude-code-linux-x64/claude",
    prepare: claude,
    write: |path, line| use_tool("Write", json!({ "file_path": path, "content": line })),
    shell: |command| {
        use_tool(
            "Bash",
            json!({ "command": command, "description": "run it" }),
        )
    },
};

pub(crate) const OLD_CLAUDE: Cli = Cli {
    program: "claude-old/cli.js",
    ..CLAUDE
};

pub(crate) const CODEX: Cli = Cli {
    name: "codex",
    set: "core",
    program: "@openai/codex/bin/codex.js",
    prepare: codex,
    write: |path, line| {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch");
        use_tool(
            "exec_command",
            json!({ "cmd": format!("apply_patch <<'EOP'\n{patch}\nEOP") }),
        )
    },
    shell: |command| use_tool("exec_command", json!({ "cmd": command })),
};

pub(crate) const COPILOT: Cli = Cli {
    name: "copilot",
    set: "more",
    program: "@github/copilot/npm-loader.js",
    prepare: copilot,
    write: |path, line| use_tool("create", json!({ "path": path, "file_text": line })),
    shell: |command| {
        use_tool(
            "bash",
            json!({ "command": command, "description": "run it", "mode": "sync" }),
        )
    },
};

pub(crate) const DROID: Cli = Cli {
    name: "droid",
    set: "more",
    program: "@factory/cli-linux-x64/bin/droid",
    prepare: droid,
    write: |path, line| use_tool("Create", json!({ "file_path": path, "content": line })),
    shell: |command| {
        use_tool(
            "Execute",
            json!({ "command": command, "summary": "run it", "riskLevel": "low" }),
        )
    },
};

pub(crate) const GEMINI: Cli = Cli {
    name: "gemini",
    set: "more",
    program: "@google/gemini-cli/bundle/gemini.js",
    prepare: gemini,
    write: |path, line| use_tool("write_file", json!({ "file_path": path, "content": line })),
    shell: |command| {
        use_tool(
            "run_shell_command",
            json!({ "command": command, "description": "run it" }),
        )
    },
};

pub(crate) const OPENCODE: Cli = Cli {
    name: "opencode",
    set: "more",
    program: "opencode-linux-x64/bin/opencode",
    prepare: opencode,
    write: |path, line| use_tool("write", json!({ "filePath": path, "content": line })),
    shell: |command| {
        use_tool(
            "bash",
            json!({ "command": command, "description": "run it" }),
        )
    },
};

pub(crate) const PI: Cli = Cli {
    name: "pi",
    set: "more",
    program: "@earendil-works/pi-coding-agent/dist/bundle/cli.js",
    prepare: pi,
    write: |path, line| use_tool("write", json!({ "path": path, "content": line })),
    shell: |command| use_tool("bash", json!({ "command": command })),
};

pub(crate) const QWEN: Cli = Cli {
    name: "qwen",
    set: "more",
    program: "@qwen-code/qwen-code/cli-entry.js",
    prepare: qwen,
    ..GEMINI
};

fn claude(stage: &mut Stage) {
    let home = stage.test.root().join("home/.claude").display().to_string();
    for (name, value) in [
        ("ANTHROPIC_BASE_URL", stage.model.url().as_str()),
        ("ANTHROPIC_API_KEY", "sk-ant-dummy"),
        ("CLAUDE_CONFIG_DIR", home.as_str()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", "1"),
        // In interactive mode, it would ask the model for prompt suggestions, in a request that
        // offers tools.
        ("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "false"),
        // The tests may run as root, where it refuses to skip permissions otherwise.
        ("IS_SANDBOX", "1"),
    ] {
        stage.env(name, value);
    }
}

fn codex(stage: &mut Stage) {
    let settings = format!(
        "model = 'mock-model'\nmodel_provider = 'mock'\ncheck_for_update_on_startup = false\n\
         [model_providers.mock]\nname = 'mock'\nbase_url = '{}/v1'\nwire_api = 'responses'\nenv_key = 'MOCK_KEY'\n\
         request_max_retries = 1\nstream_max_retries = 1\n[analytics]\nenabled = false\n",
        stage.model.url()
    );
    stage.home_file(".codex/config.toml", &settings);
    stage.env("MOCK_KEY", "dummy");
    // Without a network, its plugins take five seconds to fail.
    stage.flags(&["--disable", "plugins"]);
}

fn copilot(stage: &mut Stage) {
    let home = stage
        .test
        .root()
        .join("home/.copilot")
        .display()
        .to_string();
    let url = format!("{}/v1", stage.model.url());
    for (name, value) in [
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_AUTO_UPDATE", "false"),
        ("COPILOT_HOME", home.as_str()),
        ("COPILOT_PROVIDER_BASE_URL", url.as_str()),
        ("COPILOT_PROVIDER_API_KEY", "dummy"),
        ("COPILOT_MODEL", "mock-model"),
    ] {
        stage.env(name, value);
    }
}

fn droid(stage: &mut Stage) {
    let model = json!({
        "model": "mock-model", "displayName": "Mock", "baseUrl": format!("{}/v1", stage.model.url()),
        "apiKey": "dummy", "provider": "generic-chat-completion-api", "maxOutputTokens": 8000,
    });
    stage.home_file(
        ".factory/settings.json",
        &json!({ "customModels": [model] }).to_string(),
    );
    stage.flags(&["-m", "custom:mock-model"]);
}

fn gemini(stage: &mut Stage) {
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } }, "telemetry": { "enabled": false },
        "privacy": { "usageStatisticsEnabled": false }, "general": { "enableAutoUpdate": false },
    });
    stage.home_file(".gemini/settings.json", &settings.to_string());
    stage.env("GEMINI_API_KEY", "dummy");
    stage.env("GOOGLE_GEMINI_BASE_URL", &stage.model.url());
    stage.flags(&["-m", "gemini-2.5-flash"]);
}

fn opencode(stage: &mut Stage) {
    let model = json!({
        "name": "mock", "tool_call": true, "limit": { "context": 200_000, "output": 8000 },
        "cost": { "input": 2, "output": 10, "cache_read": 0.5, "cache_write": 0 },
    });
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Mock", "models": { "mock-model": model },
        "options": { "baseURL": format!("{}/v1", stage.model.url()), "apiKey": "dummy" },
    });
    let settings = json!({ "model": "mock/mock-model", "provider": { "mock": provider } });
    stage.home_file("opencode.json", &settings.to_string());
    let settings = stage
        .test
        .root()
        .join("home/opencode.json")
        .display()
        .to_string();
    stage.env("OPENCODE_CONFIG", &settings);
    for what in [
        "AUTOUPDATE",
        "MODELS_FETCH",
        "LSP_DOWNLOAD",
        "DEFAULT_PLUGINS",
    ] {
        stage.env(&format!("OPENCODE_DISABLE_{what}"), "1");
    }
}

fn pi(stage: &mut Stage) {
    let model = json!({
        "id": "mock-model", "name": "Mock", "reasoning": false, "input": ["text"], "contextWindow": 200_000,
        "maxTokens": 8000, "cost": { "input": 2, "output": 10, "cacheRead": 0.5, "cacheWrite": 0 },
    });
    let provider = json!({
        "baseUrl": format!("{}/v1", stage.model.url()), "api": "openai-completions", "apiKey": "dummy",
        "models": [model],
    });
    stage.home_file(
        ".pi/agent/models.json",
        &json!({ "providers": { "mock": provider } }).to_string(),
    );
    stage.env("PI_OFFLINE", "1");
    stage.flags(&["--provider", "mock", "--model", "mock-model"]);
}

fn qwen(stage: &mut Stage) {
    // After the run, it would ask the model what to remember, in a request that offers tools.
    let settings = json!({ "memory": { "enableManagedAutoMemory": false } });
    stage.home_file(".qwen/settings.json", &settings.to_string());
    stage.env("OPENAI_API_KEY", "dummy");
    stage.env("OPENAI_BASE_URL", &format!("{}/v1", stage.model.url()));
    stage.env("OPENAI_MODEL", "mock-model");
    stage.flags(&["--auth-type", "openai"]);
}
