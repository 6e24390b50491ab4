//! Options that several commands share, and what follows from them.

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};

use super::status::CommandError;
use crate::report::Progress;
use diagnostic::Diagnostic;
use guest::Project;
use guest::{self, Guest, GuestName};
use image::{Builder, Patch, Refresh, SourcesFile, Store};
use trial::case::{self, Case, MissingGolden};
use trial::lint;
use trial::{Needs, PreparedGuests};
use vm::qemu::WantedAccel;

/// Where goldtrace works.
#[derive(Debug, Args)]
pub(super) struct ProjectOption {
    /// The checkout to work in [default: the one around the current folder]
    #[arg(long, global = true, value_name = "DIR")]
    project: Option<Utf8PathBuf>,
}

/// Which guests.
#[derive(Debug, Clone, Args)]
pub(super) struct Guests {
    /// Only this guest (repeatable) [default: all]
    #[arg(long = "guest", value_name = "GUEST")]
    names: Vec<String>,
}

/// How images are made.
#[derive(Debug, Clone, Args)]
pub(super) struct Images {
    /// Build the kernel from a copy of the source with this patch applied (repeatable, in order)
    #[arg(long = "patch", value_name = "FILE")]
    patches: Vec<Utf8PathBuf>,
    /// What executes the guests' instructions
    #[arg(long, value_enum, default_value = "auto")]
    accel: AccelOption,
}

/// The values of `--accel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AccelOption {
    /// KVM where it works, else TCG
    Auto,
    /// TCG
    Tcg,
    /// KVM, or an error
    Kvm,
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
        match &self.project {
            Some(root) => Project::at(root),
            None => Project::around_current_dir(),
        }
        .map_err(|e| CommandError::Usage(e.to_string()))
    }
}

/// What the project's files say, all of it valid.
pub(super) struct Inputs {
    pub(super) guests: Vec<Guest>,
    pub(super) sources: SourcesFile,
    pub(super) cases: Vec<Case>,
}

impl Inputs {
    /// Read what is needed to boot a guest that no case is run on: faults of cases do not matter then.
    pub(super) fn without_cases(project: &Project) -> Result<Inputs, CommandError> {
        let mut faults = Vec::new();
        let (guests, sources) = Inputs::guests_and_sources(project, &mut faults);
        match sources {
            Some(sources) if faults.is_empty() => Ok(Inputs { guests, sources, cases: Vec::new() }),
            _ => Err(CommandError::Files(faults)),
        }
    }

    fn guests_and_sources(
        project: &Project,
        faults: &mut Vec<Diagnostic>,
    ) -> (Vec<Guest>, Option<SourcesFile>) {
        let guests = guest::load_all(project).map_err(|found| faults.extend(found)).unwrap_or_default();
        let sources = SourcesFile::load(project).map_err(|found| faults.extend(found)).ok();
        (guests, sources)
    }

    /// Read everything, and tell the faults of all files together.
    pub(super) fn load(project: &Project, missing: MissingGolden) -> Result<Inputs, CommandError> {
        let mut faults = Vec::new();
        let (guests, sources) = Inputs::guests_and_sources(project, &mut faults);
        // With a faulty guest its name is still known: a case that names it is not at fault.
        let names = project.stems("guests", "yaml").unwrap_or_default();
        let names: Vec<GuestName> = names.iter().map(|name| GuestName::new(name)).collect();
        let cases = case::load_all(project, &names, missing)
            .map_err(|found| faults.extend(found))
            .unwrap_or_default();
        // A case that is edited before it is run again has no other golden yet. In CI nobody reads
        // a warning.
        let stale: Vec<Diagnostic> = cases.iter().flat_map(lint::stale).collect();
        if missing == MissingGolden::IsAnError && std::env::var_os("CI").is_some_and(|v| !v.is_empty()) {
            faults.extend(stale);
        } else {
            for Diagnostic { file, span, message, .. } in stale {
                anstream::eprintln!("warning: {file}:{}: {message}", span.line);
            }
        }
        match sources {
            Some(sources) if faults.is_empty() => Ok(Inputs { guests, sources, cases }),
            _ => Err(CommandError::Files(faults)),
        }
    }
}

impl Guests {
    /// Those that were named; none stands for all.
    pub(super) fn named(&self) -> &[String] {
        &self.names
    }

    /// The chosen ones of `all`.
    pub(super) fn choose<'g>(&self, all: &'g [Guest]) -> Result<Vec<&'g Guest>, CommandError> {
        for name in &self.names {
            if !all.iter().any(|guest| guest.name.as_str() == name) {
                let names: Vec<&str> = all.iter().map(|guest| guest.name.as_str()).collect();
                return Err(CommandError::Usage(format!(
                    "unknown guest `{name}` (known guests: {})",
                    names.join(", ")
                )));
            }
        }
        let chosen =
            |guest: &&Guest| self.names.is_empty() || self.names.iter().any(|n| n == guest.name.as_str());
        Ok(all.iter().filter(chosen).collect())
    }
}

impl Images {
    /// The patches.
    pub(super) fn patches(&self) -> Result<Vec<Patch>, CommandError> {
        self.patches
            .iter()
            .map(|path| Patch::load(path).map_err(|e| CommandError::Usage(e.to_string())))
            .collect()
    }

    /// Everything that `guests` boot, built where it is not in the cache.
    pub(super) fn prepare(
        &self,
        project: &Project,
        inputs: &Inputs,
        guests: &[&Guest],
        refresh: Refresh,
        needs: Needs<'_>,
    ) -> Result<PreparedGuests, CommandError> {
        let patches = self.patches()?;
        let progress = Progress::to_stderr();
        let store = Store::open_default()?;
        let builder =
            Builder::new(&store, project, &inputs.guests, &inputs.sources, refresh, patches, &progress)?;
        Ok(PreparedGuests::prepare(&builder, guests, self.accel.into(), needs)?)
    }

    /// The words that give these options again.
    pub(super) fn words(&self) -> Vec<String> {
        let patches = self.patches.iter().flat_map(|patch| ["--patch".to_owned(), patch.to_string()]);
        let accel = self.accel.to_possible_value().filter(|_| self.accel != AccelOption::Auto);
        patches.chain(accel.map(|value| format!("--accel={}", value.get_name()))).collect()
    }
}
