//! Files of a job, and the part of them that is used.

use plumb_block::Bytes;
use plumb_workload::{Access, ByteRange, Distribution, Layout, Sequential, Workload};

use super::rw::Rw;
use crate::Error;
use crate::fio::options::Options;
use crate::fio::surroundings::Surroundings;
use crate::fio::value::Size;

/// Maximum number of files of a job.
const FILES_MAX: u64 = 1024;

/// Files of the clones of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Files {
    /// Files of each clone; a single entry if all clones use the same files.
    pub(super) of_clone: Vec<Vec<String>>,
}

impl Files {
    /// Returns true if all clones use the same files.
    pub(super) fn together(&self) -> bool {
        self.of_clone.len() == 1
    }

    /// Returns the files of clone `clone`.
    pub(super) fn names(&self, clone: u32) -> &[String] {
        &self.of_clone[clone as usize % self.of_clone.len()]
    }
}

/// Returns the files of `clones` clones.
pub(super) fn files(
    options: &Options<'_>,
    clones: u32,
    surroundings: &Surroundings<'_>,
) -> Result<Files, Error> {
    match options.text("ioengine")? {
        Some("nbd") => return export(options),
        Some("null") => return null_devices(options),
        _ => {}
    }
    let directories = options.text("directory")?.map(unescaped_list).unwrap_or_default();
    if let Some(missing) = directories.iter().find(|name| !(surroundings.is_directory)(name)) {
        // fio creates the directories of a file name, but the one named must exist: it may be a file system
        // that is not mounted.
        return options.refuse(
            "directory",
            format!("{missing} is not a directory"),
            "make it or mount it, or name another",
        );
    }
    let number = options.whole("nrfiles", 1..=FILES_MAX)?.unwrap_or(1);
    let in_directory =
        |clone: u32, name: &str| match directories.get(clone as usize % directories.len().max(1)) {
            Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
            None => name.to_owned(),
        };
    let (names, apart): (Box<dyn Fn(u32) -> Vec<String>>, bool) = match options.text("filename")? {
        Some("-") => return Err(options.error("filename", "standard input is not a target")),
        Some(list) => {
            unused_with_filename(options);
            let list = unescaped_list(list);
            if directories.is_empty() {
                note_schemes(options, &list, surroundings);
            }
            (Box::new(move |_| list.clone()), directories.len() > 1)
        }
        None => {
            let format = options.text("filename_format")?.unwrap_or("$jobname.$jobnum.$filenum").to_owned();
            let name = options.section.name.clone();
            let apart = format.contains("$jobnum") || directories.len() > 1;
            let made = move |clone: u32| {
                let numbered = |file: u64| {
                    let name = format.replace("$jobname", &name).replace("$jobnum", &clone.to_string());
                    name.replace("$filenum", &file.to_string())
                };
                (0..number).map(numbered).collect()
            };
            (Box::new(made), apart)
        }
    };
    let of_clone = |clone| names(clone).iter().map(|name| in_directory(clone, name)).collect();
    let of_clone: Vec<Vec<String>> = (0..if apart { clones } else { 1 }).map(of_clone).collect();
    if of_clone.iter().flatten().any(String::is_empty) {
        return Err(options.error("filename", "one of the names is empty"));
    }
    Ok(Files { of_clone })
}

/// Returns the export of a job with `ioengine=nbd`, the same for all clones.
fn export(options: &Options<'_>) -> Result<Files, Error> {
    options.note_unused(&["filename", "directory", "nrfiles", "filename_format"], "uri says which export");
    match options.text("uri")? {
        Some(uri) if uri.starts_with("nbd") => Ok(Files { of_clone: vec![vec![uri.to_owned()]] }),
        Some(uri) => options.refuse(
            "uri",
            format!("is {uri}: expected the URI of an NBD export"),
            "uri=nbd+unix:///?socket=/path, or uri=nbd://localhost/name",
        ),
        None => options.refuse(
            "ioengine",
            "is nbd: which export is not said",
            "uri=nbd+unix:///?socket=/path, or uri=nbd://localhost/name",
        ),
    }
}

fn unused_with_filename(options: &Options<'_>) {
    options.note_unused(&["filename_format", "nrfiles"], "filename says which files");
}

