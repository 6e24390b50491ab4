//! Options that several commands share, and what follows from them.

use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};

use super::ci::in_ci;
use super::error::CommandError;
use crate::report::Progress;
use diagnostic::{Diagnostic, did_you_mean};
use guest::Project;
use guest::{self, Guest, GuestName, ModuleSource};
use image::{BuildOptions, Builder, ConfigFragment, Patch, Refresh, SourcesFile, Store};
use trial::case::{self, Case, MissingGolden};
use trial::lint;
use trial::{Isolation, PreparedGuests};
use vm::qemu::WantedAccel;

/// Which project.
#[derive(Debug, Args)]
pub(super) struct ProjectOption {
    /// Work in this checkout [default: the one around the current directory]
    #[arg(long, global = true, value_name = "DIR")]
    project: Option<Utf8PathBuf>,
}

/// Which guests.
#[derive(Debug, Clone, Args)]
pub(super) struct Guests {
    /// Use only this guest (repeatable) [default: all]
    #[arg(long = "guest", value_name = "GUEST")]
    names: Vec<String>,
}

/// How images are made.
#[derive(Debug, Clone, Args)]
pub(super) struct Images {
    /// Build the kernel from a copy of the source with this patch applied (repeatable, in order)
    #[arg(long = "patch", value_name = "FILE")]
    patches: Vec<Utf8PathBuf>,
    /// Add this fragment to the kernels' configuration, after the project's (repeatable, in order)
    #[arg(long = "config", value_name = "FILE")]
    configs: Vec<Utf8PathBuf>,
    /// Execute the guests' instructions with this accelerator
    #[arg(long, value_enum, default_value = "auto")]
    accel: AccelOption,
}

/// The values of `--accel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AccelOption {
    /// KVM where it works, TCG elsewhere
    Auto,
    /// TCG
    Tcg,
    /// KVM, or an error
    Kvm,
}

/// The values of `--isolate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum IsolateOption {
    /// Restore each trial's guest from a snapshot, under TCG
    Snapshot,
    /// Boot each trial's guest
    Boot,
}

impl From<IsolateOption> for Isolation {
    fn from(option: IsolateOption) -> Isolation {
        match option {
            IsolateOption::Snapshot => Isolation::Snapshot,
            IsolateOption::Boot => Isolation::Boot,
        }
    }
}

impl From<AccelOption> for WantedAccel {
    fn from(option: AccelOption) -> WantedAccel {
        match option {
            AccelOption::Auto => WantedAccel::Auto,
            AccelOption::Tcg => WantedAccel::Tcg,
            AccelOption::Kvm => WantedAccel::Kvm,
        }
    }
}

impl ProjectOption {
    /// The project.
    pub(super) fn project(&self) -> Result<Project, CommandError> {
        let project = match &self.project {
            Some(root) => Project::at(root),
            None => Project::around_current_dir(),
        };
        Ok(project?)
    }
}

/// What the project's files say, all of it valid.
pub(super) struct Inputs {
    pub(super) guests: Vec<Guest>,
    pub(super) sources: SourcesFile,
    pub(super) cases: Vec<Case>,
}

impl Inputs {
    /// Read what is needed to boot a guest that no case runs on: errors in cases do not matter then.
    pub(super) fn without_cases(project: &Project) -> Result<Inputs, CommandError> {
        let mut errors = Vec::new();
        let (guests, sources) = Inputs::guests_and_sources(project, &mut errors);
        match sources {
            Some(sources) if errors.is_empty() => Ok(Inputs { guests, sources, cases: Vec::new() }),
            _ => Err(CommandError::Files(errors)),
        }
    }

    fn guests_and_sources(
        project: &Project,
        errors: &mut Vec<Diagnostic>,
    ) -> (Vec<Guest>, Option<SourcesFile>) {
        let guests = guest::load_all(project).map_err(|found| errors.extend(found)).unwrap_or_default();
        let sources = SourcesFile::load(project).map_err(|found| errors.extend(found)).ok();
        (guests, sources)
    }

    /// Read everything, and report the errors of all files together.
    pub(super) fn load(project: &Project, missing: MissingGolden) -> Result<Inputs, CommandError> {
        let mut errors = Vec::new();
        let (guests, sources) = Inputs::guests_and_sources(project, &mut errors);
        // The name of a guest whose file has errors is known: a case that names it is right.
        let names = project.stems("guests", "yaml").unwrap_or_default();
        let names: Vec<GuestName> = names.iter().map(|name| GuestName::new(name)).collect();
        let cases = case::load_all(project, &names, missing)
            .map_err(|found| errors.extend(found))
            .unwrap_or_default();
        // A case that is edited before it is run again has no other golden yet. In CI no person
        // reads a warning.
        let stale: Vec<Diagnostic> = cases.iter().flat_map(lint::stale).collect();
        if missing == MissingGolden::IsAnError && in_ci() {
            errors.extend(stale);
        } else {
            for Diagnostic { file, span, message, .. } in stale {
                note_line!("warning: {file}:{}: {message}", span.line);
            }
        }
        match sources {
            Some(sources) if errors.is_empty() => Ok(Inputs { guests, sources, cases }),
            _ => Err(CommandError::Files(errors)),
        }
    }
}

