//! A Debian repository for tests, served over HTTP by this process.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};

use super::mirror::Mirror;
use super::transport::Transport;
use crate::digest::{file_digest, text_digest};
use crate::progress::ProgressSink;
use crate::store::Store;

/// What the server answers to a request for a .deb, in place of the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// So many bytes of what was asked for, then the connection's end.
    Cut(usize),
    /// Other bytes of the right number.
    Wrong,
}

/// A repository with the suite `test` for amd64, and a cache to use it with.
pub(super) struct Repository {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
    pub(super) mirror: Mirror,
    pub(super) store: Store,
    served: Arc<Served>,
}

#[derive(Default)]
struct Served {
    requests: Mutex<Vec<String>>,
    answers: Mutex<VecDeque<Answer>>,
}

impl Repository {
    /// A repository with these packages: name, version, `Depends:`. Each .deb has 5000 bytes.
    pub(super) fn serve(packages: &[(&str, &str, &str)]) -> Repository {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8").to_owned();
        let index = root.join("repo/dists/test/main/binary-amd64");
        fs::create_dir_all(&index).expect("made");
        fs::create_dir_all(root.join("repo/pool")).expect("made");
        let mut text = String::new();
        for (package, version, depends) in packages {
            let file = format!("pool/{package}.deb");
            let path = root.join("repo").join(&file);
            fs::write(&path, &package.repeat(5000).as_bytes()[..5000]).expect("written");
            let sha256 = file_digest(&path).expect("readable");
            text += &format!(
                "Package: {package}\nArchitecture: amd64\nVersion: {version}\nDepends: {depends}\n\
                 Filename: {file}\nSize: 5000\nSHA256: {}\n\n",
                sha256.as_str()
            );
        }
        fs::write(index.join("Packages"), &text).expect("written");
        let release = format!(
            "Suite: test\nCodename: test\nArchitectures: amd64\nComponents: main\n\
             Date: Mon, 01 Jan 2024 00:00:00 UTC\nSHA256:\n {} {} main/binary-amd64/Packages\n",
            text_digest(&text).as_str(),
            text.len()
        );
        fs::write(root.join("repo/dists/test/Release"), release).expect("written");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let uri = format!("http://{}/", listener.local_addr().expect("bound"));
        let served: Arc<Served> = Arc::default();
        let (shared, repo) = (served.clone(), root.join("repo"));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, repo) = (shared.clone(), repo.clone());
                std::thread::spawn(move || _ = shared.answer(stream.expect("a connection"), &repo));
            }
        });
        let mirror = Mirror {
            uri,
            suite: "test".to_owned(),
            trust: "trusted=yes".to_owned(),
            retries: 0,
            transport: Transport::default(),
        };
        let store = Store::open(&root.join("cache")).expect("opens");
        Repository { _dir: dir, root, mirror, store, served }
    }

    /// Answer the next requests for .debs so.
    pub(super) fn answer(&self, answers: &[Answer]) {
        *self.served.answers.lock().expect("no panic") = answers.iter().copied().collect();
    }

    /// The requests whose path ends so, with their `Range:` lines.
    pub(super) fn requests(&self, ending: &str) -> Vec<String> {
        let requests = self.served.requests.lock().expect("no panic");
        requests
            .iter()
            .filter(|request| request.split(' ').next().is_some_and(|p| p.ends_with(ending)))
            .cloned()
            .collect()
    }

    /// A file for a test to write.
    pub(super) fn file(&self, name: &str) -> Utf8PathBuf {
        self.root.join(name)
    }
}

impl Served {
    fn answer(&self, mut stream: TcpStream, repo: &Utf8Path) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().unwrap_or(Ok(String::new()))?;
        let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let mut start = 0;
        for line in lines {
            let line = line?;
            if let Some(range) = line.strip_prefix("Range: bytes=") {
                start = range.trim_end_matches('-').parse().expect("an offset");
            }
            if line.is_empty() {
                break;
            }
        }
        self.requests.lock().expect("no panic").push(format!("{path} from {start}"));
        let special = match path.ends_with(".deb") {
            true => self.answers.lock().expect("no panic").pop_front(),
            false => None,
        };
        // A proxy is asked for a whole address.
        let below = path.split_once(".invalid/").map_or(path.as_str(), |(_, below)| below);
        let whole = fs::read(repo.join(below)).ok();
        let Some(mut whole) = whole else {
            return stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        if special == Some(Answer::Wrong) {
            whole.fill(b'x');
        }
        let body = &whole[start..];
        let status = match start {
            0 => "200 OK".to_owned(),
            _ => format!(
                "206 Partial Content\r\nContent-Range: bytes {start}-{}/{}",
                whole.len() - 1,
                whole.len()
            ),
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\
             Connection: close\r\n\r\n"
        )?;
        match special {
            Some(Answer::Cut(bytes)) => stream.write_all(&body[..bytes]),
            _ => stream.write_all(body),
        }
    }
}

/// Keeps what it hears.
#[derive(Debug, Default)]
pub(super) struct Heard {
    lines: Mutex<Vec<String>>,
}

impl Heard {
    /// All lines and notices.
    pub(super) fn text(&self) -> String {
        self.lines.lock().expect("no panic").join("\n")
    }
}

impl ProgressSink for Heard {
    fn begin(&self, _: &str) {}
    fn line(&self, _: &str, line: &str) {
        self.lines.lock().expect("no panic").push(line.to_owned());
    }
    fn end(&self, _: &str, _: bool, _: std::time::Duration) {}
    fn notice(&self, text: &str) {
        self.lines.lock().expect("no panic").push(text.to_owned());
    }
}
