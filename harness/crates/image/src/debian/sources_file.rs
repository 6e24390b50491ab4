//! `images/sources.yaml`: which suites and packages images are made from.

use std::fs;

use diagnostic::Diagnostic;
use guest::Project;
use yaml::{Document, Reader};

use super::version::major_minor;

/// The file, relative to the project.
pub(super) const FILE: &str = "images/sources.yaml";

/// `images/sources.yaml` as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcesFile {
    /// Debian suites, the preferred one first.
    pub suites: Vec<String>,
    /// The metapackage that depends on the newest kernel source.
    pub kernel_package: String,
    /// The oldest kernel that will do, as `MAJOR.MINOR`.
    pub kernel_minimum: (u32, u32),
    /// The package with the guests' userland.
    pub busybox_package: String,
    /// The packages with the libraries that perf is linked with.
    pub perf_packages: Vec<String>,
}

impl SourcesFile {
    /// Read the project's file.
    ///
    /// # Errors
    /// Every error of the file.
    pub fn load(project: &Project) -> Result<SourcesFile, Vec<Diagnostic>> {
        let text = fs::read_to_string(project.path(FILE))
            .map_err(|e| vec![Diagnostic::whole_file(FILE, format!("failed to read the sources: {e}"))])?;
        let document = Document::parse(FILE, text).map_err(|error| vec![error])?;
        let mut reader = Reader::new();
        let file = SourcesFile::read(&mut reader, &document);
        let errors = reader.into_errors();
        match file {
            Some(file) if errors.is_empty() => Ok(file),
            _ => Err(errors),
        }
    }

    fn read(r: &mut Reader, document: &Document) -> Option<SourcesFile> {
        let f = r.fields(document.root(), &["suites", "kernel", "busybox", "perf"])?;
        let suites = f.need(r, "suites").and_then(|node| {
            let suites = r.lines(&node)?;
            if suites.is_empty() {
                r.report(node.error("at least one suite is needed"));
            }
            Some(suites)
        });
        let kernel = f.need(r, "kernel").and_then(|node| {
            let f = r.fields(node, &["package", "minimum"])?;
            let package = f.need(r, "package").and_then(|node| r.line(&node));
            let minimum = f.need(r, "minimum").and_then(|node| {
                let text = r.line(&node)?;
                let version = major_minor(&text);
                if version.is_none() {
                    r.report(
                        node.error(format!("`{text}` is not a version")).with_help("write it as \"6.18\""),
                    );
                }
                version
            });
            Some((package?, minimum?))
        });
        let busybox = f.need(r, "busybox").and_then(|node| {
            let f = r.fields(node, &["package"])?;
            f.need(r, "package").and_then(|node| r.line(&node))
        });
        let perf = f.need(r, "perf").and_then(|node| {
            let f = r.fields(node, &["packages"])?;
            f.need(r, "packages").and_then(|node| r.lines(&node))
        });
        let (kernel_package, kernel_minimum) = kernel?;
        Some(SourcesFile {
            suites: suites?,
            kernel_package,
            kernel_minimum,
            busybox_package: busybox?,
            perf_packages: perf?,
        })
    }
}
