//! A guest that was saved when its agent was ready, as its trials use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use image::{Builder, Product};
use vm::SessionError;
use vm::qemu::{Snapshot, StopReason};

/// A guest that was saved, and is restored until QEMU refuses to.
pub struct SavedGuest {
    snapshot: Arc<Snapshot>,
    product: Product,
    builder: Arc<Builder>,
    label: String,
    refused: AtomicBool,
}

impl SavedGuest {
    /// The snapshot that a product holds. The builder tells the user, by the label, of one that is refused.
    pub(super) fn new(
        snapshot: Snapshot,
        product: Product,
        builder: Arc<Builder>,
        label: String,
    ) -> SavedGuest {
        SavedGuest { snapshot: Arc::new(snapshot), product, builder, label, refused: AtomicBool::new(false) }
    }

    /// The snapshot, unless it was refused.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        (!self.refused.load(Ordering::Relaxed)).then(|| self.snapshot.clone())
    }

    /// A guest that was to go on from it did not get as far as its agent's answer: it is restored no more, and made again
    /// by the next run.
    pub(super) fn refuse(&self, why: &str) {
        if self.refused.swap(true, Ordering::Relaxed) {
            return;
        }
        let label = &self.label;
        let again = match self.builder.discard(&self.product) {
            Ok(()) => "the next run makes it again".to_owned(),
            Err(error) => format!("failed to have it made again: {error}"),
        };
        self.builder
            .notice(&format!("warning: the {label} cannot be used, and its trials boot: {why}; {again}"));
    }
}

/// Whether a guest that failed before its agent's answer might not have, had it booted. A kernel that panicked was
/// running: that is its own.
pub(super) fn is_refusal(error: &SessionError) -> bool {
    !matches!(
        error,
        SessionError::Stopped(
            StopReason::Interrupted
                | StopReason::Suspended(_)
                | StopReason::Flooded(_)
                | StopReason::Panicked(_)
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_of_a_restored_guest_is_not_the_snapshots() {
        assert!(!is_refusal(&StopReason::Panicked("p".to_owned()).into()));
        assert!(!is_refusal(&StopReason::Interrupted.into()));
        assert!(is_refusal(&StopReason::Port("failed to restore".to_owned()).into()));
    }
}
