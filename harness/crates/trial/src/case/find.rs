//! The project's cases: every directory below `cases/` with a case file, and nothing there without one.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use diagnostic::Diagnostic;
use golden::HEADER;
use guest::{GuestName, ModuleSource, Project, is_directory_of_modules};
use image::digest::text_digest;
use yaml::Document;

use super::model::{Case, CaseId};
use super::read::read_case;

/// The file in a case's directory that describes it.
pub const FILE: &str = "case.yaml";
/// A page for people, which may be in any directory above the cases.
const README: &str = "README.md";
/// The ending of goldens' names.
pub const GOLDEN_EXTENSION: &str = "golden";

/// What a capture without a golden's file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingGolden {
    /// An error of the case.
    IsAnError,
    /// A capture that is expected to be empty, until its golden is written.
    ExpectsNothing,
}

/// All cases of the project, in the order of their ids.
///
/// # Errors
/// Every error of every case file and golden, and every file below `cases/` that no case claims.
pub fn load_all(
    project: &Project,
    guests: &[GuestName],
    missing: MissingGolden,
) -> Result<Vec<Case>, Vec<Diagnostic>> {
    let mut found = Found::default();
    let mut errors = Vec::new();
    walk(&project.path("cases"), project, &mut found, &mut errors);
    found.cases.sort();
    let mut cases = Vec::new();
    for case in &found.cases {
        match load(project, case, guests, missing) {
            Ok(case) => cases.push(case),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() {
        errors.extend(found.modules.iter().filter_map(|directory| unused(project, directory, &cases)));
    }
    if found.cases.is_empty() && errors.is_empty() {
        errors.push(Diagnostic::whole_file("cases", format!("no case: no {FILE} in any directory")));
    }
    if errors.is_empty() { Ok(cases) } else { Err(errors) }
}

/// The directories below `cases/`.
#[derive(Default)]
struct Found {
    cases: Vec<CaseDirectory>,
    /// Those with a module's source.
    modules: Vec<Utf8PathBuf>,
}

/// A directory with a case file.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CaseDirectory {
    path: Utf8PathBuf,
    /// Its files, the case file among them.
    files: Vec<Utf8PathBuf>,
}

/// Collect directories with a case file, and with a module's source. Files elsewhere belong to no case, but for a README.
fn walk(directory: &Utf8Path, project: &Project, found: &mut Found, errors: &mut Vec<Diagnostic>) {
    let entries = match directory.read_dir_utf8().and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("failed to list the directory: {error}");
            errors.push(Diagnostic::whole_file(project.shown(directory), message));
            return;
        }
    };
    let (mut directories, mut files) = (Vec::new(), Vec::new());
    for path in entries.into_iter().map(camino::Utf8DirEntry::into_path) {
        if path.is_dir() { directories.push(path) } else { files.push(path) }
    }
    directories.sort();
    files.sort();
    for path in directories {
        if is_directory_of_modules(&path) {
            found.modules.push(path);
        } else {
            walk(&path, project, found, errors);
        }
    }
    if files.iter().any(|file| file.file_name() == Some(FILE)) {
        found.cases.push(CaseDirectory { path: directory.to_owned(), files });
    } else {
        let stray = files.iter().filter(|file| file.file_name() != Some(README));
        errors.extend(stray.map(|file| {
            Diagnostic::whole_file(project.shown(file), "this file belongs to no case")
                .with_help(format!("put it beside a {FILE}, or remove it"))
        }));
    }
}

/// The error of a module's source that no case names; `None` when one does.
fn unused(project: &Project, directory: &Utf8Path, cases: &[Case]) -> Option<Diagnostic> {
    let error = |message: String| Diagnostic::whole_file(project.shown(directory), message);
    let real = match directory.canonicalize_utf8() {
        Ok(real) => real,
        Err(why) => return Some(error(format!("failed to resolve the directory: {why}"))),
    };
    let named = cases.iter().flat_map(|case| &case.modules).any(|source| match source {
        ModuleSource::Folder(path) | ModuleSource::File(path) => path.starts_with(&real),
        ModuleSource::Tree(_) => false,
    });
    (!named).then(|| {
        error("no case uses the module in this directory".to_owned())
            .with_help("name it in the `modules:` of a case, or remove it")
    })
}

