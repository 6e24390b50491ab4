//! The layers of the workspace: which crate may use which, what each may not know, and no cycle anywhere.
//!
//! The rules are the tables here; what is compared with them is read from `cargo metadata` and from the sources.

mod modules;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use modules::File;
use sources::{PathKind, Source};

/// The floors, from the ground up. A crate may use those of the floors below its own, and no other.
const FLOORS: [&[&str]; 8] = [
    &["arch", "diagnostic", "formats"],
    &["kmod", "yaml", "dtl"],
    &["guest"],
    &["golden", "vm"],
    &["image"],
    &["trial"],
    &["goldtrace"],
    &["goldtrace_ci"],
];

/// Crates that work on bytes and text alone: no files, no processes. They may use only each other.
const PURE: [&str; 6] = ["arch", "diagnostic", "formats", "kmod", "dtl", "golden"];

/// What only these crates may know.
const KNOWN_BY: [(&str, &[&str]); 2] = [("serde_yaml", &["yaml"]), ("clap", &["goldtrace"])];

/// Crates that may print.
const PRINTS: [&str; 2] = ["goldtrace", "goldtrace_ci"];

static PACKAGES: LazyLock<Vec<Package>> = LazyLock::new(read_packages);

/// A package of the workspace.
struct Package {
    /// The name by which sources refer to it.
    name: String,
    /// Names by which its sources refer to others: for everything, and for its tests only.
    dependencies: BTreeSet<String>,
    dev_dependencies: BTreeSet<String>,
    /// The library's and the program's sources.
    files: Vec<File>,
    /// Tests and benchmarks beside them.
    others: Vec<File>,
}

#[test]
fn crates_use_only_lower_floors() {
    let floor = |name: &str| FLOORS.iter().position(|floor| floor.contains(&name));
    let mut wrong = Vec::new();
    for package in PACKAGES.iter() {
        let own = floor(&package.name);
        if own.is_none() {
            wrong.push(format!("`{}` is on no floor: give it one in FLOORS", package.name));
        }
        for used in package.dependencies.union(&package.dev_dependencies).filter(|name| floor(name).is_some())
        {
            if floor(used) >= own {
                wrong.push(format!("`{}` may not use `{used}`, which is not below it", package.name));
            }
        }
    }
    for name in FLOORS.iter().copied().flatten() {
        if !PACKAGES.iter().any(|package| package.name == *name) {
            wrong.push(format!("`{name}` in FLOORS is not a crate"));
        }
    }
    assert_none(&wrong);
}

