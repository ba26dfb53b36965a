//! Words of a plan that hold a secret: the journal has its name in their place, and whoever needs them its value.

use super::Plan;

impl Plan {
    /// All that a person has typed, and that is written down as it is.
    pub fn typed_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let task = self.task.text.iter_mut().chain(&mut self.task.title);
        let checks = self.proof.checks.iter_mut().map(|check| &mut check.command);
        let agents = std::iter::once(&mut self.agent).chain(&mut self.fallback);
        let agents =
            agents.flat_map(|agent| agent.command.iter_mut().chain(agent.env.values_mut()));
        task.chain(checks).chain(agents).chain(&mut self.notify)
    }
}
