//! A recording of a large machine, made by hand, and how long a survey of all of it takes.
//!
//! `thousand_disks DIR` writes the recording; `thousand_disks --measure DIR` surveys it and prints the milliseconds of
//! loading and surveying and the most memory that the process held. The machine: 1,000 SAS disks on 8 adapters, each
//! with one partition, ten partitions to an md RAID 6, a logical volume on each array and an ext4 on each volume.

use std::path::Path;
use std::time::Instant;

use plumb_linux::probe::wire::caching_page::{self, CachingPage};
use plumb_linux::probe::wire::dm;
use plumb_linux::probe::{PageControl, RecordedProbe, Request};
use plumb_linux::tree::RecordedTree;
use plumb_path::{Target, load, survey};

const DISKS: usize = 1000;
const DISKS_PER_ADAPTER: usize = 125;
const DISKS_PER_ARRAY: usize = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--measure", directory] => measure(Path::new(directory)),
        [directory] => write(Path::new(directory)),
        _ => Err("usage: thousand_disks [--measure] DIR".into()),
    }
}

fn write(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(directory)?;
    let (tree, probe) = machine();
    tree.save(&directory.join("tree.json"))?;
    probe.save(&directory.join("probe.json"))?;
    let header = r#"{ "schema": "plumb/recording/1", "target": null, "version": "made by hand" }"#;
    std::fs::write(directory.join("recording.json"), header)?;
    Ok(())
}

fn measure(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let recording = load(directory)?;
    let loaded = start.elapsed();
    let start = Instant::now();
    let found = survey(&recording.tree, &recording.probe, &Target::All)?;
    let surveyed = start.elapsed();
    let layers: usize = found.paths.iter().map(|path| path.layers.len()).sum();
    println!("{} paths, {layers} layers", found.paths.len());
    println!("load {:.1} ms, survey {:.1} ms", loaded.as_secs_f64() * 1e3, surveyed.as_secs_f64() * 1e3);
    let status = std::fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown"));
    Ok(())
}

/// The tree and the probe of the machine.
fn machine() -> (RecordedTree, RecordedProbe) {
    let mut tree = RecordedTree::new();
    let mut probe = RecordedProbe::new();
    tree.put_text("/proc/sys/kernel/osrelease", "6.12.0\n");
    tree.put_text("/proc/cpuinfo", "flags\t\t: fpu\n");
    tree.put_text("/proc/filesystems", "nodev\ttmpfs\n\text4\n");
    let arrays = DISKS / DISKS_PER_ARRAY;
    let mounts: String = (0..arrays)
        .map(|array| {
            format!("{} 1 253:{array} / /srv/{array} rw - ext4 /dev/mapper/vg-lv{array} rw\n", array + 100)
        })
        .collect();
    tree.put_text("/proc/self/mountinfo", &mounts);
    for number in 0..DISKS {
        disk(&mut tree, &mut probe, number);
    }
    for number in 0..arrays {
        array(&mut tree, number);
        volume(&mut tree, &mut probe, number);
    }
    (tree, probe)
}

fn disk(tree: &mut RecordedTree, probe: &mut RecordedProbe, number: usize) {
    let name = disk_name(number);
    let host = number / DISKS_PER_ADAPTER;
    let adapter = format!("/sys/devices/pci0000:00/0000:{:02x}:00.0", host + 1);
    let target = number % DISKS_PER_ADAPTER;
    let address = format!("{host}:0:{target}:0");
    let device = format!("{adapter}/host{host}/target{host}:0:{target}/{address}");
    let block = format!("{device}/block/{name}");
    tree.put_text(&format!("{adapter}/host{host}/scsi_host/host{host}/proc_name"), "mpt3sas\n");
    common(tree, &block, &name, (8, number * 16));
    tree.put_link(&format!("{block}/device"), "../..");
    tree.put_text(&format!("{device}/vendor"), "SEAGATE \n");
    tree.put_text(&format!("{device}/model"), "ST8000NM0075\n");
    tree.put_text(&format!("{device}/wwid"), &format!("naa.5000c500{number:08x}\n"));
    tree.put_text(&format!("{device}/scsi_disk/{address}/cache_type"), "write back\n");
    let part = format!("{block}/{name}1");
    tree.put_text(&format!("{part}/partition"), "1\n");
    tree.put_text(&format!("{part}/dev"), &format!("8:{}\n", number * 16 + 1));
    tree.put_names(&format!("{part}/holders"), &[format!("md{}", number / DISKS_PER_ARRAY)]);
    names(tree, &part, &format!("{name}1"), (8, number * 16 + 1));
    let page = CachingPage {
        saveable: true,
        write_cache: true,
        read_cache_disabled: false,
        nonvolatile_disabled: None,
        write_protected: false,
        dpofua: true,
    };
    probe.put(&name, Request::CachingPage(PageControl::Current), Ok(caching_page::encode(&page)));
    probe.put(&name, Request::ExtendedInquiry, Ok(vec![0, 0x86, 0, 4, 0, 0, 1, 0]));
}

fn array(tree: &mut RecordedTree, number: usize) {
    let name = format!("md{number}");
    let block = format!("/sys/devices/virtual/block/{name}");
    common(tree, &block, &name, (9, number));
    tree.put_text(&format!("{block}/md/level"), "raid6\n");
    tree.put_text(&format!("{block}/md/consistency_policy"), "bitmap\n");
    tree.put_text(&format!("{block}/md/degraded"), "0\n");
    for member in number * DISKS_PER_ARRAY..(number + 1) * DISKS_PER_ARRAY {
        let part = format!("{}1", disk_name(member));
        tree.put_link(&format!("{block}/slaves/{part}"), &format!("/sys/class/block/{part}"));
    }
    tree.put_names(&format!("{block}/holders"), &[format!("dm-{number}")]);
}

fn volume(tree: &mut RecordedTree, probe: &mut RecordedProbe, number: usize) {
    let name = format!("dm-{number}");
    let block = format!("/sys/devices/virtual/block/{name}");
    common(tree, &block, &name, (253, number));
    tree.put_text(&format!("{block}/dm/name"), &format!("vg-lv{number}\n"));
    tree.put_text(&format!("{block}/dm/uuid"), &format!("LVM-{number:032}\n"));
    tree.put_link(&format!("{block}/slaves/md{number}"), &format!("../../md{number}"));
    probe.put(
        &name,
        Request::DmTable,
        Ok(dm::encode(&[(0, 1 << 20, "linear", &format!("9:{number} 2048"))])),
    );
}

fn common(tree: &mut RecordedTree, block: &str, name: &str, number: (usize, usize)) {
    tree.put_text(&format!("{block}/dev"), &format!("{}:{}\n", number.0, number.1));
    tree.put_text(&format!("{block}/size"), "15628053168\n");
    tree.put_text(&format!("{block}/queue/write_cache"), "write back\n");
    tree.put_text(&format!("{block}/queue/fua"), "1\n");
    tree.put_link(&format!("/sys/block/{name}"), block);
    names(tree, block, name, number);
}

fn names(tree: &mut RecordedTree, block: &str, name: &str, number: (usize, usize)) {
    tree.put_link(&format!("/sys/class/block/{name}"), block);
    tree.put_link(&format!("/sys/dev/block/{}:{}", number.0, number.1), block);
}

/// `sda` to `sdz`, `sdaa` and on: drivers/scsi/sd.c (sd_format_disk_name).
fn disk_name(number: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = number as isize;
    while rest >= 0 {
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest = rest / 26 - 1;
    }
    format!("sd{}", letters.iter().rev().collect::<String>())
}