fn load(
    project: &Project,
    directory: &CaseDirectory,
    guests: &[GuestName],
    missing: MissingGolden,
) -> Result<Case, Vec<Diagnostic>> {
    let path = directory.path.join(FILE);
    let shown = project.shown(&path);
    let text = fs::read_to_string(&path)
        .map_err(|error| vec![Diagnostic::whole_file(shown, format!("failed to read the case: {error}"))])?;
    let id = directory.path.strip_prefix(project.path("cases")).expect("found below it");
    let digest = text_digest(&text).as_str().to_owned();
    let document = Document::parse(shown, text).map_err(|error| vec![error])?;
    let read_golden = |name: &str| {
        let path = directory.path.join(format!("{name}.{GOLDEN_EXTENSION}"));
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
    let (case, captures, mut errors) =
        read_case(&CaseId::new(id.as_str()), &directory.path, shown, &document, guests, &read_golden);
    let modules = case.as_ref().map(|case| case.modules.as_slice()).unwrap_or_default();
    errors.extend(unclaimed(project, &directory.files, &captures, modules));
    match case {
        Some(case) if errors.is_empty() => Ok(Case { digest, ..case }),
        _ => Err(errors),
    }
}

/// Files of a case's directory that are neither the case, nor the golden of one of its captures, nor a
/// module of its own.
fn unclaimed(
    project: &Project,
    files: &[Utf8PathBuf],
    captures: &BTreeSet<String>,
    modules: &[ModuleSource],
) -> Vec<Diagnostic> {
    let is_module = |path: &Utf8Path| {
        let real = path.canonicalize_utf8();
        let is_it = |module: &ModuleSource| matches!((module, &real), (ModuleSource::File(file), Ok(real)) if file == real);
        modules.iter().any(is_it)
    };
    let is_golden = |path: &Utf8Path| {
        path.extension() == Some(GOLDEN_EXTENSION)
            && path.file_stem().is_some_and(|stem| captures.contains(stem))
    };
    let others =
        files.iter().filter(|path| path.file_name() != Some(FILE) && !is_golden(path) && !is_module(path));
    others
        .map(|path| {
            Diagnostic::whole_file(
                project.shown(path),
                "this file is not the golden of a capture of the case",
            )
            .with_help(format!("rename it to CAPTURE.{GOLDEN_EXTENSION}, or remove it"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use expect_test::{Expect, expect};

    use super::*;

    /// A project with these files.
    fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Project) {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8");
        for (path, text) in [("cases/a/case.yaml", CASE), ("cases/a/one.golden", GOLDEN)].iter().chain(files)
        {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            fs::write(path, text).expect("written");
        }
        for needed in ["guests", "images"] {
            fs::create_dir_all(root.join(needed)).expect("created");
        }
        let project = Project::at(root).expect("a project");
        (dir, project)
    }

    const CASE: &str = "title: T\nsteps:\n  - {run: x, capture: one}\n";
    const GOLDEN: &str = "#@ golden v1\nline\n";

    fn load(project: &Project) -> Result<Vec<Case>, String> {
        let errors =
            |errors: Vec<Diagnostic>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        load_all(project, &[GuestName::new("x86_64")], MissingGolden::IsAnError).map_err(errors)
    }

    fn check(files: &[(&str, &str)], expected: &Expect) {
        let (_dir, project) = project(files);
        expected.assert_eq(&load(&project).expect_err("an error"));
    }

    #[test]
    fn cases_are_in_the_order_of_their_ids() {
        let (_dir, project) = project(&[("cases/b/0/case.yaml", CASE), ("cases/b/0/one.golden", GOLDEN)]);
        let cases = load(&project).expect("valid");
        assert_eq!(cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["a", "b/0"]);
    }

    #[test]
    fn files_that_belong_to_no_case_are_errors() {
        check(
            &[
                ("cases/README.md", ""),
                ("cases/a/two.golden", GOLDEN),
                ("cases/a/notes.txt", ""),
                ("cases/b/one.golden", GOLDEN),
            ],
            &expect![[r#"
                cases/b/one.golden:1:1: this file belongs to no case (put it beside a case.yaml, or remove it)
                cases/a/notes.txt:1:1: this file is not the golden of a capture of the case (rename it to CAPTURE.golden, or remove it)
                cases/a/two.golden:1:1: this file is not the golden of a capture of the case (rename it to CAPTURE.golden, or remove it)"#]],
        );
    }

    #[test]
    fn module_source_that_no_case_names_is_an_error() {
        check(
            &[("cases/module/Kbuild", "obj-m += m.o\n"), ("cases/module/m.c", "")],
            &expect![
                "cases/module:1:1: no case uses the module in this directory (name it in the `modules:` of a case, or remove it)"
            ],
        );
    }

    #[test]
    fn directory_that_cannot_be_listed_is_an_error() {
        let (dir, project) = project(&[]);
        let name = OsStr::from_bytes(b"cases/a/\xff.golden");
        fs::write(dir.path().join(name), GOLDEN).expect("written");
        let errors = load(&project).expect_err("an error");
        assert!(errors.starts_with("cases/a:1:1: failed to list the directory: "), "{errors}");
    }

    #[test]
    fn case_that_is_not_text_is_an_error() {
        let (dir, project) = project(&[]);
        fs::write(dir.path().join("cases/a/case.yaml"), b"title: \xff\n").expect("written");
        expect!["cases/a/case.yaml:1:1: failed to read the case: stream did not contain valid UTF-8"]
            .assert_eq(&load(&project).expect_err("an error"));
    }

    #[test]
    fn project_without_cases_is_an_error() {
        let (dir, project) = project(&[]);
        fs::remove_dir_all(dir.path().join("cases/a")).expect("removed");
        expect!["cases:1:1: no case: no case.yaml in any directory"]
            .assert_eq(&load(&project).expect_err("an error"));
    }
}
