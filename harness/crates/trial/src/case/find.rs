//! The project's cases.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::model::{Case, CaseId};
use super::read::read_case;
use diagnostic::Diagnostic;
use golden::HEADER;
use guest::Project;
use guest::{GuestName, ModuleSource, is_folder_of_modules};
use image::digest::text_digest;
use yaml::Document;

/// The file in a case's folder that describes it.
pub const FILE: &str = "case.yaml";
/// The ending of goldens' names.
pub const GOLDEN_EXTENSION: &str = "golden";

/// What a capture without a golden's file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingGolden {
    /// A fault of the case.
    IsAnError,
    /// A capture that is expected to be empty, until its golden is written.
    ExpectsNothing,
}

/// All cases of the project, in the order of their ids.
///
/// # Errors
/// Every fault of every case file and golden, and every file below `cases/` that no case claims.
pub fn load_all(
    project: &Project,
    guests: &[GuestName],
    missing: MissingGolden,
) -> Result<Vec<Case>, Vec<Diagnostic>> {
    let mut found = Found::default();
    let mut faults = Vec::new();
    walk(&project.path("cases"), project, &mut found, &mut faults);
    found.cases.sort();
    let mut cases = Vec::new();
    for folder in &found.cases {
        match load(project, folder, guests, missing) {
            Ok(case) => cases.push(case),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() {
        faults.extend(found.modules.iter().filter_map(|folder| unused(project, folder, &cases)));
    }
    if found.cases.is_empty() && faults.is_empty() {
        faults.push(Diagnostic::whole_file("cases", "there is no case: no case.yaml in any folder"));
    }
    if faults.is_empty() { Ok(cases) } else { Err(faults) }
}

/// The folders below `cases/`.
#[derive(Default)]
struct Found {
    /// Those with a case file.
    cases: Vec<Utf8PathBuf>,
    /// Those with a module's source.
    modules: Vec<Utf8PathBuf>,
}

/// Collect folders with a case file, and with a module's source. Files elsewhere belong to no case.
fn walk(dir: &Utf8Path, project: &Project, found: &mut Found, faults: &mut Vec<Diagnostic>) {
    let entries = match dir.read_dir_utf8().and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => {
            faults.push(Diagnostic::whole_file(
                project.shown(dir),
                format!("failed to list the folder: {error}"),
            ));
            return;
        }
    };
    let is_case = entries.iter().any(|entry| entry.file_name() == FILE);
    if is_case {
        found.cases.push(dir.to_owned());
    }
    for entry in entries {
        if is_folder_of_modules(entry.path()) {
            found.modules.push(entry.into_path());
        } else if entry.path().is_dir() {
            walk(entry.path(), project, found, faults);
        } else if !is_case {
            faults.push(
                Diagnostic::whole_file(project.shown(entry.path()), "no case claims this file")
                    .with_help(format!("put it beside a {FILE}, or remove it")),
            );
        }
    }
}

/// The fault of a module's source that no case names; `None` when one does.
fn unused(project: &Project, folder: &Utf8Path, cases: &[Case]) -> Option<Diagnostic> {
    let real = folder.canonicalize_utf8().ok()?;
    let named = cases.iter().flat_map(|case| &case.modules).any(|source| match source {
        ModuleSource::Folder(path) | ModuleSource::File(path) => path.starts_with(&real),
        ModuleSource::Tree(_) => false,
    });
    (!named).then(|| {
        Diagnostic::whole_file(project.shown(folder), "no case uses the module in this folder")
            .with_help("name it in the `modules:` of a case, or remove it")
    })
}

fn load(
    project: &Project,
    folder: &Utf8Path,
    guests: &[GuestName],
    missing: MissingGolden,
) -> Result<Case, Vec<Diagnostic>> {
    let path = folder.join(FILE);
    let shown = project.shown(&path);
    let text = fs::read_to_string(&path)
        .map_err(|e| vec![Diagnostic::whole_file(shown, format!("failed to read the case: {e}"))])?;
    let id = folder.strip_prefix(project.path("cases")).expect("found below it");
    let digest = text_digest(&text).as_str().to_owned();
    let document = Document::parse(shown, text).map_err(|fault| vec![fault])?;
    let read_golden = |name: &str| {
        let path = folder.join(format!("{name}.{GOLDEN_EXTENSION}"));
        let bytes = match fs::read(&path) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && missing == MissingGolden::ExpectsNothing =>
            {
                Ok(format!("{HEADER}\n").into_bytes())
            }
            other => other,
        };
        (project.shown(&path).to_owned(), bytes)
    };
    let (case, names, mut faults) =
        read_case(&CaseId::new(id.as_str()), folder, shown, &document, guests, &read_golden);
    let modules = case.as_ref().map(|case| case.modules.as_slice()).unwrap_or_default();
    faults.extend(unclaimed(project, folder, &names, modules));
    match case {
        Some(case) if faults.is_empty() => Ok(Case { digest, ..case }),
        _ => Err(faults),
    }
}

/// Files of the folder that are neither the case, nor the golden of one of its captures, nor a module
/// of its own.
fn unclaimed(
    project: &Project,
    folder: &Utf8Path,
    captures: &BTreeSet<String>,
    modules: &[ModuleSource],
) -> Vec<Diagnostic> {
    let Ok(entries) = folder.read_dir_utf8() else { return Vec::new() };
    let mut files: Vec<Utf8PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path().to_owned())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
        .iter()
        .filter(|path| path.file_name() != Some(FILE))
        .filter(|path| {
            let is_it = |module: &ModuleSource| matches!(module, ModuleSource::File(file) if file == *path);
            !modules.iter().any(is_it)
        })
        .filter(|path| {
            let stem =
                path.file_name().and_then(|name| name.strip_suffix(GOLDEN_EXTENSION)?.strip_suffix('.'));
            !stem.is_some_and(|stem| captures.contains(stem))
        })
        .map(|path| {
            Diagnostic::whole_file(project.shown(path), "no step of the case captures what this file is for")
                .with_help("rename it to CAPTURE.golden, with the name of a capture, or remove it")
        })
        .collect()
}
