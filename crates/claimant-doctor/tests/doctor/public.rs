//! Templates of the field, by hand: `CLAIMANT_TEMPLATES=directory cargo test -p claimant-doctor --test doctor -- --ignored --nocapture`
//! prints what is found in each template below a directory. `PUBLIC.md` has what was looked at.

use std::fs;
use std::path::{Path, PathBuf};

use claimant_doctor::{Options, read, run};

fn templates(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            templates(&path, found);
        } else if path
            .extension()
            .is_some_and(|kind| ["yaml", "yml", "json", "template"].iter().any(|one| kind == *one))
        {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "by hand, on a directory of templates"]
fn public_templates() {
    let directory = PathBuf::from(std::env::var_os("CLAIMANT_TEMPLATES").unwrap());
    let mut found = Vec::new();
    templates(&directory, &mut found);
    for path in found {
        let name = path.strip_prefix(&directory).unwrap().display().to_string();
        match read(&path, &Options::default()) {
            Err(e) => println!("{name}: {e}"),
            Ok((system, _)) if system.mappings.is_empty() => println!("{name}: no mapping"),
            Ok((system, not_looked_at)) => {
                let report = run(&system);
                let unknown: usize = report.tallies.values().map(|tally| tally.unknown).sum();
                println!("{name}: {} mappings, {unknown} not known", system.mappings.len());
                for line in not_looked_at {
                    println!("    not looked at: {line}");
                }
                for finding in &report.findings {
                    let (place, check) = (&finding.place, finding.check);
                    println!(
                        "    {:?} {} {}:{} {}: {}",
                        finding.level, check.number, place.id, place.line, check.name, finding.what
                    );
                }
            }
        }
    }
}