impl Guests {
    /// The names given; no name stands for all guests.
    pub(super) fn named(&self) -> &[String] {
        &self.names
    }

    /// The chosen ones of `all`.
    pub(super) fn choose<'g>(&self, all: &'g [Guest]) -> Result<Vec<&'g Guest>, CommandError> {
        for name in &self.names {
            if !all.iter().any(|guest| guest.name.as_str() == name) {
                let known = names(all.iter());
                return Err(CommandError::UnknownGuest { name: name.clone(), known });
            }
        }
        let chosen =
            |guest: &&Guest| self.names.is_empty() || self.names.iter().any(|n| n == guest.name.as_str());
        Ok(all.iter().filter(chosen).collect())
    }

    /// The one chosen of `all`.
    pub(super) fn choose_one<'g>(&self, all: &'g [Guest]) -> Result<&'g Guest, CommandError> {
        let chosen = self.choose(all)?;
        match chosen.as_slice() {
            [guest] => Ok(guest),
            _ => Err(CommandError::NoGuestChosen { known: names(chosen.into_iter()) }),
        }
    }
}

/// Whose kernel modules a guest has besides its own.
#[derive(Debug, Clone, Args)]
pub(super) struct CaseModules {
    /// Put the kernel modules of this case beside the guest's own
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
}

impl CaseModules {
    /// What the project's files say, without the cases where no case is named: their errors do not matter then.
    pub(super) fn inputs(&self, project: &Project) -> Result<Inputs, CommandError> {
        match self.case {
            // Nothing is compared: a case may still lack its goldens.
            Some(_) => Inputs::load(project, MissingGolden::ExpectsNothing),
            None => Inputs::without_cases(project),
        }
    }

    /// The modules of the named case.
    pub(super) fn choose(&self, cases: &[Case]) -> Result<Vec<ModuleSource>, CommandError> {
        let Some(wanted) = &self.case else { return Ok(Vec::new()) };
        let ids = || cases.iter().map(|case| case.id.as_str());
        match cases.iter().find(|case| case.id.as_str() == wanted) {
            Some(case) => Ok(case.modules.clone()),
            None => {
                let help = did_you_mean(wanted, ids())
                    .unwrap_or_else(|| "`goldtrace list` prints all cases".to_owned());
                Err(CommandError::UnknownCase { name: wanted.clone(), help })
            }
        }
    }
}

impl Images {
    /// The patches.
    pub(super) fn patches(&self) -> Result<Vec<Patch>, CommandError> {
        self.patches.iter().map(|path| Patch::load(path).map_err(CommandError::Change)).collect()
    }

    fn configs(&self) -> Result<Vec<ConfigFragment>, CommandError> {
        self.configs.iter().map(|path| ConfigFragment::load(path).map_err(CommandError::Change)).collect()
    }

    /// What guests boot: made when it is wanted.
    pub(super) fn guests(
        &self,
        project: &Project,
        inputs: &Inputs,
        refresh: Refresh,
        isolation: Isolation,
    ) -> Result<PreparedGuests, CommandError> {
        let options = BuildOptions { refresh, patches: self.patches()?, configs: self.configs()? };
        let progress = Arc::new(Progress::to_stderr());
        let store = Store::open_default()?;
        let builder = Builder::new(store, project, &inputs.guests, &inputs.sources, options, progress);
        Ok(PreparedGuests::new(builder, &inputs.guests, self.accel.into(), isolation))
    }

    /// How what is built differs from what the project describes, one line each.
    pub(super) fn changes(&self) -> Vec<String> {
        let patches = self.patches.iter().map(|patch| format!("patch {patch}"));
        patches.chain(self.configs.iter().map(|config| format!("config {config}"))).collect()
    }

    /// The words that give these options again.
    pub(super) fn words(&self) -> Vec<String> {
        let patches = self.patches.iter().flat_map(|patch| ["--patch".to_owned(), patch.to_string()]);
        let configs = self.configs.iter().flat_map(|config| ["--config".to_owned(), config.to_string()]);
        let accel = self.accel.to_possible_value().filter(|_| self.accel != AccelOption::Auto);
        patches.chain(configs).chain(accel.map(|value| format!("--accel={}", value.get_name()))).collect()
    }
}

/// The guests' names.
pub(super) fn names<'g>(guests: impl Iterator<Item = &'g Guest>) -> Vec<String> {
    guests.map(|guest| guest.name.to_string()).collect()
}
