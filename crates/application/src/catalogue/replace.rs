//! registry-kv and save: whole-file replacement. A temporary file is written, synced and renamed over the old
//! one; then the directory is synced, because otherwise a power cut may bring back the old file. Variants of
//! save omit one or both of these syncs.

use std::path::PathBuf;

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};

pub(super) struct Replace {
    threads: u32,
    /// Name of the directories, to which the number of the thread is appended.
    directory: &'static str,
    names: Vec<String>,
    temporary: &'static str,
    bytes: u64,
    fsync: bool,
    directory_fsync: bool,
}

impl Replace {
    /// Creates the program with values of 4 KiB, chosen uniformly.
    pub(super) fn registry_kv(setting: &Setting) -> Self {
        Self {
            threads: setting.threads,
            directory: "registry",
            names: (0..setting.scaled(1000, 1)).map(|number| format!("key{number:04}")).collect(),
            temporary: "new.tmp",
            bytes: 4096,
            fsync: true,
            directory_fsync: true,
        }
    }

    /// Creates the program with a single document of 2 MB.
    pub(super) fn save(setting: &Setting) -> Self {
        Self {
            threads: setting.threads,
            directory: "documents",
            names: vec!["document".to_owned()],
            temporary: "document.tmp",
            bytes: 2_000_000,
            fsync: setting.variant != "no-sync",
            directory_fsync: setting.variant == "directory-fsync",
        }
    }

    fn directory(&self, thread: u32) -> PathBuf {
        PathBuf::from(format!("{}{thread}", self.directory))
    }
}

impl Program for Replace {
    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(u64::from(self.threads) * self.names.len() as u64 * self.bytes);
        for thread in 0..self.threads {
            let directory = self.directory(thread);
            hand.create_directory(&directory)?;
            for name in &self.names {
                preparation.file(hand, &directory.join(name), self.bytes)?;
            }
        }
        Ok(())
    }

    fn actor(&self, number: u32, _hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let directory = self.directory(number);
        let temporary = directory.join(self.temporary);
        Ok(Box::new(move |hand: &mut Hand<'_>| {
            let name = &self.names[hand.chance.below(self.names.len() as u64) as usize];
            let began = hand.begin();
            let file = hand.create(&temporary)?;
            hand.write(file, 0, self.bytes)?;
            if self.fsync {
                hand.fsync(file)?;
            }
            hand.close(file)?;
            hand.rename(&temporary, &directory.join(name))?;
            if !self.directory_fsync {
                hand.end(began);
                return Ok(());
            }
            hand.fsync_directory(&directory)?;
            hand.end_durable(began);
            Ok(())
        }))
    }
}
