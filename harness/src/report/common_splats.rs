//! Splats that several trials of a run have in common.

use std::collections::BTreeMap;
use std::fmt::Write;

use trial::{Failure, Outcome, TrialResult};

/// A paragraph for each splat on which trials of more than one case failed: its fingerprint, and the trials. Empty when
/// there is none.
pub fn common_splats<'t>(trials: impl IntoIterator<Item = &'t TrialResult>) -> String {
    let mut splats: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for trial in trials {
        let (Outcome::Fail(failures) | Outcome::Xpass { failures, .. }) = &trial.outcome else { continue };
        for failure in failures {
            if let Failure::Kernel { splat, .. } = failure {
                splats.entry(splat.fingerprint()).or_default().push(&trial.name);
            }
        }
    }
    let case = |name: &&str| name.split('@').next().unwrap_or_default().to_owned();
    let is_common = |names: &Vec<&str>| names.iter().any(|name| case(name) != case(&names[0]));
    splats.iter().filter(|(_, names)| is_common(names)).fold(String::new(), |mut text, (splat, names)| {
        let _ = writeln!(text, "the same splat in {} trials: {splat}", names.len());
        let _ = writeln!(text, "  {}", names.join(" "));
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{result, splat};

    #[test]
    fn splat_of_several_trials_is_named_once_with_them() {
        let fail = |name: &str, line: &str| result(name, Outcome::Fail(vec![splat(line)]));
        let trials = [
            fail("a@x", "sh[1]: segfault at 7"),
            fail("b@x", "sh[23]: segfault at 8"),
            fail("c@x", "BUG: another"),
            result("d@x", Outcome::Pass),
            fail("c@y", "BUG: another"),
        ];
        let expected = "the same splat in 2 trials: segfault: N segfault at N\n  a@x b@x\n";
        assert_eq!(common_splats(&trials), expected);
        assert_eq!(common_splats(&trials[1..]), "");
    }
}