/// Notes that fio takes a name such as `sim:null` as several files, and how to type the target: the items
/// from one scheme to the next, or to the end of the list, joined.
fn note_schemes(options: &Options<'_>, list: &[String], surroundings: &Surroundings<'_>) {
    let is_scheme = |word: &String| (surroundings.is_scheme)(word);
    for parts in list.chunk_by(|_, next| !is_scheme(next)).filter(|parts| is_scheme(&parts[0])) {
        let Some((last, others)) = parts.split_last().filter(|(_, others)| !others.is_empty()) else {
            continue;
        };
        let name = parts.join(":").replace('\\', r"\\").replace(':', r"\:");
        options.note(format!(
            "fio splits filename at colons, so `{}` and `{last}` are {} files; to name one target, put a backslash before \
             every colon (`{name}`) and quote the name for the shell",
            others.join("`, `"),
            if parts.len() == 2 { "two".to_owned() } else { parts.len().to_string() }
        ));
    }
}

/// Splits a list at colons; `\:` is a colon in a name.
fn unescaped_list(text: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = list.last_mut();
        match (letter, letters.peek(), last) {
            ('\\', Some(':' | '\\'), Some(last)) => last.extend(letters.next()),
            (':', ..) => list.push(String::new()),
            (letter, _, Some(last)) => last.push(letter),
            (_, _, None) => {}
        }
    }
    list
}

/// Returns the layout of missing and short files. fio writes them in full for jobs that read, and with
/// `overwrite`; for others it reserves space only, so the first write to a block changes file system
/// metadata.
pub(super) fn layout(options: &Options<'_>, rw: &Rw) -> Result<Layout, Error> {
    let modes = ["native", "posix", "1", "keep", "truncate", "none", "0"];
    let mode = options.choice("fallocate", &modes)?.unwrap_or("native");
    let overwrites = options.truth("overwrite", false)?;
    if rw.reads || !rw.writes || overwrites {
        return Ok(Layout::Written);
    }
    Ok(match mode {
        "native" | "posix" | "1" | "keep" => Layout::Reserved,
        _ => Layout::Holes,
    })
}

/// Returns the null devices of a job with `ioengine=null`, which uses no file.
fn null_devices(options: &Options<'_>) -> Result<Files, Error> {
    options.note_unused(&["filename", "directory", "filename_format"], "ioengine=null touches no file");
    let number = options.whole("nrfiles", 1..=FILES_MAX)?.unwrap_or(1);
    let size = match (options.bytes("filesize")?, options.size("size")?) {
        (Some(size), _) => Some(size),
        (None, Some(Size::Bytes(size))) => Some(size / number),
        (None, Some(Size::Percent(_)) | None) => None,
    };
    let Some(size) = size else {
        return options.refuse("ioengine", "is null, which has no size of its own", "give size in bytes");
    };
    // Round up to blocks of the device, which holds at least 1 MiB.
    let size = size.next_multiple_of(4096).max(1 << 20);
    Ok(Files { of_clone: vec![vec![format!("sim:null?size={size}"); number as usize]] })
}

/// Part of each file that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Range of offsets.
    pub(super) range: ByteRange,
    /// Bytes that one clone moves on each file, if known.
    pub(super) io_bytes: Option<u64>,
    /// Size of files to create.
    pub(super) file_size: Option<Bytes>,
    /// True if a pass ends at its last offset, before it has moved the full size.
    pub(super) exhausts: bool,
    /// True if the range follows the present end of the files and is written once (`file_append`).
    pub(super) appends: bool,
}

