//! The second, smaller waist, for file operations that block devices do not have: names, appends and the
//! several kinds of sync of a file system.
//!
//! Each method states what it makes durable: what POSIX promises, and what the file systems of Linux add.
//! Every path is relative to the root of the store and may not leave it.

use std::path::Path;

use crate::error::Result;
use crate::units::Bytes;

/// A file that the store has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub u64);

/// Options for opening a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Create the file, and fail if it exists. If false, the file must exist.
    pub create: bool,
    /// Bypass the page cache (O_DIRECT).
    pub direct: bool,
    /// Each write is durable when it returns (O_DSYNC).
    pub dsync: bool,
}

/// A directory tree in which files are created, written and made durable.
///
/// # Errors
/// Every method's error has the place and the error number of the call. After a failed sync of a file, every
/// later sync of it fails too, because the kernel no longer knows which pages were lost.
#[expect(clippy::missing_errors_doc, reason = "the errors of all methods are documented at the trait")]
pub trait FileStore: Send + Sync {
    /// Opens or creates a file. A new name is durable only after
    /// [`fsync_directory`](FileStore::fsync_directory).
    fn open(&self, path: &Path, options: OpenOptions) -> Result<FileId>;

    /// Closes a file. Closing makes nothing durable.
    fn close(&self, file: FileId) -> Result<()>;

    /// Fills `into` from `offset`; reading past the end is an error.
    fn read_at(&self, file: FileId, offset: Bytes, into: &mut [u8]) -> Result<()>;

    /// Writes all of `bytes` at `offset`: visible when it returns, durable only if the file was opened with
    /// `dsync`.
    fn write_at(&self, file: FileId, offset: Bytes, bytes: &[u8]) -> Result<()>;

    /// Appends all of `bytes` and returns their offset.
    fn append(&self, file: FileId, bytes: &[u8]) -> Result<Bytes>;

    /// Truncates or extends the file to `size`.
    fn truncate(&self, file: FileId, size: Bytes) -> Result<()>;

    /// Makes the data and all metadata of the file durable.
    fn fsync(&self, file: FileId) -> Result<()>;

    /// Makes the data durable, and the metadata without which it cannot be read back.
    fn fdatasync(&self, file: FileId) -> Result<()>;

    /// Starts writing the range to the device and waits for it (sync_file_range). Makes nothing durable: no
    /// flush, no metadata.
    fn sync_file_range(&self, file: FileId, offset: Bytes, length: Bytes) -> Result<()>;

    /// Makes everything in the file system of the store durable.
    fn syncfs(&self) -> Result<()>;

    /// Makes the names in a directory durable.
    fn fsync_directory(&self, directory: &Path) -> Result<()>;

    /// Creates a directory.
    fn create_directory(&self, directory: &Path) -> Result<()>;

    /// Renames a file and replaces an existing target. Atomically visible; durable after
    /// [`fsync_directory`](FileStore::fsync_directory).
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file's name.
    fn unlink(&self, path: &Path) -> Result<()>;
}
