//! Which kernel modules a guest or a case brings, as its file says.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

use yaml::{Node, Reader};

/// Where a module comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModuleSource {
    /// A folder of the kernel's own source, such as `samples/trace_events`: its modules are built
    /// from it, patches included.
    Tree(Utf8PathBuf),
    /// A folder with a `Kbuild` or `Makefile` of modules that are no part of the kernel's source.
    Folder(Utf8PathBuf),
    /// A module that is built already.
    File(Utf8PathBuf),
}

const KINDS: [&str; 3] = ["tree", "folder", "file"];
/// What a folder of modules has at least one of.
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
    /// The sources in a list in a file in `folder`, which paths in the list start from.
    pub fn read_list(r: &mut Reader, node: &Node<'_>, folder: &Utf8Path) -> Option<Vec<ModuleSource>> {
        // All of them are read before any is given up, so that all faults are told.
        let items: Vec<Option<ModuleSource>> =
            r.list(node)?.into_iter().map(|item| ModuleSource::read(r, item, folder)).collect();
        items.into_iter().collect()
    }

    fn read(r: &mut Reader, node: Node<'_>, folder: &Utf8Path) -> Option<ModuleSource> {
        let f = r.fields(node, &KINDS)?;
        let given: Vec<(&str, Node<'_>)> =
            KINDS.iter().filter_map(|kind| Some((*kind, f.get(kind)?))).collect();
        let [(kind, node)] = given.as_slice() else {
            let fault = f.node().error("a module comes from one of `tree`, `folder` and `file`");
            r.report(fault.with_help(
                "write tree: samples/trace_events (in the kernel's source), folder: PATH or file: PATH.ko",
            ));
            return None;
        };
        let path = Utf8PathBuf::from(r.line(node)?);
        match *kind {
            "tree" => {
                let inside = path.components().all(|part| matches!(part, camino::Utf8Component::Normal(_)));
                if !inside {
                    let fault = node.error(format!("`{path}` is no folder of the kernel's source"));
                    r.report(fault.with_help("write its path from the source's root"));
                    return None;
                }
                Some(ModuleSource::Tree(path.components().collect()))
            }
            "folder" => {
                let path = folder.join(&path);
                let Ok(found) = path.canonicalize_utf8() else {
                    r.report(node.error(format!("there is no folder `{path}`")));
                    return None;
                };
                if !is_folder_of_modules(&found) {
                    let fault = node.error(format!("`{found}` has no {}", BUILD_FILES.join(" and no ")));
                    r.report(fault.with_help("a line `obj-m += NAME.o` in a Kbuild builds NAME.c"));
                    return None;
                }
                Some(ModuleSource::Folder(found))
            }
            _ => {
                let path = folder.join(&path);
                match path.canonicalize_utf8() {
                    Ok(found) if found.is_file() => Some(ModuleSource::File(found)),
                    _ => {
                        r.report(node.error(format!("there is no file `{path}`")));
                        None
                    }
                }
            }
        }
    }
}

/// Whether modules can be built in `folder`.
pub fn is_folder_of_modules(folder: &Utf8Path) -> bool {
    BUILD_FILES.iter().any(|name| folder.join(name).is_file())
}
