//! The cache's part in snapshots of guests: what decides which one it is, and where it is kept.
//!
//! Who makes one starts a guest, which this crate does not.

use std::collections::BTreeMap;

use camino::Utf8Path;

use crate::context::BuildContext;
use crate::error::ImageError;
use crate::store::{Product, Recipe};

/// The layout of a snapshot's files, what is done in the guest before it is saved, and how that is tried.
const LAYOUT: &str = "2";

/// Everything that decides what a snapshot is.
#[derive(Debug, Clone)]
pub struct SnapshotInputs<'i> {
    /// The guest's name, for people.
    pub guest: &'i str,
    /// The identity of the product with the kernel.
    pub kernel: &'i str,
    /// The identity of the product with the initramfs.
    pub initramfs: &'i str,
    /// How QEMU is started, without what differs from start to start.
    pub machine: &'i str,
    /// Which QEMU it is.
    pub qemu: &'i str,
}

/// The snapshot as a product, made by `make` in a directory of its own.
///
/// # Errors
/// Those of `make`.
pub(crate) fn snapshot(
    context: &BuildContext<'_>,
    inputs: &SnapshotInputs<'_>,
    make: impl FnOnce(&Utf8Path) -> Result<(), ImageError>,
) -> Result<Product, ImageError> {
    context.product(&recipe(inputs), |build_dir| make(&build_dir.out))
}

fn recipe(inputs: &SnapshotInputs<'_>) -> Recipe {
    let SnapshotInputs { guest, kernel, initramfs, machine, qemu } = *inputs;
    let all = [
        ("kernel", kernel),
        ("initramfs", initramfs),
        ("machine", machine),
        ("qemu", qemu),
        ("layout", LAYOUT),
    ];
    let inputs: BTreeMap<String, String> =
        all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Recipe { inputs, ..Recipe::new("snapshot", guest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_inputs_count;

    #[test]
    fn every_input_of_a_snapshot_counts() {
        let base = SnapshotInputs { guest: "g", kernel: "1", initramfs: "1", machine: "1", qemu: "1" };
        let changed = [
            ("kernel", SnapshotInputs { kernel: "2", ..base.clone() }),
            ("initramfs", SnapshotInputs { initramfs: "2", ..base.clone() }),
            ("machine", SnapshotInputs { machine: "2", ..base.clone() }),
            ("qemu", SnapshotInputs { qemu: "2", ..base.clone() }),
        ];
        let changed = changed.map(|(input, inputs)| (input, recipe(&inputs)));
        assert_inputs_count(&recipe(&base), &["layout"], &changed);
    }
}
