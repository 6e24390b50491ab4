//! A first case for somebody's kernel module, as text.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// A module to draft a case for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftModule {
    /// Its name.
    pub name: String,
    /// The systems of its trace events: their directories below `events/`.
    pub systems: Vec<String>,
}

/// The text of a case that loads the modules built from `directory`, captures what they define, and unloads
/// them, on `guests`, or on all when the list is empty. `directory` is relative to the case's directory.
///
/// The captures are the same on every run, whatever the modules do. Steps that make them trace something
/// are for the author to add; a comment shows an example.
pub fn draft(title: &str, guests: &[String], directory: &Utf8Path, modules: &[DraftModule]) -> String {
    let guests = if guests.is_empty() { String::new() } else { format!("guests: [{}]\n", guests.join(", ")) };
    let mut text = format!("title: {title}\n{guests}modules:\n  - directory: {directory}\nsteps:\n");
    for DraftModule { name, systems } in modules {
        if !systems.is_empty() {
            text += &format!(
                "  # What its trace events consist of, read from its file on the host.\n  - inspect: {name}\n    \
                 capture: {name}.defined\n"
            );
        }
        text += &format!(
            "  - run: |\n      modprobe {name}\n      # Without the size, which depends on the page size, and the address.\n      \
             grep '^{name} ' /proc/modules | cut -d ' ' -f 1,3-5\n    capture: {name}.loaded\n"
        );
        if systems.is_empty() {
            continue;
        }
        let list = |pattern: &str| {
            systems.iter().map(|system| format!("events/{system}/{pattern}")).collect::<Vec<_>>().join(" ")
        };
        text += &format!(
            "  - run: cat {}\n    capture: {name}.formats\n    format: event_format\n    defined_by: {name}\n",
            list("*/format")
        );
        let system = &systems[0];
        text += &format!(
            "  # Add what makes the module trace, for example:\n  # - run: |\n  #     echo 1 > \
             events/{system}/enable\n  #     echo 'FIELD=VALUE' > events/{system}/EVENT/inject\n  # - read: trace\n  \
             #   capture: {name}.trace\n"
        );
    }
    let names: Vec<&str> = modules.iter().rev().map(|module| module.name.as_str()).collect();
    text += &format!("  - run: rmmod {} && cat /proc/modules\n    capture: unloaded\n", names.join(" "));
    text
}

/// The path from the directory `from` to `to`, both absolute.
pub fn relative(from: &Utf8Path, to: &Utf8Path) -> Utf8PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Utf8Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draft_inspects_and_loads_each_module() {
        let module = |name: &str, systems: &[&str]| DraftModule {
            name: name.to_owned(),
            systems: systems.iter().map(|s| (*s).to_owned()).collect(),
        };
        let text = draft(
            "T",
            &["x86_64".to_owned()],
            "../../mine".into(),
            &[module("base", &[]), module("hello", &["hello"])],
        );
        expect_test::expect![[r"
            title: T
            guests: [x86_64]
            modules:
              - directory: ../../mine
            steps:
              - run: |
                  modprobe base
                  # Without the size, which depends on the page size, and the address.
                  grep '^base ' /proc/modules | cut -d ' ' -f 1,3-5
                capture: base.loaded
              # What its trace events consist of, read from its file on the host.
              - inspect: hello
                capture: hello.defined
              - run: |
                  modprobe hello
                  # Without the size, which depends on the page size, and the address.
                  grep '^hello ' /proc/modules | cut -d ' ' -f 1,3-5
                capture: hello.loaded
              - run: cat events/hello/*/format
                capture: hello.formats
                format: event_format
                defined_by: hello
              # Add what makes the module trace, for example:
              # - run: |
              #     echo 1 > events/hello/enable
              #     echo 'FIELD=VALUE' > events/hello/EVENT/inject
              # - read: trace
              #   capture: hello.trace
              - run: rmmod hello base && cat /proc/modules
                capture: unloaded
        "]]
        .assert_eq(&text);
    }

    #[test]
    fn draft_is_a_valid_case() {
        let module = DraftModule { name: "hello".to_owned(), systems: vec!["hello".to_owned()] };
        let text = draft("T", &["x86_64".to_owned()], "module".into(), &[module]);
        let dir = tempfile::tempdir().expect("a directory");
        let directory = Utf8Path::from_path(dir.path()).expect("UTF-8");
        std::fs::create_dir(directory.join("module")).expect("created");
        std::fs::write(directory.join("module/Kbuild"), "obj-m += hello.o\n").expect("written");
        let document = yaml::Document::parse("case.yaml", text).expect("valid YAML");
        let golden = |name: &str| (name.into(), Ok(b"#@ golden v1\nline\n".to_vec()));
        let guests = [guest::GuestName::new("x86_64")];
        let (case, _, errors) = crate::case::read::read_case(
            &crate::case::CaseId::new("mine"),
            directory,
            "case.yaml".into(),
            &document,
            &guests,
            &golden,
        );
        assert_eq!(errors, []);
        assert_eq!(case.expect("a case").steps.len(), 4);
    }

    #[test]
    fn relative_path_goes_up_to_the_shared_directory() {
        let path = |from: &str, to: &str| relative(from.into(), to.into()).into_string();
        assert_eq!(path("/p/cases/mine", "/home/me/hello"), "../../../home/me/hello");
        assert_eq!(path("/p/cases/mine", "/p/cases/mine/module"), "module");
        assert_eq!(path("/p/cases/mine", "/p/hello"), "../../hello");
    }
}
