//! Names for pointers that have none.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Bindings, Golden};

/// Names for pointers that have none, the same for all guests of a case.
#[derive(Debug, Default)]
pub struct Namer {
    taken: BTreeSet<String>,
    fresh: Vec<String>,
}

impl Namer {
    /// A namer that keeps clear of the names in these goldens.
    pub fn new<'g>(goldens: impl IntoIterator<Item = &'g Golden>) -> Namer {
        let mut taken = BTreeSet::new();
        for golden in goldens {
            for (_, pattern) in golden.patterns() {
                taken
                    .extend(pattern.holes().filter_map(|hole| hole.binds().map(|(_, name)| name.to_owned())));
            }
        }
        Namer { taken, fresh: Vec::new() }
    }

    /// The name of the n-th pointer that had none.
    pub(super) fn fresh(&mut self, n: usize) -> String {
        let mut number = self.fresh.len();
        while self.fresh.len() <= n {
            number += 1;
            let name = format!("PTR{number}");
            if self.taken.insert(name.clone()) {
                self.fresh.push(name);
            }
        }
        self.fresh[n].clone()
    }
}

/// The meaning of names on one guest, and how many pointers got a new name.
#[derive(Debug, Default)]
pub struct GuestNames {
    pub(super) bindings: Bindings,
    /// The number of each new name, by the pointer.
    pub(super) fresh: BTreeMap<String, usize>,
}