#[test]
fn pure_crates_know_no_files_and_no_processes() {
    let mut wrong = Vec::new();
    for package in PACKAGES.iter().filter(|package| PURE.contains(&package.name.as_str())) {
        for used in &package.dependencies {
            if FLOORS.iter().any(|floor| floor.contains(&used.as_str())) && !PURE.contains(&used.as_str()) {
                wrong
                    .push(format!("`{}` may not use `{used}`, which knows files or processes", package.name));
            }
        }
        for file in &package.files {
            for path in file.source.paths.iter().filter(|path| !path.in_test) {
                let [first, second, ..] = path.parts.as_slice() else { continue };
                if first == "std" && ["fs", "process", "net", "env"].contains(&second.as_str()) {
                    wrong.push(format!(
                        "{}:{}: `{}` may not use std::{second}",
                        file.path, path.line, package.name
                    ));
                }
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn special_crates_are_known_where_they_belong() {
    let mut wrong = Vec::new();
    for package in PACKAGES.iter() {
        for (known, by) in KNOWN_BY {
            if package.dependencies.contains(known) && !by.contains(&package.name.as_str()) {
                wrong.push(format!("`{}` may not use {known}: only {} may", package.name, by.join(", ")));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn only_the_command_prints() {
    let mut wrong = Vec::new();
    for package in PACKAGES.iter().filter(|package| !PRINTS.contains(&package.name.as_str())) {
        for file in &package.files {
            for call in file.source.macros.iter().filter(|call| !call.in_test) {
                if ["print", "println", "eprint", "eprintln", "dbg"].contains(&call.name.as_str()) {
                    wrong.push(format!(
                        "{}:{}: `{}` may not call {}!",
                        file.path, call.line, package.name, call.name
                    ));
                }
            }
            for path in file.source.paths.iter().filter(|path| !path.in_test) {
                if path.parts.ends_with(&["io".to_owned(), "stdout".to_owned()])
                    || path.parts.ends_with(&["io".to_owned(), "stderr".to_owned()])
                {
                    wrong.push(format!("{}:{}: `{}` may not print", file.path, path.line, package.name));
                }
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn one_module_of_the_command_prints() {
    let command = PACKAGES.iter().find(|package| package.name == "goldtrace").expect("the command");
    let mut wrong = Vec::new();
    for file in command.files.iter().filter(|file| !file.path.as_str().ends_with("src/report/print.rs")) {
        for call in file.source.macros.iter().filter(|call| !call.in_test) {
            if ["print", "println", "eprint", "eprintln", "dbg"].contains(&call.name.as_str()) {
                wrong.push(format!("{}:{}: {}! prints what is not escaped", file.path, call.line, call.name));
            }
        }
        for path in file.source.paths.iter().filter(|path| !path.in_test) {
            let stream = path.parts.last().is_some_and(|last| last == "stdout" || last == "stderr");
            if stream && path.parts.first().is_some_and(|first| first == "anstream") {
                wrong.push(format!("{}:{}: prints past report::print", file.path, path.line));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn dependencies_are_used() {
    let mut wrong = Vec::new();
    for package in PACKAGES.iter() {
        let first = |file: &File, in_test: Option<bool>| -> BTreeSet<String> {
            let paths =
                file.source.paths.iter().filter(|path| in_test.is_none_or(|wanted| path.in_test == wanted));
            paths.map(|path| path.parts[0].clone()).collect()
        };
        let in_code: BTreeSet<String> =
            package.files.iter().flat_map(|file| first(file, Some(false))).collect();
        let in_tests: BTreeSet<String> = (package.files.iter().flat_map(|file| first(file, Some(true))))
            .chain(package.others.iter().flat_map(|file| first(file, None)))
            .collect();
        for unused in package.dependencies.difference(&in_code) {
            let what = if in_tests.contains(unused) { "only its tests use it" } else { "nothing uses it" };
            wrong.push(format!("`{}` depends on `{unused}`, but {what}", package.name));
        }
        for unused in package.dev_dependencies.difference(&in_tests) {
            wrong
                .push(format!("`{}` depends on `{unused}` for its tests, which do not use it", package.name));
        }
    }
    assert_none(&wrong);
}

#[test]
fn crates_give_only_what_they_define() {
    let ours = |name: &str| FLOORS.iter().any(|floor| floor.contains(&name));
    let mut wrong = Vec::new();
    for package in PACKAGES.iter() {
        for file in &package.files {
            for path in file.source.paths.iter().filter(|path| !path.in_test && ours(&path.parts[0])) {
                // The program and the library of one package have one name.
                let own = path.parts[0] == package.name;
                if !own && matches!(path.kind, PathKind::Import { public: true, .. }) {
                    let shown = path.parts.join("::");
                    wrong.push(format!("{}:{}: `{}` passes on {shown}", file.path, path.line, package.name));
                }
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn modules_have_no_cycles() {
    let mut wrong = Vec::new();
    for package in PACKAGES.iter() {
        let cycles = modules::cycles(&package.files);
        wrong.extend(cycles.iter().map(|c| format!("in `{}`: {}\n{}", package.name, c.name, c.way)));
    }
    assert_none(&wrong);
}

#[test]
fn public_types_have_names_of_their_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in PACKAGES.iter().flat_map(|package| &package.files) {
        for defined in file.source.types.iter().filter(|defined| !defined.in_test) {
            places.entry(defined.name.clone()).or_default().push(format!("{}:{}", file.path, defined.line));
        }
    }
    let twice = places.iter().filter(|(_, places)| places.len() > 1);
    let wrong: Vec<String> =
        twice.map(|(name, places)| format!("{name} is defined at {}", places.join(" and "))).collect();
    assert_none(&wrong);
}

#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} against the layers:\n  {}", wrong.len(), wrong.join("\n  "));
}

/// The packages of the workspace, with their sources read.
fn read_packages() -> Vec<Package> {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    list(&metadata["packages"]).iter().map(|package| read_package(package, root)).collect()
}

fn read_package(package: &serde_json::Value, root: &Utf8Path) -> Package {
    let directory = Utf8Path::new(text(&package["manifest_path"])).parent().expect("a directory");
    let library = list(&package["targets"])
        .iter()
        .find(|target| list(&target["kind"]).iter().any(|kind| kind == "lib"));
    let name = text(&library.unwrap_or(package)["name"]).replace('-', "_");
    let dependencies = |kind: &str| -> BTreeSet<String> {
        let of_kind =
            list(&package["dependencies"]).iter().filter(|d| d["kind"].as_str().unwrap_or("normal") == kind);
        of_kind.map(|d| d["rename"].as_str().unwrap_or(text(&d["name"])).replace('-', "_")).collect()
    };
    let mut files = read_files(&directory.join("src"), root);
    let tests: BTreeSet<Vec<String>> =
        files.iter().flat_map(|file| file.source.test_modules.clone()).collect();
    for file in files.iter_mut().filter(|file| tests.iter().any(|test| file.module.starts_with(test))) {
        let Source { paths, types, macros, .. } = &mut file.source;
        paths.iter_mut().for_each(|path| path.in_test = true);
        types.iter_mut().for_each(|defined| defined.in_test = true);
        macros.iter_mut().for_each(|call| call.in_test = true);
    }
    let others =
        ["tests", "benches"].iter().flat_map(|other| read_files(&directory.join(other), root)).collect();
    Package {
        name,
        dependencies: dependencies("normal"),
        dev_dependencies: dependencies("dev"),
        files,
        others,
    }
}

fn read_files(directory: &Utf8Path, root: &Utf8Path) -> Vec<File> {
    let mut paths = Vec::new();
    find(directory, &mut paths);
    paths.sort();
    paths.iter().map(|path| read_file(path, directory, root)).collect()
}

fn read_file(path: &Utf8Path, directory: &Utf8Path, root: &Utf8Path) -> File {
    let inside = path.strip_prefix(directory).expect("inside").with_extension("");
    let mut module: Vec<String> = inside.components().map(|part| part.as_str().to_owned()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("failed to read `{path}`: {e}"));
    let source = Source::parse(&text, &module);
    File { path: path.strip_prefix(root).expect("inside").to_string(), module, source }
}

fn find(directory: &Utf8Path, found: &mut Vec<Utf8PathBuf>) {
    // Not every package has tests or benchmarks.
    let Ok(entries) = directory.read_dir_utf8() else { return };
    for entry in entries {
        let path = entry.expect("readable").into_path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension() == Some("rs") {
            found.push(path);
        }
    }
}

fn list(value: &serde_json::Value) -> &[serde_json::Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().expect("a text")
}
