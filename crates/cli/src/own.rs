//! Takes plumb's own options out of a command line of another program.

use crate::arguments::OwnArguments;
use crate::exit::{Exit, Refusal};

/// The own options of `arguments`, and the others in their order.
///
/// # Errors
/// If an option lacks its value.
pub(crate) fn take(arguments: &[String]) -> Result<(OwnArguments, Vec<String>), Refusal> {
    let mut own = OwnArguments::default();
    let mut rest = Vec::new();
    let mut typed = arguments.iter();
    while let Some(argument) = typed.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let mut value = || {
            value
                .clone()
                .or_else(|| typed.next().cloned())
                .ok_or_else(|| Refusal::new(Exit::Usage, format!("{name}: expected a value after it")))
        };
        match name {
            "--overwrite" if name == argument => own.overwrite = true,
            "--json" if name == argument => own.json = true,
            "--tui" if name == argument => own.tui = true,
            "--show-workload" if name == argument => own.show_workload = true,
            "--destroy" => own.destroy.push(value()?),
            "--out" => own.out = Some(value()?.into()),
            _ => rest.push(argument.clone()),
        }
    }
    Ok((own, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn own_options_are_picked_out_wherever_they_stand() {
        let typed =
            strings(&["-w100", "--overwrite", "--destroy", "S1", "-c1G", "--destroy=S2", "x", "--out=d"]);
        let (own, rest) = take(&typed).unwrap();
        assert_eq!(rest, strings(&["-w100", "-c1G", "x"]));
        assert!(own.overwrite && !own.json);
        assert_eq!(own.destroy, strings(&["S1", "S2"]));
        assert_eq!(own.out, Some("d".into()));
        // With a value it is an option of fio.
        assert_eq!(take(&strings(&["--overwrite=1"])).unwrap().1, strings(&["--overwrite=1"]));
        assert!(take(&strings(&["--destroy"])).is_err());
    }
}
