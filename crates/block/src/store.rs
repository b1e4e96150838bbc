//! The second, smaller waist: what blocks cannot say. Names, appends and the several kinds of sync of a file
//! system.
//!
//! What each call makes durable is POSIX's promise plus what Linux file systems do; the difference matters
//! and is said at each method. Every path is relative to the root of the store and may not leave it.

use std::path::Path;

use crate::error::Result;
use crate::units::Bytes;

/// A file that the store has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub u64);

/// How to open a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Make it; fail if it exists. Without this it must exist.
    pub create: bool,
    /// Bypass the page cache (O_DIRECT).
    pub direct: bool,
    /// Each write is durable when it returns (O_DSYNC).
    pub dsync: bool,
}

/// A directory tree in which files are made, written and made durable.
///
/// # Errors
/// Every method fails with the place and the error number of the call; after a failed sync of a file, every
/// later sync of that file fails too, because the kernel has already forgotten which pages were lost.
#[expect(clippy::missing_errors_doc, reason = "the errors of all methods are documented at the trait")]
pub trait FileStore: Send + Sync {
    /// Opens or makes a file. A new name is durable only after
    /// [`fsync_directory`](FileStore::fsync_directory).
    fn open(&self, path: &Path, options: OpenOptions) -> Result<FileId>;

    /// Closes a file. Closing makes nothing durable.
    fn close(&self, file: FileId) -> Result<()>;

    /// Reads into all of `into` from `offset`; past the end is an error.
    fn read_at(&self, file: FileId, offset: Bytes, into: &mut [u8]) -> Result<()>;

    /// Writes all of `bytes` at `offset`: visible when it returns, durable only if the file was opened with
    /// `dsync`.
    fn write_at(&self, file: FileId, offset: Bytes, bytes: &[u8]) -> Result<()>;

    /// Writes all of `bytes` at the end and returns the offset at which they stand.
    fn append(&self, file: FileId, bytes: &[u8]) -> Result<Bytes>;

    /// Cuts or extends the file to `size`.
    fn truncate(&self, file: FileId, size: Bytes) -> Result<()>;

    /// Makes the data and all metadata of the file durable.
    fn fsync(&self, file: FileId) -> Result<()>;

    /// Makes the data durable, and the metadata without which it cannot be read back.
    fn fdatasync(&self, file: FileId) -> Result<()>;

    /// Starts and awaits writing of the range to the device (sync_file_range). Durable: nothing. No flush, no
    /// metadata.
    fn sync_file_range(&self, file: FileId, offset: Bytes, length: Bytes) -> Result<()>;

    /// Makes everything in the file system of the store durable.
    fn syncfs(&self) -> Result<()>;

    /// Makes the names in a directory durable.
    fn fsync_directory(&self, directory: &Path) -> Result<()>;

    /// Makes a directory.
    fn create_directory(&self, directory: &Path) -> Result<()>;

    /// Gives a file another name, replacing what had it. Visible at once as a whole; durable after
    /// [`fsync_directory`](FileStore::fsync_directory).
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes the name of a file.
    fn unlink(&self, path: &Path) -> Result<()>;
}
