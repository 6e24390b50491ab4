//! Which kernel modules a guest or a case brings, as its file says.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

use yaml::{Node, Reader};

/// Where a module comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModuleSource {
    /// A directory of the kernel's own source, such as `samples/trace_events`: its modules are built
    /// from it, patches included.
    Tree(Utf8PathBuf),
    /// A directory with a `Kbuild` or `Makefile` of modules outside the kernel's source.
    Folder(Utf8PathBuf),
    /// A module that is already built.
    File(Utf8PathBuf),
}

const KINDS: [&str; 3] = ["tree", "directory", "file"];
/// Keys that used to be, with what to write in their place.
const RENAMED: [(&str, &str); 1] = [("folder", "`directory: PATH`")];
/// Each directory of a module's source has at least one of these.
const BUILD_FILES: [&str; 2] = ["Kbuild", "Makefile"];

impl fmt::Display for ModuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModuleSource::Tree(path) => write!(f, "the kernel's {path}"),
            ModuleSource::Folder(path) | ModuleSource::File(path) => write!(f, "{path}"),
        }
    }
}

impl ModuleSource {
    /// The sources in a list in a file in `directory`, which paths in the list start from.
    pub fn read_list(r: &mut Reader, node: &Node<'_>, directory: &Utf8Path) -> Option<Vec<ModuleSource>> {
        r.each(node, |r, item| ModuleSource::read(r, item, directory))
    }

    fn read(r: &mut Reader, node: Node<'_>, directory: &Utf8Path) -> Option<ModuleSource> {
        let f = r.fields_with_renames(node, &KINDS, &RENAMED)?;
        let given: Vec<(&str, Node<'_>)> =
            KINDS.iter().filter_map(|kind| Some((*kind, f.get(kind)?))).collect();
        let [(kind, node)] = given.as_slice() else {
            let error = f.node().error("a module needs one of `tree`, `directory` and `file`");
            r.report(error.with_help(
                "write tree: samples/trace_events (in the kernel's source), directory: PATH or file: PATH.ko",
            ));
            return None;
        };
        let path = Utf8PathBuf::from(r.line(node)?);
        match *kind {
            "tree" => {
                let inside = path.components().all(|part| matches!(part, camino::Utf8Component::Normal(_)));
                if !inside {
                    let error = node.error(format!("`{path}` is not a directory of the kernel's source"));
                    r.report(error.with_help("write its path from the root of the source"));
                    return None;
                }
                Some(ModuleSource::Tree(path.components().collect()))
            }
            "directory" => {
                let path = directory.join(&path);
                let Ok(found) = path.canonicalize_utf8() else {
                    r.report(node.error(format!("no such directory: `{path}`")));
                    return None;
                };
                if !is_directory_of_modules(&found) {
                    let error = node.error(format!("`{found}` has no {}", BUILD_FILES.join(" and no ")));
                    r.report(error.with_help("a line `obj-m += NAME.o` in a Kbuild builds NAME.c"));
                    return None;
                }
                Some(ModuleSource::Folder(found))
            }
            _ => {
                let path = directory.join(&path);
                match path.canonicalize_utf8() {
                    Ok(found) if found.is_file() => Some(ModuleSource::File(found)),
                    _ => {
                        r.report(node.error(format!("no such file: `{path}`")));
                        None
                    }
                }
            }
        }
    }
}

/// Whether modules can be built in `directory`.
pub fn is_directory_of_modules(directory: &Utf8Path) -> bool {
    BUILD_FILES.iter().any(|name| directory.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use yaml::Document;

    use super::*;

    /// Read a list in a file in a directory with a module's source and a module.
    fn read(list: &str) -> (Option<Vec<ModuleSource>>, String) {
        let dir = tempfile::tempdir().expect("a directory");
        let directory = Utf8Path::from_path(dir.path()).expect("UTF-8").canonicalize_utf8().expect("there");
        std::fs::create_dir_all(directory.join("source/empty")).expect("created");
        std::fs::write(directory.join("source/Kbuild"), "obj-m += x.o\n").expect("written");
        std::fs::write(directory.join("x.ko"), "").expect("written");
        let document = Document::parse("g.yaml", list).expect("valid YAML");
        let mut reader = Reader::new();
        let sources = ModuleSource::read_list(&mut reader, &document.root(), &directory);
        let errors: Vec<String> = reader.into_errors().iter().map(ToString::to_string).collect();
        (sources, errors.join("\n").replace(directory.as_str(), "DIR"))
    }

    fn check(list: &str, expected: &Expect) {
        expected.assert_eq(&read(list).1);
    }

    #[test]
    fn sources_are_real_paths() {
        let (sources, errors) =
            read("[{tree: samples//trace_events}, {directory: source/empty/..}, {file: x.ko}]");
        assert_eq!(errors, "");
        let sources = sources.expect("valid");
        let [ModuleSource::Tree(tree), ModuleSource::Folder(source), ModuleSource::File(file)] = &sources[..]
        else {
            panic!("one of each");
        };
        assert_eq!(
            (tree.as_str(), source.file_name(), file.file_name()),
            ("samples/trace_events", Some("source"), Some("x.ko"))
        );
    }

    #[test]
    fn sources_are_checked() {
        check(
            "[{}, {tree: a, file: b}]",
            &expect![[r#"
            g.yaml:1:2: a module needs one of `tree`, `directory` and `file` (write tree: samples/trace_events (in the kernel's source), directory: PATH or file: PATH.ko)
            g.yaml:1:6: a module needs one of `tree`, `directory` and `file` (write tree: samples/trace_events (in the kernel's source), directory: PATH or file: PATH.ko)"#]],
        );
        check(
            "[{tree: ../etc}, {tree: /etc}]",
            &expect![[r#"
            g.yaml:1:9: `../etc` is not a directory of the kernel's source (write its path from the root of the source)
            g.yaml:1:25: `/etc` is not a directory of the kernel's source (write its path from the root of the source)"#]],
        );
        check(
            "[{directory: absent}, {directory: source/empty}]",
            &expect![[r#"
            g.yaml:1:14: no such directory: `DIR/absent`
            g.yaml:1:35: `DIR/source/empty` has no Kbuild and no Makefile (a line `obj-m += NAME.o` in a Kbuild builds NAME.c)"#]],
        );
        check(
            "[{file: absent.ko}, {file: source}]",
            &expect![[r#"
            g.yaml:1:9: no such file: `DIR/absent.ko`
            g.yaml:1:28: no such file: `DIR/source`"#]],
        );
        check(
            "[{folder: source}]",
            &expect![[r#"
            g.yaml:1:2: a module needs one of `tree`, `directory` and `file` (write tree: samples/trace_events (in the kernel's source), directory: PATH or file: PATH.ko)
            g.yaml:1:3: `folder` has been renamed (write `directory: PATH`)"#]],
        );
    }
}
