//! A product that is made when it is first wanted.
//!
//! However many threads ask for it, it is made once. An error is kept as well, for all who need the product.

use std::sync::OnceLock;

use super::error::PrepareError;

/// A product, or the error of making it, once somebody has asked.
#[derive(Debug)]
pub(super) struct Once<T>(OnceLock<Result<T, PrepareError>>);

impl<T: Clone> Once<T> {
    /// The product. The first caller makes it; others wait for it.
    pub(super) fn get<E: Into<PrepareError>>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, PrepareError> {
        self.0.get_or_init(|| make().map_err(Into::into)).clone()
    }
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once(OnceLock::new())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn product_is_made_once_for_many_threads() {
        let (once, made) = (Once::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let product = once.get(|| {
                        std::thread::sleep(Duration::from_millis(10));
                        Ok::<_, PrepareError>(made.fetch_add(1, Ordering::SeqCst))
                    });
                    assert_eq!(product.expect("made"), 0);
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn error_is_kept_and_not_tried_again() {
        let (once, tries) = (Once::<()>::default(), AtomicUsize::new(0));
        for _ in 0..2 {
            let failed = once.get(|| {
                tries.fetch_add(1, Ordering::SeqCst);
                Err(PrepareError::Accelerator("no KVM".to_owned()))
            });
            assert_eq!(failed.expect_err("an error").to_string(), "no KVM");
        }
        assert_eq!(tries.into_inner(), 1);
    }

    #[test]
    fn product_whose_making_panicked_is_made_by_the_next() {
        let once = Once::default();
        std::thread::scope(|scope| {
            let make = || once.get(|| -> Result<u32, PrepareError> { panic!("a bug") });
            assert!(scope.spawn(make).join().is_err());
        });
        assert_eq!(once.get(|| Ok::<_, PrepareError>(1)).expect("made"), 1);
    }
}