/// Returns the part of each file that clone `clone` uses. `workload` still lacks that part.
pub(super) fn extent(
    options: &Options<'_>,
    files: &Files,
    clone: u32,
    workload: &Workload,
    surroundings: &Surroundings<'_>,
) -> Result<Extent, Error> {
    let names = files.names(clone);
    if options.truth("file_append", false)? {
        match names.iter().all(|file| (surroundings.is_file)(file)) {
            true => return appended(options, files, clone, workload, surroundings),
            false => options.note("file_append has no effect: it is for regular files"),
        }
    }
    let count = names.len().max(1) as u64;
    let file_size = options.bytes("filesize")?;
    let known = known_size(names, surroundings);
    let whole = file_size.or(known);
    let share_of_whole = |name: &'static str, percent: f64| match whole {
        Some(whole) => Ok((whole as f64 * percent / 100.0) as u64),
        None => options.refuse(
            name,
            "is a share of the file's size, which is not known",
            "give bytes, or filesize",
        ),
    };
    let offset = offset(options, clone, &share_of_whole)?;
    let left = whole.map(|whole| whole.saturating_sub(offset));
    let size = match options.size("size")? {
        None => None,
        Some(Size::Percent(100.0)) => left,
        Some(Size::Percent(percent)) => Some(share_of_whole("size", percent)?),
        Some(Size::Bytes(bytes)) => Some(bytes / count),
    };
    // If filesize is given, fio takes a size in bytes as the amount to move, not as a range.
    let length = match (options.size("size")?, file_size) {
        (Some(Size::Percent(_)), Some(_)) => size.min(left),
        (_, Some(_)) => left,
        (_, None) => size,
    };
    let range =
        |length: Option<u64>| ByteRange { offset: Bytes(offset), length: Bytes(length.unwrap_or(u64::MAX)) };
    let end = length.map(|length| offset.saturating_add(length));
    let size = size.or(left).map(|size| length.map_or(size, |length| length.min(size)));
    if let Some(each) = size.filter(|each| count > 1 && *each < workload.block_max().0) {
        return options.refuse(
            "size",
            format!(
                "leaves {} for each of {count} files, less than a block of {}",
                Bytes(each),
                workload.block_max()
            ),
            "give more, or fewer files",
        );
    }
    let pass = size.map(|size| pass(workload, range(length.or(left)), size, known.max(end)));
    Ok(Extent {
        range: range(length),
        io_bytes: io_bytes(options, count, size, pass, workload)?,
        file_size: file_size.or(end).map(Bytes),
        exhausts: pass < size,
        appends: false,
    })
}

/// Returns the bytes moved by a pass of at most `size`, in files that end at `file_end`. A sequential walk,
/// or a random visit to each block, ends when no whole block is left in the range.
///
/// A walk that skips ends when it leaves the range (get_next_seq_offset in io_u.c of fio 3.33). It restarts
/// only if its next operation, counted from the start of the range, would begin beyond the end of the file,
/// and its last one did not end there.
fn pass(workload: &Workload, range: ByteRange, size: u64, file_end: Option<u64>) -> u64 {
    let (block, length) = (workload.block_max().0, range.length.0);
    let Some(room) = length.checked_sub(block).filter(|_| block > 0 && workload.block_min().0 == block)
    else {
        return size;
    };
    let is_mixed = !workload.write_percent.is_multiple_of(100);
    let places = match &workload.access {
        Access::Sequential(Sequential { stride: Some(stride), .. }) if stride.0 > 0 => {
            let places = room / stride.0 + 1;
            let last_end = range.offset.0.saturating_add(room / stride.0 * stride.0 + block);
            let begins_again = |end: u64| last_end < end && places.saturating_mul(stride.0) >= end;
            if file_end.is_none_or(begins_again) {
                return size;
            }
            places
        }
        // fio walks separately for each direction, so neither reaches the end.
        Access::Sequential(_) if is_mixed => return size,
        Access::Random(random) if random.distribution != Distribution::EachOnce => return size,
        Access::Sequential(_) | Access::Random(_) => length / block,
    };
    size.min(places.saturating_mul(block))
}

