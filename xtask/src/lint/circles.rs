//! Cycles of files within a crate: a file in one cannot be understood, tested or moved without all the
//! others.
//!
//! An arrow leads from a file to each other file whose item it names by a path, in a `use` or in code. A name
//! that a module only re-exports leads to the file that defines it. Tests are excluded, and so are the
//! arguments of macros, which are not parsed. Two files that use each other, such as a module and its only
//! child, do not count as a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

use super::offence::Offence;
use crate::workspace::tracked;

/// Finds the files of each crate in cycles of more than two.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for name in tracked(root, &[".rs"])? {
        let Some((package, file)) = name.split_once("/src/") else { continue };
        let is_test = file.ends_with("tests.rs") || file.split('/').any(|part| part == "tests");
        if !is_test {
            let text = fs::read_to_string(root.join(&name)).with_context(|| name.clone())?;
            crates.entry(package.to_owned()).or_default().push((file.to_owned(), text));
        }
    }
    let mut offences = Vec::new();
    for (package, files) in &crates {
        for (file, uses) in circles(files).with_context(|| package.clone())?.into_iter().flatten() {
            let what = format!("lies in a circle of files: uses {}", uses.join(" "));
            offences.push(Offence::new(format!("{package}/src/{file}"), what));
        }
    }
    Ok(offences)
}

/// Module, as the list of names from the root of its crate.
type Module = Vec<String>;

/// File in a cycle, and the files of the cycle that it uses.
type Member = (String, Vec<String>);

/// Returns the cycles of more than two files, each in alphabetical order. Files are given by their path below
/// `src` and their text.
///
/// # Errors
/// If a file is not Rust.
fn circles(files: &[(String, String)]) -> Result<Vec<Vec<Member>>> {
    let mut crate_map = CrateMap::default();
    let mut parsed = Vec::new();
    for (file, text) in files {
        let syntax = syn::parse_file(text).with_context(|| file.clone())?;
        let module = module_of(file);
        crate_map.files.insert(module.clone(), file.clone());
        parsed.push((module, syntax));
    }
    for (module, syntax) in &parsed {
        crate_map.add_reexports(module, &syntax.items);
    }
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, syntax) in &parsed {
        let mut named = NamedPaths { module: module.clone(), paths: Vec::new(), crate_map: &crate_map };
        named.visit_file(syntax);
        let Some(from) = crate_map.file(module) else { continue };
        let to = named.paths.iter().filter_map(|(module, path)| crate_map.defining_file(module, path, 0));
        arrows.entry(from).or_default().extend(to.filter(|to| *to != from));
    }
    let groups = strongly_connected(&arrows).into_iter().filter(|group| group.len() > 2);
    let members = |group: Vec<String>| {
        let uses = |file: &String| {
            let to = arrows.get(file.as_str()).into_iter().flatten().map(|to| (*to).to_owned());
            to.filter(|to| group.contains(to)).collect()
        };
        group.iter().map(|file| (file.clone(), uses(file))).collect()
    };
    Ok(groups.map(members).collect())
}

/// Returns the module in a file below `src`.
fn module_of(file: &str) -> Module {
    let path = file.trim_end_matches(".rs");
    let mut module: Module = path.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod") || ["lib", "main"].contains(&path) {
        module.pop();
    }
    module
}

/// Modules of a crate, and the names that they re-export.
#[derive(Default)]
struct CrateMap {
    files: BTreeMap<Module, String>,
    /// Paths of re-exported names, by module and name; globs are below `*`.
    reexports: BTreeMap<(Module, String), Vec<Vec<String>>>,
}

impl CrateMap {
    /// Returns the file of a module, or of the innermost enclosing module that has one.
    fn file(&self, module: &[String]) -> Option<&str> {
        (0..=module.len()).rev().find_map(|length| self.files.get(&module[..length])).map(String::as_str)
    }

    fn add_reexports(&mut self, module: &Module, items: &[Item]) {
        for item in items {
            let Item::Use(item) = item else { continue };
            if matches!(item.vis, Visibility::Inherited) {
                continue;
            }
            for (path, name) in paths_of(&item.tree) {
                self.reexports.entry((module.clone(), name)).or_default().push(path);
            }
        }
    }

    /// Returns the module at which a path begins, and the number of segments that this took; `None` for other
    /// crates.
    fn start(&self, module: &[String], path: &[String]) -> Option<(Module, usize)> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        match path.first()?.as_str() {
            "crate" => Some((Vec::new(), 1)),
            "super" => Some((module[..module.len().saturating_sub(supers)].to_vec(), supers)),
            "self" if path.get(1).is_some_and(|name| name == "super") => {
                self.start(module, &path[1..]).map(|(start, taken)| (start, taken + 1))
            }
            "self" => Some((module.to_vec(), 1)),
            child => {
                let below = [module, &[child.to_owned()]].concat();
                self.files.contains_key(&below).then_some((below, 1))
            }
        }
    }

    /// Returns the file that defines the item `path` used in `module`.
    fn defining_file(&self, module: &[String], path: &[String], depth: usize) -> Option<&str> {
        let (mut at, taken) = self.start(module, path)?;
        for (index, name) in path.iter().enumerate().skip(taken) {
            let below = [&at[..], std::slice::from_ref(name)].concat();
            if self.files.contains_key(&below) {
                at = below;
                continue;
            }
            // A name may be re-exported through several modules, but not in a cycle; eight steps are enough.
            let named = self.reexports.get(&(at.clone(), name.clone())).filter(|_| depth < 8);
            let passed_on = named.into_iter().flatten().find_map(|target| {
                let rest = [&target[..], &path[index + 1..]].concat();
                self.defining_file(&at, &rest, depth + 1)
            });
            return passed_on.or_else(|| self.file(&at));
        }
        self.file(&at)
    }
}

