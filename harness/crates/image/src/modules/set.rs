//! The modules of one guest together: which of two with one name counts, and what depends on what.

use super::BuiltModule;
use crate::error::ImageError;

/// Both lists together. A module of `later` takes the place of one with its name in `first`.
pub(crate) fn union(first: Vec<BuiltModule>, later: Vec<BuiltModule>) -> Vec<BuiltModule> {
    let mut all: Vec<BuiltModule> = Vec::new();
    for module in first.into_iter().chain(later) {
        all.retain(|known| known.name != module.name);
        all.push(module);
    }
    all
}

/// The text of `modules.dep` for modprobe(8): each module's file, and those of all modules that must
/// be loaded before it, the first to be loaded last.
///
/// # Errors
/// When a module needs one that is not there.
pub(crate) fn dependencies(modules: &[BuiltModule]) -> Result<String, ImageError> {
    let mut text = String::new();
    for module in modules {
        let mut needed: Vec<&BuiltModule> = Vec::new();
        gather(module, modules, &mut needed)?;
        text.push_str(&format!("{}:", module.place));
        text.extend(needed.iter().map(|module| format!(" {}", module.place)));
        text.push('\n');
    }
    Ok(text)
}

/// Put what `module` needs into `needed`, each after all that need it.
fn gather<'m>(
    module: &BuiltModule,
    all: &'m [BuiltModule],
    needed: &mut Vec<&'m BuiltModule>,
) -> Result<(), ImageError> {
    for name in &module.depends {
        let found = all.iter().find(|known| known.name == *name).ok_or_else(|| {
            ImageError::MissingDependency { module: module.name.clone(), needs: name.clone() }
        })?;
        needed.retain(|known| known.name != *name);
        needed.push(found);
        // modpost refuses modules that need each other.
        gather(found, all, needed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, depends: &[&str]) -> BuiltModule {
        BuiltModule {
            name: name.to_owned(),
            file: format!("/{name}.ko").into(),
            preprocessed: None,
            sha256: String::new(),
            place: format!("updates/{name}.ko").into(),
            depends: depends.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn modules_needed_first_are_listed_last() {
        let modules = [module("a", &["b", "c"]), module("b", &["c"]), module("c", &[])];
        assert_eq!(
            dependencies(&modules).expect("whole"),
            "updates/a.ko: updates/b.ko updates/c.ko\nupdates/b.ko: updates/c.ko\nupdates/c.ko:\n"
        );
        let error = dependencies(&modules[..2]).expect_err("no c").to_string();
        assert!(error.contains("needs module c"), "{error}");
    }

    #[test]
    fn later_module_replaces_one_with_its_name() {
        let mine = BuiltModule { place: "mine".into(), ..module("a", &[]) };
        let all = union(vec![module("a", &[]), module("b", &[])], vec![mine]);
        let places: Vec<&str> = all.iter().map(|module| module.place.as_str()).collect();
        assert_eq!(places, ["updates/b.ko", "mine"]);
    }
}
