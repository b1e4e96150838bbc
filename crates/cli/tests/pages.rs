//! Tests of every kind of page in a real browser, in the widths of a screen and a telephone, with both colour
//! schemes: no text overflows its box, nothing is cut off or wider than the page, and a page with closed
//! folds has a limited height. plumb creates the documents on simulated drives, and each recording is also
//! shown with exaggerated names and figures.
//!
//! Skipped, with a message, without Chromium.

use std::path::{Path, PathBuf};

use plumb_testkit::browser;
use serde_json::Value;

use crate::common::{exited, plumb, said, scratch};
use crate::fleet::SHELL;

/// Maximum height of a page at a width of 1280 px with closed folds, in px.
const HEIGHT_MAX: u32 = 6000;

/// Script that examines a page once its charts are drawn: first as it opens, then unfolded. It sends its
/// complaints to the enclosing page.
const PROBE: &str = r##"<script>addEventListener("load", function () { setTimeout(function () {
  var out = [], height = document.documentElement.scrollHeight;
  if (innerWidth === 1280 && height > HEIGHT_MAX && !/exaggerated|observe/.test(window.name)) { out.push("height " + height); }
  if (/ready/.test(document.title)) { out.push("title " + document.title); }
  document.querySelectorAll("details").forEach(function (d) { d.open = true; });
  setTimeout(function () {
    function name(e) { return e.tagName + "." + (e.getAttribute("class") || "") + " " + e.textContent.trim().slice(0, 40); }
    document.querySelectorAll("body *").forEach(function (e) {
      var box = e.getBoundingClientRect(), style = getComputedStyle(e);
      if (box.width === 0 || style.visibility === "hidden" || e.closest(".uplot")) { return; }
      if (box.right > innerWidth + .5 || box.left < -.5) { out.push("outside " + name(e)); }
      if (e.scrollWidth > e.clientWidth + 1 && /hidden|auto|scroll/.test(style.overflowX) && !e.closest("summary")) {
        out.push("cut " + name(e));
      }
    });
    var walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), node;
    while ((node = walk.nextNode())) {
      var e = node.parentElement, style = getComputedStyle(e);
      if (!node.data.trim() || /SCRIPT|STYLE|TITLE|NOSCRIPT/i.test(e.tagName) || style.visibility === "hidden" || e.closest("summary .gist")) { continue; }
      if (/`/.test(node.data) && !e.closest("pre, code")) { out.push("backtick " + name(e)); }
      var around = e.closest("svg") || e;
      while (getComputedStyle(around).display === "inline") { around = around.parentElement; }
      var box = around.getBoundingClientRect(), range = document.createRange();
      range.selectNodeContents(node);
      Array.prototype.forEach.call(range.getClientRects(), function (r) {
        if (r.width > 0 && (r.right > box.right + 1 || r.left < box.left - 1)) { out.push("overflows " + name(e)); }
      });
      var words = node.data.trim();
      if (/^(fsync|fdatasync|sync_file_range|[\d.,]+)$/.test(words) && range.getClientRects().length > 1) { out.push("broken " + words); }
    }
    document.querySelectorAll("tr").forEach(function (row) {
      var head = row.querySelector("th[scope=row]"), cell = row.querySelector("td.n");
      if (!head || !cell || !head.textContent.trim() || innerWidth < 700) { return; }
      function top(of) { var r = document.createRange(); r.selectNodeContents(of); return r.getBoundingClientRect().top; }
      if (Math.abs(top(head) - top(cell)) > 6) { out.push("not level " + name(head)); }
    });
    parent.postMessage({ frame: window.name, out: Array.from(new Set(out)).slice(0, 8).join("; ") }, "*");
  }, 400);
}, 300); });</script></body>"##;

/// Page, with its name for messages.
struct Page {
    name: String,
    html: String,
}

impl Page {
    /// Returns the frame that shows the page. Exaggerated names may make a page of any height.
    fn frame(&self, number: usize, width: u32, scheme: &str) -> String {
        let kind = if self.name.ends_with("exaggerated") { "exaggerated" } else { "plain" };
        format!("{number}-{width}-{scheme}-{kind}")
    }
}

/// Runs plumb, and returns the page that it prints. It may exit with 1 for a finding, or 3 for an incomplete
/// measurement.
fn printed(name: &str, arguments: &[&str], place: &Path) -> Page {
    let output = plumb().args(arguments).args(["--format", "html"]).current_dir(place).output().unwrap();
    let html = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(html.contains("</body>"), "{name}: {}", said(&output));
    Page { name: name.to_owned(), html }
}

/// Records a run in `place` under its name, and returns its directory.
fn recorded(name: &str, arguments: &[&str], place: &Path) -> PathBuf {
    let output = plumb().args(arguments).args(["--json", "--out", name]).current_dir(place).output().unwrap();
    let directory = place.join(name);
    assert!(directory.join("result.json").is_file(), "{name}: {}", said(&output));
    directory
}

/// Makes names in a document long, and measured figures large, but not counts.
fn exaggerate(value: &mut Value, key: &str) {
    const LONG: &str =
        "/a-name-of-many-words/nvme-SAMSUNG_MZQL21T9HCJR-00A07_S64GNE0RB00000000000000000000000000001.data";
    const NAMES: [&str; 8] = ["name", "compared", "against", "file", "path", "target", "title", "host"];
    const FIGURES: [&str; 9] =
        ["iops", "bytes_per_second", "mean", "std", "p50", "p75", "p99", "p999", "max"];
    match value {
        Value::Array(of) => of.iter_mut().for_each(|value| exaggerate(value, key)),
        Value::Object(of) => of.iter_mut().for_each(|(key, value)| exaggerate(value, key)),
        Value::String(text) if NAMES.contains(&key) => text.push_str(LONG),
        Value::Number(number) if number.is_f64() && FIGURES.contains(&key) => {
            *value = (number.as_f64().unwrap_or_default() * 1e4).into();
        }
        _ => {}
    }
}

/// Returns the page of a run, and its exaggerated page.
fn pages_of_run(name: &str, arguments: &[&str], place: &Path) -> [Page; 2] {
    let directory = recorded(name, arguments, place);
    let page = printed(name, &["report", name], place);
    let file = directory.join("result.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    exaggerate(&mut document, "");
    std::fs::write(&file, document.to_string()).unwrap();
    let Page { html, .. } = printed(name, &["report", name], place);
    [page, Page { name: format!("{name}, exaggerated"), html }]
}

/// Returns the pages of runs on simulated drives.
fn runs(place: &Path) -> Vec<Page> {
    let launcher = format!("sh -c '{SHELL}' {{host}}");
    let hosts = "a-host-of-a-long-name-[1-3].example.invalid";
    let remote = ["--launcher", &launcher, "--remote-plumb", env!("CARGO_BIN_EXE_plumb")];
    let load = ["sim:memory", "--size", "16M", "--duration", "300ms"];
    let fleet = [&["fleet", "load", "--hosts", hosts], &remote[..], &load].concat();
    let compare = "compare --factor drive=sas-15k,consumer-nvme-ssd,usb-stick --random --write 100 --sync-every 1 \
                   --duration 300ms --budget 60s";
    let compare: Vec<&str> = compare.split(' ').collect();
    let chapters = [&compare[..], &["--workload", "--depth 1", "--workload", "--block-size 64k"]].concat();
    let load = "load sim:he8-media-cache sim:sas-15k --random --write 50 --sync-every 8 --duration 3s --name";
    let name = "a job with a name that takes a whole line and does not end where names of jobs end";
    let load: Vec<&str> = load.split(' ').chain([name]).collect();
    let mut pages = Vec::new();
    for (name, arguments) in [
        ("check", &["check", "sim:consumer-sata-ssd", "--seconds", "2", "--size", "64M"][..]),
        ("load", &load),
        ("compare", &compare),
        ("compare-chapters", &chapters),
        ("study", &["study", "D"]),
        ("fleet", &fleet),
    ] {
        pages.extend(pages_of_run(name, arguments, place));
    }
    pages
}

/// Returns the pages of runs that need root; none without root.
fn runs_of_root(place: &Path) -> Vec<Page> {
    if !rustix::process::geteuid().is_root() {
        plumb_testkit::skip("not root: no page of an observation and of a proof");
        return Vec::new();
    }
    let mut pages = Vec::new();
    for (name, arguments) in [
        ("observe", &["observe", "--all", "--duration", "500ms"][..]),
        ("prove", &["prove", "app", "--subject", "files:rename-no-fsync", "--fs", "ext4", "--budget", "2s"]),
    ] {
        pages.extend(pages_of_run(name, arguments, place));
    }
    pages
}

/// Returns the pages of states that are printed and not recorded.
fn states(place: &Path) -> Vec<Page> {
    let long = "a-directory-whose-name-goes-on-and-on-without-an-end-and-has-no-place-to-break";
    std::fs::create_dir(place.join(long)).unwrap();
    let (backing, log) = (format!("{long}/backing"), format!("{long}/log"));
    std::fs::File::create(place.join(&backing)).unwrap().set_len(64 << 20).unwrap();
    let mut create = plumb();
    create.args(["cache", "create", "--name", "a-cache-with-a-long-name", "--size", "32M"]);
    create.args(["--backing", &backing, "--log", &log]).env("STATE_DIRECTORY", place).current_dir(place);
    exited(create.output().unwrap(), 0);
    let status = plumb()
        .args(["cache", "status", "--format", "html"])
        .env("STATE_DIRECTORY", place)
        .current_dir(place)
        .output()
        .unwrap();
    let status =
        Page { name: "cache status".to_owned(), html: String::from_utf8_lossy(&status.stdout).into_owned() };
    let writes = (0..400).map(|number| format!("/dev/sdx write {} 65536\n", number * 7919 % 16_384 * 65_536));
    let iolog = format!(
        "fio version 2 iolog\n/dev/sdx add\n/dev/sdx open\n{}/dev/sdx close\n",
        writes.collect::<String>()
    );
    std::fs::write(place.join("iolog"), iolog).unwrap();
    vec![
        status,
        printed(
            "cache advise",
            &["cache", "advise", "iolog", "--size", "32M,256M,1G", "--backing-rate", "150M"],
            place,
        ),
        printed("survey", &["survey", ".", long], place),
        printed("policy", &["policy", "show", "--all"], place),
        printed("drive list", &["drive", "list"], place),
    ]
}

/// Opens all pages in one browser, and returns the complaints about each; `None` without a browser.
fn complaints(pages: &[Page], directory: &Path) -> Option<Vec<String>> {
    let frames = [400, 1280].into_iter().flat_map(|width| ["light", "dark"].map(|scheme| (width, scheme)));
    let frames: Vec<(u32, &str)> = frames.collect();
    let probe = PROBE.replace("HEIGHT_MAX", &HEIGHT_MAX.to_string());
    let mut html = String::new();
    for (number, page) in pages.iter().enumerate() {
        for (width, scheme) in &frames {
            let name = page.frame(number, *width, scheme);
            let file = directory.join(format!("frame-{name}.html"));
            let themed = page.html.replacen("<html", &format!("<html data-theme=\"{scheme}\""), 1);
            std::fs::write(&file, themed.replace("</body>", &probe)).unwrap();
            html.push_str(&format!(
                r#"<iframe name="{name}" width="{width}" height="900" style="border:0" src="file://{}"></iframe>"#,
                file.display()
            ));
        }
    }
    let said = r#"<pre id="said"></pre><script>onmessage = function (e) { document.getElementById("said").textContent += "\n[at " + e.data.frame + "] " + e.data.out; };</script>"#;
    let seen =
        browser::open(&format!("<!doctype html><title>frames</title>{said}{html}"), "all-pages", directory)?;
    let mut wrong: Vec<String> =
        seen.said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    for (number, page) in pages.iter().enumerate() {
        for (width, scheme) in &frames {
            let at = format!("[at {}]", page.frame(number, *width, scheme));
            let found = seen.dom.lines().find_map(|line| line.strip_prefix(&at)?.split('<').next());
            if found.map(str::trim) != Some("") {
                let found = found.unwrap_or(" was not drawn");
                wrong.push(format!("{} at {width} px, {scheme}:{found}", page.name));
            }
        }
    }
    Some(wrong)
}

#[test]
fn every_page_fits_at_both_widths_in_both_schemes() {
    let place = scratch();
    let mut pages = runs(place.path());
    pages.extend(runs_of_root(place.path()));
    pages.extend(states(place.path()));
    // Pages can be kept for inspection.
    if let Some(kept) = std::env::var_os("PLUMB_PAGES") {
        for page in &pages {
            std::fs::write(Path::new(&kept).join(format!("{}.html", page.name)), &page.html).unwrap();
        }
    }
    let Some(wrong) = complaints(&pages, place.path()) else { return };
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
