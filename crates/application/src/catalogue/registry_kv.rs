//! registry-kv: values that are files, each replaced as a whole.

use std::path::PathBuf;

use plumb_block::{Bytes, Nanos};

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "registry-kv",
    summary: "settings as files: a temporary file of 4 KiB, fsync, rename, fsync of the directory",
    pattern: "A transaction replaces one of 1,000 values: create a temporary file, write 4 KiB, fsync, close, rename \
              over the value, fsync the directory. The new value is durable when the transaction ends.",
    provenance: Provenance::Modelled,
    source: "The way to replace a file that POSIX and Linux file systems call for, as configuration stores, \
             package managers and container registries do it. Estimated: 1,000 values of 4 KiB, each as likely.",
    leaves_out: "Reads, listing of directories, several writers of one directory.",
    criteria: &[],
    variants: &[Variant { name: "durable", summary: "file and directory made durable" }],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Files(FileWork {
        program: |setting| Box::new(RegistryKv::new(setting)),
        room: Bytes::mib(8),
        each_thread: true,
    }),
};

const VALUE: u64 = 4096;

struct RegistryKv {
    threads: u32,
    keys: u64,
}

struct Thread<'a> {
    plan: &'a RegistryKv,
    directory: PathBuf,
}

impl RegistryKv {
    fn new(setting: &Setting) -> Self {
        Self { threads: setting.threads_or(1), keys: setting.scaled(1000, 1) }
    }

    fn directory(number: u32) -> PathBuf {
        PathBuf::from(format!("registry{number}"))
    }
}

fn key(number: u64) -> String {
    format!("key{number:04}")
}

impl Program for RegistryKv {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(u64::from(self.threads) * self.keys * VALUE);
        for number in 0..self.threads {
            let directory = Self::directory(number);
            hand.create_directory(&directory)?;
            for number in 0..self.keys {
                preparation.file(hand, &directory.join(key(number)), VALUE)?;
            }
        }
        Ok(())
    }

    fn actor(&self, number: u32, _hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        Ok(Box::new(Thread { plan: self, directory: Self::directory(number) }))
    }
}

impl Actor for Thread<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let value = self.directory.join(key(hand.chance.below(self.plan.keys)));
        let temporary = self.directory.join("new.tmp");
        let began = hand.begin();
        let file = hand.create(&temporary)?;
        hand.write(file, 0, VALUE)?;
        hand.fsync(file)?;
        hand.close(file)?;
        hand.rename(&temporary, &value)?;
        hand.fsync_directory(&self.directory)?;
        hand.end_durable(began);
        Ok(())
    }
}
