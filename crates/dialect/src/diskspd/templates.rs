//! Names of targets: their validation, and the templates `*1`, `*2` of a profile, which the command line
//! replaces.

use super::profile::Profile;
use super::size::number;
use crate::error::Error;

/// Refuses names without a meaning on Linux.
///
/// # Errors
/// A drive letter, a Windows path, a malformed drive number or template.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let problem = |problem: &str, remedy: &str| Err(Error::new(name, problem).remedy(remedy));
    let mut characters = name.chars();
    let (first, second, third) = (characters.next(), characters.next(), characters.next());
    match (first, second, third) {
        (None, ..) => problem("a target without a name", "name a file, or a disk as #N or /dev/NAME"),
        (Some(letter), Some(':'), None | Some('\\' | '/')) if letter.is_ascii_alphabetic() => problem(
            &format!("'{name}': a drive letter means nothing on Linux"),
            "name a path, or a disk as #N or /dev/NAME",
        ),
        (Some('\\'), Some('\\'), _) => problem(
            &format!("'{name}': a Windows path means nothing on Linux"),
            "mount the share and name a path, or name a disk as #N or /dev/NAME",
        ),
        (Some('#'), ..) if drive_number(&name[1..]).is_none() => problem(
            &format!("'{name}' is not a drive: expected # and its number"),
            "write ./ before a file's name",
        ),
        (Some('*'), ..) if template_number(name).is_none() => problem(
            &format!("'{name}' is not a template: expected * and a number from 1"),
            "write ./ before a file's name",
        ),
        _ => Ok(()),
    }
}

fn drive_number(digits: &str) -> Option<u32> {
    number(digits).ok().and_then(|number| u32::try_from(number).ok())
}

/// Returns the index, from 0, of the name that replaces the template `name`; `None` for other names.
fn template_number(name: &str) -> Option<usize> {
    let place = number(name.strip_prefix('*')?).ok().and_then(|number| usize::try_from(number).ok())?;
    place.checked_sub(1)
}

/// Replaces the templates of `profile` with `names`. Without names, templates stay.
///
/// # Errors
/// Fails if a template has no name, or a name no template.
pub(super) fn fill_in(profile: &mut Profile, names: &[String], place: &str) -> Result<(), Error> {
    let mut used = vec![false; names.len()];
    for target in profile.time_spans.iter_mut().flat_map(|span| &mut span.targets) {
        let Some(number) = template_number(&target.path).filter(|_| !names.is_empty()) else { continue };
        let Some(name) = names.get(number) else {
            let problem = format!("the target '{}' has no name on the command line", target.path);
            return Err(Error::new(place, problem).remedy(format!("{} were given", names.len())));
        };
        target.path.clone_from(name);
        used[number] = true;
    }
    match used.iter().position(|used| !used) {
        None => Ok(()),
        Some(unused) => {
            let problem = format!("the profile has no template *{} for this target", unused + 1);
            Err(Error::new(&names[unused], problem)
                .remedy("targets beside -X fill in its templates *1, *2, ..."))
        }
    }
}
