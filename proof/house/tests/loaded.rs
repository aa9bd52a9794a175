//! How much of a function is loaded at its start. The size of a release is checked where one is built: `make bench`.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use claimant_house::{loaded, source};

/// The most that is loaded of a function as `make test` builds it, which is three times what is deployed: a dependency that was not there
/// before shows here as well.
const LOADED_MAX: u64 = 27_000_000;

/// Room for the header and the table of segments.
const HEAD: u64 = 4_096;

fn head(program: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    let file = File::open(program).unwrap_or_else(|e| panic!("{} is not built: {e}", program.display()));
    file.take(HEAD).read_to_end(&mut head).expect("it is readable");
    head
}

#[test]
#[ignore = "needs the built functions: make test"]
fn functions_load_little() {
    let test = std::env::current_exe().expect("this test has a path");
    let built = test.ancestors().nth(2).expect("a test is two folders below the build");
    let mut found = Vec::new();
    for entry in fs::read_dir(source::repository().join("functions")).expect("there are functions") {
        let name = entry.expect("an entry").file_name();
        if let Some(bytes) = loaded::bytes(&head(&built.join(&name))) {
            found.push((name, bytes));
        }
    }
    assert!(found.iter().all(|(_, bytes)| *bytes <= LOADED_MAX), "at most {LOADED_MAX} bytes are loaded: {found:?}");
    let counts = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    assert!(found.len() > 5 || !counts, "the check finds functions: {found:?}");
}

#[test]
fn what_is_loaded_is_read_from_the_header() {
    let test = std::env::current_exe().expect("this test has a path");
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let whole = fs::metadata(&test).expect("it is there").len();
        let bytes = loaded::bytes(&head(&test)).expect("this test is such a program");
        assert!((whole / 20..whole).contains(&bytes), "{bytes} of {whole}");
        assert_eq!(loaded::bytes(&head(&test)[..80]), None, "it is cut off");
    }
    assert_eq!(loaded::bytes(b"\xcf\xfa\xed\xfe of another system"), None);
}
