//! Files of any size, in the layout of NATS's object store: chunks, and a description with a digest.

use super::super::error::FleetError;
use super::super::exchange::PIECE_MAX;
use super::NatsExchange;
use super::api::{MESSAGE_ID, ROLLUP};
use super::records::done;
use crate::os::regular_file;
use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::Path;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The description of a blob.
#[derive(Debug, Serialize, Deserialize)]
struct BlobInfo {
    name: String,
    bucket: String,
    /// The last part of the chunks' subject.
    nuid: String,
    size: u64,
    chunks: u64,
    /// `SHA-256=` and the digest of all bytes, in base64.
    digest: String,
    /// Replaced by NATS's tools with the time of the message.
    mtime: String,
    #[serde(default)]
    deleted: bool,
}

impl NatsExchange {
    /// Stores a file. Readers get either all of the old blob or all of the new one.
    pub(super) async fn upload(&self, name: &str, path: &Path) -> Result<(), FleetError> {
        let file = regular_file::open(path, false).map_err(|error| failed("read", path, &error))?;
        let mut file = File::from_std(file);
        let nuid = self.api.unique_id();
        let subject = self.layout.chunk_subject(&nuid);
        let mut digest = Sha256::new();
        let (mut size, mut chunks) = (0, 0);
        let mut buffer = vec![0; PIECE_MAX];
        loop {
            let length = fill(&mut file, &mut buffer).await;
            let length = length.map_err(|error| failed("read", path, &error))?;
            if length == 0 {
                break;
            }
            let chunk = &buffer[..length];
            digest.update(chunk);
            let mut headers = HeaderMap::new();
            headers.insert(MESSAGE_ID, format!("{nuid}/{chunks}"));
            done(self.api.publish(&subject, headers, chunk).await)?;
            size += length as u64;
            chunks += 1;
        }
        let old = self.blob_info(name).await?;
        let info = BlobInfo {
            name: name.into(),
            bucket: self.layout.blobs_bucket(),
            nuid,
            size,
            chunks,
            digest: digest_text(digest),
            mtime: "0001-01-01T00:00:00Z".into(),
            deleted: false,
        };
        let mut headers = HeaderMap::new();
        headers.insert(ROLLUP, "sub");
        let payload =
            serde_json::to_vec(&info).map_err(|error| FleetError::Other(error.to_string()))?;
        let subject = self.layout.blob_subject(&URL_SAFE.encode(name));
        done(self.api.publish(&subject, headers, &payload).await)?;
        if let Some(old) = old {
            self.purge_chunks(&old).await?;
        }
        Ok(())
    }

    /// Writes a blob to a file, which exists only if all of it has arrived.
    pub(super) async fn download(&self, name: &str, path: &Path) -> Result<bool, FleetError> {
        let Some(info) = self.blob_info(name).await? else {
            return Ok(false);
        };
        let partial = path.with_extension("partial");
        let written = self.write_chunks(&info, &partial).await;
        let written = written.and_then(|()| {
            std::fs::rename(&partial, path).map_err(|error| failed("write", path, &error))
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&partial);
        }
        written.map(|()| true)
    }

    async fn write_chunks(&self, info: &BlobInfo, path: &Path) -> Result<(), FleetError> {
        let file = regular_file::truncate(path).map_err(|error| failed("write", path, &error))?;
        let mut file = File::from_std(file);
        let stream = self.layout.blobs_stream();
        let subject = self.layout.chunk_subject(&info.nuid);
        let mut digest = Sha256::new();
        let (mut position, mut size) = (0, 0);
        while size < info.size {
            let Some(chunk) = self.api.next(&stream, &subject, position).await? else {
                break;
            };
            position = chunk.sequence;
            size += chunk.payload.len() as u64;
            digest.update(&chunk.payload);
            let written = file.write_all(&chunk.payload).await;
            written.map_err(|error| failed("write", path, &error))?;
        }
        let flushed = file.sync_all().await;
        flushed.map_err(|error| failed("write", path, &error))?;
        if size != info.size || digest_text(digest) != info.digest {
            return Err(FleetError::Other(format!(
                "{} in the fleet is damaged, or was replaced while it was read",
                info.name
            )));
        }
        Ok(())
    }

    async fn blob_info(&self, name: &str) -> Result<Option<BlobInfo>, FleetError> {
        let stream = self.layout.blobs_stream();
        let subject = self.layout.blob_subject(&URL_SAFE.encode(name));
        let message = self.api.last(&stream, &subject).await?;
        let info = message.map(|message| serde_json::from_slice::<BlobInfo>(&message.payload));
        let info = info.transpose().map_err(|error| {
            FleetError::Other(format!("cannot read the description of {name}: {error}"))
        })?;
        Ok(info.filter(|info| !info.deleted && info.name == name))
    }

    async fn purge_chunks(&self, info: &BlobInfo) -> Result<(), FleetError> {
        let subject = self.layout.chunk_subject(&info.nuid);
        self.api.purge(&self.layout.blobs_stream(), &subject).await
    }

    /// Removes all blobs whose names begin with `prefix`.
    pub(super) async fn delete_blobs(&self, prefix: &str) -> Result<(), FleetError> {
        let stream = self.layout.blobs_stream();
        let filter = self.layout.blob_subject("*");
        for subject in self.api.subjects(&stream, &filter).await? {
            let encoded = subject.rsplit('.').next().unwrap_or_default();
            let name = URL_SAFE.decode(encoded).ok();
            let Some(name) = name.and_then(|name| String::from_utf8(name).ok()) else {
                continue;
            };
            if !name.starts_with(prefix) {
                continue;
            }
            if let Some(info) = self.blob_info(&name).await? {
                self.purge_chunks(&info).await?;
            }
            self.api.purge(&stream, &subject).await?;
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends, and returns how much.
async fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]).await? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

fn digest_text(digest: Sha256) -> String {
    format!("SHA-256={}", URL_SAFE.encode(digest.finalize()))
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> FleetError {
    FleetError::Other(format!("cannot {verb} {}: {error}", path.display()))
}
