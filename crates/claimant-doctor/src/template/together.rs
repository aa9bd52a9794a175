//! Templates that are given together: those that import from each other are read as one.

use std::path::Path;

use claimant_template::Node;

use super::imports::{self, Owners};
use super::nested::{self, Read};
use super::options::{Error, Options};
use crate::model::WITHIN;

/// Reads templates, those together that import from each other; with their paths.
pub(super) fn read<'p>(paths: &[&'p Path], options: &Options) -> Result<Vec<(Vec<&'p Path>, Read)>, Error> {
    let alone = paths.iter().map(|path| nested::scopes(&[(path, "")], &Owners::new(), options));
    let alone = alone.map(|read| Ok(read?.remove(0))).collect::<Result<Vec<Read>, Error>>()?;
    nested::known(&alone, options)?;
    let stacks = stacks(paths);
    let owners = owners(&alone, &stacks);
    let groups = groups(&alone, &owners);
    let mut read = Vec::new();
    for (first, one) in alone.into_iter().enumerate() {
        let members: Vec<usize> = (first..paths.len()).filter(|other| groups[*other] == groups[first]).collect();
        match members.len() {
            _ if groups[..first].contains(&groups[first]) => {}
            1 => read.push((vec![paths[first]], one)),
            _ => {
                let prefixes: Vec<_> = members.iter().map(|index| format!("{}{WITHIN}", stacks[*index])).collect();
                let each: Vec<_> =
                    members.iter().zip(&prefixes).map(|(index, prefix)| (paths[*index], &**prefix)).collect();
                let together = nested::scopes(&each, &owners, options)?;
                let (mut scopes, mut not_looked_at) = (Vec::new(), Vec::new());
                for one in together {
                    scopes.extend(one.scopes);
                    not_looked_at.extend(one.not_looked_at);
                }
                let paths = members.iter().map(|index| paths[*index]).collect();
                read.push((paths, Read { scopes, not_looked_at }));
            }
        }
    }
    Ok(read)
}

/// What the stacks of these templates are called: as the files are, as `cdk synth` writes them; where two are called the same, by their paths,
/// without what ends a name where it is referred to.
fn stacks(paths: &[&Path]) -> Vec<String> {
    let name = |path: &Path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.split('.').next().unwrap_or_default().to_owned()
    };
    let is_alone = |path: &&Path| paths.iter().filter(|other| name(other) == name(path)).count() == 1;
    let plain = |(index, path): (usize, &&Path)| {
        let plain = path.display().to_string().replace(['.', '{', '}'], "_");
        let is_again = |other: &&Path| other.display().to_string().replace(['.', '{', '}'], "_") == plain;
        if paths[..index].iter().any(is_again) { format!("{plain} {}", index + 1) } else { plain }
    };
    paths
        .iter()
        .enumerate()
        .map(|(index, path)| if is_alone(path) { name(path) } else { plain((index, path)) })
        .collect()
}

fn owners(read: &[Read], stacks: &[String]) -> Owners {
    let mut owners = Owners::new();
    for (index, (read, stack)) in read.iter().zip(stacks).enumerate() {
        let mut add = |key| {
            owners.entry(key).and_modify(|owner| *owner = None).or_insert(Some(index));
        };
        for scope in &read.scopes {
            for (name, one) in scope.root.get("Outputs").map_or(&[][..], Node::entries) {
                scope.exported(one).map(|name| imports::export(&name)).into_iter().for_each(&mut add);
                if scope.prefix.is_empty() {
                    add(imports::given(stack, name));
                }
            }
        }
    }
    owners
}

/// For each template a number, the same for those that import from each other.
fn groups(read: &[Read], owners: &Owners) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..read.len()).collect();
    for (index, read) in read.iter().enumerate() {
        let mut keys = Vec::new();
        read.scopes.iter().for_each(|scope| scope.imports(&scope.root, &mut keys));
        for owner in keys.iter().filter_map(|key| *owners.get(key)?) {
            let (from, to) = (groups[index], groups[owner]);
            groups.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
        }
    }
    groups
}
