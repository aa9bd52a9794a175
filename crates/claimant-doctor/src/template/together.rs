//! Templates that are given together: those that import from each other are read as one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use claimant_template::Node;

use super::imports::{self, Owners};
use super::nested::{self, Given, Read};
use super::options::{Error, Options};
use crate::model::WITHIN;

/// Which templates are one system, each by its place.
pub(super) type Groups = fn(&[Read], &Owners) -> Vec<Vec<usize>>;

/// Reads templates, those of a group together; with their paths.
pub(super) fn read<'p>(
    paths: &[&'p Path],
    groups: Groups,
    options: &Options,
) -> Result<Vec<(Vec<&'p Path>, Read)>, Error> {
    let given = once(paths).into_iter().map(Given::read).collect::<Result<Vec<_>, _>>()?;
    let alone = given.iter().flat_map(|one| nested::scopes(&[(one, "")], &Owners::new(), options));
    let mut alone: Vec<Read> = alone.collect();
    nested::known(&alone, options)?;
    let stacks = stacks(&given.iter().map(|one| one.path).collect::<Vec<_>>());
    let owners = owners(&alone, &stacks);
    let mut read = Vec::new();
    for members in groups(&alone, &owners) {
        let whole = if let [only] = members[..] {
            std::mem::take(&mut alone[only])
        } else {
            let prefixes: Vec<_> = members.iter().map(|index| format!("{}{WITHIN}", stacks[*index])).collect();
            let each: Vec<_> =
                members.iter().zip(&prefixes).map(|(index, prefix)| (&given[*index], &**prefix)).collect();
            let mut whole = Read::default();
            for one in nested::scopes(&each, &owners, options) {
                whole.scopes.extend(one.scopes);
                whole.not_looked_at.extend(one.not_looked_at);
            }
            whole
        };
        read.push((members.iter().map(|index| given[*index].path).collect(), whole));
    }
    Ok(read)
}

/// Paths without those that lead to the same file as one before, of which nothing would be known to be the only one.
fn once<'p>(paths: &[&'p Path]) -> Vec<&'p Path> {
    // A pipe leads to no file.
    let file = |path: &&Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut seen = BTreeSet::new();
    paths.iter().copied().filter(|path| seen.insert(file(path))).collect()
}

/// What the stacks of these templates are called: as the files are, as `cdk synth` writes them; where two are called the same, by their paths,
/// without what ends a name where it is referred to; and where these are the same, by a number, too.
fn stacks(paths: &[&Path]) -> Vec<String> {
    let file = |path: &&Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names: Vec<_> = paths.iter().map(|path| file(path).split('.').next().unwrap_or_default().to_owned()).collect();
    let plain: Vec<_> = paths.iter().map(|path| path.display().to_string().replace(['.', '{', '}'], "_")).collect();
    let stack = |index: usize| {
        let (name, plain, before) = (&names[index], &plain[index], &plain[..index]);
        match names.iter().filter(|other| *other == name).count() {
            1 => name.clone(),
            _ if before.contains(plain) => format!("{plain} {}", index + 1),
            _ => plain.clone(),
        }
    };
    (0..paths.len()).map(stack).collect()
}

fn owners(read: &[Read], stacks: &[String]) -> Owners {
    let mut owners = Owners::new();
    for (index, (read, stack)) in read.iter().zip(stacks).enumerate() {
        let mut add = |key| {
            owners.entry(key).and_modify(|owner| *owner = None).or_insert(Some(index));
        };
        for scope in &read.scopes {
            for (name, one) in scope.root.get("Outputs").map_or(&[][..], Node::entries) {
                scope.exported(one, stack).map(|name| imports::export(&name)).into_iter().for_each(&mut add);
                if scope.within.prefix.is_empty() {
                    add(imports::given(stack, name));
                }
            }
        }
    }
    owners
}

/// All templates.
pub(super) fn all(read: &[Read], _: &Owners) -> Vec<Vec<usize>> {
    vec![(0..read.len()).collect()]
}

/// The templates that import from each other, in the order of the first of each.
pub(super) fn importing(read: &[Read], owners: &Owners) -> Vec<Vec<usize>> {
    let mut numbers: Vec<usize> = (0..read.len()).collect();
    for (index, read) in read.iter().enumerate() {
        let mut keys = Vec::new();
        read.scopes.iter().for_each(|scope| scope.aside(|| scope.imports(&scope.root, &mut keys)));
        for owner in keys.iter().filter_map(|key| *owners.get(key)?) {
            let (from, to) = (numbers[index], numbers[owner]);
            numbers.iter_mut().filter(|number| **number == from).for_each(|number| *number = to);
        }
    }
    let mut groups = BTreeMap::<usize, Vec<usize>>::new();
    for (index, number) in numbers.into_iter().enumerate() {
        groups.entry(number).or_default().push(index);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_unstable();
    groups
}
