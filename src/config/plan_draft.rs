//! Builds a loop's plan. No other code sets a field of a plan.

use super::proof::build_proof;
use super::{
    Config, ConfigError, LayerStack, RunRequest, SessionRequest, Settings, agents, config_error,
    nonzero_ms, prices, reject_secret, sandbox, scm, task, template,
};
use crate::agent::decode::dialect::Dialect;
use crate::agent::redact::Redactor;
use crate::engine::limits::Limits;
use crate::engine::plan::{Agent, GracePeriods, Plan, PromptContext, RULES, Rest, Task, Worktree};
use crate::engine::usage::Prices;
use std::path::PathBuf;

/// A plan that is complete except for its worktree, whose path and branch depend on the loop's
/// name. The name is claimed last.
pub(crate) struct PlanDraft {
    pub(crate) config: Config,
    plan: Plan,
}

impl Config {
    /// Drafts the plan of a loop from the configuration and a request.
    pub(crate) fn draft_plan(self, request: &RunRequest) -> Result<PlanDraft, ConfigError> {
        let plan = build_plan(&self, request)?;
        Ok(PlanDraft { config: self, plan })
    }
}

impl PlanDraft {
    /// Returns the plan as drafted so far, without a worktree unless one was added.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Moves the loop into a worktree, where it works in `workspace`.
    pub(crate) fn move_to_worktree(&mut self, worktree: Worktree, workspace: PathBuf) {
        self.plan.workspace = workspace;
        self.plan.worktree = Some(worktree);
    }

    /// Puts the loop's name into the names of its guardrail logs, because another loop may write
    /// some in the same workspace.
    pub(crate) fn name_logs_after(&mut self, loop_name: &str) {
        self.plan.log_owner = Some(loop_name.to_owned());
    }

    /// Completes the plan for the journal. Replaces secrets in the user's text with the names of
    /// their variables.
    pub(crate) fn into_plan(self) -> Plan {
        let mut plan = self.plan;
        let redactor = Redactor::from_env();
        plan.redacted = redactor.redact_all(plan.user_text_mut());
        for pattern in plan.proof.patterns_mut() {
            plan.redacted.extend(redactor.redact_pattern(pattern));
        }
        plan.redacted.sort_unstable();
        plan.redacted.dedup();
        plan
    }
}

/// Builds the plan for a request, in the user's own checkout.
fn build_plan(config: &Config, request: &RunRequest) -> Result<Plan, ConfigError> {
    let Config {
        stack, settings, ..
    } = config;
    let task = resolve_task(config, request)?;
    let proof = build_proof(stack, settings, task.is_none())?;
    let workspace = &request.workspace;
    if workspace.to_str().is_none() {
        return config_error(
            format!("the path {} is not valid UTF-8", workspace.display()),
            "rename the directory: the journal can only store UTF-8 paths",
        );
    }
    reject_secret("the workspace", &workspace.to_string_lossy())?;
    if let Some(file) = task.as_ref().and_then(|task| task.file.as_ref()) {
        reject_secret(&stack.display_name("prompt-file"), &file.to_string_lossy())?;
    }
    if settings.probe.base.0 == 0 {
        return config_error(
            format!("{} must be longer than 0", stack.display_name("probe")),
            "an agent at its limit would be started again at once; write 1s..1s for a short rest",
        );
    }
    let (agent, fallback) = agents::resolve_agents(config, request)?;
    let sandbox = settings.sandbox.kind();
    for agent in std::iter::once(&agent).chain(&fallback) {
        if let (Some(kind), None) = (sandbox, &request.session) {
            sandbox::check_agent(stack, kind, agent, config.preset_of(agent), workspace)?;
        }
    }
    // Without a stream there are no token counts, so the plan needs no prices.
    let has_stream = std::iter::once(&agent)
        .chain(&fallback)
        .any(|agent| agent.dialect.is_stream());
    let known = prices::load_prices(stack, &settings.prices)?;
    let prices = if has_stream { known } else { Prices::default() };
    for agent in std::iter::once(&agent).chain(&fallback) {
        check_limits_measurable(stack, settings, agent, &prices)?;
    }
    let plan = Plan {
        rules: RULES,
        task: task.unwrap_or_else(task::make_checks_pass),
        proof,
        limits: Limits {
            unknown_cost: settings.allow_unknown_cost,
            iteration_ms: nonzero_ms(settings.iteration_timeout),
            inactivity_ms: inactivity_ms(settings, &agent),
            ..settings.limits.clone()
        },
        rest: Rest {
            delay_ms: settings.delay.0,
            backoff_ms: settings.backoff.base.0,
            backoff_cap_ms: settings.backoff.cap.0,
            probe_ms: settings.probe.base.0,
            probe_cap_ms: settings.probe.cap.0,
        },
        agent,
        fallback,
        sandbox,
        context: PromptContext {
            level: settings.context,
            diff_chars: settings.diff_chars,
            output_chars: settings.output_chars,
            bus: settings.context_bus,
            template: template::load_prompt_template(request)?,
        },
        grace: GracePeriods {
            term_ms: settings.grace_term.0,
            marker_ms: settings.grace_marker.0,
            survivor_ms: settings.grace_survivor.0,
            ready_ms: settings.grace_ready.0,
            linger_ms: settings.grace_linger.0,
            children_ms: nonzero_ms(settings.wait_timeout),
        },
        prices,
        scm: scm::scm_from_settings(
            &stack.display_name("scm"),
            settings.scm.clone().unwrap_or_default(),
        )?,
        checkpoints: settings.checkpoints,
        notify: settings
            .notify
            .clone()
            .filter(|command| !command.trim().is_empty()),
        workspace: request.workspace.clone(),
        worktree: None,
        session: None,
        redacted: Vec::new(),
        share_workspace: settings.share_workspace,
        log_owner: None,
        log_cap: settings.log_cap.0,
        min_free: settings.min_free.0,
    };
    Ok(match &request.session {
        Some(SessionRequest {
            session,
            block_cap,
            reports_usage,
        }) => plan.in_session(session.clone(), *block_cap, *reports_usage),
        None => plan,
    })
}

