//! Prints what the house rules are about: lines by crate and street, what is long, wide or in a circle.

use claimant_house::sizes::{self, Sized};
use claimant_house::{FIELDS_MAX, FILE_LINES_MAX, FUNCTION_LINES_MAX, PARAMETERS_MAX, circles, source, words};

fn main() {
    let root = source::repository();
    let (mut files, mut functions, mut fields, mut parameters) = (vec![], vec![], vec![], vec![]);
    for street in ["crates", "proof", "functions"] {
        let mut sum = 0;
        for krate in source::street(&root, street) {
            let lines: usize = krate.files.iter().map(|file| file.lines).sum();
            sum += lines;
            println!("{lines:>7}  {street}/{}", krate.name);
            for file in &krate.files {
                files.push(Sized { what: file.path.display().to_string(), size: file.lines });
                let of = sizes::of(file);
                functions.extend(of.functions);
                fields.extend(of.fields);
                parameters.extend(of.parameters);
            }
            for circle in circles::of(&krate) {
                println!("         circle of {}: {}", circle.len(), circle.join(", "));
            }
            if krate.name == "claimant-core" {
                let found = words::of(&krate, words::SYSTEMS);
                println!("         {} names of other systems", found.len());
                found.iter().for_each(|word| println!("           {word}"));
            }
        }
        println!("{sum:>7}  {street}\n");
    }
    show("lines of files, without tests", files, FILE_LINES_MAX);
    show("lines of functions", functions, FUNCTION_LINES_MAX);
    show("fields", fields, FIELDS_MAX);
    show("parameters", parameters, PARAMETERS_MAX);
}

/// Prints the ten largest, and all that are over the limit.
fn show(title: &str, mut all: Vec<Sized>, most: usize) {
    all.sort_by_key(|one| std::cmp::Reverse(one.size));
    let over = all.iter().filter(|one| one.size > most).count();
    println!("{title}: {over} over {most}");
    all.iter().take(over.max(10)).for_each(|one| println!("{:>7}  {}", one.size, one.what));
    println!();
}
