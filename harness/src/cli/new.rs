//! `goldtrace new`.

use std::collections::BTreeSet;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, Subcommand};

use super::bless::check_blessable;
use super::error::CommandError;
use super::options::{Guests, Images, Inputs, ProjectOption};
use super::run::Run;
use super::status::Status;
use guest::Project;
use guest::{ModuleSource, is_directory_of_modules};
use image::{BuiltModule, Refresh, RootfsSpec};
use kmod::Module;
use trial::Isolation;
use trial::case::{DraftModule, FILE, GOLDEN_EXTENSION, draft, relative};

/// Write a new case
#[derive(Debug, Args)]
pub(super) struct New {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write a case for a kernel module of yours
    ///
    /// The module is built and loaded on every guest, and what it defines becomes the first goldens.
    Module(NewModule),
}

#[derive(Debug, Args)]
struct NewModule {
    /// Name the case so: its directory below cases/
    name: String,
    /// Build the module from this directory, with a Kbuild or Makefile
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: Utf8PathBuf,
    /// What `--directory` was called before
    #[arg(long, hide = true)]
    folder: Option<Utf8PathBuf>,
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
        if self.folder.is_some() {
            return Err(CommandError::RenamedOption { old: "--folder", new: "--directory" });
        }
        check_blessable(&self.images)?;
        let project = option.project()?;
        let case = case_directory(&project, &self.name)?;
        let directory =
            self.directory.canonicalize_utf8().ok().filter(|directory| is_directory_of_modules(directory));
        let Some(directory) = directory else {
            return Err(CommandError::NotAModuleDirectory { directory: self.directory.clone() });
        };
        let modules = self.build(&project, &directory)?;
        let title = format!("the module {}", self.name);
        let text = draft(&title, self.guests.named(), &relative(&case, &directory), &modules);
        fs::create_dir_all(&case).map_err(|e| CommandError::file("create", &case, e))?;
        let file = case.join(FILE);
        fs::write(&file, text).map_err(|e| CommandError::file("write", &file, e))?;
        print_line!("wrote {}", project.shown(&file))?;
        // Without a golden nothing would be asserted.
        let outcome = Run::blessing(&self.name, self.guests.clone(), self.images.clone()).run(option);
        if !has_golden(&case).map_err(|e| CommandError::file("read", &case, e))? {
            // A case without goldens is an error in the project: no other case could run.
            fs::remove_file(&file).map_err(|e| CommandError::file("remove", &file, e))?;
            let above = case.ancestors().take_while(|directory| *directory != project.path("cases"));
            // A directory that is not empty holds other cases.
            let _ = above.map(fs::remove_dir).take_while(Result::is_ok).count();
            note_line!("removed {} again: its goldens could not be written", project.shown(&file));
        }
        outcome
    }

    /// The directory's modules: those of the first guest, as they are the same for all.
    fn build(&self, project: &Project, directory: &Utf8Path) -> Result<Vec<DraftModule>, CommandError> {
        let inputs = Inputs::without_cases(project)?;
        let guests = self.guests.choose(&inputs.guests)?;
        let spec = RootfsSpec { perf: false, modules: vec![ModuleSource::Folder(directory.to_owned())] };
        let prepared = self.images.guests(project, &inputs, Refresh::WhenOld, Isolation::Boot)?;
        let root = prepared.guest(guests[0], &spec)?.rootfs;
        let own = prepared.guest(guests[0], &RootfsSpec::default())?.rootfs;
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

/// The directory of the case `name`, which does not exist yet.
fn case_directory(project: &Project, name: &str) -> Result<Utf8PathBuf, CommandError> {
    let is_word = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    if !name.split('/').all(is_word) {
        return Err(CommandError::InvalidCaseName { name: name.to_owned() });
    }
    let directory = project.path("cases").join(name);
    if directory.exists() {
        return Err(CommandError::CaseExists { directory: project.shown(&directory).to_owned() });
    }
    Ok(directory)
}

fn drafted(module: &BuiltModule) -> Result<DraftModule, CommandError> {
    let bytes = fs::read(&module.file).map_err(|e| CommandError::file("read", &module.file, e))?;
    let parsed = Module::parse(&bytes)
        .map_err(|source| CommandError::InvalidModule { file: module.file.clone(), source })?;
    let systems: BTreeSet<String> = parsed.events().iter().map(|event| event.system.clone()).collect();
    Ok(DraftModule { name: module.name.clone(), systems: systems.into_iter().collect() })
}
