//! Has relative relocations packed (DT_RELR), which else are a twentieth of the binary, where the C library
//! of this machine can read them: glibc 2.36. A binary for other machines is static, and linked as ever.

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
