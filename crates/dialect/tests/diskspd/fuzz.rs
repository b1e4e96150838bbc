//! Arbitrary command lines and profiles yield a result or an error, and no panic.

use plumb_dialect::diskspd::{self, Command, read_profile, write_profile};
use proptest::prelude::*;

use super::machine;

/// Returns arguments that are almost valid.
fn argument() -> impl Strategy<Value = String> {
    let letters = "[-]{0,2}[a-zA-Z:?é#*]{0,2}";
    let values = prop_oneof![
        "[0-9]{0,22}[KMGTbkmgt]?".boxed(),
        "[a-z0-9,:/gi.-]{0,10}".boxed(),
        "(pct|abs)[0-9/:GMk]{0,12}".boxed(),
        "\\PC{0,6}".boxed(),
    ];
    prop_oneof![(letters, values).prop_map(|(letter, value)| letter + &value), Just("t".to_owned())]
}

/// Returns a profile with some bytes changed, removed or duplicated.
fn mutated(mut text: String, changes: &[(usize, u8, u8)]) -> String {
    for (place, kind, byte) in changes {
        let Some((place, character)) = text.char_indices().nth(place % text.chars().count().max(1)) else {
            break;
        };
        let after = place + character.len_utf8();
        match kind % 3 {
            0 => text.replace_range(place..after, &char::from(*byte).to_string()),
            1 => text.replace_range(place..after, ""),
            _ => {
                let end = text[after..]
                    .char_indices()
                    .nth(usize::from(*byte))
                    .map_or(text.len(), |(at, _)| after + at);
                let doubled = text[place..end].to_owned();
                text.insert_str(after, &doubled);
            }
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_command_line_has_an_answer(arguments in proptest::collection::vec(argument(), 0..6)) {
        let read = |_: &str| Ok("<Profile/>".to_owned());
        match diskspd::parse(&arguments, &machine(), &read) {
            Ok(Command::Run(invocation)) => {
                let meant = invocation.meaning(&machine(), &|_| None);
                prop_assert!(meant.is_ok() || !meant.unwrap_err().problem.is_empty());
                let text = invocation.profile_output(&machine());
                prop_assert!(text.contains('\n'));
            }
            Ok(Command::Usage) => {}
            Err(error) => prop_assert!(!error.place.is_empty() || arguments.iter().any(String::is_empty), "{error}"),
        }
    }

    #[test]
    fn any_xml_has_an_answer(text in "[<>/&;!a-zA-Z\"'= \n\\[\\]?-]{0,60}") {
        if let Err(error) = read_profile(&text, "p") {
            prop_assert!(error.place.starts_with('p'), "{error}");
        }
    }

    #[test]
    fn any_changed_profile_has_an_answer(changes in proptest::collection::vec(any::<(usize, u8, u8)>(), 1..6)) {
        let typed = "-Rpxml -b4k -r -rdpct10/10 -w30 -Sm -Nv -Z1m,noise -a0,1 -t2 -eq t #*".replace(" #*", " u");
        let profile = super::invocation(&typed).unwrap().profile;
        let text = mutated(write_profile(&profile), &changes);
        match read_profile(&text, "p") {
            Ok(read) => {
                let valid = read.validate(Some("p"), true);
                if valid.is_ok() {
                    prop_assert!(read.meaning(&machine(), &|_| None).map_or_else(|error| !error.problem.is_empty(), |_| true));
                }
            }
            Err(error) => prop_assert!(error.place.starts_with('p'), "{error}"),
        }
    }
}
