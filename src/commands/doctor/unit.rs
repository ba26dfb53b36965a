//! `ralph doctor --unit`: prints a systemd user unit, or a launchd agent on macOS, that resumes
//! interrupted loops when the machine starts or the user logs in.

use crate::lifecycle::error::CommandError;

/// What the unit runs, and with which environment: that of a service lacks most of the user's PATH.
struct Service {
    program: String,
    environment: Vec<(&'static str, String)>,
}

/// Returns the unit for this system.
pub(super) fn unit() -> Result<String, CommandError> {
    let program = std::env::current_exe().map_err(CommandError::broken)?;
    let program = program.into_os_string().into_string().map_err(|path| {
        CommandError::usage(
            format!("the path of ralph is not UTF-8: {}", path.display()),
            "move the program to another directory",
        )
    })?;
    let variables = ["PATH", "RALPH_STATE_DIR"].into_iter();
    let service = Service {
        program,
        environment: variables
            .filter_map(|name| Some((name, std::env::var(name).ok()?)))
            .collect(),
    };
    Ok(if cfg!(target_os = "macos") {
        launchd_agent(&service)
    } else {
        systemd_unit(&service)
    })
}

/// The `-` before the program matters: if one loop could not be resumed, systemd would otherwise
/// consider the unit failed and kill the others.
fn systemd_unit(service: &Service) -> String {
    let quoted = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", text.replace('%', "%%"))
    };
    let environment: Vec<String> = service
        .environment
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        .collect();
    format!(
        "# Save as ~/.config/systemd/user/ralph.service, then run: systemctl --user enable ralph\n\
         [Unit]\n\
         Description=Resume ralph loops that a crash or a shutdown interrupted\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         {}\
         ExecStart=-{} resume --all\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        environment.concat(),
        quoted(&service.program).replace('$', "$$")
    )
}

/// `AbandonProcessGroup` keeps launchd from killing the loops when the command has exited.
fn launchd_agent(service: &Service) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let environment: Vec<String> = service
        .environment
        .iter()
        .map(|(name, value)| {
            format!(
                "    <key>{name}</key>\n    <string>{}</string>\n",
                escaped(value)
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- Save as ~/Library/LaunchAgents/ralph.plist -->\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \x20 <key>Label</key>\n\
         \x20 <string>ralph</string>\n\
         \x20 <key>ProgramArguments</key>\n\
         \x20 <array>\n\
         \x20   <string>{}</string>\n\
         \x20   <string>resume</string>\n\
         \x20   <string>--all</string>\n\
         \x20 </array>\n\
         \x20 <key>EnvironmentVariables</key>\n\
         \x20 <dict>\n\
         {}\
         \x20 </dict>\n\
         \x20 <key>RunAtLoad</key>\n\
         \x20 <true/>\n\
         \x20 <key>AbandonProcessGroup</key>\n\
         \x20 <true/>\n\
         </dict>\n\
         </plist>\n",
        escaped(&service.program),
        environment.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service {
            program: "/opt/a \"b\" $c/100%/ralph".into(),
            environment: vec![("PATH", "/bin:/home/me/<&>\\bin".into())],
        }
    }

    #[test]
    fn the_systemd_unit_quotes_what_systemd_would_expand() {
        let unit = systemd_unit(&service());
        assert!(
            unit.contains("\nExecStart=-\"/opt/a \\\"b\\\" $$c/100%%/ralph\" resume --all\n"),
            "{unit}"
        );
        assert!(
            unit.contains("\nEnvironment=\"PATH=/bin:/home/me/<&>\\\\bin\"\n"),
            "{unit}"
        );
    }

    #[test]
    fn the_launchd_agent_is_well_formed() {
        let agent = launchd_agent(&service());
        assert!(
            agent.contains("<string>/bin:/home/me/&lt;&amp;>\\bin</string>"),
            "{agent}"
        );
        for tag in ["plist", "dict", "array", "key", "string"] {
            let opened = agent.matches(&format!("<{tag}>")).count()
                + agent.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, agent.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