/// Returns every path of a `use`, with the name that it introduces.
fn paths_of(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    fn walk(tree: &UseTree, before: &[String], paths: &mut Vec<(Vec<String>, String)>) {
        let joined = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => walk(&path.tree, &joined(path.ident.to_string()), paths),
            UseTree::Name(name) if name.ident == "self" => {
                paths.push((before.to_vec(), before.last().cloned().unwrap_or_default()));
            }
            UseTree::Name(name) => paths.push((joined(name.ident.to_string()), name.ident.to_string())),
            UseTree::Rename(name) => paths.push((joined(name.ident.to_string()), name.rename.to_string())),
            UseTree::Glob(_) => paths.push((before.to_vec(), "*".to_owned())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, before, paths)),
        }
    }
    let mut paths = Vec::new();
    walk(tree, &[], &mut paths);
    paths
}

/// Collects the paths in a file, each with the module in which it occurs.
struct NamedPaths<'a> {
    module: Module,
    paths: Vec<(Module, Vec<String>)>,
    crate_map: &'a CrateMap,
}

/// True for an item that only tests compile.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for NamedPaths<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let reexports = !matches!(item.vis, Visibility::Inherited);
        for (path, _) in paths_of(&item.tree) {
            // A module that only re-exports a name of its child does not use it.
            let is_child = reexports
                && path.first().is_some_and(|first| {
                    self.crate_map
                        .files
                        .contains_key(&[&self.module[..], std::slice::from_ref(first)].concat())
                });
            if !is_child {
                self.paths.push((self.module.clone(), path));
            }
        }
    }

    /// A visibility names a module but does not use it.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.paths.push((self.module.clone(), names));
        }
        visit::visit_path(self, path);
    }
}

/// Returns the groups of files that all reach each other (strongly connected components).
fn strongly_connected(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
    let reached = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from.to_owned()];
        while let Some(at) = open.pop() {
            for to in arrows.get(at.as_str()).into_iter().flatten() {
                if seen.insert((*to).to_owned()) {
                    open.push((*to).to_owned());
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<String>> = arrows.keys().map(|from| (*from, reached(from))).collect();
    let mut grouped = BTreeSet::new();
    let mut groups = Vec::new();
    for (from, to) in &reach {
        if !to.contains(*from) || grouped.contains(from) {
            continue;
        }
        let leads_back = |other: &&str| reach.get(*other).is_some_and(|back| back.contains(*from));
        let group: Vec<&str> = to.iter().map(String::as_str).filter(leads_back).collect();
        groups.push(group.iter().map(|name| (*name).to_owned()).collect());
        grouped.extend(reach.keys().filter(|name| group.contains(name)).copied());
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<_> =
            files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        let names = |circle: Vec<Member>| circle.into_iter().map(|(file, _)| file).collect();
        circles(&files).unwrap().into_iter().map(names).collect()
    }

    #[test]
    fn three_files_that_use_each_other_are_a_circle() {
        let a = ("a.rs", "use crate::b::B; pub struct A(B);");
        let b = ("b/mod.rs", "use super::c; pub struct B; fn x() { c::y() }");
        let c = ("c.rs", "pub fn y() { crate::a::A::new(); }");
        assert_eq!(found(&[a, b, c]), [["a.rs", "b/mod.rs", "c.rs"]]);
        assert!(found(&[a, b, ("c.rs", "pub fn y() {}")]).is_empty());
    }

    #[test]
    fn a_name_that_is_passed_on_leads_to_where_it_is_defined() {
        let root = ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub(crate) use b::B as Bee;");
        let a = ("a.rs", "use crate::Bee; pub struct A(Bee);");
        let b = ("b.rs", "use crate::c::C; pub struct B(C);");
        let c = ("c.rs", "use crate::A; pub struct C(Box<A>);");
        assert_eq!(found(&[root, a, b, c]), [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn two_files_and_tests_are_no_circle() {
        let parent = ("a/mod.rs", "mod b; use b::B; pub struct A(B);");
        let child = ("a/b.rs", "use super::A; pub struct B;");
        let tests = ("c.rs", "use crate::a::A; #[cfg(test)] mod tests { use crate::d::D; }");
        let other = ("d.rs", "use crate::c::C; pub struct D;");
        assert!(found(&[parent, child, tests, other]).is_empty());
    }
}
