//! Where and how a run was made.

use support::machine::{Build, Machine, load};

pub struct Setting {
    pub machine: Machine,
    pub build: Build,
    pub command: String,
    /// The load averages before and after: what else was at work.
    pub load: [String; 2],
}

impl Setting {
    pub fn here() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            machine: Machine::this(),
            build: Build::here(),
            command: format!("timelog {}", arguments.join(" ")),
            load: [load(), String::new()],
        }
    }

    /// Notes the load once more.
    pub fn after(mut self) -> Self {
        self.load[1] = load();
        self
    }

    pub fn kernel(&self) -> String {
        format!("{} {}", self.machine.system, self.machine.release)
    }

    pub fn text(&self) -> String {
        let Self {
            machine,
            build,
            command,
            load: [before, after],
        } = self;
        format!(
            "{}, {} processors, {}; {build}; `{command}`; load averages before {before}, after {after}",
            machine.processor,
            machine.processors,
            self.kernel()
        )
    }
}
