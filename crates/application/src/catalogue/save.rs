//! save: an editor or an office program saves a document.

use std::path::PathBuf;

use plumb_block::{Bytes, Nanos};

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "save",
    summary: "save a document of 2 MB as editors do: write a temporary file, fsync, rename",
    pattern: "A transaction creates a temporary file beside the document, writes 2,000,000 B, fsync, close, renames \
              it over the document; directory-fsync: then fsync of the directory, without which the old document may \
              come back after a power cut.",
    provenance: Provenance::Modelled,
    source: "What GLib, Qt and LibreOffice do when they save. Estimated: 2 MB, written by one call. This is no part \
             of WinBench or any other benchmark, and its figures are equivalent to none of theirs.",
    leaves_out: "Backup copies, lock files, previews; the time a user takes between saves.",
    criteria: &[],
    variants: &[
        Variant { name: "rename", summary: "as editors do: the directory is not made durable" },
        Variant { name: "directory-fsync", summary: "the directory is made durable, too" },
    ],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Files(FileWork {
        program: |setting| Box::new(Save::new(setting)),
        room: Bytes::mib(8),
        each_thread: true,
    }),
};

const DOCUMENT: u64 = 2_000_000;

struct Save {
    threads: u32,
    directory_fsync: bool,
}

struct Thread<'a> {
    plan: &'a Save,
    directory: PathBuf,
}

impl Save {
    fn new(setting: &Setting) -> Self {
        Self { threads: setting.threads_or(1), directory_fsync: setting.variant == "directory-fsync" }
    }

    fn directory(number: u32) -> PathBuf {
        PathBuf::from(format!("documents{number}"))
    }
}

impl Program for Save {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn call_bytes_max(&self) -> u64 {
        DOCUMENT
    }

    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(u64::from(self.threads) * DOCUMENT);
        for number in 0..self.threads {
            let directory = Self::directory(number);
            hand.create_directory(&directory)?;
            preparation.file(hand, &directory.join("document"), DOCUMENT)?;
        }
        Ok(())
    }

    fn actor(&self, number: u32, _hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        Ok(Box::new(Thread { plan: self, directory: Self::directory(number) }))
    }
}

impl Actor for Thread<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let (temporary, document) = (self.directory.join("document.tmp"), self.directory.join("document"));
        let began = hand.begin();
        let file = hand.create(&temporary)?;
        hand.write(file, 0, DOCUMENT)?;
        hand.fsync(file)?;
        hand.close(file)?;
        hand.rename(&temporary, &document)?;
        if self.plan.directory_fsync {
            hand.fsync_directory(&self.directory)?;
            hand.end_durable(began);
        } else {
            hand.end(began);
        }
        Ok(())
    }
}