/// Returns the total bytes, in passes of `pass` bytes (keep_running in backend.c of fio 3.33): `loops`
/// passes, or more until less than a block remains to `io_size`. Reads of verification count.
fn io_bytes(
    options: &Options<'_>,
    files: u64,
    size: Option<u64>,
    pass: Option<u64>,
    workload: &Workload,
) -> Result<Option<u64>, Error> {
    let loops = options.whole("loops", 1..=u64::MAX)?.unwrap_or(1);
    let io_size = match options.size("io_size")? {
        None => return Ok(pass.map(|pass| pass.saturating_mul(loops))),
        Some(Size::Bytes(bytes)) => Some(bytes / files),
        Some(Size::Percent(percent)) => size.map(|size| (size as f64 * percent / 100.0) as u64),
    };
    Ok(io_size.map(|io_size| {
        let all = io_size.saturating_mul(loops);
        let endless = matches!(&workload.access,
            Access::Random(random) if random.distribution != Distribution::EachOnce);
        let Some(pass) = pass.filter(|pass| *pass > 0 && !endless) else { return all };
        let counted = if workload.verify { pass.saturating_mul(2) } else { pass };
        let missing = io_size.saturating_add(1).saturating_sub(workload.block_max().0);
        all.min(pass.saturating_mul(missing.div_ceil(counted).max(loops)))
    }))
}

/// Returns the part after the end of the files. Clones that share files append one after another. fio 3.33
/// then ignores offsets, and stops after one pass regardless of `loops`, `io_size` and `time_based`.
fn appended(
    options: &Options<'_>,
    files: &Files,
    clone: u32,
    workload: &Workload,
    surroundings: &Surroundings<'_>,
) -> Result<Extent, Error> {
    let names = files.names(clone);
    let count = names.len().max(1) as u64;
    options.note_unused(
        &["offset", "offset_increment", "offset_align"],
        "file_append begins behind the end of the file",
    );
    let mut ends = names.iter().map(|file| (surroundings.target_size)(file).map_or(0, |size| size.0));
    let end = ends.next().unwrap_or(0);
    if ends.any(|other| other != end) {
        return options.refuse(
            "file_append",
            "begins in each file elsewhere, since they differ in size",
            "give each file a job of its own",
        );
    }
    let Some(Size::Bytes(size)) = options.size("size")? else {
        return options.refuse("file_append", "needs to know how much is appended", "give size in bytes");
    };
    let file_size = options.bytes("filesize")?;
    let left = file_size.map_or(u64::MAX, |file_size| file_size.saturating_sub(end));
    let length = left.min(size / count);
    let io_size = match options.size("io_size")? {
        Some(Size::Bytes(bytes)) => length.min(bytes / count),
        Some(Size::Percent(percent)) => length.min((length as f64 * percent / 100.0) as u64),
        None => length,
    };
    let before = (0..clone).filter(|other| files.names(*other) == names).count() as u64;
    let offset = end.saturating_add(length.saturating_mul(before));
    let range = ByteRange { offset: Bytes(offset), length: Bytes(length) };
    let new_end = offset.saturating_add(length).max(file_size.unwrap_or(0));
    let io_bytes = pass(workload, range, io_size, Some(new_end));
    Ok(Extent {
        range,
        io_bytes: Some(io_bytes),
        file_size: Some(Bytes(new_end)),
        exhausts: io_bytes < io_size,
        appends: true,
    })
}

fn offset(
    options: &Options<'_>,
    clone: u32,
    share_of_whole: &dyn Fn(&'static str, f64) -> Result<u64, Error>,
) -> Result<u64, Error> {
    let align = options.bytes("offset_align")?.unwrap_or(0);
    let bytes = |name: &'static str| match options.size(name)? {
        None => Ok(0),
        Some(Size::Bytes(bytes)) => Ok(bytes),
        Some(Size::Percent(percent)) => {
            let bytes = share_of_whole(name, percent)?;
            Ok(if align > 0 { bytes.div_ceil(align).saturating_mul(align) } else { bytes })
        }
    };
    let increment = bytes("offset_increment")?;
    let start = bytes("offset")?;
    let is_percent = |name| options.text(name).is_ok_and(|text| text.is_some_and(|text| text.ends_with('%')));
    if align > 0 && !is_percent("offset") && !is_percent("offset_increment") {
        options.note("offset_align has no effect: only offsets in percent are aligned");
    }
    Ok(start.saturating_add(increment.saturating_mul(u64::from(clone))))
}

/// Returns the present size of `files`, if it is the same for all.
fn known_size(files: &[String], surroundings: &Surroundings<'_>) -> Option<u64> {
    let mut sizes = files.iter().map(|file| (surroundings.target_size)(file));
    let first = sizes.next()??;
    sizes.all(|size| size == Some(first)).then_some(first.0)
}
