//! Why a function has no program, and how to get one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::programs::{BOOTSTRAP, Programs, own_targets};
use crate::lambda::{FOREIGN, Places};
use crate::stack::FunctionSpec;

/// Returns where the program of a function was looked for, what is there in its place, and how to get one.
pub(super) fn line(spec: &FunctionSpec, places: &Places, programs: &Programs<'_>, template: &Path) -> String {
    let mut named = places.all().filter(|path| is_named(path));
    let place = named.next().or(places.all().next());
    let others = named.filter(|path| path.parent().is_some_and(Path::is_dir));
    let others: String = others.map(|path| format!(", nor at {}", path.display())).collect();
    let first = place.map(|path| path.display().to_string()).unwrap_or_default();
    let unusable = places.unusable();
    let fix = programs.fault(spec).unwrap_or_else(|| build(spec, unusable, programs, template));
    let unusable = match unusable {
        Some((path, why)) if place == Some(path) && others.is_empty() => format!(" (the file there {why})"),
        Some((path, why)) => format!(" ({} {why})", path.display()),
        None => String::new(),
    };
    format!("function {} has no binary at {first}{others}{unusable}: {fix}", spec.name)
}

/// Whether a program there has the name of the binary: so cargo builds it.
fn is_named(path: &Path) -> bool {
    path.file_name() != Some(OsStr::new(BOOTSTRAP))
}

fn build(spec: &FunctionSpec, unusable: Option<(&PathBuf, &str)>, programs: &Programs<'_>, template: &Path) -> String {
    let is_foreign = unusable.is_some_and(|(_, why)| why == FOREIGN);
    if unusable.is_some_and(|(path, _)| !is_foreign && path.is_file()) {
        return "make it executable with `chmod +x`".to_owned();
    }
    if spec.code.cargo || spec.code.binary_is_named {
        // As cargo built it, the same would come of it again.
        let is_configured = is_foreign && unusable.is_some_and(|(path, _)| is_named(path));
        let target = own_targets().into_iter().next().filter(|_| is_configured);
        let target = target.map(|target| format!(" --target {target}")).unwrap_or_default();
        return format!("build it with `cargo build -p {}{target}`", programs.package(spec));
    }
    if spec.code.is_asset {
        let bundle = if is_foreign {
            "bundle it for this machine: `cdk synth` does so for the function's `architecture`"
        } else {
            "bundle it with `cdk synth`"
        };
        return format!("{bundle}, or have it at {}/{BOOTSTRAP} in a directory for --binaries", spec.logical_id);
    }
    if is_foreign {
        return "build it for this machine: `sam build` builds for the function's `Architectures`".to_owned();
    }
    format!("build it with `sam build -t {}`", template.display())
}
