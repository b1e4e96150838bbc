//! Packs relative relocations (DT_RELR), which otherwise take 5 % of the binary, if the C library of this
//! machine supports that (glibc 2.36). A static or cross-compiled binary is linked as usual.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_static =
        env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|features| features.contains("crt-static"));
    if env::var_os("TARGET") == env::var_os("HOST") && !is_static && reads_packed() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn reads_packed() -> bool {
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let minor = said.trim().strip_prefix("glibc 2.").and_then(|minor| minor.parse::<u32>().ok());
    minor.is_some_and(|minor| minor >= 36)
}
