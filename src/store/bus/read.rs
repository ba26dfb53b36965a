//! How a bus is read: its last messages, and whatever comes after.

use super::{Bus, Post, VERSION};
use crate::store::error::Doing;
use crate::store::{Error, Result};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A bus is searched backwards in pieces of this size.
const PIECE: u64 = 64 << 10;

/// What was heard on a bus.
#[derive(Debug, Default, PartialEq)]
pub struct Heard {
    /// The messages, oldest first.
    pub posts: Vec<Post>,
    /// Where lines stand that cannot be read, by the byte at which they begin.
    pub damaged: Vec<u64>,
    /// Where to go on.
    pub place: Place,
}

/// How far a bus is read: a file, and an offset in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    file: u64,
    offset: u64,
}

impl Bus {
    /// The last messages, at most so many. A bus that nobody has written to is silent.
    pub fn last(&self, count: usize) -> Result<Heard> {
        let mut heard = self.read_last(&self.path, count)?;
        if heard.posts.len() < count {
            let mut older = self.read_last(&self.aside(), count - heard.posts.len())?;
            older.posts.append(&mut heard.posts);
            heard.posts = older.posts;
        }
        let surplus = heard.posts.len().saturating_sub(count);
        heard.posts.drain(..surplus);
        Ok(heard)
    }

    /// What has come since.
    pub fn after(&self, place: Place) -> Result<Heard> {
        let mut heard = Heard::default();
        if let Some(file) = open(&self.aside())?.filter(|(_, number)| *number == place.file) {
            // What was being read has been put aside: its rest comes first.
            heard = self.read(file, place.offset)?;
        }
        let Some((file, number)) = open(&self.path)? else {
            return Ok(Heard { place, ..heard });
        };
        let offset = if number == place.file {
            place.offset
        } else {
            0
        };
        let newer = self.read((file, number), offset)?;
        heard.posts.extend(newer.posts);
        heard.damaged.extend(newer.damaged);
        Ok(Heard {
            place: newer.place,
            ..heard
        })
    }

    fn read_last(&self, path: &Path, count: usize) -> Result<Heard> {
        let Some((mut file, number)) = open(path)? else {
            return Ok(Heard::default());
        };
        let start = start_of_last(&mut file, count).doing("read", path)?;
        self.read((file, number), start)
    }

    fn read(&self, (file, number): (File, u64), from: u64) -> Result<Heard> {
        let mut heard = Heard {
            place: Place {
                file: number,
                offset: from,
            },
            ..Heard::default()
        };
        let mut reader = BufReader::new(file);
        reader
            .seek(SeekFrom::Start(from))
            .doing("read", &self.path)?;
        let mut raw = Vec::new();
        loop {
            raw.clear();
            let count = reader
                .read_until(b'\n', &mut raw)
                .doing("read", &self.path)? as u64;
            // Whoever writes the rest of a line does so with the same call, or never.
            if raw.pop() != Some(b'\n') {
                return Ok(heard);
            }
            let at = heard.place.offset;
            heard.place.offset += count;
            match serde_json::from_slice::<Post>(&raw) {
                Ok(post) => heard.posts.push(post),
                Err(_) if at == 0 => self.known_version(&raw)?,
                Err(_) if raw.is_empty() => {}
                Err(_) => heard.damaged.push(at),
            }
        }
    }

    /// The first line says what the others are.
    fn known_version(&self, raw: &[u8]) -> Result<()> {
        let first: serde_json::Value = serde_json::from_slice(raw).unwrap_or_default();
        match first["version"].as_u64() {
            Some(version) if version > VERSION => Err(Error::Newer {
                path: self.path.clone(),
                version,
            }),
            _ => Ok(()),
        }
    }
}

fn open(path: &Path) -> Result<Option<(File, u64)>> {
    match File::open(path).and_then(|file| Ok((file.metadata()?.ino(), file))) {
        Ok((number, file)) => Ok(Some((file, number))),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).doing("open", path),
    }
}

/// Where the last lines begin, at most so many.
fn start_of_last(file: &mut File, count: usize) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    // The newline that ends the last line does not begin another.
    let mut wanted = count + 1;
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        file.seek(SeekFrom::Start(start))?;
        piece.clear();
        Read::by_ref(file)
            .take(end - start)
            .read_to_end(&mut piece)?;
        for at in memchr::memrchr_iter(b'\n', &piece) {
            wanted -= 1;
            if wanted == 0 {
                return Ok(start + at as u64 + 1);
            }
        }
        end = start;
    }
    Ok(0)
}
