//! Debian's packages: which ones images are made from, and how they are downloaded.

pub(crate) mod apt;
pub(crate) mod sources;
