//! The modules of one crate, and the arrows between them.
//!
//! A name that a module only passes on (`pub use`) leads to where it is defined, so that no cycle is hidden by one.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{CodePath, PathKind, Source};

/// A file of a crate, with what its source refers to.
#[derive(Debug)]
pub struct File {
    /// From the project's root.
    pub path: String,
    /// The module that it is; the crate's root has no name.
    pub module: Vec<String>,
    pub source: Source,
}

/// The arrows between sibling modules: by their parent, from a module to another, where that is written.
type Arrows = BTreeMap<Vec<String>, BTreeMap<String, BTreeMap<String, String>>>;

/// Modules, of one parent, that lead to each other.
#[derive(Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The modules of the way round, from their parent's path on, as `plot: axis layout`.
    pub name: String,
    /// An arrow on each line, with the place where it is written.
    pub way: String,
}

/// The cycles between the modules of a crate, one for each set of modules that lead to each other.
pub fn cycles(files: &[File]) -> Vec<Cycle> {
    let mut cycles = Vec::new();
    for (parent, arrows) in arrows(files) {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for module in arrows.keys() {
            if seen.contains(module.as_str()) {
                continue;
            }
            let Some(way) = way_back(module, &arrows) else { continue };
            let knot = |other: &&String| reaches(module, other, &arrows) && reaches(other, module, &arrows);
            let members: Vec<&str> = arrows.keys().filter(knot).map(String::as_str).collect();
            let parent = parent.join("::");
            let name = if parent.is_empty() { String::new() } else { format!("{parent}: ") };
            let way = way.windows(2).map(|arrow| {
                let [from, to] = [&arrow[0], &arrow[1]];
                format!("    {from} -> {to} at {}\n", arrows[from][to])
            });
            cycles.push(Cycle { name: format!("{name}{}", members.join(" ")), way: way.collect() });
            seen.extend(members);
        }
    }
    cycles
}

fn arrows(files: &[File]) -> Arrows {
    let mut modules: BTreeSet<Vec<String>> = files.iter().map(|file| file.module.clone()).collect();
    let mut imports: BTreeMap<Vec<String>, Vec<&CodePath>> = BTreeMap::new();
    for file in files {
        modules.extend(file.source.inline_modules.iter().cloned());
        for path in file.source.paths.iter().filter(|path| matches!(path.kind, PathKind::Import { .. })) {
            imports.entry(path.module.clone()).or_default().push(path);
        }
    }
    let mut arrows = Arrows::new();
    for file in files {
        for path in file.source.paths.iter().filter(|path| !path.in_test) {
            let Some(target) = target(path, &modules, &imports) else { continue };
            let common = path.module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (path.module.get(common), target.get(common)) {
                let to_others = arrows.entry(target[..common].to_vec()).or_default();
                let place = format!("{}:{}", file.path, path.line);
                to_others.entry(from.clone()).or_default().entry(to.clone()).or_insert(place);
            }
        }
    }
    arrows
}

/// The module of this crate that a path leads to in the end.
fn target(
    path: &CodePath,
    modules: &BTreeSet<Vec<String>>,
    imports: &BTreeMap<Vec<String>, Vec<&CodePath>>,
) -> Option<Vec<String>> {
    let mut full = absolute(&path.module, &path.parts, modules)?;
    // A name that leads round in a circle does not compile.
    loop {
        let length = (0..=full.len()).rev().find(|length| modules.contains(&full[..*length]))?;
        let module = full[..length].to_vec();
        let Some(name) = full.get(length) else { return Some(module) };
        let passed_on = imports.get(&module).into_iter().flatten().find(|import| {
            matches!(&import.kind, PathKind::Import { name: imported, .. } if imported == name && **import != path)
        });
        let Some(import) = passed_on else { return Some(module) };
        let rest = full[length + 1..].to_vec();
        // A name of another crate.
        let Some(next) = absolute(&module, &import.parts, modules) else { return Some(module) };
        full = [next, rest].concat();
    }
}

/// A path from the crate's root; `None` for what belongs to another crate or to the module itself.
fn absolute(module: &[String], parts: &[String], modules: &BTreeSet<Vec<String>>) -> Option<Vec<String>> {
    let mut base = module.to_vec();
    let mut parts = parts;
    match parts.first()?.as_str() {
        "crate" => {
            base.clear();
            parts = &parts[1..];
        }
        "self" => parts = &parts[1..],
        "super" => {
            while parts.first().is_some_and(|part| part == "super") {
                base.pop();
                parts = &parts[1..];
            }
        }
        first => {
            base.push(first.to_owned());
            if !modules.contains(&base) {
                return None;
            }
            parts = &parts[1..];
        }
    }
    base.extend(parts.iter().cloned());
    Some(base)
}

fn reaches(from: &str, to: &str, arrows: &BTreeMap<String, BTreeMap<String, String>>) -> bool {
    way(from, to, arrows).is_some()
}

/// The shortest way from a module back to it.
fn way_back(module: &str, arrows: &BTreeMap<String, BTreeMap<String, String>>) -> Option<Vec<String>> {
    way(module, module, arrows)
}

/// The shortest way of at least one arrow, both ends included.
fn way(from: &str, to: &str, arrows: &BTreeMap<String, BTreeMap<String, String>>) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = BTreeSet::new();
    let mut at = 0;
    while at < ways.len() {
        let here = ways[at].clone();
        for next in arrows.get(&here[here.len() - 1]).into_iter().flat_map(BTreeMap::keys) {
            let longer = [here.clone(), vec![next.clone()]].concat();
            if next == to {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push(longer);
            }
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(module: &[&str], text: &str) -> File {
        let module: Vec<String> = module.iter().map(ToString::to_string).collect();
        let source = Source::parse(text, &module);
        File { path: format!("{}.rs", module.join("/")), module, source }
    }

    fn names(files: &[File]) -> Vec<String> {
        cycles(files).into_iter().map(|cycle| cycle.name).collect()
    }

    #[test]
    fn cycle_of_siblings_is_found_with_its_way() {
        let files = [
            file(&[], "mod a; mod b; mod c;"),
            file(&["a"], "use crate::b::B;"),
            file(&["b"], "\nuse super::c;"),
            file(&["c"], "fn f() { crate::a::g() }"),
        ];
        let [cycle] = cycles(&files).try_into().expect("one cycle");
        assert_eq!(cycle.name, "a b c");
        assert_eq!(cycle.way, "    a -> b at a.rs:1\n    b -> c at b.rs:2\n    c -> a at c.rs:1\n");
    }

    #[test]
    fn one_way_is_not_a_cycle() {
        let files = [
            file(&[], "mod a; mod b;"),
            file(&["a"], "use crate::b::B; #[cfg(test)] mod tests {}"),
            file(&["b"], "#[cfg(test)] mod tests { use crate::a::A; }"),
        ];
        assert_eq!(names(&files), [""; 0]);
    }

    #[test]
    fn cycle_through_a_passed_on_name_is_found() {
        let files = [
            file(&["p"], "mod a; mod b; pub use b::B;"),
            file(&["p", "a"], "pub struct A(super::B);"),
            file(&["p", "b"], "use super::a; pub struct B;"),
        ];
        assert_eq!(names(&files), ["p: a b"]);
    }

    #[test]
    fn module_and_its_parent_are_not_a_cycle() {
        let files = [file(&["p"], "mod a; use a::A; pub struct P;"), file(&["p", "a"], "use super::P;")];
        assert_eq!(names(&files), [""; 0]);
    }
}
