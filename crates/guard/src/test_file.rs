//! Test files: a directory named together with a size gets a temporary file, which is removed at the end of
//! the run.
//!
//! They need no permission, as no foreign data is written. Requests for one directory share one file, opened
//! once for each set of options; requests that append share another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::{Bytes, Clock, ErrorKind};
use plumb_linux::{Access, FileOptions, TestFile};

use crate::error::{Error, Kind, Result};
use crate::name::Name;
use crate::opened::{OpenedTarget, Origin, Route, TargetKind};
use crate::target_request::TargetRequest;

/// Returns the directory if `want` names one and gives a size.
pub(crate) fn directory_of(want: &TargetRequest) -> Option<&Path> {
    match &want.name {
        Name::Path(path) if want.intent.size.is_some() && path.is_dir() => Some(path),
        _ => None,
    }
}

/// A test file and its path.
#[derive(Clone)]
pub(crate) struct MadeFile {
    pub(crate) file: Arc<TestFile>,
    pub(crate) path: PathBuf,
    pub(crate) directory: PathBuf,
    options: FileOptions,
}

impl MadeFile {
    /// Opens the file as a device.
    fn device(&self, clock: Arc<dyn Clock>) -> plumb_block::Result<plumb_linux::FileDevice> {
        self.file.open(self.options, clock)
    }
}

/// Creates the wanted files, each with its index in the list.
///
/// # Errors
/// Fails as open(2), and if the file system does not support the options. Nothing is left behind.
pub(crate) fn open_all(
    wanted: &[(usize, TargetRequest)],
    clock: &Arc<dyn Clock>,
) -> Result<Vec<(usize, OpenedTarget)>> {
    let mut opened: Vec<(usize, OpenedTarget)> = Vec::new();
    for (place, want) in wanted {
        let access = if want.intent.writes { Access::ReadWrite } else { Access::ReadOnly };
        let options = FileOptions { access, ..want.options };
        let Some(directory) = directory_of(want) else { continue };
        let here = |one: &&OpenedTarget| {
            let made = one.origin.test_file();
            made.is_some_and(|made| made.directory == directory && made.options.append == options.append)
        };
        let all = || opened.iter().map(|(_, one)| one);
        let known = all().find(here).and_then(|one| one.origin.test_file()).cloned();
        let is_new = known.is_none();
        let made = match known {
            Some(made) => MadeFile { options, ..made },
            None => make(directory, wanted, options)?,
        };
        let same =
            all().filter(here).find(|one| one.origin.test_file().is_some_and(|one| one.options == options));
        let shown = made.file.place();
        let (device, route) = match same {
            Some(one) => (Arc::clone(&one.device), one.route.clone()),
            None => {
                let device = made.device(Arc::clone(clock)).map_err(|error| match error.kind {
                    ErrorKind::Unsupported => Error::new(Kind::Unsupported, &shown, error.to_string(), ""),
                    _ => Error::device(&shown, &error),
                })?;
                let route = Route::Kernel(device.engine().clone());
                (Arc::new(device) as _, route)
            }
        };
        let size = made.file.size();
        opened.push((
            *place,
            OpenedTarget {
                device,
                route,
                shown,
                kind: TargetKind::RegularFile,
                made: true,
                ours: true,
                size: options.append.unwrap_or(size),
                identity: None,
                notes: Vec::new(),
                needs_layout: (is_new && options.append.is_none()).then_some(0..size.0),
                counters: None,
                origin: Origin::TestFile(made),
                making: None,
            },
        ));
    }
    Ok(opened)
}

/// Creates the test file of a directory with the largest size wanted there.
fn make(directory: &Path, wanted: &[(usize, TargetRequest)], options: FileOptions) -> Result<MadeFile> {
    let sizes = wanted
        .iter()
        .filter(|(_, want)| want.options.append.is_none() && directory_of(want) == Some(directory))
        .filter_map(|(_, want)| want.intent.size);
    let size = if options.append.is_some() { Bytes(0) } else { sizes.max().unwrap_or(Bytes(0)) };
    let shown = directory.display().to_string();
    let file = TestFile::create(directory, size).map_err(|error| Error::device(&shown, &error))?;
    Ok(MadeFile { path: file.path(), file: Arc::new(file), directory: directory.to_owned(), options })
}

#[cfg(test)]
mod tests {
    use plumb_block::{
        Lba, LbaRange, Opening, Pattern, Payload, Pool, PoolShape, QueueOptions, Request, Tag, Time, Wait,
    };

    use super::*;
    use crate::{Intent, Permission};

    fn want(directory: &Path, size: Bytes, options: FileOptions) -> TargetRequest {
        let intent = Intent::WRITE.sized(size);
        TargetRequest { name: Name::parse(directory).unwrap(), intent, options }
    }

    #[test]
    fn a_directory_has_one_file_and_another_that_grows_and_both_are_gone_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let size = Bytes::mib(1);
        let grows = FileOptions { append: Some(size), ..FileOptions::write_buffered() };
        let synchronous = Opening { engine: plumb_block::EngineChoice::Synchronous, ..Opening::CACHED };
        let other = FileOptions::new(Access::ReadWrite, synchronous);
        let wanted = [
            want(directory.path(), size, FileOptions::write_buffered()),
            want(directory.path(), Bytes::mib(2), other),
            want(directory.path(), size, grows),
        ];
        let time = Time::real();
        let opened = crate::open_all(&wanted, &Permission::default(), &time).unwrap();
        assert_eq!(opened[0].path(), opened[1].path());
        assert_ne!(opened[0].path(), opened[2].path());
        assert_eq!([opened[0].size, opened[1].size, opened[2].size], [Bytes::mib(2), Bytes::mib(2), size]);
        let layouts: Vec<bool> = opened.iter().map(|one| one.needs_layout.is_some()).collect();
        assert_eq!(layouts, [true, false, false]);
        assert_eq!(std::fs::metadata(opened[2].path().unwrap()).unwrap().len(), 0);
        let pool = Pool::new(PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes(4096) }).unwrap();
        let mut queue = opened[2].device.open_queue(QueueOptions { depth: 1, pool }).unwrap();
        // The third append starts over.
        for (lba, length) in [(0, 4096), (8, 8192), (0, 4096)] {
            let pattern = Payload::Pattern(Pattern { seed: 1, lba: Lba(lba), generation: 1 });
            assert!(queue.submit(Request::write(Tag(0), LbaRange::new(Lba(lba), 8), pattern)).is_ok());
            let mut completions = Vec::new();
            queue.poll(Wait::ONE, &mut completions).unwrap();
            assert!(completions[0].outcome.is_done(), "{completions:?}");
            assert_eq!(std::fs::metadata(opened[2].path().unwrap()).unwrap().len(), length);
        }
        drop((queue, opened));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
