//! `goldtrace new`.

use std::collections::BTreeSet;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, Subcommand};

use super::options::{Guests, Images, Inputs, ProjectOption};
use super::run::Run;
use super::status::{CommandError, Status};
use guest::Project;
use guest::{ModuleSource, is_folder_of_modules};
use image::{BuiltModule, ImageError, Refresh, RootfsSpec};
use kmod::Module;
use trial::Needs;
use trial::case::{DraftModule, FILE, GOLDEN_EXTENSION, draft, relative};

/// Write a new case.
#[derive(Debug, Args)]
pub(super) struct New {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A case for a kernel module of yours: it is built, loaded on every guest, and what it defines
    /// becomes the first goldens
    Module(NewModule),
}

/// A case for a kernel module.
#[derive(Debug, Args)]
struct NewModule {
    /// The case's name: its folder below cases/
    name: String,
    /// The folder of the module's source, with its Kbuild or Makefile
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: Utf8PathBuf,
    #[command(flatten)]
    guests: Guests,
    #[command(flatten)]
    images: Images,
}

impl New {
    pub(super) fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        match &self.what {
            What::Module(module) => module.run(option),
        }
    }
}

impl NewModule {
    fn run(&self, option: &ProjectOption) -> Result<Status, CommandError> {
        let project = option.project()?;
        let case = case_folder(&project, &self.name)?;
        let folder = self.folder.canonicalize_utf8().ok().filter(|folder| is_folder_of_modules(folder));
        let Some(folder) = folder else {
            return Err(CommandError::Usage(format!(
                "`{}` is no folder of a module's source: it has no Kbuild and no Makefile; give one with --folder \
                 (a line `obj-m += NAME.o` in its Kbuild builds NAME.c)",
                self.folder
            )));
        };
        let modules = self.build(&project, &folder)?;
        let title = format!("the module {}", self.name);
        let text = draft(&title, self.guests.named(), &relative(&case, &folder), &modules);
        fs::create_dir_all(&case)?;
        let file = case.join(FILE);
        fs::write(&file, text)?;
        anstream::println!("wrote {}", project.shown(&file));
        // Without a golden nothing would be asserted.
        let outcome = Run::blessing(&self.name, self.guests.clone(), self.images.clone()).run(option);
        if !has_golden(&case)? {
            // A case without goldens is a fault of the project: no other case could be run.
            fs::remove_file(&file)?;
            let above = case.ancestors().take_while(|folder| *folder != project.path("cases"));
            // A folder that is not empty is somebody else's.
            let _ = above.map(fs::remove_dir).take_while(Result::is_ok).count();
            anstream::eprintln!("removed {} again: its goldens could not be written", project.shown(&file));
        }
        outcome
    }

    /// The folder's modules: those of the first guest, as they are the same for all.
    fn build(&self, project: &Project, folder: &Utf8Path) -> Result<Vec<DraftModule>, CommandError> {
        let inputs = Inputs::without_cases(project)?;
        let guests = self.guests.choose(&inputs.guests)?;
        let spec = RootfsSpec { perf: false, modules: vec![ModuleSource::Folder(folder.to_owned())] };
        let prepared =
            self.images.prepare(project, &inputs, &guests[..1], Refresh::WhenOld, Needs::rootfs(&spec))?;
        let root = prepared.guest(&guests[0].name).image.rootfs(&spec);
        let own = prepared.guest(&guests[0].name).image.rootfs(&RootfsSpec::default());
        let is_new = |module: &&BuiltModule| own.modules.iter().all(|known| known.file != module.file);
        root.modules.iter().filter(is_new).map(drafted).collect()
    }
}

fn has_golden(case: &Utf8Path) -> std::io::Result<bool> {
    for entry in case.read_dir_utf8()? {
        if entry?.path().extension() == Some(GOLDEN_EXTENSION) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The folder of the case `name`, which is not there yet.
fn case_folder(project: &Project, name: &str) -> Result<Utf8PathBuf, CommandError> {
    let is_word = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    if !name.split('/').all(is_word) {
        return Err(CommandError::Usage(format!(
            "`{name}` cannot name a case: use letters, digits, `.`, `_` and `-`, and `/` between folders"
        )));
    }
    let folder = project.path("cases").join(name);
    if folder.exists() {
        return Err(CommandError::Usage(format!(
            "{} exists already: choose another name, or edit its {FILE}",
            project.shown(&folder)
        )));
    }
    Ok(folder)
}

fn drafted(module: &BuiltModule) -> Result<DraftModule, CommandError> {
    let bytes = fs::read(&module.file)?;
    let parsed = Module::parse(&bytes).map_err(|e| {
        ImageError::IncompatibleModule(format!("failed to read module `{}`: {e}", module.file))
    })?;
    let systems: BTreeSet<String> = parsed.events().iter().map(|event| event.system.clone()).collect();
    Ok(DraftModule { name: module.name.clone(), systems: systems.into_iter().collect() })
}