/// Resolves the task; `None` if there are only checks. In a session it is always the text that was
/// typed there.
fn resolve_task(config: &Config, request: &RunRequest) -> Result<Option<Task>, ConfigError> {
    if request.session.is_some() {
        return Ok(Some(Task {
            title: None,
            text: request.task.clone(),
            file: None,
        }));
    }
    task::resolve_task(&config.stack, &config.settings, request)
}

/// Rejects limits that cannot be measured for this agent, because they would never trigger.
fn check_limits_measurable(
    stack: &LayerStack,
    settings: &Settings,
    agent: &Agent,
    prices: &Prices,
) -> Result<(), ConfigError> {
    let reports_tokens =
        Dialect::find(&agent.dialect).is_some_and(|dialect| dialect.reports_tokens);
    if settings.limits.tokens.is_some() && !reports_tokens {
        return config_error(
            format!(
                "{} is set, but ralph cannot read the token usage of `{}`",
                stack.display_name("max-tokens"),
                agent.name
            ),
            "use --max-iterations or --max-time instead",
        );
    }
    let model = agent.model.as_deref();
    let has_price = reports_tokens && model.is_some_and(|model| prices.price_of(model).is_some());
    let has_cost_limit = settings.limits.cost_usd.is_some();
    if !has_cost_limit || agent.reports_cost || has_price || settings.allow_unknown_cost {
        return Ok(());
    }
    let (limit, name) = (stack.display_name("max-cost"), &agent.name);
    match model {
        Some(model) if reports_tokens => config_error(
            format!("{limit} is set, but the price of {model} is unknown"),
            format!("set prices.{model} in the settings, or add --allow-unknown-cost"),
        ),
        _ if reports_tokens => config_error(
            format!("{limit} is set, but {name} reports tokens without cost or model"),
            "name the model with --model, so that its price is known; or add --allow-unknown-cost",
        ),
        _ => config_error(
            format!("{limit} is set, but ralph cannot read the cost of `{name}`"),
            "add --allow-unknown-cost; the agent can append dollars to $RALPH_TASK_DIR/COST",
        ),
    }
}

/// Returns the agent's inactivity timeout in milliseconds; `None` if it has no timeout.
fn inactivity_ms(settings: &Settings, agent: &Agent) -> Option<u64> {
    let defaults = agents::defaults();
    let default = || match agent {
        agent if agent.terminal => Some(defaults.terminal_inactivity),
        agent => agent
            .dialect
            .is_stream()
            .then_some(defaults.stream_inactivity),
    };
    nonzero_ms(settings.inactivity_timeout.or_else(default)?)
}
